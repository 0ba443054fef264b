"""Robots on a free base against Pinocchio's free flyer, and what the wrench on the base alone can tell."""

import importlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from jointbench.arrays import Array
from jointbench.errors import RobotError, ShapeError
from jointbench.model import (
    FreeBaseMotion,
    Joint,
    Mimic,
    Robot,
    base_wrench_regressor,
    floating_base_parameters,
    floating_inverse_dynamics,
    floating_momentum_regressor,
    floating_regressor,
    floating_standard_parameters,
    inverse_dynamics,
    load_robot,
    on_free_base,
)
from jointbench.tests.model.test_inverse_dynamics import FROM_PINOCCHIO
from jointbench.tests.model.test_link import parameters_of

RandomRobot = Callable[..., Robot]

# It has no type stubs.
pinocchio: Any = importlib.import_module("pinocchio")

SAMPLES = 6
ROUNDING = 1e-11  # of sums of a few hundred products of numbers below 1e3, relative to the largest


class World:
    """A random motion of a robot with its base, as the world sees it."""

    def __init__(self, robot: Robot, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.q, self.dq, self.ddq = rng.normal(size=(3, SAMPLES, robot.n_joints))
        self.turn = Rotation.random(SAMPLES, rng)
        self.place, self.velocity, self.omega, self.acceleration, self.alpha = rng.normal(size=(5, SAMPLES, 3))
        self.base = FreeBaseMotion.from_world(robot, self.turn.as_matrix(), self.omega, self.alpha, self.acceleration)

    def pinocchios(self) -> tuple[Array, Array, Array]:
        """Configuration, velocity and spatial acceleration of a free flyer: in its own axes, linear part first."""
        velocity, omega, acceleration, alpha = (
            self.turn.apply(each, inverse=True) for each in (self.velocity, self.omega, self.acceleration, self.alpha)
        )
        spatial = acceleration - np.cross(omega, velocity)
        return (
            np.hstack([self.place, self.turn.as_quat(), self.q]),
            np.hstack([velocity, omega, self.dq]),
            np.hstack([spatial, alpha, self.ddq]),
        )


def floating(random_robot: RandomRobot, kinds: str, seed: int) -> Robot:
    """A random tree on a free base that weighs as much as a random link."""
    robot = random_robot(kinds, seed, tree=True)
    return replace(robot, base_link=replace(random_robot("R", seed + 100).joints[0].link, name="trunk"))


def parameters_on_base(robot: Robot) -> Array:
    parameters = floating_standard_parameters(robot)
    assert parameters is not None
    return parameters


def free_flyer(robot: Robot) -> Any:
    assert robot.base_link is not None
    model = pinocchio.Model()
    model.addJoint(0, pinocchio.JointModelFreeFlyer(), pinocchio.SE3.Identity(), "base")
    add_body(model, 1, robot.base_link)
    for i, joint in enumerate(robot.joints):
        turns = joint.kind == "revolute"
        moves = (pinocchio.JointModelRevoluteUnaligned if turns else pinocchio.JointModelPrismaticUnaligned)(
            np.array(joint.axis)
        )
        model.addJoint(joint.parent + 2, moves, pinocchio.SE3(*joint.placement), joint.name)
        add_body(model, i + 2, joint.link)
    model.gravity.linear = np.array(robot.gravity)
    return model


def add_body(model: Any, joint: int, link: Any) -> None:
    inertia = pinocchio.Inertia(link.mass, np.array(link.center_of_mass), np.array(link.inertia_about_center_of_mass))
    model.appendBodyToJoint(joint, inertia, pinocchio.SE3.Identity())


def close(actual: Array, expected: Array) -> None:
    np.testing.assert_allclose(actual, expected, rtol=0.0, atol=ROUNDING * max(np.abs(expected).max(), 1.0))


@pytest.mark.parametrize("kinds", ["R", "P", "RRRRRR", "RPRPRRPR", "RRRRRRRRRRRR"])
@pytest.mark.parametrize("seed", range(3))
def test_regressor_wrench_torque_and_momentum_are_pinocchios(kinds: str, seed: int, random_robot: RandomRobot) -> None:
    robot = floating(random_robot, kinds, seed)
    world, parameters = World(robot, seed), parameters_on_base(robot)
    rows = floating_regressor(robot, world.base, world.q, world.dq, world.ddq).reshape(SAMPLES, 6 + len(kinds), -1)
    forces = floating_inverse_dynamics(robot, world.base, world.q, world.dq, world.ddq, parameters)
    q, v, a = world.pinocchios()
    momenta = floating_momentum_regressor(robot, v[:, :3], v[:, 3:6], world.q, world.dq) @ parameters
    model = free_flyer(robot)
    data = model.createData()
    for k in range(SAMPLES):
        theirs = pinocchio.computeJointTorqueRegressor(model, data, q[k], v[k], a[k])
        by_link = theirs.reshape(6 + robot.n_joints, 1 + robot.n_links, 10)[:, :, FROM_PINOCCHIO]
        close(rows[k], by_link.reshape(6 + robot.n_joints, -1))
        close(forces[k], pinocchio.rnea(model, data, q[k], v[k], a[k]))
        # M v is the force of acceleration v from rest: Pinocchio's own mass matrix needs joints in depth-first order.
        still = np.zeros(model.nv)
        held = pinocchio.rnea(model, data, q[k], still, still)
        close(momenta.reshape(SAMPLES, -1)[k], pinocchio.rnea(model, data, q[k], still, v[k]) - held)


def test_a_base_that_stands_still_changes_nothing(random_robot: RandomRobot) -> None:
    """Its rows are the wrench that a fixed base bears, and its own weight; the joints' torques are those without it."""
    robot = floating(random_robot, "RPRR", 4)
    world, still = World(robot, 4), np.zeros((SAMPLES, 3))
    upright = np.broadcast_to(np.eye(3), (SAMPLES, 3, 3))
    base = FreeBaseMotion.from_world(robot, upright, still, still, still)
    rows = floating_regressor(robot, base, world.q, world.dq, world.ddq).reshape(SAMPLES, 10, 50)
    close(rows[:, :6, 10:], base_wrench_regressor(robot, world.q, world.dq, world.ddq))
    close(rows[:, :3, 0], np.broadcast_to(-np.array(robot.gravity), (SAMPLES, 3)))
    torques = inverse_dynamics(robot, world.q, world.dq, world.ddq, parameters_of(robot))
    close(rows[:, 6:, 10:] @ parameters_of(robot), torques)


def test_free_fall_asks_for_nothing(random_robot: RandomRobot) -> None:
    """A robot that falls with its joints at rest, and does not turn, needs no force at all."""
    robot = floating(random_robot, "RPRR", 5)
    world, still = World(robot, 5), np.zeros((SAMPLES, 3))
    falling = np.broadcast_to(np.array(robot.gravity), (SAMPLES, 3))
    base = FreeBaseMotion.from_world(robot, world.turn.as_matrix(), still, still, falling)
    rest = np.zeros_like(world.q)
    # Gravity is turned into the base's axes and taken away there: a few roundings of numbers up to 10.
    np.testing.assert_allclose(floating_regressor(robot, base, world.q, rest, rest), 0.0, atol=1e-13)


def test_power_is_the_rate_of_energy(random_robot: RandomRobot) -> None:
    """Along a motion the momenta's kinetic energy grows by what wrench, torques and gravity do."""
    robot = replace(floating(random_robot, "RRPR", 6), gravity=(0.0, 0.0, 0.0))
    parameters = parameters_on_base(robot)
    rate, amplitude = np.array([0.7, -0.3, 0.5]), np.array([0.4, 0.2, -0.3])
    wave = np.random.default_rng(6).uniform(0.5, 1.5, 4)

    def state(time: Array) -> tuple[Array, Array, Array, Array]:
        turn = Rotation.from_rotvec(time[:, None] * rate).as_matrix()
        velocity = np.einsum("kba,kb->ka", turn, np.cos(time)[:, None] * amplitude)
        return turn, velocity, np.sin(np.outer(time, wave)), wave * np.cos(np.outer(time, wave))

    def kinetic(time: Array) -> Array:
        _, velocity, q, dq = state(time)
        spin = np.broadcast_to(rate, (len(time), 3))  # it turns about an axis that is the same in base and world
        momenta = (floating_momentum_regressor(robot, velocity, spin, q, dq) @ parameters).reshape(len(time), -1)
        return 0.5 * np.sum(momenta * np.hstack([velocity, spin, dq]), axis=1)

    time, step = np.linspace(0.1, 2.0, SAMPLES), 1e-5
    turn, velocity, q, dq = state(time)
    spin = np.broadcast_to(rate, (SAMPLES, 3))
    acceleration = -np.sin(time)[:, None] * amplitude
    base = FreeBaseMotion.from_world(robot, turn, spin, np.zeros((SAMPLES, 3)), acceleration)
    forces = floating_inverse_dynamics(robot, base, q, dq, -(wave**2) * q, parameters)
    power = np.sum(forces * np.hstack([velocity, spin, dq]), axis=1)
    slope = (kinetic(time + step) - kinetic(time - step)) / (2.0 * step)
    # Central differences: off by step² times a third derivative of some 100, and by rounding of 100 over the step.
    np.testing.assert_allclose(power, slope, atol=1e-7)


def test_an_accelerometer_tells_the_same_from_wherever_it_sits(random_robot: RandomRobot) -> None:
    robot = floating(random_robot, "RP", 7)
    world = World(robot, 7)
    mount, arm = Rotation.from_rotvec([0.3, -1.0, 0.4]), np.array([0.2, -0.1, 0.3])
    base = world.base
    there = base.specific_force + np.cross(base.alpha, arm) + np.cross(base.omega, np.cross(base.omega, arm))
    readings = (mount.apply(each, inverse=True) for each in (base.omega, base.alpha, there))
    found = FreeBaseMotion.from_imu(*readings, rotation=mount.as_matrix(), origin=arm)
    for name in ("omega", "alpha", "specific_force"):
        close(getattr(found, name), getattr(base, name))


@pytest.mark.parametrize(("kinds", "seed"), [("R", 0), ("P", 0), ("RRR", 1), ("RPRR", 2), ("RRRRRRRRRRRR", 3)])
def test_the_base_alone_tells_all_base_parameters(kinds: str, seed: int, random_robot: RandomRobot) -> None:
    """Its rank is that with torques: ten of the base, seven for each joint that turns, four for each that slides.

    That the wrench on the base is enough is the theorem of Ayusawa, Venture & Nakamura.
    """
    robot = floating(random_robot, kinds, seed)
    # In general position; four of a sliding link are its mass and first moment, as it turns with what carries it.
    expected = 10 + sum(7 if kind == "R" else 4 for kind in kinds)
    both, alone = (floating_base_parameters(robot, torques=torques) for torques in (True, False))
    assert both.rank == alone.rank == expected
    assert both.leading_names == alone.leading_names
    assert both.leading_names[0].startswith("trunk.")

    theirs = free_flyer(robot)
    data, rng = theirs.createData(), np.random.default_rng(seed)
    rows = [
        pinocchio.computeJointTorqueRegressor(
            theirs, data, pinocchio.integrate(theirs, pinocchio.neutral(theirs), q), *rng.normal(size=(2, theirs.nv))
        )
        for q in rng.normal(size=(100, theirs.nv))
    ]
    assert np.linalg.matrix_rank(np.vstack(rows)) == expected
    assert np.linalg.matrix_rank(np.vstack([row[:6] for row in rows])) == expected


def test_base_parameters_group_what_the_regressor_gives(random_robot: RandomRobot) -> None:
    robot = floating(random_robot, "RPR", 8)
    world, parameters = World(robot, 8), parameters_on_base(robot)
    found = floating_base_parameters(robot, torques=False)
    rows = floating_regressor(robot, world.base, world.q, world.dq, world.ddq)
    close(found.project(rows) @ found.group(parameters), rows @ parameters)
    assert [group.name for group in found.groups] == list(found.leading_names)


def test_recovers_a_robot_from_the_wrench_on_its_base_alone(random_robot: RandomRobot) -> None:
    robot = floating(random_robot, "RRR", 9)
    found, parameters = floating_base_parameters(robot, torques=False), parameters_on_base(robot)
    worlds = [World(robot, seed) for seed in range(10)]
    rows = [floating_regressor(robot, each.base, each.q, each.dq, each.ddq).reshape(SAMPLES, 9, -1) for each in worlds]
    columns = np.vstack(rows)[:, :6].reshape(-1, 40)
    values = np.linalg.lstsq(found.project(columns), columns @ parameters, rcond=None)[0]
    np.testing.assert_allclose(values, found.group(parameters), atol=1e-9)  # condition number some 1e3


def test_mimics_passive_joints_and_drives_stay_what_they_are(random_robot: RandomRobot) -> None:
    plain = floating(random_robot, "RRPR", 10)
    joints: list[Joint] = list(plain.joints)
    joints[2] = replace(joints[2], mimic=Mimic(1, 0.5, 0.1))
    joints[3] = replace(joints[3], passive=True)
    robot = replace(
        plain, joints=tuple(joints), drives=(plain.drives[0], plain.drives[1], plain.drives[3]), home=plain.home[:3]
    )
    world = World(robot, 10)
    rows = floating_regressor(robot, world.base, world.q, world.dq, world.ddq).reshape(SAMPLES, 9, 50)
    index, factor, offset = robot.coordinates
    moved = (world.q[:, index] * factor + offset, world.dq[:, index] * factor, world.ddq[:, index] * factor)
    expected = floating_regressor(plain, world.base, *moved).reshape(SAMPLES, 10, 50)
    close(rows[:, :7], expected[:, :7])
    close(rows[:, 7], expected[:, 7] + 0.5 * expected[:, 8])
    assert not rows[:, 8].any()


def test_a_base_that_stands_still_is_refused() -> None:
    with pytest.raises(RobotError, match=r"the base of robot 'cobot6' does not move; set floating_base = true"):
        on_free_base(load_robot("cobot6"))


def test_shapes_are_checked(random_robot: RandomRobot) -> None:
    robot = floating(random_robot, "RR", 11)
    world, short = World(robot, 11), np.zeros((SAMPLES - 1, 2))
    with pytest.raises(ShapeError, match=r"the base's motion has 6 samples but q has 5"):
        floating_regressor(robot, world.base, short, short, short)
    with pytest.raises(ShapeError, match=r"alpha of the base has shape \(5, 3\)"):
        FreeBaseMotion(world.base.omega, world.base.alpha[1:], world.base.specific_force)
    with pytest.raises(ShapeError, match=r"needed are \(n_samples, 3, 3\) and \(n_samples, 3\)"):
        FreeBaseMotion.from_world(robot, np.eye(3), world.omega, world.alpha, world.acceleration)
    with pytest.raises(ShapeError, match=r"robot 'random RR' on its free base needs \(30,\)"):
        floating_inverse_dynamics(robot, world.base, world.q, world.dq, world.ddq, np.zeros(20))
    with pytest.raises(ShapeError, match=r"velocity and omega of the base have shapes \(6, 2\) and \(6, 3\)"):
        floating_momentum_regressor(robot, world.velocity[:, :2], world.omega, world.q, world.dq)
