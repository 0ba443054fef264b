"""Identification until it is precise: plan, play and fit piece by piece, each piece for what is still known worst."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.excitation import Excitation, Workspace, plan_excitation
from jointbench.excitation.objectives.information import Information, parameter_scales
from jointbench.identification.fit import fit
from jointbench.identification.model import Model
from jointbench.model import BaseParameters, Robot, base_parameters
from jointbench.recording import Run

TORQUE_NOISE_SHARE = 0.01
"""Noise of each joint's torque over its limit, as it is taken before a first piece has shown it."""

SAMPLES = 150
"""Times of a piece at which its information is taken."""

OUT_OF_REACH = 1e-3
"""Emphasis on a parameter that no motion in the time that is left tells: near none, so that others are planned for."""


PATIENCE = 3
"""Judgements in a row after which a parameter is believed to be out of reach."""

FORESIGHT = 1.5
"""What is foreseen above what is wanted is out of reach: foresight errs by some tens of percent."""

_LEAST_EFFICIENCY = 0.1
_WHOLE = 1e-9  # of a piece: far above rounding


class PieceRecorder(Protocol):
    """Plays a piece and returns its recording, such as `record` on a bench."""

    def __call__(self, excitation: Excitation, number: int, /) -> Run:
        """Play it, as the piece of this number from 0 on."""
        ...


@dataclass(frozen=True, eq=False)
class Precision:
    """Precision of base parameters, reached and within reach.

    Attributes:
        names: of the parameters that lead them.
        size: what σ is relative to: |θ|, or what asks for 0.1 % of a joint's torque limit where θ is nearly zero.
        relative_sigma: σ over that.
        at_best: the same, foreseen for the end of the time, if all that is left of it repeated the next piece.
        next_gain: by which factor the next piece alone would change it, as planned.
        efficiency: share of planned gains, as logarithms, that the pieces so far have really brought.
        missed_before: judgements in a row, this one the last, that foresaw more than `FORESIGHT` times what is wanted.
        confused: for each the parameter that its estimate is most correlated with, and the correlation.
        wanted: of `relative_sigma`.
    """

    names: tuple[str, ...]
    size: Array
    relative_sigma: Array
    at_best: Array
    next_gain: Array
    efficiency: float
    missed_before: NDArray[np.int64]
    confused: tuple[tuple[str, float], ...]
    wanted: float

    @property
    def is_known(self) -> NDArray[np.bool_]:
        """Mask of the parameters that are as precise as wanted."""
        return self.relative_sigma <= self.wanted

    @property
    def is_out_of_reach(self) -> NDArray[np.bool_]:
        """Mask of the others that by this and the two judgements before would not be precise by the end of the time."""
        return ~self.is_known & (self.missed_before >= PATIENCE)

    @property
    def is_reached(self) -> bool:
        """True if all parameters within reach are as precise as wanted."""
        return bool(np.all(self.is_known | self.is_out_of_reach))

    def time_needed(self, elapsed: float) -> Array:
        """Motion after which each would be known, as σ falls with the root of the time [s], shape (rank,).

        Args:
            elapsed: motion so far [s].
        """
        return elapsed * np.maximum(self.relative_sigma / self.wanted, 1.0) ** 2


@dataclass(frozen=True, eq=False)
class SequentialIdentification:
    """Result of a sequence of pieces.

    Attributes:
        model: of all pieces.
        runs: one a piece.
        precisions: after each piece.
        motion: played in all [s].
    """

    model: Model
    runs: tuple[Run, ...]
    precisions: tuple[Precision, ...]
    motion: float

    @property
    def precision(self) -> Precision:
        """After the last piece."""
        return self.precisions[-1]


Progress = Callable[[int, Precision], None]
"""Called after each piece with the number of pieces so far and the precision."""


def identify_until(
    robot: Robot,
    record_piece: PieceRecorder,
    wanted: float = 0.1,
    *,
    most: float = 300.0,
    piece: float = 10.016,
    plan_time: float = 10.0,
    seed: int = 0,
    workspace: Workspace | None = None,
    progress: Progress | None = None,
    earlier: Sequence[Run] = (),
) -> SequentialIdentification:
    """Move a robot until each base parameter is known to a relative σ, or could not be within the time.

    The first piece is D-optimal for the robot file's links and a noise of 1 % of the torque limits. Each further one
    makes the largest relative σ least that all pieces together leave, G = Σ VᵀV of the pieces before and of its own, in
    units of the noise that fits have shown. Pieces before are scaled so that log det of their planned information is
    that of the fit's, which knows how noise is correlated.

    A parameter is out of reach where, three judgements in a row, all the time that is left would leave its σ above one
    and a half times what is wanted, by gains as much smaller than planned as those of the pieces before were; it does
    not count then, neither for the end nor for plans. That is judged anew each time.

    Args:
        robot: on the bench.
        record_piece: plays a piece there.
        wanted: σ over |θ|, such as 0.1.
        most: motion at most [s].
        piece: duration of each piece [s]; for boards a multiple of 0.032 s.
        plan_time: to search for each [s].
        seed: of the plans.
        workspace: where the robot may move.
        progress: called after each piece.
        earlier: first pieces that an earlier call has recorded, in their order; they are not played again.

    Raises:
        FitError: `wanted` is no share, or there is not time for one piece; or an earlier run does not say its motion;
            and as `fit`.
        ExcitationError, InfeasibleExcitation: as `plan_excitation`.
    """
    if not 0.0 < wanted < 1.0:
        raise FitError(f"the wanted relative σ is {wanted:g}; give a share between 0 and 1, such as 0.1 for 10 %")
    if most < piece:
        raise FitError(
            f"{most:g} s of motion at most do not hold one piece of {piece:g} s; give more, or shorter pieces"
        )
    base = base_parameters(robot)
    noise = TORQUE_NOISE_SHARE * np.array([joint.torque_limit for joint in robot.independent_joints])
    pieces: list[Excitation] = []
    runs: list[Run] = []
    precisions: list[Precision] = []

    def planned(objective: str, **more: Any) -> Excitation:
        if len(pieces) < len(earlier):
            return _motion_of(earlier[len(pieces)])
        return plan_excitation(
            robot, period=piece, samples=SAMPLES, objective=objective, seed=seed + len(pieces), time_limit=plan_time,
            base=base, workspace=workspace, noise=noise, **more,
        )  # fmt: skip

    following = planned("d_optimal")
    while True:
        pieces.append(following)
        runs.append(earlier[len(runs)] if len(runs) < len(earlier) else record_piece(following, len(runs)))
        model = fit(runs)
        size = _size(robot, base, model)
        rms = model.fit_rms  # nan of a passive joint, whose torque is not fitted
        noise = np.where(np.isfinite(rms), np.maximum(rms, np.finfo(np.float64).tiny), noise)
        known = _known(robot, base, noise, pieces, model)
        emphasis = {}
        if precisions:
            missed = precisions[-1].is_out_of_reach
            emphasis = {name: OUT_OF_REACH for name, out in zip(base.leading_names, missed, strict=True) if out}
        following = planned("relative_sigma", known=known, sizes=size, emphasis=emphasis)
        left = math.floor((most - piece * len(pieces)) / piece + _WHOLE)
        of_next = _gram(robot, base, noise, following)
        precisions.append(_precision(base, model, size, known, of_next, left, precisions, wanted))
        if progress is not None:
            progress(len(pieces), precisions[-1])
        if precisions[-1].is_reached or left < 1:
            return SequentialIdentification(model, tuple(runs), tuple(precisions), piece * len(pieces))


