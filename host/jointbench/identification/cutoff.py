"""The cut-off of a recording's low-pass, by how well models predict time that they have not seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import scipy  # its submodules load on first use; each takes up to a second
from numpy.typing import NDArray

from jointbench.arrays import Array, read_rows
from jointbench.identification.blocked_least_squares import (
    BLOCKS,
    QUARTERS,
    STRENGTHS,
    BlockSums,
    blocked_fit,
    body_prior,
    mean_log_error,
    squares,
    weakest_of_best,
)
from jointbench.identification.recorded_signals import RecordedSignals
from jointbench.identification.rows import BaseColumns, JointRows
from jointbench.model import BaseParameters
from jointbench.signals import LowPass, Motion, interpolate_samples, moving_mask, rest_threshold, smooth_motion

_OCTAVES = np.arange(-4.0, 1.1, 0.5)
"""Of the cut-offs tried, about the frequency at which the positions' motion meets their noise."""

_WORSE = 0.1
"""Of the logarithm of the error: where two cut-offs in a row are so much worse than the best, the search ends."""

_JUDGED_PERIOD = 0.01
"""Between rows that are judged [s], and at most between rows that are fitted."""

_SLOWEST, _FASTEST = float(BLOCKS), 0.3
"""Cut-offs: periods within the recording, so that each block of time has one, and share of the sample rate."""

_ALIKE = 0.02
"""Difference of two logarithms of an error that says nothing: of cut-offs so alike the highest leaves most rows."""

_ROWS = 2.0
"""Rows a parameter, two a period of the cut-off, that a candidate has at least."""

_LONGEST = 1 << 17
"""Samples that a cut-off is chosen from; of a longer log as many, in pieces spread evenly over it."""

_PIECES = 8


@dataclass(frozen=True)
class TriedCutoff:
    """A cut-off and its error on quarters of the time left out.

    Attributes:
        cutoff_Hz: of the low-pass.
        error: geometric mean over the joints of the RMS error, relative to that of the best cut-off.
    """

    cutoff_Hz: float
    error: float


@dataclass(frozen=True)
class CutoffChoice:
    """A cut-off, and those beside which it was the best.

    Attributes:
        cutoff_Hz: of the low-pass.
        knee_Hz: where the positions' motion meets their noise, median over the joints.
        tried: in rising order.
        least: geometric mean over the joints of the RMS error that the errors of `tried` are relative to [N·m or N].
        states: a sentence on where velocities come from, where the log has some; else empty.
    """

    cutoff_Hz: float
    knee_Hz: float
    tried: tuple[TriedCutoff, ...]
    least: float = float("nan")
    states: str = ""

    def error_at(self, cutoff_Hz: float) -> float:
        """Error at a cut-off that was tried [N·m or N], inf where it was not."""
        return min((self.least * tried.error for tried in self.tried if tried.cutoff_Hz == cutoff_Hz), default=np.inf)

    @property
    def at_end(self) -> bool:
        """Return whether the best is the lowest or the highest that was tried."""
        return self.cutoff_Hz in (self.tried[0].cutoff_Hz, self.tried[-1].cutoff_Hz)

    def cost(self, factor: float) -> float:
        """Relative increase of the error at the cut-off times this factor; nan where none so far away was tried."""
        wanted = np.log(self.cutoff_Hz * factor)
        frequencies = np.log([tried.cutoff_Hz for tried in self.tried])
        if not frequencies[0] - 1e-9 <= wanted <= frequencies[-1] + 1e-9:
            return float("nan")
        errors = [tried.error for tried in self.tried]
        here = errors[[tried.cutoff_Hz for tried in self.tried].index(self.cutoff_Hz)]
        return float(np.interp(wanted, frequencies, errors)) / here - 1.0

    @property
    def reason(self) -> str:
        """A sentence that says what another one would cost."""
        costs = [
            f"{words} costs {100.0 * max(cost, 0.0):.0f} %"
            for words, factor in (("2 × lower", 0.5), ("2 × higher", 2.0))
            if np.isfinite(cost := self.cost(factor))
        ]
        beside = f"; {', '.join(costs)}" if costs else ""
        end = "; it is the last of those tried, and another one may be better: try --cutoff-Hz" if self.at_end else ""
        return f"cut-off {self.cutoff_Hz:.3g} Hz: predicts unseen quarters of the time best{beside}{end}"


