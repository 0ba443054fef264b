"""Identify a payload: the body with which a robot was recorded a second time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.identification.fit import Settings, check_enough, settings_of_runs
from jointbench.identification.judgement import (
    GOOD_RELATIVE_ERROR,
    POOR_RELATIVE_ERROR,
    ErrorSums,
    TorqueError,
    Verdict,
    judge_joints,
)
from jointbench.identification.least_squares import Estimate, least_squares
from jointbench.identification.observations import fitted_rows, modelled_torque, observe
from jointbench.identification.payload_body import WIDTH, KnownPayload, PayloadBody, PayloadFrame
from jointbench.identification.rows import Block, ChangedRows, JointRows, Rows, felt_by_sensor
from jointbench.identification.settings import FitSettings
from jointbench.model import BaseParameters, Robot, base_parameters
from jointbench.recording import Run

FRICTION = ("viscous", "coulomb", "offset")
"""Drive parameters that may differ between two recordings of one robot: warmth changes friction, and zeros drift."""

_CHANGED = 3.0
"""Number of σ above which a change of friction, or a difference of masses, is worth a sentence."""


@dataclass(frozen=True, eq=False)
class PayloadRows(ChangedRows):
    """Rows with columns for a payload and for what friction has changed by, behind those of the base parameters.

    torque - payload_columns @ known = base_columns @ pi + payload_columns @ free + friction_columns @ change in the
    recording with the payload; without it the further columns do not act.

    Attributes:
        rows: of one recording, with the columns of the base parameters.
        payload: base parameters that each of the payload's ten standard parameters adds to, shape (rank, 10).
        known: what is known of the payload.
        friction: indices of the base parameters that may have changed.
        loaded: whether the payload is there.
    """

    payload: Array
    known: KnownPayload
    friction: NDArray[np.intp]
    loaded: bool

    @property
    def n_parameters(self) -> int:
        """Base parameters, the payload's free ones, and changes of friction."""
        return self.rows.n_parameters + int((~self.known.known).sum()) + len(self.friction)

    def blocks(self) -> Iterator[Block]:
        """All rows in order of time."""
        for block in self.rows.blocks():
            if not self.loaded:
                yield replace(block, n_parameters=self.n_parameters)
                continue
            joints, torque = list[JointRows](), block.torque.copy()
            for joint, (which, columns) in enumerate(block.joints):
                body = self.payload[which].T @ columns
                torque[:, joint] -= self.known.parameters @ body
                joints.append(self._joint_rows(which, columns, body[~self.known.known]))
            yield replace(block, joints=tuple(joints), n_parameters=self.n_parameters, torque=torque)

    def _joint_rows(self, which: NDArray[np.intp], columns: Array, body: Array) -> JointRows:
        """Columns of one joint with those of the payload and of its friction's change."""
        rank, present = self.rows.n_parameters, np.isin(which, self.friction)
        changes = np.searchsorted(self.friction, which[present])
        parameters = np.concatenate([which, rank + np.arange(len(body)), rank + len(body) + changes])
        return JointRows(parameters, np.vstack([columns, body, columns[present]]))


@dataclass(frozen=True)
class FrictionChange:
    """Change of a drive's friction or offset from the first recording to the second [SI], and its σ."""

    name: str
    value: float
    sigma: float


