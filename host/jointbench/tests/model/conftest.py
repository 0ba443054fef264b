"""Robots and motions to test the dynamics on."""

from collections.abc import Callable
from typing import cast

import numpy as np
import pytest

from jointbench.arrays import Array, Matrix3, Vector3
from jointbench.model import Drive, Joint, Link, Mimic, Robot, modified_dh

RandomRobot = Callable[..., Robot]


@pytest.fixture
def random_robot() -> RandomRobot:
    """Return a maker of robots with random geometry, one joint per letter.

    R is revolute and P prismatic about and along the z axis of the joint's frame, r and p an axis in any direction; m
    is a joint of either kind and any axis that follows an earlier one (the first joint cannot).
    """
    return _random_robot


@pytest.fixture
def random_motion() -> Callable[[Robot, int, int], tuple[Array, Array, Array]]:
    """Return a maker of unrelated random positions, velocities and accelerations."""

    def motion(robot: Robot, samples: int, seed: int) -> tuple[Array, Array, Array]:
        q, dq, ddq = np.random.default_rng(seed).normal(size=(3, samples, robot.n_joints))
        return q, dq, ddq

    return motion


def _random_robot(kinds: str, seed: int, *, tree: bool = False) -> Robot:
    rng = np.random.default_rng(seed)
    extra = np.random.default_rng([seed, 1])  # its own, so that the letters do not change each other's numbers
    joints: list[Joint] = []
    for i, letter in enumerate(kinds):
        rotation, origin = modified_dh(*rng.uniform(-1.5, 1.5, 4))
        link = _random_link(f"link{i}", rng)
        parent = int(rng.integers(-1, i)) if tree else i - 1
        kind = letter if letter != "m" else extra.choice(["r", "p"])
        followed = [k for k, joint in enumerate(joints) if joint.mimic is None]
        joints.append(
            Joint(
                name=f"j{i}",
                kind="revolute" if kind in "Rr" else "prismatic",
                parent=parent,
                rotation=rotation,
                origin=origin,
                position_limits=(-3.0, 3.0),
                velocity_limit=2.0,
                acceleration_limit=5.0,
                torque_limit=100.0,
                link=link,
                axis=(0.0, 0.0, 1.0) if kind.isupper() else _random_axis(extra),
                mimic=_random_mimic(followed, extra) if letter == "m" else None,
            )
        )
    independent = [joint for joint in joints if joint.mimic is None]
    return Robot(
        name=f"random {kinds}",
        joints=tuple(joints),
        drives=tuple(Drive(joint.name, joint.name, "direct", 50.0, 0.1, 10.0) for joint in independent),
        couplings=(),
        gravity=tuple(rng.uniform(-9.0, 9.0, 3)),
        home=(0.0,) * len(independent),
        source="random",
        description="random",
    )


def _random_link(name: str, rng: np.random.Generator) -> Link:
    spread = rng.normal(size=(3, 3))
    second_moment = 0.01 * spread @ spread.T
    inertia = np.trace(second_moment) * np.eye(3) - second_moment
    return Link(
        name=name,
        mass=float(rng.uniform(0.5, 5.0)),
        center_of_mass=tuple(rng.uniform(-0.3, 0.3, 3)),
        inertia_about_center_of_mass=cast(Matrix3, tuple(map(tuple, inertia.tolist()))),
    )


def _random_axis(rng: np.random.Generator) -> Vector3:
    axis = rng.normal(size=3)
    x, y, z = (axis / np.linalg.norm(axis)).tolist()
    return x, y, z


def _random_mimic(followed: list[int], rng: np.random.Generator) -> Mimic:
    return Mimic(int(rng.choice(followed)), float(rng.uniform(-2.0, 2.0)), float(rng.uniform(-1.0, 1.0)))
