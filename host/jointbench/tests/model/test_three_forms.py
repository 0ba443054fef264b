"""Newton-Euler, Kane and Lagrange, energy, momentum and the ground: each derived on its own, they agree."""

import dataclasses
import importlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.model import (
    Robot,
    base_wrench_regressor,
    center_of_mass,
    energy,
    energy_regressor,
    equations_of_motion,
    inverse_dynamics,
    kane_dynamics,
    momentum_regressor,
    regressor,
    zero_moment_point,
)
from jointbench.model.robot import MOST_JOINTS
from jointbench.tests.model.test_inverse_dynamics import pinocchio_model
from jointbench.tests.model.test_link import parameters_of

# It has no type stubs.
pinocchio: Any = importlib.import_module("pinocchio")

# Pinocchio orders the inertia Ixx, Ixy, Iyy, Ixz, Iyz, Izz.
_ORDER = [0, 1, 2, 3, 4, 5, 7, 6, 8, 9]


class Peer:
    """One robot as Pinocchio's, its links with their inertia where they have one."""

    def __init__(self, robot: Robot) -> None:
        self._robot = robot
        self._model: Any = pinocchio.Model()
        kinds = {"revolute": pinocchio.JointModelRevoluteUnaligned, "prismatic": pinocchio.JointModelPrismaticUnaligned}
        for i, joint in enumerate(robot.joints):
            moving = kinds[joint.kind](np.array(joint.axis))
            self._model.addJoint(joint.parent + 1, moving, pinocchio.SE3(*joint.placement), joint.name)
            link = joint.link
            if link.mass is not None:
                body = pinocchio.Inertia(
                    link.mass, np.array(link.center_of_mass), np.array(link.inertia_about_center_of_mass)
                )
                self._model.appendBodyToJoint(i + 1, body, pinocchio.SE3.Identity())
        self._model.gravity.linear = np.array(robot.gravity)
        self._data: Any = self._model.createData()
        index, factor, self._offset = robot.coordinates
        self._rates = factor[:, None] * np.eye(robot.n_joints)[index]

    def torques(self, q: Array, dq: Array, ddq: Array) -> Array:
        """Inverse dynamics, shape (n_samples, n_joints)."""
        return np.array(
            [pinocchio.rnea(self._model, self._data, *each) @ self._rates for each in self._whole(q, dq, ddq)]
        )

    def regressor(self, q: Array, dq: Array, ddq: Array) -> Array:
        """W in our order of rows and parameters."""
        links = self._robot.n_links
        rows: list[Array] = []
        for each in self._whole(q, dq, ddq):
            theirs = pinocchio.computeJointTorqueRegressor(self._model, self._data, *each)
            ours = theirs.reshape(links, links, 10)[:, :, _ORDER].reshape(links, -1)
            rows.append(self._rates.T @ ours)
        return np.concatenate(rows)

    def _whole(self, q: Array, dq: Array, ddq: Array) -> Iterator[tuple[Array, Array, Array]]:
        return zip(q @ self._rates.T + self._offset, dq @ self._rates.T, ddq @ self._rates.T, strict=True)


RandomRobot = Callable[..., Robot]
RandomMotion = Callable[[Robot, int, int], tuple[Array, Array, Array]]

# It has no type stubs.

AGREEMENT = 1e-10  # relative to the largest torque; rounding alone leaves 1e-14