def motion_knee(signals: RecordedSignals, parts: Sequence[slice]) -> float:
    """Return where the positions' motion meets their noise [Hz], median over the joints that move.

    Args:
        signals: of a recording.
        parts: samples without gaps.
    """
    pieces = _some(parts)
    sizes = [part.stop - part.start for part in pieces]
    longest = [part for part, size in zip(pieces, sizes, strict=True) if size >= 0.5 * max(sizes)]
    knees = [_knee(read_rows(signals.position, part), signals.sample_period) for part in longest]
    return float(np.median(knees))


def choose_cutoff(
    signals: RecordedSignals, base: BaseParameters, parts: Sequence[slice], delay: Array, knee: float
) -> CutoffChoice | None:
    """Choose the cut-off whose model, fitted to three quarters of the time, best predicts the fourth as measured.

    For each candidate, positions are filtered and differentiated; the columns of that motion and the torque go through
    the same low-pass to be fitted. What is judged is the torque as measured, against the columns without that filter,
    in the same rows for all candidates: at its own bandwidth the lowest would always win.

    Args:
        signals: of the recording.
        base: base parameters with drives.
        parts: samples without gaps.
        delay: of the motion behind the torque [s], shape (n_joints,).
        knee: as of `motion_knee`.

    Returns:
        The choice, None where the recording is too short, or moves too little, for any candidate.
    """
    parts = _some(parts)
    h = signals.sample_period
    duration = h * sum(part.stop - part.start for part in parts)
    highest = min(_FASTEST / h, _FASTEST / signals.spacing)
    candidates = [c for c in knee * 2.0**_OCTAVES if _SLOWEST / duration < c < highest]
    search = _Search(signals, base, tuple(parts), delay, knee)
    tried: list[tuple[float, float]] = []
    for cutoff in candidates:
        error = search.error(cutoff)
        if error is None:
            continue
        tried.append((float(cutoff), error))
        best = min(error for _, error in tried)
        if len(tried) > 1 and min(error for _, error in tried[-2:]) > best + _WORSE:
            break
    if not tried:
        return None
    least = min(error for _, error in tried)
    chosen = max(cutoff for cutoff, error in tried if error <= least + _ALIKE)
    relative = tuple(TriedCutoff(cutoff, float(np.exp(error - least))) for cutoff, error in tried)
    return CutoffChoice(chosen, knee, relative, float(np.exp(least)))


def _some(parts: Sequence[slice]) -> list[slice]:
    """All parts of a short recording, pieces spread evenly over a long one's."""
    total = sum(part.stop - part.start for part in parts)
    if total <= _LONGEST:
        return list(parts)
    length, pieces = _LONGEST // _PIECES, list[slice]()
    for place in np.linspace(0, total - length, _PIECES).astype(np.intp).tolist():
        for part in parts:
            size = part.stop - part.start
            if place < size:
                pieces.append(slice(part.start + place, min(part.start + place + length, part.stop)))
                break
            place -= size
    return pieces


