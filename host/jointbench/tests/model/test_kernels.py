"""What is particular to compiled work: forms of arrays, sizes of batches, threads."""

import gc
import importlib
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.model import Mimic, Robot, inverse_dynamics, load_robot, regressor, tree
from jointbench.model.tree import tree_of

# It has no type stubs.
pinocchio: Any = importlib.import_module("pinocchio")

RandomRobot = Callable[..., Robot]
RandomMotion = Callable[[Robot, int, int], tuple[Array, Array, Array]]

# Sums of a few hundred products of numbers below about 1e3 in double precision: 1e-11 relative leaves two decades.
ROUNDING = 1e-11
FROM_PINOCCHIO = [0, 1, 2, 3, 4, 5, 7, 6, 8, 9]


def with_random_axes(robot: Robot, seed: int) -> Robot:
    rng = np.random.default_rng(seed)
    joints = []
    for joint in robot.joints:
        axis = rng.normal(size=3)
        joints.append(replace(joint, axis=tuple((axis / np.linalg.norm(axis)).tolist())))
    return replace(robot, joints=tuple(joints))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kinds", ["R", "P", "RPRR", "RRRRRRR"])
@pytest.mark.parametrize("is_tree", [False, True])
def test_any_axis_agrees_with_pinocchio(
    kinds: str, seed: int, is_tree: bool, random_robot: RandomRobot, random_motion: RandomMotion
) -> None:
    robot = with_random_axes(random_robot(kinds, seed, tree=is_tree), seed)
    model = pinocchio.Model()
    for joint in robot.joints:
        of_kind = {
            "revolute": pinocchio.JointModelRevoluteUnaligned,
            "prismatic": pinocchio.JointModelPrismaticUnaligned,
        }
        moving = of_kind[joint.kind](np.array(joint.axis))
        model.addJoint(joint.parent + 1, moving, pinocchio.SE3(*joint.placement), joint.name)
    model.gravity.linear = np.array(robot.gravity)
    data = model.createData()
    q, dq, ddq = random_motion(robot, 20, seed)
    ours = regressor(robot, q, dq, ddq).reshape(20, robot.n_joints, robot.n_links, 10)
    for k in range(20):
        theirs = pinocchio.computeJointTorqueRegressor(model, data, q[k], dq[k], ddq[k])
        theirs = theirs.reshape(robot.n_joints, robot.n_links, 10)[:, :, FROM_PINOCCHIO]
        np.testing.assert_allclose(ours[k], theirs, rtol=ROUNDING, atol=ROUNDING * np.abs(theirs).max())


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("is_tree", [False, True])
def test_joints_that_mimic_add_their_rows_to_those_they_follow(
    seed: int, is_tree: bool, random_robot: RandomRobot, random_motion: RandomMotion
) -> None:
    """By the chain rule, from the robot whose joints all move by themselves."""
    free = with_random_axes(random_robot("RPRRPR", seed, tree=is_tree), seed)
    mimics = {3: Mimic(0, -0.7, 0.3), 4: Mimic(1, 2.0, -0.1), 5: Mimic(0, 1.5, 0.0)}
    joints = tuple(replace(joint, mimic=mimics.get(i)) for i, joint in enumerate(free.joints))
    bound = replace(free, joints=joints, drives=free.drives[:3], home=free.home[:3])
    chain = np.zeros((6, 3))
    chain[[0, 1, 2], [0, 1, 2]] = 1.0
    for i, mimic in mimics.items():
        chain[i, mimic.joint] = mimic.factor
    offset = np.array([mimics[i].offset if i in mimics else 0.0 for i in range(6)])
    q, dq, ddq = random_motion(bound, 20, seed)
    all_of_it = (q @ chain.T + offset, dq @ chain.T, ddq @ chain.T)

    rows = regressor(bound, q, dq, ddq).reshape(20, 3, 60)
    expected = np.einsum("jc,kjp->kcp", chain, regressor(free, *all_of_it).reshape(20, 6, 60))
    np.testing.assert_allclose(rows, expected, atol=ROUNDING * np.abs(expected).max())

    parameters = np.random.default_rng(seed).normal(size=60)
    torques = inverse_dynamics(bound, q, dq, ddq, parameters)
    np.testing.assert_allclose(torques, rows @ parameters, atol=ROUNDING * np.abs(torques).max())


