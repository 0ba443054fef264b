"""Evidence on a plan: each quantity between its limits over the motion, and how a motion on one foot stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from jointbench.arrays import Array
from jointbench.excitation import (
    Balance,
    Certificate,
    Excitation,
    Information,
    Limit,
    Motion,
    Objective,
    Support,
    TorqueLimit,
    WeakParameters,
    Workspace,
    certify,
    fine_times,
    motion_at,
    usable_limits,
    weak_parameters,
)
from jointbench.identification.zero_moment_point.reduced_parameters import ReducedParameters
from jointbench.model import Robot, base_parameters
from jointbench.model.model_columns import torque_unit

_DERIVATIVES = ("position", "velocity", "acceleration", "jerk")
_TURNING = ("°", "°/s", "°/s²", "°/s³")
_SLIDING = ("mm", "mm/s", "mm/s²", "mm/s³")
_MM = 1e3

NOISE = 1.5e-3
"""What a sample of the measured zero-moment point is taken to be off, one sigma [m]: more than sensors' noise, as a
model's small faults come beside it."""

SAMPLE_PERIOD = 0.05
"""Of the measured zero-moment point [s]."""

_STEP = 1e-4
"""Share of a parameter by which it is changed for a slope: rounding is 1e-12 of that, curvature 1e-8."""


@dataclass(frozen=True, eq=False)
class Trace:
    """One quantity of all joints over a motion.

    Attributes:
        name: position, velocity, acceleration, jerk or torque.
        values: shape (n_samples, n_joints).
        limits: of the robot itself, lowest and highest, shape (n_joints, 2); infinite where a joint has none.
            What nothing is said of, as the torque of a passive joint, is not a number, here and in `values`.
        units: of each joint.
        either_way: what may come on top to both sides, as Coulomb's friction does, shape (n_joints,).
    """

    name: str
    values: Array
    limits: Array
    units: tuple[str, ...]
    either_way: Array

    @property
    def lowest(self) -> Array:
        """Shape (n_joints,)."""
        return self.values.min(axis=0) - self.either_way

    @property
    def highest(self) -> Array:
        """Shape (n_joints,)."""
        return self.values.max(axis=0) + self.either_way

    @property
    def peak(self) -> Array:
        """Largest magnitude, shape (n_joints,)."""
        return np.maximum(np.abs(self.lowest), np.abs(self.highest))

    @property
    def share(self) -> Array:
        """Share of the limit that the peak is; of a range of positions, the share that is visited; (n_joints,)."""
        low, high = self.limits.T
        return (self.highest - self.lowest) / (high - low) if self.name == "position" else self.peak / high

    def says(self, joint: int) -> bool:
        """True if anything is said of a joint."""
        return not bool(np.isnan(self.limits[joint, 1]))

    @property
    def unit(self) -> str:
        """Unit at the head of a column of all joints."""
        return " or ".join(dict.fromkeys(self.units))


def plain(value: float, digits: int = 4) -> str:
    """A value with so many significant digits, or all of its whole ones, and never a power of ten where it is large."""
    shown = f"{value:.{digits}g}" if abs(value) < 10.0**digits else f"{value:.0f}"
    return shown.replace("-", "−")


def plan_traces(robot: Robot, motion: Motion, limits: Sequence[Limit]) -> tuple[Trace, ...]:
    """Position, velocity and acceleration; jerk where a joint has a limit of it; torque where it can be predicted.

    Args:
        robot: the robot.
        motion: position, velocity, acceleration, jerk, shape (n_samples, n_joints) each, SI.
        limits: that the motion was planned within; the one of torque says what to predict it from.
    """
    joints = robot.independent_joints
    turns = np.array([joint.kind == "revolute" for joint in joints])
    scale = np.where(turns, np.rad2deg(1.0), _MM)
    jerk = np.array([np.inf if joint.jerk_limit is None else joint.jerk_limit for joint in joints])
    largest = (robot.velocity_limits, robot.acceleration_limits, jerk)
    allowed = [robot.position_limits, *(np.column_stack([-each, each]) for each in largest)]
    none = np.zeros(len(joints))
    traces = [
        Trace(name, scale * values, scale[:, None] * bounds, tuple(np.where(turns, turning, sliding).tolist()), none)
        for name, values, bounds, turning, sliding in zip(
            _DERIVATIVES, motion, allowed, _TURNING, _SLIDING, strict=True
        )
        if name != "jerk" or np.isfinite(jerk).any()
    ]
    return (*traces, *(_torque(robot, motion, limit) for limit in limits if isinstance(limit, TorqueLimit)))


def _torque(robot: Robot, motion: Motion, limit: TorqueLimit) -> Trace:
    """Return the torque of the limit: upward and downward usage differ by twice the torque, and add up to Coulomb's."""
    usage = limit.usage(motion)
    upwards, downwards = np.split(usage, 2, axis=1)
    said = np.where(robot.modelled, 1.0, np.nan)
    largest = said * robot.torque_limits
    return Trace(
        "torque",
        0.5 * (upwards - downwards) * said * limit.allowed,
        np.column_stack([-largest, largest]),
        tuple(torque_unit(robot, joint) for joint in range(robot.n_joints)),
        0.5 * (upwards + downwards)[0] * limit.allowed,
    )