@pytest.mark.parametrize("trees", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_three_forms_agree_on_random_trees(trees: int, random_robot: RandomRobot, random_motion: RandomMotion) -> None:
    rng = np.random.default_rng(0)
    for seed in range(trees):
        robot = random_robot(kinds_of(rng, MOST_JOINTS if seed % 100 == 0 else 8), seed, tree=seed % 2 == 1)
        q, dq, ddq = random_motion(robot, 3, seed)
        parameters = parameters_of(robot)
        torques = inverse_dynamics(robot, q, dq, ddq, parameters)
        by_kane = kane_dynamics(robot, q, dq, ddq, parameters)
        by_lagrange = equations_of_motion(robot, q, dq, parameters).torques(dq, ddq)
        limit = AGREEMENT * np.abs(torques).max()
        np.testing.assert_allclose(by_kane, torques, rtol=0, atol=limit, err_msg=f"Kane, tree {seed}")
        np.testing.assert_allclose(by_lagrange, torques, rtol=0, atol=limit, err_msg=f"Lagrange, tree {seed}")


@pytest.mark.parametrize("kinds", ["R", "PR", "RRRRRR", "RPRPRR"])
def test_matrices_are_pinocchios(kinds: str, random_robot: RandomRobot, random_motion: RandomMotion) -> None:
    robot = random_robot(kinds, 5, tree=True)
    q, dq, _ = random_motion(robot, 4, 5)
    equations = equations_of_motion(robot, q, dq, parameters_of(robot))
    model = pinocchio_model(robot)
    data = model.createData()
    for k in range(len(q)):
        mass = pinocchio.crba(model, data, q[k])
        upper = np.triu(mass) + np.triu(mass, 1).T
        np.testing.assert_allclose(equations.mass_matrix[k], upper, rtol=0, atol=1e-12 * np.abs(upper).max())
        weight = pinocchio.computeGeneralizedGravity(model, data, q[k])
        np.testing.assert_allclose(equations.gravity_torques[k], weight, rtol=0, atol=1e-11 * np.abs(weight).max())


def test_mass_matrix_is_positive_and_its_rate_less_twice_coriolis_is_skew(
    random_robot: RandomRobot, random_motion: RandomMotion
) -> None:
    robot = random_robot("RRPRRR", 2, tree=True)
    q, dq, _ = random_motion(robot, 6, 2)
    parameters, step = parameters_of(robot), 1e-5
    here = equations_of_motion(robot, q, dq, parameters)
    assert np.linalg.eigvalsh(here.mass_matrix).min() > 0
    ahead, behind = (equations_of_motion(robot, q + h * dq, dq, parameters).mass_matrix for h in (step, -step))
    skew = (ahead - behind) / (2 * step) - 2 * here.coriolis_matrix
    # The difference quotient is off by step², and by rounding over step: 1e-10 of numbers of order 100.
    np.testing.assert_allclose(skew, -skew.transpose(0, 2, 1), atol=1e-6)


def test_kinetic_energy_is_that_of_the_mass_matrix(random_robot: RandomRobot, random_motion: RandomMotion) -> None:
    robot = random_robot("RPRRR", 4, tree=True)
    q, dq, _ = random_motion(robot, 5, 4)
    kinetic, _ = energy(robot, q, dq, parameters_of(robot))
    mass = equations_of_motion(robot, q, dq, parameters_of(robot)).mass_matrix
    np.testing.assert_allclose(0.5 * np.einsum("ki,kij,kj->k", dq, mass, dq), kinetic, rtol=1e-12)


def test_energy_balance_along_a_simulated_motion(random_robot: RandomRobot) -> None:
    """Power that torques put in is what kinetic and potential energy gain: Simpson's rule over RK4 steps of 1 ms."""
    robot = random_robot("RRPR", 7)
    parameters, step, steps = parameters_of(robot), 1e-3, 200
    rng = np.random.default_rng(7)
    amplitude = rng.uniform(-5.0, 5.0, robot.n_joints)

    def torque(time: float) -> Array:
        return amplitude * np.cos(3.0 * time)

    def rate(time: float, state: Array) -> Array:
        q, dq = state[None, : robot.n_joints], state[None, robot.n_joints :]
        equations = equations_of_motion(robot, q, dq, parameters)
        against = equations.coriolis_matrix[0] @ dq[0] + equations.gravity_torques[0]
        ddq = np.linalg.solve(equations.mass_matrix[0], torque(time) - against)
        return np.concatenate([dq[0], ddq])

    states = [np.concatenate([rng.uniform(-1.0, 1.0, robot.n_joints), np.zeros(robot.n_joints)])]
    for k in range(steps):
        time, state = k * step, states[-1]
        k1 = rate(time, state)
        k2 = rate(time + step / 2, state + step / 2 * k1)
        k3 = rate(time + step / 2, state + step / 2 * k2)
        k4 = rate(time + step, state + step * k3)
        states.append(state + step / 6 * (k1 + 2 * k2 + 2 * k3 + k4))
    q, dq = np.array(states)[:, : robot.n_joints], np.array(states)[:, robot.n_joints :]
    power = np.array([torque(k * step) for k in range(steps + 1)])
    power = np.einsum("kj,kj->k", power, dq)
    work = step / 3 * (power[0] + 4 * power[1:-1:2].sum() + 2 * power[2:-1:2].sum() + power[-1])
    kinetic, potential = energy(robot, q, dq, parameters)
    gained = (kinetic + potential)[-1] - (kinetic + potential)[0]
    # Both rules err by step to the fourth, some 1e-10 of joules here; 1e-6 is far above, and far below any wrong term.
    assert work == pytest.approx(gained, abs=1e-6 * np.abs(potential).max())
    assert abs(work) > 0.1


def kinds_of(rng: np.random.Generator, most: int) -> str:
    """Letters of 1 to `most` joints: half of them revolute about any axis, each sixth or so follows another."""
    letters = rng.choice(list("RrrPpm"), rng.integers(1, most + 1))
    return "r" + "".join(letters[1:])


@pytest.mark.parametrize("trees", [200, pytest.param(1000, marks=pytest.mark.slow)])
def test_random_trees_are_pinocchios(trees: int, random_robot: RandomRobot, random_motion: RandomMotion) -> None:
    rng = np.random.default_rng(0)
    for seed in range(trees):
        robot = random_robot(kinds_of(rng, MOST_JOINTS if seed % 50 == 0 else 12), seed, tree=seed % 2 == 0)
        peer, motion = Peer(robot), random_motion(robot, 2, seed)
        theirs, torques = peer.regressor(*motion), peer.torques(*motion)
        ours = regressor(robot, *motion)
        by_sweep = inverse_dynamics(robot, *motion, parameters_of(robot))
        about = f"tree {seed}, {robot.name}"
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=AGREEMENT * np.abs(theirs).max(), err_msg=about)
        np.testing.assert_allclose(by_sweep, torques, rtol=0, atol=AGREEMENT * np.abs(torques).max(), err_msg=about)