@pytest.mark.parametrize("largest", [1.0, 1e3, 9e5, 1e8])
def test_angles_of_any_size(largest: float, random_robot: RandomRobot) -> None:
    """A pendulum at rest: its first moments' torques are gravity turned, and exact but for the last digits."""
    joint = replace(
        random_robot("R", 0).joints[0],
        rotation=((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
        origin=(0.0, 0.0, 0.0),
    )
    robot = replace(random_robot("R", 0), joints=(joint,), gravity=(0.0, -1.0, 0.0))
    quarters = np.arange(-9, 10) * np.pi / 2
    q = np.concatenate([np.random.default_rng(0).uniform(-largest, largest, 2000), quarters])[:, None]
    rows = regressor(robot, q, np.zeros_like(q), np.zeros_like(q))

    # The mathematics library's cosine is good to a unit in the last place of 1, and so is the product with gravity.
    np.testing.assert_allclose(rows[:, 1], np.cos(q[:, 0]), rtol=0.0, atol=2 * np.finfo(float).eps)
    np.testing.assert_allclose(rows[:, 2], -np.sin(q[:, 0]), rtol=0.0, atol=2 * np.finfo(float).eps)


def test_what_is_not_a_number_stays_with_its_sample(random_robot: RandomRobot, random_motion: RandomMotion) -> None:
    robot = random_robot("RRR", 0)
    q, dq, ddq = random_motion(robot, 20, 0)
    whole = regressor(robot, q, dq, ddq)
    for value in (np.nan, np.inf):
        q[9, 0] = value
        rows = regressor(robot, q, dq, ddq)
        assert np.isnan(rows[27:30]).any()
        np.testing.assert_array_equal(np.delete(rows, range(27, 30), axis=0), np.delete(whole, range(27, 30), axis=0))


@pytest.mark.parametrize("samples", [1, 2, 7, 257])
def test_any_number_of_samples(samples: int, random_robot: RandomRobot, random_motion: RandomMotion) -> None:
    robot = random_robot("RPR", 2, tree=True)
    motion = random_motion(robot, 300, 3)
    parameters = np.random.default_rng(0).normal(size=30)
    q, dq, ddq = (values[:samples] for values in motion)

    np.testing.assert_array_equal(regressor(robot, q, dq, ddq), regressor(robot, *motion)[: 3 * samples])
    torques = inverse_dynamics(robot, q, dq, ddq, parameters)
    np.testing.assert_array_equal(torques, inverse_dynamics(robot, *motion, parameters)[:samples])


def test_many_threads_may_call(random_motion: RandomMotion) -> None:
    robot = load_robot("cobot6")
    motions = [random_motion(robot, 1000, seed) for seed in range(6)]
    expected = [regressor(robot, *motion) for motion in motions]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            for ours, rows in zip(expected, pool.map(lambda motion: regressor(robot, *motion), motions), strict=True):
                np.testing.assert_array_equal(rows, ours)


def test_arrays_of_any_form(random_robot: RandomRobot, random_motion: RandomMotion) -> None:
    robot = random_robot("RPR", 4)
    q, dq, ddq = random_motion(robot, 20, 4)
    expected = regressor(robot, q, dq, ddq)
    read_only = q.copy()
    read_only.flags.writeable = False
    for other in (np.asfortranarray(q), np.repeat(q, 2, axis=1)[:, ::2], read_only, q.tolist()):
        np.testing.assert_array_equal(regressor(robot, other, dq, ddq), expected)
    for samples in (3, 20):
        still = np.broadcast_to(np.zeros(3), (samples, 3))
        rows = regressor(robot, q[:samples], still, still)
        np.testing.assert_array_equal(rows, regressor(robot, q[:samples], still.copy(), still.copy()))


def test_torques_go_where_they_are_wanted(random_motion: RandomMotion) -> None:
    robot = load_robot("cobot6")
    motion = random_motion(robot, 30, 0)
    parameters = np.arange(60.0)
    out = np.full((30, 6), 7.0)
    assert inverse_dynamics(robot, *motion, parameters, out=out) is out
    np.testing.assert_array_equal(out, inverse_dynamics(robot, *motion, parameters))


def test_the_compiler_is_not_imported_before_it_is_needed() -> None:
    program = "import sys, jointbench.model; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_tree_is_made_once_and_goes_with_its_robot(random_robot: RandomRobot) -> None:
    robot = random_robot("RR", 0)
    key = id(robot)
    assert tree_of(robot) is tree_of(robot)
    assert tree_of(random_robot("RR", 0)) is not tree_of(robot)
    assert key in tree._trees
    del robot
    gc.collect()
    assert key not in tree._trees
