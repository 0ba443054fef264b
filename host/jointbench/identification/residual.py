"""Residual models: torque that a model lacks, learnt from its error along one mission and judged on others."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.polynomial import Polynomial
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.identification.judgement import Verdict
from jointbench.identification.observations import Observations, observe
from jointbench.identification.settings import FitSettings
from jointbench.model import Robot, base_parameters, kane_dynamics
from jointbench.recording import Run
from jointbench.signals import Motion

TorqueModel = Callable[[Array, Array, Array], Array]
"""Joint torque [N·m or N] of position, velocity and acceleration, shape (n, n_joints) each: `Model.predict` is one."""

MotionColumns = Callable[[Motion], Mapping[int, Array]]
"""By joint, columns of a motion of n samples, shape (m, n) each."""


@dataclass(frozen=True, eq=False)
class Mission:
    """A recorded motion beside a model's torque, on an even grid of times.

    error = measured torque - model's torque, both through the same filters.

    Attributes:
        name: of its run.
        motion: what was played, the same for each playing of it; the hash of the recording where that is not known.
        model: whose torque is compared.
        observations: of the run.
    """

    name: str
    motion: str
    model: TorqueModel
    observations: Observations

    @property
    def robot(self) -> Robot:
        """Robot that moved."""
        return self.observations.filter.base.robot

    @property
    def settings(self) -> FitSettings:
        """Settings as decided, for other missions to be looked at alike."""
        return dataclasses.replace(self.observations.settings, interval=None)

    @cached_property
    def time(self) -> Array:
        """Since the mission began [s], shape (n,)."""
        return self.observations.time - self.observations.time[0]

    @property
    def complete(self) -> NDArray[np.bool_]:
        """Rows away from gaps and ends, shape (n,)."""
        return self.observations.complete

    @cached_property
    def compared(self) -> NDArray[np.bool_]:
        """Rows of each modelled joint that the measured torque is known of, shape (n, n_joints)."""
        return self.complete[:, None] & self.robot.modelled

    @property
    def moving(self) -> NDArray[np.bool_]:
        """Those of them away from rest, shape (n, n_joints)."""
        return self.observations.moving

    @cached_property
    def error(self) -> Array:
        """Torque that the model lacks [N·m or N], shape (n, n_joints); zero where not compared."""
        lacking = self.observations.torque - self.filtered(self.model)
        return np.where(self.compared, lacking, 0.0)

    def filtered(self, torque: TorqueModel) -> Array:
        """Torque of the mission's motion through the filters of the measured one, shape (n, n_joints)."""
        columns = self.columns(lambda motion: dict(enumerate(torque(motion.q, motion.dq, motion.ddq).T[:, None])))
        return np.stack([columns[joint][0] for joint in range(self.robot.n_joints)], axis=1)

    def columns(self, of_motion: MotionColumns) -> dict[int, Array]:
        """Columns of the mission's motion, computed at every sample and filtered as its torque was.

        Returns:
            By joint, shape (m, n) each, zero where not complete.
        """
        n, whole = self.observations.n_rows, dict[int, Array]()
        for stretch in self.observations.stretches:
            if stretch.n_rows:
                for joint, values in self.observations.filter.of_motion(stretch, of_motion).items():
                    whole.setdefault(joint, np.zeros((len(values), n)))[:, stretch.rows] = values
        return whole


def mission_of(
    run: Run, robot: Robot | None = None, model: TorqueModel | None = None, settings: FitSettings | None = None
) -> Mission:
    """Compare a run with a model.

    Args:
        run: the recording.
        robot: that was recorded; None: the run's own.
        model: None: Kane's equations with the inertias of the robot's file, without drives.
        settings: as of a fit; for a mission to be compared with another, that one's.

    Raises:
        FitError: the run cannot give what the settings ask for, or the robot's file gives no inertias for a model.
        SignalError: the cut-off does not suit the sample rate.
        NumericalError: the robot's geometry is nearly degenerate.
    """
    robot = robot or run.robot
    played = None if run.excitation is None else json.dumps(run.excitation.to_dict(), sort_keys=True)
    return Mission(
        name=run.path.name,
        motion=played or run.sha256,
        model=model or printed_model(robot),
        observations=observe(run, robot, base_parameters(robot), settings or FitSettings()),
    )


