"""What a motion on one foot can be judged by before anything moves: how it stands, and what its foot will tell."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointbench.arrays import Array
from jointbench.excitation import Balance, Excitation, Support
from jointbench.identification.zero_moment_point.reduced_parameters import ReducedParameters
from jointbench.robot import Robot

NOISE = 1.5e-3
"""What a sample of the measured zero-moment point is taken to be off, one sigma [m]: more than sensors' noise, as a
model's small faults come beside it."""

SAMPLE_PERIOD = 0.05
"""Of the measured zero-moment point [s]."""

_STEP = 1e-4
"""Share of a parameter by which it is changed for a slope: rounding is 1e-12 of that, curvature 1e-8."""


@dataclass(frozen=True, eq=False)
class SupportEvidence:
    """How a planned motion stands, and how well the foot's forces alone will tell the links' parameters.

    Attributes:
        support: what it keeps to.
        balance: what the ground must do, as predicted from the robot's own inertias, every `SAMPLE_PERIOD`.
        names: of the parameters of the kinds of links; none where the robot's file has no kinds.
        values: what the robot's file says of them [m, kg].
        sigma: that an unbiased estimate from this motion alone has at least, by Cramér and Rao, with the robot's mass
            known and independent noise of `NOISE`.
    """

    support: Support
    balance: Balance
    names: tuple[str, ...]
    values: Array
    sigma: Array

    @classmethod
    def of(cls, robot: Robot, plan: Excitation, support: Support) -> SupportEvidence:
        """Look at a plan of a robot with a floating base."""
        motion = plan.evaluate(np.arange(0.0, plan.duration, SAMPLE_PERIOD))
        balance = Balance.of(robot, support.foot, *motion, zmp_offset=support.zmp_offset)
        if not robot.link_kinds:
            return cls(support, balance, (), np.empty(0), np.empty(0))
        reduced = ReducedParameters(robot)

        def points(phi: Array) -> Array:
            return Balance.of(robot, support.foot, *motion, reduced.standard(phi)).points.ravel()

        values = reduced.nominal
        slopes = np.stack(
            [(points(values + step) - points(values - step)) / (2.0 * step.sum()) for step in np.diag(_STEP * values)],
            axis=1,
        )
        # What leaves the mass as it is.
        free = np.linalg.svd(reduced.mass_row[None])[2][1:].T
        covariance = NOISE**2 * free @ np.linalg.pinv((slopes @ free).T @ (slopes @ free), hermitian=True) @ free.T
        return cls(support, balance, reduced.names, values, np.sqrt(np.diag(covariance)))

    @property
    def relative_sigma(self) -> Array:
        """Share of each parameter, shape (n_parameters,)."""
        return self.sigma / self.values

    @property
    def answer(self) -> str:
        """How it stands, in one sentence."""
        support = self.support
        lengthwise, sideways = (f"{1e3 * each:g}" for each in support.margin)
        return (
            f"in balance on {support.foot}: the predicted zero-moment point stays {1e3 * support.distance:.0f} mm from "
            f"the sole's edge, margins of {lengthwise} and {sideways} mm kept; friction needed {support.friction:.2f}, "
            f"least load {support.lightest:.0%} of the weight"
        )

    @property
    def told(self) -> str:
        """What the motion tells, in one sentence."""
        return (
            f"least σ of each parameter from the foot's forces alone, {len(self.balance.points)} samples with "
            f"{1e3 * NOISE:g} mm of noise"
        )