@pytest.mark.parametrize("tree", [False, True])
def test_as_many_joints_as_are_allowed(tree: bool, random_robot: RandomRobot, random_motion: RandomMotion) -> None:
    robot = random_robot("rRpPm" * (MOST_JOINTS // 5), 3, tree=tree)
    motion = random_motion(robot, 20, 3)

    theirs = Peer(robot).regressor(*motion)

    assert (robot.n_links, robot.n_joints) == (MOST_JOINTS, MOST_JOINTS - MOST_JOINTS // 5)
    np.testing.assert_allclose(regressor(robot, *motion), theirs, rtol=0, atol=AGREEMENT * np.abs(theirs).max())


def test_the_trees_have_what_they_are_to_test(random_robot: RandomRobot) -> None:
    rng = np.random.default_rng(0)
    robots = [random_robot(kinds_of(rng, 12), seed, tree=True) for seed in range(100)]
    joints = [joint for robot in robots for joint in robot.joints]

    assert {joint.kind for joint in joints if joint.mimic} == {"revolute", "prismatic"}
    assert {joint.axis == (0.0, 0.0, 1.0) for joint in joints} == {True, False}
    assert any(sum(joint.parent == 0 for joint in robot.joints) > 1 for robot in robots)
    assert all(abs(np.linalg.norm(joint.axis) - 1.0) < 1e-12 for joint in joints)


# They have no type stubs.
mujoco: Any = importlib.import_module("mujoco")

KINDS = ["R", "PR", "RRRRRR", "RPRPRR"]
ROUNDING = 1e-11  # of sums of a few hundred products of numbers below 1e3, relative to the largest


@pytest.fixture(params=KINDS)
def robot(request: pytest.FixtureRequest, random_robot: RandomRobot) -> Robot:
    return random_robot(request.param, 11, tree=True)


@pytest.fixture
def motion(robot: Robot, random_motion: RandomMotion) -> tuple[Array, Array, Array]:
    return random_motion(robot, 4, 11)


def close(actual: Array, expected: Array) -> None:
    np.testing.assert_allclose(actual, expected, rtol=0, atol=ROUNDING * max(np.abs(expected).max(), 1.0))


def test_energies_are_linear(robot: Robot, motion: tuple[Array, Array, Array]) -> None:
    q, dq, _ = motion
    parameters = parameters_of(robot)
    for columns, values in zip(energy_regressor(robot, q, dq), energy(robot, q, dq, parameters), strict=True):
        close(columns @ parameters, values)


def test_momentum_is_mass_matrix_times_velocity(robot: Robot, motion: tuple[Array, Array, Array]) -> None:
    q, dq, _ = motion
    parameters = parameters_of(robot)
    momentum = (momentum_regressor(robot, q, dq) @ parameters).reshape(q.shape)
    close(momentum, np.einsum("kij,kj->ki", equations_of_motion(robot, q, dq, parameters).mass_matrix, dq))
    model = pinocchio_model(robot)
    data = model.createData()
    for k in range(len(q)):
        still = np.zeros(model.nv)
        held = pinocchio.rnea(model, data, q[k], still, still)
        close(momentum[k], pinocchio.rnea(model, data, q[k], still, dq[k]) - held)


def test_momentum_and_torque_are_mujocos(robot: Robot, motion: tuple[Array, Array, Array]) -> None:
    q, dq, ddq = motion
    parameters = parameters_of(robot)
    momentum = (momentum_regressor(robot, q, dq) @ parameters).reshape(q.shape)
    torque = (regressor(robot, q, dq, ddq) @ parameters).reshape(q.shape)
    model = mujoco_model(robot)
    data = mujoco.MjData(model)
    place = [model.joint(joint.name).dofadr[0] for joint in robot.joints]  # it numbers branch by branch
    for k in range(len(q)):
        data.qpos[place], data.qvel[place], data.qacc[place] = q[k], dq[k], ddq[k]
        mujoco.mj_inverse(model, data)
        close(torque[k], data.qfrc_inverse[place])
        found = np.zeros(model.nv)
        mujoco.mj_mulM(model, data, found, data.qvel)
        close(momentum[k], found[place])


def test_base_wrench_is_what_a_free_base_feels(robot: Robot, motion: tuple[Array, Array, Array]) -> None:
    """Pinocchio's joint forces of the joints on the base, put together in the base frame."""
    wrench = base_wrench_regressor(robot, *motion) @ parameters_of(robot)
    model = pinocchio_model(robot)
    data = model.createData()
    for k, (q, dq, ddq) in enumerate(zip(*motion, strict=True)):
        pinocchio.rnea(model, data, q, dq, ddq)
        roots = [i + 1 for i, joint in enumerate(robot.joints) if joint.parent < 0]
        close(wrench[k], np.sum([data.liMi[i].act(data.f[i]).vector for i in roots], axis=0))


def test_center_of_mass_is_pinocchios(robot: Robot, motion: tuple[Array, Array, Array]) -> None:
    model = pinocchio_model(robot)
    data = model.createData()
    found = center_of_mass(robot, motion[0], parameters_of(robot))
    for k, q in enumerate(motion[0]):
        close(found[k], pinocchio.centerOfMass(model, data, q))


def test_zero_moment_point_by_the_paper(random_robot: RandomRobot, random_motion: RandomMotion) -> None:
    """x = xC - (FX zC + MY)/FZ, y = yC - (FY zC - MX)/FZ with F = Σ m (g - a), M about the centre of mass C."""
    robot = upright(random_robot)
    q, dq, ddq = random_motion(robot, 5, 3)
    parameters = parameters_of(robot)
    found = zero_moment_point(robot, q, dq, ddq, parameters, height=-0.2)
    center = center_of_mass(robot, q, parameters)
    wrench = base_wrench_regressor(robot, q, dq, ddq) @ parameters
    force = -wrench[:, :3]
    moment = -(wrench[:, 3:] - np.cross(center, wrench[:, :3]))
    above = center[:, 2] + 0.2
    close(found.points[:, 0], center[:, 0] - (force[:, 0] * above + moment[:, 1]) / force[:, 2])
    close(found.points[:, 1], center[:, 1] - (force[:, 1] * above - moment[:, 0]) / force[:, 2])


def test_zero_moment_point_of_a_body_at_rest_is_below_its_center(random_robot: RandomRobot) -> None:
    robot = upright(random_robot)
    q = np.random.default_rng(1).normal(size=(3, robot.n_joints))
    still = np.zeros_like(q)
    point = zero_moment_point(robot, q, still, still, parameters_of(robot))
    close(point.points, center_of_mass(robot, q, parameters_of(robot))[:, :2])


def test_derivatives_of_the_zero_moment_point(random_robot: RandomRobot, random_motion: RandomMotion) -> None:
    robot = upright(random_robot)
    q, dq, ddq = random_motion(robot, 2, 4)
    parameters = parameters_of(robot)

    def at(values: Array) -> Any:
        return zero_moment_point(robot, q, dq, ddq, values, height=0.1)

    here, step = at(parameters), 1e-4
    hessians = np.array([here.hessian(k) for k in range(len(q))])
    for index in range(0, len(parameters), 7):
        moved = step * np.eye(len(parameters))[index]
        ahead, behind = at(parameters + moved), at(parameters - moved)
        # Central differences are off by step² times a third derivative, of order 1e-3 here, and rounding over step.
        np.testing.assert_allclose((ahead.points - behind.points) / (2 * step), here.gradient[:, :, index], atol=1e-9)
        slope = (ahead.gradient - behind.gradient) / (2 * step)
        np.testing.assert_allclose(slope, hessians[:, :, index], atol=1e-9)


def test_torques_of_the_root_joints_are_in_the_wrench(random_robot: RandomRobot, random_motion: RandomMotion) -> None:
    robot = random_robot("RRR", 5)
    q, dq, ddq = random_motion(robot, 3, 5)
    wrench = base_wrench_regressor(robot, q, dq, ddq) @ parameters_of(robot)
    joint = robot.joints[0]
    rotation, origin = joint.placement
    axis = rotation @ np.array(joint.axis)  # a joint's axis stands still in its parent
    about = np.einsum("ka,a->k", wrench[:, 3:] - np.cross(origin, wrench[:, :3]), axis)
    close(about, inverse_dynamics(robot, q, dq, ddq, parameters_of(robot))[:, 0])


def upright(random_robot: RandomRobot) -> Robot:
    """A tree under earth's gravity, so that the ground carries it."""
    return dataclasses.replace(random_robot("RRPR", 9, tree=True), gravity=(0.0, 0.0, -9.81))


def mujoco_model(robot: Robot) -> Any:
    """The same tree for MuJoCo."""
    spec = mujoco.MjSpec()
    spec.option.gravity = robot.gravity
    spec.compiler.boundmass = spec.compiler.boundinertia = 0.0
    bodies = [spec.worldbody]
    for joint in robot.joints:
        turn = np.empty(4)
        mujoco.mju_mat2Quat(turn, np.ravel(joint.rotation))
        body = bodies[joint.parent + 1].add_body(name=joint.name, pos=joint.origin, quat=turn)
        inertia = np.array(joint.link.inertia_about_center_of_mass)
        body.explicitinertial, body.mass, body.ipos = True, joint.link.mass, joint.link.center_of_mass
        body.fullinertia = inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
        kind = mujoco.mjtJoint.mjJNT_HINGE if joint.kind == "revolute" else mujoco.mjtJoint.mjJNT_SLIDE
        body.add_joint(name=joint.name, type=kind, axis=joint.axis)
        bodies.append(body)
    return spec.compile()
