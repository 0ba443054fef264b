from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.excitation import motion_margins
from jointbench.excitation.excitation import JointMargins, space_margins
from jointbench.excitation.limits.motion_limits import Motion
from jointbench.excitation.limits.torque_limits import usable_limits
from jointbench.robot import Robot


def swing(cobot: Robot, samples: int = 1001) -> Motion:
    """Three swings of joint 1 by ±30° about home, the other joints at rest."""
    time = np.linspace(0.0, 3.0, samples)
    q = np.tile(cobot.home, (samples, 1))
    turns = 2.0 * np.pi * time
    amplitude = np.deg2rad(30.0)
    dq, ddq, dddq = np.zeros_like(q), np.zeros_like(q), np.zeros_like(q)
    q[:, 0] += amplitude * (1.0 - np.cos(turns)) - amplitude
    rate = 2.0 * np.pi
    dq[:, 0] = amplitude * rate * np.sin(turns)
    ddq[:, 0] = amplitude * rate**2 * np.cos(turns)
    dddq[:, 0] = -amplitude * rate**3 * np.sin(turns)
    return q, dq, ddq, dddq


def test_coverage_is_the_share_of_the_ranges_that_is_visited(cobot: Robot) -> None:
    first, second = motion_margins(cobot, *swing(cobot))[:2]

    assert first.position_coverage == pytest.approx(60.0 / 300.0)
    assert first.velocity_coverage == pytest.approx(30.0 * 2.0 * np.pi / 90.0, rel=1e-4)
    assert first.reversals == 5  # three swings to and fro
    assert (second.position_coverage, second.velocity_coverage, second.reversals) == (0.0, 0.0, 0)


def test_jerk_has_a_margin_where_it_is_limited_and_given(cobot: Robot) -> None:
    robot = replace(cobot, joints=(replace(cobot.joints[0], jerk_limit=200.0), *cobot.joints[1:]))
    q, dq, ddq, dddq = swing(robot)
    largest = np.deg2rad(30.0) * (2.0 * np.pi) ** 3

    with_jerk, without = motion_margins(robot, q, dq, ddq, dddq), motion_margins(robot, q, dq, ddq)

    assert with_jerk[0].jerk == pytest.approx(1.0 - largest / 200.0, rel=1e-4)
    assert [margins.jerk for margins in with_jerk[1:]] == [None] * 5
    assert without[0].jerk is None
    assert replace(with_jerk[0], jerk=-3.0).smallest == -3.0


def test_torque_counts_the_rotors_that_are_known(cobot: Robot) -> None:
    rotor = replace(cobot.drives[0], rotor_inertia=1e-3)
    robot = replace(cobot, drives=(rotor, *cobot.drives[1:]))
    q, dq, ddq, _ = swing(robot)

    with_rotor, without = motion_margins(robot, q, dq, ddq)[0], motion_margins(cobot, q, dq, ddq)[0]

    assert with_rotor.torque is not None
    assert without.torque is not None
    added = 1e-3 * 101.0**2 * np.abs(ddq[:, 0]).max() / 125.0
    assert without.torque - with_rotor.torque == pytest.approx(added, rel=1e-2)


def test_margins_of_earlier_plans_are_still_read() -> None:
    stored: dict[str, Any] = {"joint": "j1", "position": 0.1, "velocity": 0.2, "acceleration": 0.3, "torque": 0.4}

    assert JointMargins(**stored).smallest == 0.1
    assert JointMargins(**stored).reversals is None


@dataclass(frozen=True, eq=False)
class Wall:
    """Joint 1 may not go beyond 1 rad: a limit in space of which the distance is easy to tell."""

    names: tuple[str, ...] = ("wall", "far wall")

    def usage(self, motion: Motion) -> Array:
        return motion[0][:, :1] * np.array([1.0, 0.5])

    def gradient(self, motion: Motion, which: NDArray[np.int64]) -> Motion:
        by_q, *others = (np.zeros_like(values) for values in motion)
        by_q[:, 0] = np.array([1.0, 0.5])[which]
        return by_q, others[0], others[1], others[2]

    def between(self, bounds: Array, step: float) -> Array:
        return step**2 / 8.0 * bounds[2, 0] * np.array([1.0, 0.5])

    def say(self, scalar: int, usage: float) -> str:
        return f"{self.names[scalar]}: {usage:.0%} used"

    def distance(self, scalar: int, usage: float) -> float:
        return (1.0 - usage) * (1.0, 2.0)[scalar]


def test_distances_in_space_are_named_the_nearest_first(cobot: Robot) -> None:
    motion = swing(cobot)

    distances = space_margins([*usable_limits(cobot), Wall()], motion)

    assert list(distances) == ["wall", "far wall"]
    assert distances["wall"] == pytest.approx(1.0 - np.deg2rad(30.0), abs=1e-5)
    assert distances["far wall"] == pytest.approx(2.0 - np.deg2rad(30.0), abs=1e-5)
