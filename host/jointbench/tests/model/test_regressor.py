"""The regressor, its normal equations and its QR.

What is particular to compiled work: forms of arrays, sizes of batches, threads.
"""

import gc
import importlib
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.errors import FitError, ShapeError
from jointbench.model import Mimic, Robot, StreamingQR, inverse_dynamics, load_robot, normal_equations, regressor, tree
from jointbench.model.tree import tree_of

RandomRobot = Callable[..., Robot]
RandomMotion = Callable[[Robot, int, int], tuple[Array, Array, Array]]


def test_samples_do_not_depend_on_their_neighbours(random_robot: RandomRobot, random_motion: RandomMotion) -> None:
    """The batch is worked off in chunks; a sample's rows must not tell in which."""
    robot = random_robot("RRPR", 0)
    q, dq, ddq = random_motion(robot, 1100, 0)

    together = regressor(robot, q, dq, ddq)

    for k in (0, 511, 512, 1023, 1099):
        alone = regressor(robot, q[k : k + 1], dq[k : k + 1], ddq[k : k + 1])
        np.testing.assert_allclose(together[4 * k : 4 * k + 4], alone, rtol=1e-13, atol=1e-13)


def test_out_is_filled_whatever_it_held(random_robot: RandomRobot, random_motion: RandomMotion) -> None:
    robot = random_robot("RPR", 1)
    motion = random_motion(robot, 30, 1)
    expected = regressor(robot, *motion)
    out = np.full_like(expected, 7.0)

    returned = regressor(robot, *motion, out=out)

    assert returned is out
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("out", [np.zeros((6, 61)), np.zeros((6, 60), dtype=np.float32), np.zeros((60, 6)).T])
def test_out_of_another_form_is_refused(out: Array) -> None:
    still = np.zeros((1, 6))

    with pytest.raises(ShapeError, match=r"must be C-contiguous float64 of shape \(6, 60\)"):
        regressor(load_robot("cobot6"), still, still, still, out=out)


def test_no_samples_give_no_rows() -> None:
    none = np.zeros((0, 6))

    assert regressor(load_robot("cobot6"), none, none, none).shape == (0, 60)


def test_wrong_number_of_joints_is_named() -> None:
    five = np.zeros((3, 5))

    with pytest.raises(ShapeError, match=r"q has shape \(3, 5\); robot 'cobot6' needs \(n_samples, 6\).*j1, j2"):
        regressor(load_robot("cobot6"), five, five, five)


def test_differing_sample_counts_are_named() -> None:
    with pytest.raises(ShapeError, match=r"ddq has 2 samples but q has 3"):
        regressor(load_robot("cobot6"), np.zeros((3, 6)), np.zeros((3, 6)), np.zeros((2, 6)))


def test_wrong_parameter_vector_is_named() -> None:
    still = np.zeros((1, 6))

    with pytest.raises(ShapeError, match=r"standard_parameters has shape \(59,\).*needs \(60,\)"):
        inverse_dynamics(load_robot("cobot6"), still, still, still, np.zeros(59))


# Sums of some thousand products in another order, relative to the largest: 1e-13 is seen, 1e-12 allowed.
ROUNDING = 1e-12


def plainly(robot: Robot, motion: tuple[Array, ...], weights: Array) -> tuple[Array, Array, float]:
    """The normal equations by way of W."""
    q, dq, ddq, tau = motion
    matrix, torques, weights = regressor(robot, q, dq, ddq), tau.ravel(), np.broadcast_to(weights, q.shape).ravel()
    return (matrix.T * weights) @ matrix, (matrix.T * weights) @ torques, float(torques @ (weights * torques))


@pytest.mark.parametrize("samples", [0, 1, 7, 8, 127, 128, 131, 1003])
@pytest.mark.parametrize("weighting", ["none", "by joint", "by sample"])
@pytest.mark.parametrize(("kinds", "is_tree"), [("RRRRRR", False), ("RPRRR", True)])
def test_they_are_those_of_the_regressor(
    samples: int, weighting: str, kinds: str, is_tree: bool, random_robot: RandomRobot, random_motion: RandomMotion
) -> None:
    robot = random_robot(kinds, 1, tree=is_tree)
    rng = np.random.default_rng(samples)
    motion = (*random_motion(robot, samples, 1), rng.normal(size=(samples, len(kinds))))
    shapes = {"none": None, "by joint": (len(kinds),), "by sample": (samples, len(kinds))}
    shape = shapes[weighting]
    weights = None if shape is None else rng.uniform(0.0, 2.0, shape)

    found = normal_equations(robot, *motion, weights)

    gram, right, squares = plainly(robot, motion, np.ones(1) if weights is None else weights)
    np.testing.assert_allclose(found.gram, gram, atol=ROUNDING * np.abs(gram).max(initial=0.0))
    np.testing.assert_allclose(found.right, right, atol=ROUNDING * np.abs(right).max(initial=0.0) + 1e-13)
    assert found.squares == pytest.approx(squares, rel=ROUNDING)
    assert found.rows == samples * len(kinds)
    np.testing.assert_array_equal(found.gram, found.gram.T)


def test_those_of_two_logs_add_up(random_motion: RandomMotion) -> None:
    robot = load_robot("cobot6")
    q, dq, ddq = random_motion(robot, 500, 0)
    tau = np.random.default_rng(1).normal(size=q.shape)
    whole = normal_equations(robot, q, dq, ddq, tau)
    parts = [
        normal_equations(robot, *(values[part] for values in (q, dq, ddq, tau)))
        for part in (slice(210), slice(210, None))
    ]
    both = parts[0] + parts[1]
    np.testing.assert_allclose(both.gram, whole.gram, atol=ROUNDING * np.abs(whole.gram).max())
    np.testing.assert_allclose(both.right, whole.right, atol=ROUNDING * np.abs(whole.right).max())
    assert (both.rows, both.squares) == (whole.rows, pytest.approx(whole.squares, rel=ROUNDING))


