"""Energy, momentum and base wrench, linear in the parameters; centre of mass and zero-moment point."""

import dataclasses
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.dynamics import (
    base_wrench_regressor,
    center_of_mass,
    energy,
    energy_regressor,
    equations_of_motion,
    inverse_dynamics,
    momentum_regressor,
    regressor,
    zero_moment_point,
)
from jointbench.robot import Robot
from jointbench.tests.dynamics.test_inverse_dynamics import pinocchio_model
from jointbench.tests.robot.inertia import parameters_of

RandomRobot = Callable[..., Robot]
RandomMotion = Callable[[Robot, int, int], tuple[Array, Array, Array]]

# They have no type stubs.
mujoco: Any = importlib.import_module("mujoco")
pinocchio: Any = importlib.import_module("pinocchio")

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