def _motion_of(run: Run) -> Excitation:
    if run.excitation is None:
        raise FitError(f"run {run.path} does not say which motion was played; leave it out, and record a piece anew")
    return run.excitation


def _size(robot: Robot, base: BaseParameters, model: Model) -> Array:
    """|θ| of base parameters, not below what asks for 0.1 % of a joint's torque limit."""
    least = parameter_scales(robot, base, dict.fromkeys(base.full_names, 0.0)).values
    return np.maximum(np.abs(model.parameters[: base.rank]), least)


def _known(robot: Robot, base: BaseParameters, noise: Array, pieces: Sequence[Excitation], model: Model) -> Array:
    """Information of the pieces that were played, in units of a plan: of its noise and as many samples."""
    fitted = np.linalg.inv(_covariance(base, model))
    foreseen = np.sum([_gram(robot, base, noise, piece) for piece in pieces], axis=0)
    shift = np.linalg.slogdet(foreseen)[1] - np.linalg.slogdet(fitted)[1]
    return np.asarray(fitted * math.exp(float(shift) / base.rank), dtype=np.float64)


def _gram(robot: Robot, base: BaseParameters, noise: Array, piece: Excitation) -> Array:
    """VᵀV of a piece as it is planned."""
    columns = Information.of(robot, base, noise).columns(piece.evaluate(np.linspace(0.0, piece.period, SAMPLES)))
    return np.asarray(columns.T @ columns, dtype=np.float64)


def _covariance(base: BaseParameters, model: Model) -> Array:
    """Covariance of the base parameters, without that of friction laws beside them."""
    return model.covariance[: base.rank, : base.rank]


def _precision(
    base: BaseParameters,
    model: Model,
    size: Array,
    known: Array,
    of_next: Array,
    left: int,
    before: Sequence[Precision],
    wanted: float,
) -> Precision:
    covariance = _covariance(base, model)
    sigma = np.sqrt(np.diag(covariance))
    relative = sigma / size
    correlation = covariance / np.outer(sigma, sigma) - np.eye(base.rank)
    strongest = np.abs(correlation).argmax(axis=1)

    def gain(pieces: int) -> Array:
        return np.sqrt(np.diag(np.linalg.inv(known + pieces * of_next)) / np.diag(np.linalg.inv(known)))

    efficiency = _efficiency(before, relative)
    played = len(before) + 1
    # Whatever its design, motion that goes on as before helps with the root of its time.
    at_best = relative * np.minimum(gain(left) ** efficiency, math.sqrt(played / (played + left)))
    in_a_row = before[-1].missed_before + 1 if before else np.ones(base.rank, dtype=np.int64)
    return Precision(
        names=base.leading_names,
        size=size,
        relative_sigma=relative,
        at_best=at_best,
        next_gain=gain(1),
        efficiency=efficiency,
        missed_before=np.where(at_best > FORESIGHT * wanted, in_a_row, 0),
        confused=tuple((base.leading_names[j], float(correlation[i, j])) for i, j in enumerate(strongest)),
        wanted=wanted,
    )


def _efficiency(before: Sequence[Precision], relative_sigma: Array) -> float:
    """Realised over planned gain of the pieces after the first, of the parameters that were not known yet.

    Plans take residuals for noise. Where they are what the model leaves out, more motion helps less than planned.
    """
    if not before:
        return 1.0
    after = [*(each.relative_sigma for each in before[1:]), relative_sigma]
    planned = realised = 0.0
    for precision, later in zip(before, after, strict=True):
        poor = ~precision.is_known
        planned += float(np.log(precision.next_gain[poor]).sum())
        realised += float(np.log(later[poor] / precision.relative_sigma[poor]).sum())
    return float(np.clip(realised / planned, _LEAST_EFFICIENCY, 1.0)) if planned < 0.0 else 1.0