def test_memory_does_not_grow_with_the_log(random_motion: RandomMotion) -> None:
    robot = load_robot("cobot6")
    peaks = []
    for samples in (2_000, 40_000):
        q, dq, ddq = random_motion(robot, samples, 0)
        normal_equations(robot, q, dq, ddq, q)
        tracemalloc.start()
        normal_equations(robot, q, dq, ddq, q)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # Roots of the weights have no memory of their own; one double per row would be 1.8 MB.
    assert peaks[1] < peaks[0] + 50_000


@pytest.mark.parametrize("value", [-1.0, np.nan])
def test_weights_that_are_none_are_refused(value: float) -> None:
    still = np.zeros((3, 6))
    with pytest.raises(FitError, match=r"weights holds (-1|nan); each must be zero or more"):
        normal_equations(load_robot("cobot6"), still, still, still, still, np.full(6, value))


def test_wrong_shapes_are_named() -> None:
    still = np.zeros((3, 6))
    with pytest.raises(ShapeError, match=r"weights has shape \(3,\); robot 'cobot6' needs \(3, 6\), or \(6,\)"):
        normal_equations(load_robot("cobot6"), still, still, still, still, np.ones(3))
    with pytest.raises(ShapeError, match=r"tau has shape \(18,\)"):
        normal_equations(load_robot("cobot6"), still, still, still, still.ravel())


@pytest.mark.parametrize("pieces", [1, 3, 40])
def test_qr_of_pieces_is_that_of_the_whole(pieces: int) -> None:
    """Pieces of as few rows as five, of twelve columns."""
    rng = np.random.default_rng(0)
    matrix, right = rng.normal(size=(200, 12)), rng.normal(size=200)
    streaming = StreamingQR(12)
    for rows, values in zip(np.array_split(matrix, pieces), np.array_split(right, pieces), strict=True):
        streaming.add(rows, values)

    solution, residual, *_ = np.linalg.lstsq(matrix, right, rcond=None)
    np.testing.assert_allclose(np.linalg.solve(streaming.triangle, streaming.right), solution, rtol=1e-11)
    assert streaming.residual == pytest.approx(float(residual[0]), rel=1e-11)
    assert streaming.rows == 200
    np.testing.assert_allclose(streaming.triangle.T @ streaming.triangle, matrix.T @ matrix, atol=1e-11)
    np.testing.assert_array_equal(np.tril(streaming.triangle, -1), 0.0)


def test_qr_keeps_digits_that_normal_equations_lose() -> None:
    """Columns that differ by 1e-9 of their length: squared, that is beyond a double."""
    rng = np.random.default_rng(1)
    column = rng.normal(size=300)
    matrix = np.column_stack([column, column + 1e-9 * rng.normal(size=300)])
    expected = np.array([2.0, 3.0])
    streaming = StreamingQR(2)
    for rows, values in zip(np.array_split(matrix, 7), np.array_split(matrix @ expected, 7), strict=True):
        streaming.add(rows, values)
    found = np.linalg.solve(streaming.triangle, streaming.right)
    # Rounding of 1e-16 over a sine of 1e-9, times a few.
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_qr_of_a_robots_rows(random_motion: RandomMotion) -> None:
    robot = load_robot("cobot6")
    q, dq, ddq = random_motion(robot, 300, 0)
    tau = np.random.default_rng(0).normal(size=q.shape)
    streaming = StreamingQR(60)
    for part in np.array_split(np.arange(300), 4):
        streaming.add(regressor(robot, q[part], dq[part], ddq[part]), tau[part])
    equations = normal_equations(robot, q, dq, ddq, tau)
    triangle = streaming.triangle
    np.testing.assert_allclose(triangle.T @ triangle, equations.gram, atol=ROUNDING * np.abs(equations.gram).max())
    np.testing.assert_allclose(
        triangle.T @ streaming.right, equations.right, atol=1e-11 * np.abs(equations.right).max()
    )


def test_qr_refuses_other_rows() -> None:
    streaming = StreamingQR(3)
    with pytest.raises(ShapeError, match=r"rows of shape \(5, 4\) with 5 values on the right; needed are \(5, 3\)"):
        streaming.add(np.zeros((5, 4)), np.zeros(5))
    with pytest.raises(ShapeError, match=r"with 6 values on the right; needed are \(6, 3\)"):
        streaming.add(np.zeros((5, 3)), np.zeros(6))


# It has no type stubs.
pinocchio: Any = importlib.import_module("pinocchio")


# Sums of a few hundred products of numbers below about 1e3 in double precision: 1e-11 relative leaves two decades.
KERNEL_ROUNDING = 1e-11
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
        np.testing.assert_allclose(ours[k], theirs, rtol=KERNEL_ROUNDING, atol=KERNEL_ROUNDING * np.abs(theirs).max())


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
    np.testing.assert_allclose(rows, expected, atol=KERNEL_ROUNDING * np.abs(expected).max())

    parameters = np.random.default_rng(seed).normal(size=60)
    torques = inverse_dynamics(bound, q, dq, ddq, parameters)
    np.testing.assert_allclose(torques, rows @ parameters, atol=KERNEL_ROUNDING * np.abs(torques).max())


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
