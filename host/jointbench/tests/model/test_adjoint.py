import importlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.errors import ShapeError
from jointbench.model import (
    Coupling,
    Mimic,
    Robot,
    drive_columns,
    drive_parameter_names,
    inverse_dynamics,
    inverse_dynamics_adjoint,
    load_robot,
    model_columns,
    regressor,
    regressor_adjoint,
)
from jointbench.model.chosen_columns import ChosenColumns, DriveTerms
from jointbench.model.model_columns import CompensationTerms

# It has no type stubs.
pinocchio: Any = importlib.import_module("pinocchio")

RandomRobot = Callable[..., Robot]
RandomMotion = Callable[[Robot, int, int], tuple[Array, Array, Array]]

# Sums of a few hundred products of numbers below about 1e3 in double precision: 1e-11 relative leaves two decades.
ROUNDING = 1e-11

# Central differences: a step of 1e-5 leaves some 1e-10 of the third derivative and as much of rounding; derivatives of
# chains of seven joints are up to a hundred times the values.
STEP, OF_DIFFERENCES = 1e-5, 1e-8

TREES = [("R", False), ("P", False), ("RPRR", False), ("PPRRP", True), ("RRRRRRR", False), ("RPRRPRRP", True)]


def with_random_axes(robot: Robot, seed: int) -> Robot:
    rng = np.random.default_rng(seed)
    axes = rng.normal(size=(robot.n_links, 3))
    axes /= np.linalg.norm(axes, axis=1, keepdims=True)
    joints = (replace(joint, axis=tuple(axis)) for joint, axis in zip(robot.joints, axes.tolist(), strict=True))
    return replace(robot, joints=tuple(joints))


def with_mimics(free: Robot) -> Robot:
    """Of six joints three follow others."""
    mimics = {3: Mimic(0, -0.7, 0.3), 4: Mimic(1, 2.0, -0.1), 5: Mimic(0, 1.5, 0.0)}
    joints = tuple(replace(joint, mimic=mimics.get(i)) for i, joint in enumerate(free.joints))
    return replace(free, joints=joints, drives=free.drives[:3], home=free.home[:3])


def differences(f: Callable[..., Array], motion: tuple[Array, Array, Array], n_joints: int) -> list[Array]:
    """Derivatives by q, dq, ddq of a function of the samples, shape (n_samples,), by central differences."""
    slopes: list[Array] = []
    for order in range(3):
        slope = np.empty_like(motion[0])
        for joint in range(n_joints):
            ahead, behind = ([values.copy() for values in motion] for _ in range(2))
            ahead[order][:, joint] += STEP
            behind[order][:, joint] -= STEP
            slope[:, joint] = (f(*ahead) - f(*behind)) / (2.0 * STEP)
        slopes.append(slope)
    return slopes


def assert_is_derivative(robot: Robot, motion: tuple[Array, Array, Array], seed: int) -> None:
    (q, dq, ddq), (samples, n) = motion, motion[0].shape
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(samples * n, 10 * robot.n_links))
    of_torques = rng.normal(size=(samples, n))
    parameters = rng.normal(size=10 * robot.n_links)

    def columns(q: Array, dq: Array, ddq: Array) -> Array:
        return (weights * regressor(robot, q, dq, ddq)).reshape(samples, -1).sum(axis=1)

    def torques(q: Array, dq: Array, ddq: Array) -> Array:
        return (of_torques * inverse_dynamics(robot, q, dq, ddq, parameters)).sum(axis=1)

    for slopes, f in (
        (regressor_adjoint(robot, q, dq, ddq, weights), columns),
        (inverse_dynamics_adjoint(robot, q, dq, ddq, parameters, of_torques), torques),
    ):
        expected = differences(f, motion, n)
        size = max(np.abs(slope).max() for slope in expected)
        for slope, by_differences in zip(slopes, expected, strict=True):
            np.testing.assert_allclose(slope, by_differences, rtol=0.0, atol=OF_DIFFERENCES * size)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("kinds", "is_tree"), TREES)
def test_they_are_the_derivatives(
    kinds: str, is_tree: bool, seed: int, random_robot: RandomRobot, random_motion: RandomMotion
) -> None:
    robot = with_random_axes(random_robot(kinds, seed, tree=is_tree), seed)
    assert_is_derivative(robot, random_motion(robot, 12, seed), seed)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("is_tree", [False, True])