def _knee(position: Array, h: float) -> float:
    """Frequency at which motion meets noise [Hz], median over the joints that move.

    The most likely f_k of a spectrum noise · (1 + (f_k / f)⁶) in the cosine domain, which is that of a Kalman smoother
    for white noise summed three times. A parabola with the slopes at both ends is taken off before, so that the even
    continuation has no corner.
    """
    n, m = len(position), max(3, len(position) // 200)
    t = np.linspace(0.0, 1.0, n)
    frequencies = np.arange(1, n) / (2.0 * n * h)
    tried = np.geomspace(0.3, max(0.45 / h, 0.4), 60)
    knees: list[float] = []
    for x in position.T:
        if np.ptp(x) == 0.0:
            continue
        first, last = (np.polyfit(t[part], x[part], 1)[0] for part in (slice(m), slice(-m, None)))
        bent = x - first * t - 0.5 * (last - first) * t**2
        power = scipy.fft.dct(bent, norm="ortho")[1:] ** 2 + np.finfo(np.float64).tiny
        likelihood = []
        for knee in tried:
            rest = 1.0 / (1.0 + (knee / frequencies) ** 6)
            likelihood.append(np.log(np.mean(rest * power)) - np.mean(np.log(rest)))
        knees.append(float(tried[int(np.argmin(likelihood))]))
    return float(np.median(knees)) if knees else 1.0


@dataclass(frozen=True, eq=False)
class _Search:
    """What all candidates share.

    Attributes:
        signals, base, parts, delay: as of `choose_cutoff`.
        common: cut-off by whose speed rows to judge are chosen [Hz].
    """

    signals: RecordedSignals
    base: BaseParameters
    parts: tuple[slice, ...]
    delay: Array
    common: float

    def error(self, cutoff: float) -> float | None:
        """Error of a candidate on quarters left out, as a logarithm; None where the recording is too short for it."""
        pieces = [piece for part in self.parts if (piece := self._piece(part, cutoff)) is not None]
        if not pieces:
            return None
        total = sum(len(piece.judged.used) for piece in pieces)
        if not total:
            return None
        fastest = np.max([piece.fastest for piece in pieces], axis=0)
        known = np.max([piece.known_fastest for piece in pieces], axis=0)
        fit, judge = _Sums(self.base, BLOCKS), _Sums(self.base, QUARTERS)
        before, length = 0.0, sum(piece.duration for piece in pieces)
        for piece in pieces:
            moving = moving_mask(piece.speed, rest_threshold(fastest[None]), piece.guard)
            fit.add(piece.fitted, moving, before / length, piece.duration / length)
            moving = np.abs(piece.known_speed) > rest_threshold(known[None])
            judge.add(piece.judged, moving, before / length, piece.duration / length)
            before += piece.duration
        equations, judged = fit.result, judge.result
        grams, counts = equations.of_groups
        # Rows as far apart as a fit would have them.
        thinned = pieces[0].row_period / (
            LowPass(cutoff, self.signals.sample_period).stride * self.signals.sample_period
        )
        if counts.sum() * thinned <= _ROWS * self.base.rank:
            return None
        rows = np.maximum(counts[0], 1.0)
        power = np.sqrt(np.einsum("jkk->jk", grams[0]) / rows[:, None])
        prior = body_prior(self.base, power[:, -1], power[:, :-1])
        fitted = blocked_fit(equations, prior, None if prior.is_nominal else 1.0)
        strengths = np.array([fitted.strength]) if prior.is_nominal else STRENGTHS
        thetas = fitted.without_quarters(strengths)
        sums = squares(judged.grams[:, None], thetas[judged.block][:, :, None, :]).sum(axis=0)
        errors = mean_log_error(sums, judged.counts.sum(axis=0))
        chosen = weakest_of_best(strengths, errors)
        return float(errors[strengths.tolist().index(chosen)])

    def _piece(self, part: slice, cutoff: float) -> _Piece | None:
        """Rows of one part without gaps."""
        h = self.signals.sample_period
        low_pass, common = LowPass(cutoff, h), LowPass(min(self.common, 0.4 / h), h)
        size = part.stop - part.start
        slow = max(1, round(_JUDGED_PERIOD / h))
        most = max(1, int(1.0 / (10.0 * cutoff * h)))
        step = max(d for d in range(1, slow + 1) if slow % d == 0 and d <= most)
        filters = self.signals.board_filters
        if filters:
            step = 1
        coarse = LowPass(cutoff, h * step)
        if size <= max(low_pass.settling, common.settling) or size // step <= coarse.settling:
            return None
        torque = self._torque(part)
        motion = self.signals.smooth_motion(part, low_pass)
        joints = self._felt(motion, step)
        same = tuple(JointRows(which, coarse.apply(values.T).T) for which, values in joints)
        speed = motion.dq[::step]
        edge = coarse.settling
        inside = np.zeros(len(speed), dtype=np.bool_)
        inside[edge : len(inside) - edge] = True
        late = int(np.ceil(np.abs(self.delay).max() / h))
        ends = int(min(0.5 / h, 0.04 * size)) + 1 + late
        judged = np.zeros(size, dtype=np.bool_)
        judged[ends : size - ends] = True
        known_speed = smooth_motion(read_rows(self.signals.position, part), common).dq
        every = slow // step
        return _Piece(
            fitted=_Rows(same, low_pass.apply(torque)[::step], inside),
            judged=_Rows(
                tuple(JointRows(which, values[:, ::every]) for which, values in joints),
                torque[::slow],
                judged[::slow],
            ),
            speed=speed,
            known_speed=known_speed[::slow],
            fastest=np.abs(speed[inside]).max(axis=0) if inside.any() else np.zeros(speed.shape[1]),
            known_fastest=np.abs(known_speed[judged]).max(axis=0) if judged.any() else np.zeros(speed.shape[1]),
            guard=int(0.25 / (cutoff * h * step)),
            duration=size * h,
            row_period=step * h,
        )

    def _felt(self, motion: Motion, step: int) -> tuple[JointRows, ...]:
        """Columns of every so many samples of a motion, as the boards filtered them."""
        joints = self._columns(motion.q[::step], motion.dq[::step], motion.ddq[::step])
        filters = self.signals.board_filters
        if not filters:
            return tuple(joints)
        return tuple(JointRows(which, filters[joint].apply(values.T).T) for joint, (which, values) in enumerate(joints))

    def _torque(self, part: slice) -> Array:
        """Torque as measured at the time of each sample's motion, zero of passive joints."""
        torque = np.where(self.base.robot.modelled, read_rows(self.signals.torque, part), 0.0)
        late = self.delay / self.signals.sample_period
        if not late.any():
            return torque
        places = np.arange(len(torque), dtype=np.float64)
        return np.stack(
            [
                interpolate_samples(torque[:, joint], np.clip(places - shift, 0.0, len(torque) - 1.0))
                for joint, shift in enumerate(late)
            ],
            axis=1,
        )

    @property
    def _columns(self) -> BaseColumns:
        return BaseColumns(self.base)


@dataclass(frozen=True, eq=False)
class _Rows:
    """Columns of each joint, torque (n, n_joints), and which rows may be used (n,)."""

    joints: tuple[JointRows, ...]
    torque: Array
    used: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class _Piece:
    """Rows to fit and rows to judge of one part."""

    fitted: _Rows
    judged: _Rows
    speed: Array
    known_speed: Array
    fastest: Array
    known_fastest: Array
    guard: int
    duration: float
    row_period: float


class _Sums:
    """Normal equations by block of time."""

    def __init__(self, base: BaseParameters, blocks: int) -> None:
        n, p = base.robot.n_joints, base.rank
        self._modelled, self._blocks = base.robot.modelled, blocks
        self._grams = np.zeros((blocks, n, p + 1, p + 1))
        self._counts = np.zeros((blocks, n), dtype=np.intp)

    def add(self, rows: _Rows, moving: NDArray[np.bool_], first: float, share: float) -> None:
        """Add rows of a part that begins at a share of the time, and takes such a share of it."""
        n = len(rows.torque)
        block = np.minimum(((first + share * np.arange(n) / n) * self._blocks).astype(np.intp), self._blocks - 1)
        bounds = np.searchsorted(block, np.arange(self._blocks + 1))
        used = moving & rows.used[:, None] & self._modelled
        for joint, (which, columns) in enumerate(rows.joints):
            where = np.ix_(np.append(which, -1), np.append(which, -1))
            table = np.vstack([columns, rows.torque[:, joint]]) * used[:, joint]
            for number, (start, stop) in enumerate(pairwise(bounds.tolist())):
                if start < stop:
                    own = table[:, start:stop]
                    self._grams[number, joint][where] += own @ own.T
                    self._counts[number, joint] += np.count_nonzero(used[start:stop, joint])

    @property
    def result(self) -> BlockSums:
        """The sums of one recording."""
        block = np.arange(self._blocks)
        return BlockSums(self._grams, self._counts, block, np.zeros_like(block), int(self._counts.sum()))