def printed_model(robot: Robot) -> TorqueModel:
    """Kane's equations with the inertias of the robot's file: what is said of the links, and nothing of the drives.

    Raises:
        FitError: the file does not give the inertia of every link.
    """
    parameters = robot.standard_parameters
    if parameters is None:
        missing = ", ".join(j.link.name for j in robot.joints if j.link.standard_parameters is None)
        raise FitError(
            f"the file of robot {robot.name!r} gives no inertia of {missing}; add it, or give a model of your own"
        )
    return lambda q, dq, ddq: kane_dynamics(robot, q, dq, ddq, parameters)


class Residual(Protocol):
    """Torque that a model lacks, learnt from its error along one mission."""

    def torque(self, time: Array, q: Array, dq: Array, ddq: Array) -> Array:
        """Return the torque to be added to the model's.

        Args:
            time: since the mission began [s], shape (n,).
            q, dq, ddq: joint position [rad], velocity [rad/s], acceleration [rad/s²], shape (n, n_joints); or of m.

        Returns:
            Torque [N·m or N], shape (n, n_joints).

        Raises:
            ShapeError: of residuals that look at the motion: it does not match the robot.
        """
        ...

    def along(self, mission: Mission) -> Array:
        """Return the residual at a mission's rows, filtered as its measured torque was, shape (n, n_joints)."""
        ...

    def distance_along(self, mission: Mission) -> Array:
        """Return the distance of a mission's rows from what it was fitted to, of each joint, shape (n, n_joints).

        Up to 1 inside of it, beyond that so many times as far out; infinite where it knows nothing.
        """
        ...


GOOD_GAIN = 0.5
"""A residual holds for a joint where it takes half of the torque's error away at least …"""

POOR_GAIN = 0.1
"""… a poor fit down to this share; with less it is refused."""

FAR_SHARE = 0.1
"""Of a mission beyond what a residual was fitted to, above which the verdict says so."""


@dataclass(frozen=True, eq=False)
class ResidualGain:
    """A model's torque error without and with a residual, root mean square over the same rows.

    gain = 1 - error with it / error without.

    Attributes:
        mission: name of the mission it was judged on.
        joint_names: in the order of the arrays.
        modelled: which of them are not passive, shape (n_joints,).
        without, with_it: error [N·m or N], nan of joints without rows, shape (n_joints,).
        outside: share of the rows beyond what the residual was fitted to, nan without rows, shape (n_joints,).
        farthest: how many times as far out the farthest row is, infinite where it knows nothing, shape (n_joints,).

    Source: the word is that of Li et al., Hindawi, 2017, who print gains of a torque error.
    """

    mission: str
    joint_names: tuple[str, ...]
    modelled: NDArray[np.bool_]
    without: Array
    with_it: Array
    outside: Array
    farthest: Array

    @cached_property
    def gain(self) -> Array:
        """Share of the error that is gone, negative where it grew, nan of joints without rows, shape (n_joints,)."""
        ratio = np.divide(self.with_it, self.without, out=np.full_like(self.without, np.nan), where=self.without > 0.0)
        return 1.0 - ratio

    @property
    def average(self) -> float:
        """Mean gain of the joints that were judged, nan without any."""
        judged = self.gain[np.isfinite(self.gain)]
        return float(judged.mean()) if len(judged) else float("nan")

    @cached_property
    def joint_verdicts(self) -> tuple[Verdict, ...]:
        """The word on each joint."""
        return tuple(
            self._judge(joint, name)
            if self.modelled[joint]
            else Verdict(name, "passive", "its position is measured, and its torque has no model to judge")
            for joint, name in enumerate(self.joint_names)
        )

    @property
    def verdict(self) -> Verdict:
        """The word on the whole: that on its worst joint."""
        worst = max(
            range(len(self.joint_names)),
            key=lambda j: (self.joint_verdicts[j].rank, -np.nan_to_num(self.gain[j], nan=-np.inf)),
        )
        chosen = self.joint_verdicts[worst]
        return Verdict("residual", chosen.word, f"worst joint {chosen.name}: {chosen.reason}")

    def _judge(self, joint: int, name: str) -> Verdict:
        gain, outside, farthest = (float(values[joint]) for values in (self.gain, self.outside, self.farthest))
        if not np.isfinite(gain):
            return Verdict(name, "refused", "no row of this joint can be compared, or the model has no error there")
        figures = f"error {self.without[joint]:.3g} without it, {self.with_it[joint]:.3g} with it, gain {gain:.0%}"
        if np.isinf(farthest):
            return Verdict(
                name, "refused", f"nothing that it was fitted to is like mission {self.mission!r}; {figures}"
            )
        if outside > FAR_SHARE:
            figures += f"; {outside:.0%} of it beyond what was fitted, up to {farthest:.2g} times as far out"
        if gain >= GOOD_GAIN:
            return Verdict(name, "identified", figures)
        if gain >= POOR_GAIN:
            return Verdict(name, "poor fit", f"{figures}; below {GOOD_GAIN:.0%}")
        return Verdict(name, "refused", f"{figures}; below {POOR_GAIN:.0%}")


