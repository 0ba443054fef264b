"""The stiffness of gears from the encoders on both their sides: far better told than by what twist does to torque."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from jointbench.errors import FitError
from jointbench.identification.drives.drive_signals import DriveSignals
from jointbench.identification.judgement.verdict import Verdict, judge_parameter
from jointbench.identification.least_squares import weighted_least_squares
from jointbench.robot import Robot


@dataclass(frozen=True)
class GearStiffness:
    """How far one gear, its torque sensor included, gives.

    Attributes:
        name: of the joint.
        flexibility: 1/stiffness [rad/(N·m)]; 0 where not told.
        sigma: its standard deviation; infinite where not told.
        verdict: the word on it; a flexibility that is not above zero is refused.
    """

    name: str
    flexibility: float
    sigma: float
    verdict: Verdict

    @property
    def stiffness(self) -> float | None:
        """Stiffness [N·m/rad], None where refused."""
        return None if self.verdict.word == "refused" else 1.0 / self.flexibility

    @property
    def interval(self) -> tuple[float, float]:
        """Interval that holds the flexibility with 95 % probability [rad/(N·m)]."""
        half = float(stats.norm.ppf(0.975)) * self.sigma
        return self.flexibility - half, self.flexibility + half


def fit_stiffness(robot: Robot, signals: DriveSignals) -> tuple[GearStiffness | None, ...]:
    """Identify each gear's stiffness K from twist and torque.

    q_motor - q_link = tau_r / K + zero, by least squares.

    Args:
        robot: the robot.
        signals: with `twist` and `gear_torque`.

    Returns:
        One for each joint, None of passive ones.

    Raises:
        FitError: the signals lack encoders on both sides, or torque sensors; or a joint has too few rows.
    """
    gear, twist = signals.gear_torque, signals.twist
    if gear is None or twist is None:
        missing = "torque sensors" if gear is None else "encoders on both sides of the gears"
        raise FitError(f"the signals of {robot.name!r} are without {missing}, and stiffness is torque over twist")
    found: list[GearStiffness | None] = []
    for j, name in enumerate(robot.joint_names):
        if not robot.modelled[j]:
            found.append(None)
            continue
        used = signals.moving_rows[:, j, None]
        if int(used.sum()) <= 2:
            raise FitError(f"joint {name!r} has {int(used.sum())} rows away from rest; record a motion that moves it")
        torque, twisted = signals.joint_rows(np.stack([gear.value[:, j], twist[:, j]], axis=1), j).T
        columns = np.stack([torque, np.ones_like(torque)], axis=1)[:, None]
        estimate = weighted_least_squares(columns, twisted[:, None], used)
        value, sigma = float(estimate.parameters[0]), float(np.sqrt(estimate.covariance[0, 0]))
        found.append(GearStiffness(name, value, sigma, _judge(name, value, sigma)))
    return tuple(found)


def _judge(joint: str, value: float, sigma: float) -> Verdict:
    name = f"{joint}.flexibility"
    if value <= 0.0 and np.isfinite(sigma):
        return Verdict(name, "refused", f"{value:.3g} ± {sigma:.2g} rad/(N·m) is not above zero, as any gear's is")
    return judge_parameter(name, value, sigma)
