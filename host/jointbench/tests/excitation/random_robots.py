"""Random trees with limits of their own, and random motions of every family."""

from dataclasses import replace

import numpy as np

from jointbench.arrays import Array
from jointbench.excitation import PointToPoint, RampedFourier, RestToRestFourier
from jointbench.model import Drive, Joint, Link, Mimic, Robot, modified_dh
from jointbench.model.joint import as_matrix

Family = RestToRestFourier | RampedFourier | PointToPoint


def random_tree(rng: np.random.Generator, n_joints: int, mimics: bool = False) -> Robot:
    """Revolute and prismatic joints on any earlier one; limits of the size that robots have; home off the middle."""
    joints: list[Joint] = []
    for i in range(n_joints):
        rotation, origin = modified_dh(*(rng.uniform(-most, most) for most in (1.5, 0.4, 0.4, 1.5)))
        spread = 0.1 * rng.normal(size=(3, 3))
        second_moment = spread @ spread.T
        center = tuple(rng.uniform(-0.2, 0.2, 3).tolist())
        inertia = as_matrix(np.trace(second_moment) * np.eye(3) - second_moment)
        followed = int(rng.integers(0, i)) if mimics and i else -1
        alone = followed < 0 or joints[followed].mimic is not None or rng.random() < 0.6
        joints.append(
            Joint(
                name=f"j{i}",
                kind="revolute" if rng.random() < 0.75 else "prismatic",
                parent=int(rng.integers(-1, i)),
                rotation=rotation,
                origin=origin,
                position_limits=(float(rng.uniform(-3.0, -0.2)), float(rng.uniform(0.2, 3.0))),
                velocity_limit=float(rng.uniform(0.5, 4.0)),
                acceleration_limit=float(rng.uniform(2.0, 20.0)),
                torque_limit=float(rng.uniform(10.0, 300.0)),
                link=Link(f"link{i}", float(rng.uniform(0.5, 5.0)), center, inertia),
                mimic=None if alone else Mimic(followed, float(rng.uniform(-2.0, 2.0)), 0.1),
                jerk_limit=float(rng.uniform(20.0, 200.0)) if rng.random() < 0.5 else None,
            )
        )
    independent = [joint for joint in joints if joint.mimic is None]
    drives = [Drive(joint.name, joint.name, "direct", 50.0, 0.1, 100.0, rotor_inertia=1e-4) for joint in independent]
    home = tuple(float(rng.uniform(0.5 * low, 0.5 * high)) for low, high in (j.position_limits for j in independent))
    return Robot("tree", tuple(joints), tuple(drives), (), tuple(rng.uniform(-9, 9, 3).tolist()), home, "random", "")


def with_torque_limits(robot: Robot, largest: Array) -> Robot:
    """The robot with these torque limits [N·m or N] of its independent joints, which mimic none."""
    limits = iter(largest.tolist())
    joints = (joint if joint.mimic else replace(joint, torque_limit=next(limits)) for joint in robot.joints)
    return replace(robot, joints=tuple(joints))


def random_family(rng: np.random.Generator) -> Family:
    """Any family, a few seconds long."""
    ramp_and_periods = float(rng.uniform(0.5, 2.0)), int(rng.integers(1, 4))
    families: list[Family] = [
        RestToRestFourier(int(rng.integers(2, 7)), float(rng.uniform(2.0, 12.0))),
        RampedFourier(int(rng.integers(2, 5)), float(rng.uniform(2.0, 8.0)), *ramp_and_periods),
        PointToPoint(int(rng.integers(1, 5)), float(rng.uniform(0.5, 2.0))),
    ]
    return families[int(rng.integers(len(families)))]


def random_weights(rng: np.random.Generator, robot: Robot, basis: Family) -> Array:
    """Weights of motions of about a radian."""
    return rng.standard_normal((robot.n_joints, basis.size)) / np.sqrt(basis.size)