@dataclass(frozen=True, eq=False)
class Payload:
    """The payload that a second recording has more than a first one.

    Attributes:
        robot: that carries it.
        body: mass, centre of mass and inertia, with error bars and verdicts.
        before, after: error of each joint's torque over the fitted rows, without and with the payload.
        torque: what the payload asks of each joint, root mean square over the fitted rows [N·m or N], (n_joints,).
        rows: how many were fitted of each recording.
        friction_changes: those that stand out of their σ, by more than 3 times.
        lags: for how many rows residuals count as correlated.
        side: "motor" or "joint": whose torque was fitted.
        settings: of both recordings as used, nothing left open.
        free_mass: where the mass was given, what the recordings say it is, and its σ [kg]; an infinite σ where they do
            not tell it.
    """

    robot: Robot
    body: PayloadBody
    before: TorqueError
    after: TorqueError
    torque: Array
    rows: tuple[int, int]
    friction_changes: tuple[FrictionChange, ...]
    lags: int
    side: str
    settings: tuple[FitSettings, FitSettings]
    free_mass: tuple[float, float] | None = None

    @property
    def mass_verdict(self) -> Verdict | None:
        """Verdict on a given mass beside what the recordings say: None where it was not given, or is not told."""
        if self.free_mass is None or not np.isfinite(self.free_mass[1]):
            return None
        given, (told, sigma) = self.body.mass, self.free_mass
        share = abs(told / given - 1.0)
        figures = f"{given:.4g} kg were given, the recordings say {told:.4g} ± {sigma:.2g} kg"
        if abs(told - given) <= _CHANGED * sigma or share <= GOOD_RELATIVE_ERROR:
            return Verdict("given mass", "identified", figures)
        scale = "torque constants (`jointbench gains`)" if self.side == "motor" else "torque sensors' gains"
        reason = f"{figures}, {share:.0%} from it: look at the mass, and at the {scale}"
        return Verdict("given mass", "poor fit" if share <= POOR_RELATIVE_ERROR else "refused", reason)

    @cached_property
    def joint_verdicts(self) -> tuple[Verdict, ...]:
        """Verdict on each joint's torque in the recording with the payload."""
        error, modelled = self.after, self.robot.modelled
        return judge_joints(self.robot.joint_names, error.relative, error.share, modelled)

    @property
    def verdict(self) -> Verdict:
        """Verdict on the payload: the worst of what a body can be, mass, centre where the mass was given, and joints.

        Inertia counts for itself: most payloads are too small for it to be seen.
        """
        physical = self.body.physical
        assert physical is not None  # something is free in every payload that is identified
        body = [verdict for verdict in self.body.verdicts if not verdict.name.startswith("I")]
        decisive = body if self.body.known[0] else body[:1]
        judged = [] if self.mass_verdict is None else [self.mass_verdict]
        judged += [*decisive, replace(physical.verdict, name="body")]
        for verdict in self.joint_verdicts:
            if verdict.is_refused and np.isfinite(self.after.relative[self.robot.joint_index(verdict.name)]):
                judged.append(Verdict(verdict.name, "poor fit", verdict.reason))
        worst = max(judged, key=lambda verdict: verdict.rank)
        return Verdict("payload", worst.word, f"{worst.name}: {worst.reason}")

    @property
    def condition(self) -> str:
        """Condition of the verdict, in a sentence."""
        scale = "torque constants" if self.side == "motor" else "torque sensors' gains"
        if self.body.known[0]:
            return f"if the robot's {scale} are right: the centre and the inertia go by them, the mass was given"
        return f"if the robot's {scale} are right: 5 % in them are 5 % of the mass and of the inertia"


def identify_payload(
    before: Run,
    after: Run,
    robot: Robot | None = None,
    *,
    on: str | None = None,
    mass: float | None = None,
    settings: Settings = None,
    same_friction: bool = False,
) -> Payload:
    """Identify the body that was attached to a robot between two recordings.

    Both recordings are fitted in one least-squares problem: torque = W pi without the payload, and
    W pi + W_p p + W_f f with it, where p are the payload's ten standard parameters in the link that carries it, and f
    is the change of each drive's friction and offset. The error bars contain the noise of both recordings, correlated
    in time and between joints. Where no body can have the estimate, the nearest one in its metric is taken.

    Args:
        before, after: recordings without and with the payload, of any motions.
        robot: without the payload; None: the one that `before` names.
        on: frame or link that the payload is fixed to, in which it is described; None: the last joint's link.
        mass: [kg], where it was weighed; then only centre and inertia are estimated. None: it is estimated, too.
        settings: for both runs, as of `fit`.
        same_friction: whether friction and offsets are the same in both recordings.

    Returns:
        The payload, with error bars and verdicts.

    Raises:
        FitError: both are the same recording, a run lacks a signal or has too few rows, the frame carries nothing, or
            the mass is not positive.
        FileError: the robot has no such frame.
        SignalError: the cut-off does not suit the sample rate.
        NumericalError: the robot's geometry is nearly degenerate, or no body is found.

    Source: Khalil, Gautier & Lemoine, IEEE ICRA, 2007, of both recordings together; the covariance as in
    `least_squares`, and the nearest body as in `physical_parameters`.

    >>> payload = identify_payload(jb.open_run("runs/arm"), jb.open_run("runs/loaded"), mass=2.0)
    >>> payload.body.center_of_mass[:2].round(2)  # [m]
    array([0.1 , 0.02])
    >>> payload.verdict.word  # two joints do not show where the mass lies along the second axis
    'not observable'
    """
    if before is after or (before.sha256 == after.sha256 and before.path == after.path):
        raise FitError(f"both recordings are {before.path}; give one without the payload, and one with it")
    robot = robot or before.robot
    frame, known = PayloadFrame.of(robot, on), KnownPayload.of(mass)
    with threadpool_limits(1, user_api="blas"):  # as in `fit`
        return _identify((before, after), robot, frame, known, settings, same_friction)