def test_joints_that_mimic_count_with_those_they_follow(
    seed: int, is_tree: bool, random_robot: RandomRobot, random_motion: RandomMotion
) -> None:
    robot = with_mimics(with_random_axes(random_robot("RPRRPR", seed, tree=is_tree), seed))
    assert_is_derivative(robot, random_motion(robot, 12, seed), seed)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("kinds", "is_tree"), TREES)
def test_they_agree_with_pinocchio(
    kinds: str, is_tree: bool, seed: int, random_robot: RandomRobot, random_motion: RandomMotion
) -> None:
    """Its derivatives of the torques; weights of the regressor as a sum of torques' weights times parameters."""
    robot = with_random_axes(random_robot(kinds, seed, tree=is_tree), seed)
    n, samples = robot.n_joints, 10
    q, dq, ddq = random_motion(robot, samples, seed)
    rng = np.random.default_rng(seed)
    weights, total = np.zeros((samples * n, 10 * n)), np.zeros((3, samples, n))
    for other in range(3):
        parameters = random_robot(kinds, 10 * seed + other).standard_parameters  # Pinocchio takes only possible ones
        assert parameters is not None
        of_torques = rng.normal(size=(samples, n))
        expected = slopes_of_pinocchio(robot, (q, dq, ddq), parameters, of_torques)
        slopes = np.stack(inverse_dynamics_adjoint(robot, q, dq, ddq, parameters, of_torques))
        np.testing.assert_allclose(slopes, expected, rtol=0.0, atol=ROUNDING * np.abs(expected).max())
        weights += of_torques.reshape(-1, 1) * parameters
        total += expected

    of_regressor = np.stack(regressor_adjoint(robot, q, dq, ddq, weights))

    np.testing.assert_allclose(of_regressor, total, rtol=0.0, atol=ROUNDING * np.abs(total).max())


@pytest.mark.parametrize("name", ["rehab_arm", "nursing_arm"])
def test_joints_and_links_that_are_not_modelled(name: str, random_motion: RandomMotion) -> None:
    robot = load_robot(name)
    assert_is_derivative(robot, random_motion(robot, 12, 0), 0)


def slopes_of_pinocchio(
    robot: Robot, motion: tuple[Array, Array, Array], parameters: Array, of_torques: Array
) -> Array:
    """Derivatives by q, dq, ddq of a weighted sum of torques, shape (3, n_samples, n_joints)."""
    model = pinocchio.Model()
    of_kind = {
        "revolute": pinocchio.JointModelRevoluteUnaligned,
        "prismatic": pinocchio.JointModelPrismaticUnaligned,
    }
    model.gravity.linear = np.array(robot.gravity)
    order = depth_first(robot)  # its derivatives take for granted that a branch's joints are neighbours
    for body in order:
        joint, (m, x, y, z, xx, xy, xz, yy, yz, zz) = robot.joints[body], parameters[10 * body : 10 * body + 10]
        parent = order.index(joint.parent) + 1 if joint.parent >= 0 else 0
        moving = of_kind[joint.kind](np.array(joint.axis))
        added = model.addJoint(parent, moving, pinocchio.SE3(*joint.placement), joint.name)
        center = np.array([x, y, z]) / m
        about_origin = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        about_center = about_origin - m * (center @ center * np.eye(3) - np.outer(center, center))
        model.inertias[added] = pinocchio.Inertia(m, center, about_center)
    data = model.createData()
    slopes = np.empty((3, *motion[0].shape))
    for k, sample in enumerate(zip(*motion, strict=True)):
        moved = [values[order] for values in sample]
        by_q, by_dq, mass = (np.array(each) for each in pinocchio.computeRNEADerivatives(model, data, *moved))
        mass = np.triu(mass) + np.triu(mass, 1).T
        slopes[:, k, order] = [of_torques[k, order] @ matrix for matrix in (by_q, by_dq, mass)]
    return slopes


def depth_first(robot: Robot, parent: int = -1) -> list[int]:
    """Bodies that hang on one, each followed by those that hang on it."""
    hanging = [i for i, joint in enumerate(robot.joints) if joint.parent == parent]
    return [body for i in hanging for body in (i, *depth_first(robot, i))]


