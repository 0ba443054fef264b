"""Robots and motions to test the dynamics on."""

from collections.abc import Callable
from typing import cast

import numpy as np
import pytest

from jointbench.robot import Array, Drive, Joint, Link, Robot, modified_dh
from jointbench.robot.arrays import Matrix3

RandomRobot = Callable[..., Robot]


@pytest.fixture
def random_robot() -> RandomRobot:
    """Return a maker of robots with random geometry: one joint per letter, R revolute, P prismatic."""
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
    joints: list[Joint] = []
    for i, kind in enumerate(kinds):
        rotation, origin = modified_dh(*rng.uniform(-1.5, 1.5, 4))
        spread = rng.normal(size=(3, 3))
        second_moment = 0.01 * spread @ spread.T
        inertia = np.trace(second_moment) * np.eye(3) - second_moment
        link = Link(
            name=f"link{i}",
            mass=float(rng.uniform(0.5, 5.0)),
            center_of_mass=tuple(rng.uniform(-0.3, 0.3, 3)),
            inertia_about_center_of_mass=cast(Matrix3, tuple(map(tuple, inertia.tolist()))),
        )
        joints.append(
            Joint(
                name=f"j{i}",
                kind="revolute" if kind == "R" else "prismatic",
                parent=int(rng.integers(-1, i)) if tree else i - 1,
                rotation=rotation,
                origin=origin,
                position_limits=(-3.0, 3.0),
                velocity_limit=2.0,
                acceleration_limit=5.0,
                torque_limit=100.0,
                link=link,
            )
        )
    return Robot(
        name=f"random {kinds}",
        joints=tuple(joints),
        drives=tuple(Drive(joint.name, joint.name, "direct", 50.0, 0.1, 10.0) for joint in joints),
        couplings=(),
        gravity=tuple(rng.uniform(-9.0, 9.0, 3)),
        home=(0.0,) * len(kinds),
        source="random",
        description="random",
    )