def _identify(
    runs: tuple[Run, Run],
    robot: Robot,
    frame: PayloadFrame,
    known: KnownPayload,
    settings: Settings,
    same_friction: bool,
) -> Payload:
    base = base_parameters(robot)
    recordings = [
        observe(run, robot, base, of_run) for run, of_run in zip(runs, settings_of_runs(runs, settings), strict=True)
    ]
    for run, observations in zip(runs, recordings, strict=True):
        check_enough([run], base, [observations])
    side, parts = modelled_torque(recordings), fitted_rows(recordings, base)
    base = felt_by_sensor(base) if side == "joint" else base
    friction = np.empty(0, np.intp) if same_friction else friction_parameters(base)
    links = slice(WIDTH * frame.joint, WIDTH * (frame.joint + 1))
    columns = base.grouping[:, links] @ frame.transform

    def rows_with(known: KnownPayload) -> list[PayloadRows]:
        return [PayloadRows(part, columns, known, friction, part is parts[1]) for part in parts]

    extended = rows_with(known)
    estimate = least_squares(extended)
    free = slice(base.rank, base.rank + int((~known.known).sum()))
    changed = slice(free.stop, None)
    body = PayloadBody.of(robot, frame, known, estimate.parameters[free], estimate.covariance[free, free])
    errors = [
        _error(rows, part, estimate.parameters, observations.information.informative)
        for rows, part, observations in zip(parts, extended, recordings, strict=True)
    ]
    return Payload(
        robot=robot,
        body=body,
        before=errors[0],
        after=errors[1],
        torque=_payload_torque(parts[1], columns @ (body.estimate if body.mass_is_refused else body.parameters)),
        rows=(sum(recordings[0].n_fitted), sum(recordings[1].n_fitted)),
        friction_changes=_changes(base, friction, estimate.parameters[changed], estimate.covariance[changed, changed]),
        lags=estimate.lags,
        side=side,
        settings=(recordings[0].settings, recordings[1].settings),
        free_mass=_mass(least_squares(rows_with(KnownPayload.of())), base.rank) if known.known[0] else None,
    )


def _mass(estimate: Estimate, index: int) -> tuple[float, float]:
    """Return a payload's mass and its σ, of a fit in which it is free."""
    return float(estimate.parameters[index]), float(np.sqrt(estimate.covariance[index, index]))


def friction_parameters(base: BaseParameters) -> NDArray[np.intp]:
    """Return the indices of the base parameters that friction or an offset leads."""
    return np.array([k for k, name in enumerate(base.leading_names) if name.rpartition(".")[2] in FRICTION], np.intp)


def _error(rows: Rows, extended: Rows, parameters: Array, informative: NDArray[np.bool_]) -> TorqueError:
    """Error of each joint's torque over the rows that were fitted, beside the torque as measured."""
    sums = ErrorSums(rows.n_joints)
    for block, own in zip(rows.blocks(), extended.blocks(), strict=True):
        missing = own.torque - own.predict(parameters)
        sums.add(block.torque, block.torque - missing, block.used & informative, block.complete)
    return sums.result()


def _payload_torque(rows: Rows, added: Array) -> Array:
    """Root mean square of the torque that the payload asks of each joint, nan of joints without rows, (n_joints,)."""
    squares, counts = np.zeros((2, rows.n_joints))
    for block in rows.blocks():
        squares += np.sum(np.where(block.used, block.predict(added), 0.0) ** 2, axis=0)
        counts += block.used.sum(axis=0)
    return np.sqrt(np.divide(squares, counts, out=np.full(rows.n_joints, np.nan), where=counts > 0.0))


def _changes(
    base: BaseParameters, friction: NDArray[np.intp], values: Array, covariance: Array
) -> tuple[FrictionChange, ...]:
    """Changes of friction that are more than noise."""
    sigma = np.sqrt(np.diag(covariance))
    return tuple(
        FrictionChange(base.leading_names[k], float(value), float(deviation))
        for k, value, deviation in zip(friction, values, sigma, strict=True)
        if np.isfinite(deviation) and abs(value) > _CHANGED * deviation
    )