def gain_of(residual: Residual, mission: Mission) -> ResidualGain:
    """Judge a residual on a mission, over all rows of it that torque is known of.

    Args:
        residual: fitted to this mission or another.
        mission: of the same robot, compared with the same model.

    Raises:
        FitError: the mission has no such row.
    """
    rows = mission.compared
    if not rows.any():
        raise FitError(f"mission {mission.name!r} has no complete row; record a longer one")
    distance = np.where(rows, residual.distance_along(mission), 0.0)
    return ResidualGain(
        mission=mission.name,
        joint_names=mission.robot.joint_names,
        modelled=mission.robot.modelled,
        without=np.sqrt(_mean(mission.error**2, rows)),
        with_it=np.sqrt(_mean((mission.error - residual.along(mission)) ** 2, rows)),
        outside=_mean((distance > 1.0).astype(np.float64), rows),
        farthest=distance.max(axis=0),
    )


def _mean(values: Array, rows: NDArray[np.bool_]) -> Array:
    """Return the mean of each column's rows, nan without any."""
    count = rows.sum(axis=0).astype(np.float64)
    return np.divide(np.where(rows, values, 0.0).sum(axis=0), count, out=np.full(len(count), np.nan), where=count > 0.0)


ORDER = 5
"""As printed."""


@dataclass(frozen=True, eq=False)
class TimePolynomial:
    """T'_i(t) = Σ_{j=0..order} C_ij t^j, t since the mission began.

    It knows nothing of what the robot does, and so it holds on the mission it was fitted to alone.

    Attributes:
        mission: name of that mission.
        motion: its motion, as of `Mission`.
        polynomials: one for each joint, each on its own even domain of time.

    Source: Li et al., Hindawi, 2017.
    """

    mission: str
    motion: str
    polynomials: tuple[Polynomial, ...]

    @classmethod
    def fit(cls, mission: Mission, order: int = ORDER) -> TimePolynomial:
        """Fit each joint's by least squares to all rows of the mission.

        Raises:
            FitError: the order is negative, or rows are too few for it.
        """
        rows = int(mission.complete.sum())
        if not 0 <= order < rows:
            raise FitError(f"order = {order}: mission {mission.name!r} has {rows} rows, and the order is 0 at least")
        time = mission.time[mission.complete]
        fits = (Polynomial.fit(time, error, order) for error in mission.error[mission.complete].T)
        return cls(mission.name, mission.motion, tuple(fits))

    @property
    def coefficients(self) -> Array:
        """C_ij [N·m/s^j or N/s^j], shape (n_joints, order + 1)."""
        order = self.polynomials[0].degree()
        coefficients = np.zeros((len(self.polynomials), order + 1))
        for row, polynomial in zip(coefficients, self.polynomials, strict=True):
            plain = polynomial.convert().coef
            row[: len(plain)] = plain
        return coefficients

    def torque(self, time: Array, q: Array, dq: Array, ddq: Array) -> Array:
        """Torque at these times; the motion does not matter. Arguments and result as of `Residual`."""
        return np.stack([polynomial(time) for polynomial in self.polynomials], axis=1)

    def along(self, mission: Mission) -> Array:
        """Torque at a mission's rows: five powers in a mission are slow beside any filter, so that none is needed."""
        return self.torque(mission.time, *(np.empty((0, 0)),) * 3)

    def distance_along(self, mission: Mission) -> Array:
        """Zero on its own mission; any other is infinitely far, whatever the time."""
        own = mission.motion == self.motion
        return np.full(mission.error.shape, 0.0 if own else np.inf)