@dataclass(frozen=True, eq=False)
class SupportEvidence:
    """Balance of a planned motion, and how well the foot's forces alone will tell the links' parameters.

    Attributes:
        support: what it keeps to.
        balance: what the ground must do, as predicted from the masses that the plan is balanced with, every
            `SAMPLE_PERIOD`.
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
        given = support.standard_parameters
        balance = Balance.of(
            robot, support.foot, *motion, None if given is None else np.array(given), support.zmp_offset
        )
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
        """Sentence on how it stands."""
        support = self.support
        lengthwise, sideways = (f"{1e3 * margin:g}" for margin in support.margin)
        return (
            f"in balance on {support.foot}: the predicted zero-moment point stays {1e3 * support.distance:.0f} mm from "
            f"the sole's edge, margins of {lengthwise} and {sideways} mm kept; friction needed {support.friction:.2f}, "
            f"least load {support.lightest:.0%} of the weight"
        )

    @property
    def told(self) -> str:
        """Sentence on what the motion tells."""
        return (
            f"least σ of each parameter from the foot's forces alone, {len(self.balance.points)} samples with "
            f"{1e3 * NOISE:g} mm of noise"
        )


@dataclass(frozen=True, eq=False)
class PlanEvidence:
    """A plan, and everything that says whether to play it.

    Attributes:
        robot: the robot.
        excitation: the plan.
        workspace: where the robot may move, None for anywhere.
        certificate: that the plan keeps every limit at every time.
        samples: at how many times the regressor is taken.
        weak: the parameters that it excites poorly, as far as these samples tell.
        scaled_condition_number: of the base regressor with all columns made one long.
        singular_values: of the base regressor, shape (rank,), and of that with all columns made one long.
        time: of what is shown [s], shape (n_samples,).
        traces: what the joints do then.
        support: how it stands and what the foot tells, of a motion on one foot; else None.
    """

    robot: Robot
    excitation: Excitation
    workspace: Workspace | None
    certificate: Certificate
    samples: int
    weak: WeakParameters
    scaled_condition_number: float
    singular_values: tuple[Array, Array]
    time: Array
    traces: tuple[Trace, ...]
    support: SupportEvidence | None = None

    @classmethod
    def of(
        cls,
        robot: Robot,
        excitation: Excitation,
        *,
        workspace: Workspace | None = None,
        noise: ArrayLike | None = None,
        prior: Mapping[str, float] | None = None,
        samples: int = 150,
    ) -> PlanEvidence:
        """Look at a plan.

        Args:
            robot: the robot.
            excitation: the plan.
            workspace: where the robot may move, None for anywhere.
            noise: standard deviation of each joint's torque [N·m or N], shape (n_joints,), where it is known.
            prior: values of full parameters that the robot's file does not know, or better ones (SI).
            samples: at which the regressor is taken.

        Raises:
            InfeasibleExcitation: home breaks a limit of a joint.
            ExcitationError: the workspace does not suit the robot; or the noise or the prior is none, the samples are
                too few, or the motion makes no torque.
        """
        limits = (*usable_limits(robot, prior=prior), *(workspace.limits(robot) if workspace else ()))
        basis, home, weights = excitation.basis, excitation.home, excitation.weights
        base = base_parameters(robot)
        sampled = motion_at(basis, home, weights, basis.sample_times(samples))[:3]
        columns = Information.of(robot, base).columns(sampled)
        lengths = np.maximum(np.linalg.norm(columns, axis=0), np.finfo(np.float64).tiny)
        time = fine_times(basis)  # what is proved is proved at every time
        return cls(
            robot=robot,
            excitation=excitation,
            workspace=workspace,
            certificate=certify(limits, basis, home, weights),
            samples=samples,
            weak=weak_parameters(robot, base, sampled, noise=noise, prior=prior),
            scaled_condition_number=Objective.of(robot, base, "scaled_condition_number").value(sampled),
            singular_values=(_singular_values(columns), _singular_values(columns / lengths)),
            time=time,
            traces=plan_traces(robot, motion_at(basis, home, weights, time), limits),
            support=excitation.support and SupportEvidence.of(robot, excitation, excitation.support),
        )

    @property
    def smallest_margin(self) -> float:
        """Share of the tightest usable limit that is certain to be left."""
        return float(1.0 - self.certificate.usage.max(initial=0.0))

    @property
    def answer(self) -> str:
        """Sentence on whether every limit is kept between samples too."""
        certificate = self.certificate
        if not certificate.feasible:
            return f"not feasible: {'; '.join(certificate.violations)}"
        return (
            f"feasible at every time, between samples too: {len(certificate.names)} limits proved over "
            f"{certificate.samples} samples; least is left of {certificate.worst}: {self.smallest_margin:.2%} of what "
            f"a plan may use"
        )


def _singular_values(columns: Array) -> Array:
    return np.asarray(np.linalg.svd(columns, compute_uv=False), dtype=np.float64)