def test_a_pendulum() -> None:
    """Gravity's torque on its first moments is g cos q and -g sin q; what Izz needs is the acceleration."""
    arm = load_robot("cobot6")
    joint = replace(
        arm.joints[0],
        rotation=((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
        origin=(0.0, 0.0, 0.0),
    )
    robot = replace(arm, joints=(joint,), drives=arm.drives[:1], couplings=(), home=(0.0,), gravity=(0.0, -9.0, 0.0))
    robot = replace(robot, frames=())
    q = np.linspace(-3.0, 3.0, 11)[:, None]
    weights = np.zeros((11, 10))
    weights[:, 1], weights[:, 2], weights[:, 9] = 2.0, 3.0, 5.0

    by_q, by_dq, by_ddq = regressor_adjoint(robot, q, q, q, weights)

    np.testing.assert_allclose(by_q, -18.0 * np.sin(q) - 27.0 * np.cos(q), rtol=0.0, atol=1e-13)
    np.testing.assert_array_equal(by_dq, 0.0)
    np.testing.assert_array_equal(by_ddq, 5.0)


def test_weights_where_the_regressor_is_always_zero_do_not_count(random_motion: RandomMotion) -> None:
    robot = load_robot("cobot6")
    motion = random_motion(robot, 9, 0)
    weights = np.random.default_rng(0).normal(size=(9, 6, 6, 10))
    expected = regressor_adjoint(robot, *motion, weights.reshape(54, 60))
    weights[:, 3, :3] = np.nan  # joint 4 does not move links 1 to 3

    for slopes, others in zip(regressor_adjoint(robot, *motion, weights.reshape(54, 60)), expected, strict=True):
        np.testing.assert_array_equal(slopes, others)


@pytest.mark.parametrize("samples", [0, 1, 7, 8, 9, 64, 65, 130])
def test_samples_do_not_see_each_other(samples: int, random_robot: RandomRobot, random_motion: RandomMotion) -> None:
    robot = random_robot("RPR", 2, tree=True)
    motion = random_motion(robot, 300, 3)
    rng = np.random.default_rng(0)
    weights, of_torques, parameters = rng.normal(size=(900, 30)), rng.normal(size=(300, 3)), rng.normal(size=30)
    q, dq, ddq = (values[:samples] for values in motion)

    of_columns = regressor_adjoint(robot, q, dq, ddq, weights[: 3 * samples])
    for slope, whole in zip(of_columns, regressor_adjoint(robot, *motion, weights), strict=True):
        np.testing.assert_array_equal(slope, whole[:samples])
    of_few = inverse_dynamics_adjoint(robot, q, dq, ddq, parameters, of_torques[:samples])
    for slope, whole in zip(of_few, inverse_dynamics_adjoint(robot, *motion, parameters, of_torques), strict=True):
        np.testing.assert_array_equal(slope, whole[:samples])


def test_arrays_of_any_form(random_robot: RandomRobot, random_motion: RandomMotion) -> None:
    robot = random_robot("RPR", 4)
    q, dq, ddq = random_motion(robot, 20, 4)
    weights = np.random.default_rng(0).normal(size=(60, 30))
    expected = regressor_adjoint(robot, q, dq, ddq, weights)
    for other in (np.asfortranarray(weights), np.repeat(weights, 2, axis=1)[:, ::2], weights.tolist()):
        for slope, same in zip(regressor_adjoint(robot, q.tolist(), dq, ddq, other), expected, strict=True):
            np.testing.assert_array_equal(slope, same)


def test_weights_of_another_shape_are_named() -> None:
    still = np.zeros((2, 6))

    with pytest.raises(ShapeError, match=r"weights has shape \(12, 59\); the regressor of 2 samples has \(12, 60\)"):
        regressor_adjoint(load_robot("cobot6"), still, still, still, np.zeros((12, 59)))
    with pytest.raises(ShapeError, match=r"weights has shape \(2, 5\); robot 'cobot6' needs \(n_samples, 6\)"):
        inverse_dynamics_adjoint(load_robot("cobot6"), still, still, still, np.zeros(60), np.zeros((2, 5)))


def coupled_arm() -> Robot:
    """Two couplings: one whose motors both turn with both joints, one in which a single motor does."""
    shoulder = Coupling("shoulder", ("j1", "j2"), ((50.0, 20.0), (-30.0, 40.0)))
    wrist = Coupling("wrist", ("j5", "j6"), ((50.0, 0.0), (25.0, 50.0)))
    return replace(load_robot("cobot6"), couplings=(shoulder, wrist))


ARMS = [*(load_robot(name) for name in ("cobot6", "tx40", "nursing_arm", "rehab_arm")), coupled_arm()]


def smooth(speed: Array) -> Array:
    return np.tanh(speed)


def smooth_slope(speed: Array) -> Array:
    return 1.0 - np.tanh(speed) ** 2


@pytest.mark.parametrize("robot", ARMS)
def test_terms_of_the_drives_columns(robot: Robot, random_motion: RandomMotion) -> None:
    _, dq, ddq = random_motion(robot, 20, 0)
    terms = DriveTerms.of(robot)
    rebuilt = np.zeros((20, robot.n_joints, len(drive_parameter_names(robot))))
    for sign in (np.sign, smooth):
        rebuilt[:, terms.row, terms.column] = terms.values(dq, ddq, sign)
        expected, _ = drive_columns(robot, dq, ddq, sign=sign)
        # A few terms below ten, in another order.
        np.testing.assert_allclose(rebuilt.reshape(expected.shape), expected, rtol=0.0, atol=1e-13)

    weights = np.random.default_rng(0).normal(size=(20, len(terms.row)))
    of_columns = np.zeros_like(rebuilt)
    of_columns[:, terms.row, terms.column] = weights
    slopes = terms.pull_back(dq, weights, smooth_slope)

    def summed(q: Array, dq: Array, ddq: Array) -> Array:
        columns, _ = drive_columns(robot, dq, ddq, sign=smooth)
        return (of_columns.reshape(columns.shape) * columns).reshape(20, -1).sum(axis=1)

    _, *by_differences = differences(summed, (dq, dq, ddq), robot.n_joints)
    for slope, expected in zip(slopes, by_differences, strict=True):
        np.testing.assert_allclose(slope, expected, rtol=0.0, atol=OF_DIFFERENCES * np.abs(expected).max())


@pytest.mark.parametrize("samples", [1, 8, 21])
@pytest.mark.parametrize("robot", ARMS)
def test_products_of_chosen_columns(robot: Robot, samples: int, random_motion: RandomMotion) -> None:
    """As by the whole model, from which columns are taken and rows multiplied."""
    q, dq, ddq = random_motion(robot, samples, 0)
    rng = np.random.default_rng(0)
    whole, names = model_columns(robot, q, dq, ddq, sign=smooth)
    kept = np.flatnonzero(rng.uniform(size=len(names)) < 0.6)
    roots = rng.uniform(0.5, 2.0, robot.n_joints)
    by_row = np.tile(roots, samples)[:, None]
    columns = whole[:, kept] * by_row
    chosen = ChosenColumns.of(robot, kept, roots)

    values = chosen.values((q, dq, ddq), smooth)

    expected = columns.T @ columns
    np.testing.assert_allclose(chosen.gram(values), expected, rtol=0.0, atol=ROUNDING * np.abs(expected).max())

    root = rng.normal(size=(len(kept), len(kept)))
    by_gram = root + root.T
    slopes = np.stack(chosen.pull_back((q, dq, ddq), values, by_gram, smooth_slope))
    weights = np.zeros_like(whole)
    weights[:, kept] = 2.0 * columns @ by_gram * by_row
    first = 10 * robot.n_links
    of_links, of_drives, of_more = np.split(weights, [first, first + len(drive_parameter_names(robot))], axis=1)
    terms, more = DriveTerms.of(robot), CompensationTerms.of(robot)
    of_entries = of_drives.reshape(samples, robot.n_joints, -1)[:, terms.row, terms.column]
    summed = np.stack(regressor_adjoint(robot, q, dq, ddq, of_links))
    summed[1:] += np.stack(terms.pull_back(dq, of_entries, smooth_slope))
    of_elements = of_more.reshape(samples, robot.n_joints, -1)[:, more.row, more.column]
    summed += np.stack(more.pull_back(q, dq, ddq, of_elements))
    np.testing.assert_allclose(slopes, summed, rtol=0.0, atol=ROUNDING * np.abs(summed).max())


@pytest.mark.parametrize("is_tree", [False, True])
def test_chosen_columns_of_joints_that_mimic(
    is_tree: bool, random_robot: RandomRobot, random_motion: RandomMotion
) -> None:
    robot = with_mimics(with_random_axes(random_robot("RPRRPR", 0, tree=is_tree), 0))
    q, dq, ddq = random_motion(robot, 12, 0)
    kept = np.arange(0, 60, 2)
    columns = regressor(robot, q, dq, ddq)[:, kept]
    chosen = ChosenColumns.of(robot, kept, np.ones(3))

    gram = chosen.gram(chosen.values((q, dq, ddq), smooth))

    expected = columns.T @ columns
    np.testing.assert_allclose(gram, expected, rtol=0.0, atol=ROUNDING * np.abs(expected).max())
