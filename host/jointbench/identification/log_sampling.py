"""Faults of sampling in a log: steps of positions and torques, times that jitter, torque that is folded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

import numpy as np
import scipy  # its submodules load on first use; each takes up to a second
from numpy.typing import NDArray

from jointbench.arrays import Array, read_rows
from jointbench.identification.log_signals import LogFinding, LogSignals
from jointbench.identification.parallel_filter import HIGHEST_CUTOFF, LEAST_CUTOFF_HZ, default_cutoff
from jointbench.identification.recorded_signals import RecordedSignals, is_still
from jointbench.model import Robot
from jointbench.signals import LowPass, smooth_motion, valid_spans

SAMPLING = ("position steps", "jitter", "torque steps", "aliasing")
"""Names of the findings."""

_NOISE = 0.1
"""Noise of an acceleration relative to the motion's from which on a log is suspicious: by its square, 1 %, inertias
come out too small."""

_TORQUE_NOISE = 0.05
"""Rounding of a torque relative to its variation from which on a log is suspicious: most of a model's error is more."""

_FOLDED = 0.1
"""Noise of a torque behind the low-pass, if all frequencies have the power of those near half the sample rate, relative
to the torque's variation, from which on a log is suspicious: it is as much as good models leave."""

_FALLEN = 0.5
"""Power density in the highest fifth of the band relative to that in its middle below which a filter cut it."""

_ORDER = 6
"""Of the differences that take motion away and leave noise: a twentieth of the sample rate by a factor of 1000."""

_GAIN = float(comb(2 * _ORDER, _ORDER))
"""Sum of the squares of their weights."""

_BLOCKS = 16
"""Of time, whose estimates of the jitter give its standard error."""

_CERTAIN = 4.0
"""Standard errors from which on a jitter is one."""

_SLOWER = 4.0
"""Cut-off over that of a low-pass which takes most of the steps out of the positions, too."""

_MOST = 1 << 16
"""Rows that are looked at, in pieces from the beginning of the log."""

_GRID = 0.9
"""Share of the distances between a column's values that are multiples of its step."""

_DEGREES = 180.0 / np.pi


def value_step(values: Array) -> float:
    """Return the step that a column's values are multiples of, nan where they are not.

    The smallest distance between two different values, if nine of ten distances are multiples of it: of numbers that
    are not rounded one in ten is so by chance.

    Args:
        values: finite, shape (n,).
    """
    different = np.unique(values)
    if len(different) < 3:
        return float("nan")
    distances = np.diff(different)
    distances = distances[distances > 1e-12 * float(np.abs(different).max())]  # the same but for the last digit
    if len(distances) < 2:
        return float("nan")
    least = float(distances.min())
    # Larger multiples of a step that is itself rounded tell nothing.
    near = distances[distances < 20.0 * least]
    multiples = near / least
    if len(near) < len(distances) / 10 or np.mean(np.abs(multiples - np.round(multiples)) < 0.05) < _GRID:
        return float("nan")
    return float(np.median(near / np.round(multiples)))


def time_jitter(pieces: Sequence[Array], sample_period: float) -> float:
    """Estimate how far samples were taken from the times that they count as [s], standard deviation.

    A sample that is late by delta shows each joint late: q_j(t + delta) = q_j + dq_j delta. The sixth differences r of
    two joints then have the covariance E[r_i r_j] = g dq_i dq_j var(delta), with g the sum of the squared weights;
    noise and steps of encoders are independent from joint to joint. One joint alone does not show it.

    Args:
        pieces: positions without gaps, shape (n, n_joints) each, of joints that move.
        sample_period: [s].

    Returns:
        The standard deviation; 0 where it is within four standard errors of the estimate.
    """
    above, below = list[Array](), list[Array]()
    for q in pieces:
        if len(q) <= 2 * _ORDER:
            continue
        left = np.diff(q, _ORDER, axis=0)
        speed = (q[_ORDER:] - q[:-_ORDER]) / (_ORDER * sample_period)
        noise = np.sqrt(np.mean(left**2, axis=0))
        left, speed = left / np.where(noise > 0.0, noise, np.inf), speed / np.where(noise > 0.0, noise, np.inf)
        # Sums over pairs of joints: those over all pairs less those of each joint with itself.
        product = left * speed
        above.append(np.sum(product, axis=1) ** 2 - np.sum(product**2, axis=1))
        below.append(np.sum(speed**2, axis=1) ** 2 - np.sum(speed**4, axis=1))
    if not above or not np.any(weights := np.concatenate(below)):
        return 0.0
    sums = np.array([part.sum() for part in np.array_split(np.concatenate(above), _BLOCKS)])
    totals = np.array([part.sum() for part in np.array_split(weights, _BLOCKS)])
    variance = float(sums.sum() / totals.sum())
    error = float(np.sqrt(np.sum((sums - variance * totals) ** 2)) / totals.sum())
    return float(np.sqrt(variance / _GAIN)) if variance > _CERTAIN * error else 0.0


@dataclass(frozen=True, eq=False)
class PositionNoise:
    """Acceleration noise behind a low-pass, by steps of positions and jitter of times.

    Attributes:
        cutoff_Hz: of the low-pass.
        step: of each joint's positions [rad or m], nan where they are not rounded, shape (n_joints,).
        jitter: of the times, as of `time_jitter` [s].
        sample_period: [s].
        by_steps, by_jitter: noise of the acceleration [rad/s² or m/s²], root mean square, shape (n_joints,).
        acceleration: of the motion, without that noise, root mean square, shape (n_joints,); 0 of joints at rest.
    """

    cutoff_Hz: float
    step: Array
    jitter: float
    sample_period: float
    by_steps: Array
    by_jitter: Array
    acceleration: Array

    @classmethod
    def of_positions(
        cls, pieces: Sequence[Array], sample_period: float, moving: NDArray[np.bool_], cutoff_Hz: float
    ) -> PositionNoise | None:
        """Measure it, None where no piece is long enough for the low-pass.

        Args:
            pieces: positions without gaps, shape (n, n_joints) each.
            sample_period: [s].
            moving: which joints move, shape (n_joints,).
            cutoff_Hz: of the low-pass.
        """
        low_pass = LowPass(min(cutoff_Hz, 0.4 / sample_period), sample_period)
        slow = LowPass(low_pass.cutoff_Hz / _SLOWER, sample_period)
        edge = slow.settling
        long = _first([piece for piece in pieces if len(piece) > 4 * edge])
        if not long or not moving.any():
            return None
        together = np.concatenate(long)
        step = np.array([value_step(q) if moves else np.nan for q, moves in zip(together.T, moving, strict=True)])
        jitter = time_jitter([piece[:, moving] for piece in long], sample_period)
        squares = np.zeros((3, together.shape[1]))
        rows, known = 0, np.where(np.isfinite(step), step, 1.0)
        for piece in long:
            motion = smooth_motion(piece, low_pass)
            # The slow part of the motion, which holds no steps, errs as the positions do once it is rounded, be it that
            # steps are crossed quickly, as white noise, or slowly.
            steady = smooth_motion(piece, slow)
            rounding = np.where(np.isfinite(step), known * np.round(steady.q / known) - steady.q, 0.0)
            noise = smooth_motion(rounding, low_pass).ddq
            inside = slice(edge, len(piece) - edge)
            squares += [np.sum(values[inside] ** 2, axis=0) for values in (noise, steady.dq, motion.ddq)]
            rows += len(piece) - 2 * edge
        steps, speed, whole = np.sqrt(squares / rows)
        by_jitter = jitter * speed * _second_derivative_gain(low_pass)
        power = whole**2 - steps**2 - by_jitter**2
        acceleration = np.sqrt(np.maximum(power, (0.1 * whole) ** 2)) * moving
        return cls(low_pass.cutoff_Hz, step, jitter, sample_period, steps, by_jitter, acceleration)

    @property
    def shares(self) -> tuple[Array, Array]:
        """Noise by steps and by jitter relative to the acceleration, 0 of joints at rest, shape (n_joints,) each."""
        at = np.where(self.acceleration > 0.0, self.acceleration, np.inf)
        return self.by_steps / at, self.by_jitter / at

    def steps_in_words(self, robot: Robot, joint: int) -> str:
        """A sentence on the steps of a joint's positions."""
        revolute = robot.independent_joints[joint].kind == "revolute"
        step = f"{_DEGREES * self.step[joint]:.2g}°" if revolute else f"{1e3 * self.step[joint]:.2g} mm"
        return (
            f"positions of {robot.joint_names[joint]} come in steps of {step}, which behind a low-pass of "
            f"{self.cutoff_Hz:.3g} Hz at {1.0 / self.sample_period:.4g} samples a second make "
            f"{self.by_steps[joint]:.2g} {'rad' if revolute else 'm'}/s² of noise, "
            f"{self.shares[0][joint]:.2g} of its acceleration"
        )

    @property
    def jitter_in_words(self) -> str:
        """A sentence on the jitter of the times."""
        worst = float(self.shares[1].max())
        return (
            f"time stamps jitter by {self.jitter / self.sample_period:.0%} of a period ({1e3 * self.jitter:.2g} ms), "
            f"which behind a low-pass of {self.cutoff_Hz:.3g} Hz makes up to {worst:.2g} of an acceleration"
        )


def _second_derivative_gain(low_pass: LowPass) -> float:
    """Root mean square of the second derivative of filtered white noise of unit variance [1/s²]."""
    impulse = np.zeros((4 * low_pass.settling + 9, 1))
    impulse[len(impulse) // 2] = 1.0
    return float(np.linalg.norm(smooth_motion(impulse, low_pass).ddq))


def _first(pieces: Sequence[Array]) -> list[Array]:
    """Pieces from the beginning, as many rows as are looked at."""
    taken, left = list[Array](), _MOST
    for piece in pieces:
        if left <= 0:
            break
        taken.append(np.asarray(piece[:left]))
        left -= len(piece)
    return taken


def cutoff_notes(signals: RecordedSignals, parts: Sequence[slice], robot: Robot, cutoff_Hz: float) -> list[str]:
    """Return sentences on what bounds the cut-off: at twice of it, noise would be a tenth of an acceleration.

    Args:
        signals: of a log.
        parts: samples without gaps.
        robot: that was recorded.
        cutoff_Hz: that was taken.
    """
    position = [read_rows(signals.position, slice(part.start, min(part.stop, part.start + _MOST))) for part in parts]
    if not position:
        return []
    travel = np.max([np.ptp(piece, axis=0) for piece in position], axis=0)
    moving = travel > 0.0
    here, there = (
        PositionNoise.of_positions(position, signals.sample_period, moving, factor * cutoff_Hz) for factor in (1.0, 2.0)
    )
    if here is None or there is None:
        return []
    notes: list[str] = []
    steps, jitter = there.shares
    if steps.max() >= _NOISE:
        worst = int(np.argmax(steps))
        notes.append(f"{here.steps_in_words(robot, worst)}, and {steps[worst]:.2g} at twice the cut-off")
    if jitter.max() >= _NOISE:
        notes.append(f"{here.jitter_in_words}, and {jitter.max():.2g} at twice the cut-off")
    return notes


def steps_hide_motion(signals: RecordedSignals, robot: Robot) -> bool:
    """Return whether the cut-off that recordings of boards have by default is that of their positions' steps.

    Steps of a coarse encoder give the velocity power at all frequencies. Where they take that cut-off to its ceiling,
    and make a tenth of the acceleration behind the lowest default, only prediction tells the motion from them.

    Args:
        signals: of a recording.
        robot: that was recorded.
    """
    if default_cutoff(signals) < HIGHEST_CUTOFF / signals.spacing:
        return False
    parts = valid_spans(signals.valid)
    pieces = [read_rows(signals.position, slice(part.start, min(part.stop, part.start + _MOST))) for part in parts]
    low, high = (np.array([end(piece, axis=0) for piece in pieces]) for end in (np.min, np.max))
    moving = ~is_still(robot, high.max(axis=0) - low.min(axis=0))
    noise = PositionNoise.of_positions(pieces, signals.sample_period, moving, LEAST_CUTOFF_HZ)
    return noise is not None and float(noise.shares[0].max()) >= _NOISE


def check_sampling(signals: LogSignals, stamps_jitter: float | None) -> list[LogFinding]:
    """Steps of positions and torques, jitter of times and aliasing of torques.

    Args:
        signals: of a log.
        stamps_jitter: root mean square of what steps between its time stamps differ from the period, as the import
            found them [s], or None.
    """
    position = [signals.position[piece] for piece in signals.pieces]
    noise = PositionNoise.of_positions(position, signals.sample_period, signals.moving, signals.cutoff)
    findings = [] if noise is None else [_check_steps(signals, noise), _check_jitter(signals, noise, stamps_jitter)]
    for torque in signals.torques:
        findings += _check_torque(signals, torque.name, torque.recorded)
    return findings


def _check_steps(signals: LogSignals, noise: PositionNoise) -> LogFinding:
    names, (share, _) = signals.robot.joint_names, noise.shares
    worst = int(np.argmax(share))
    coarse = tuple(name for name, value in zip(names, share, strict=True) if value >= _NOISE)
    known = np.isfinite(noise.step[worst])
    what = noise.steps_in_words(signals.robot, worst) if known else "no positions are multiples of a step"
    advice = (
        "log more digits, or the motor's encoder in place of a coarse one; without either leave the cut-off to the "
        f"fit, or give one well below {noise.cutoff_Hz:.3g} Hz"
    )
    return LogFinding("position steps", coarse, float(share[worst]), _NOISE, np.inf, what, advice)


def _check_jitter(signals: LogSignals, noise: PositionNoise, stamps: float | None) -> LogFinding:
    share = float(noise.shares[1].max())
    what = noise.jitter_in_words if noise.jitter else "positions show no jitter of their times"
    if stamps is not None:
        what += f"; the log's time stamps differ by {stamps / noise.sample_period:.0%} of a period from even ones"
    advice = (
        "log the times at which samples were taken, and set resample = true in [time]; where that is done already, the "
        "stamps are of when rows were written: take the controller's own clock, or leave the cut-off to the fit"
    )
    return LogFinding("jitter", (), share, _NOISE, np.inf, what, advice)


def _check_torque(signals: LogSignals, name: str, recorded: Array) -> list[LogFinding]:
    """Steps of a torque, and its power near half the sample rate."""
    columns, names = min(recorded.shape[1], signals.robot.n_joints), signals.robot.joint_names
    pieces = _first([recorded[piece] for piece in signals.pieces])
    longest, in_band = max(pieces, key=len), float(np.sqrt(signals.cutoff * signals.sample_period))
    steps, folded = np.zeros(columns), np.zeros(columns)
    for j in range(columns):
        values = np.concatenate([piece[:, j] for piece in pieces])
        spread = float(np.std(values))
        if not signals.moving[j] or not np.isfinite(spread) or spread == 0.0:
            continue
        step = value_step(values)
        steps[j] = step / np.sqrt(12.0) / spread if np.isfinite(step) else 0.0
        folded[j] = _density_near_half_rate(longest[:, j]) * in_band / spread
    worst, most = int(np.argmax(steps)), int(np.argmax(folded))
    coarse = tuple(name for name, value in zip(names, steps, strict=False) if value >= _TORQUE_NOISE)
    loud = tuple(name for name, value in zip(names, folded, strict=False) if value >= _FOLDED)
    half = 0.5 / signals.sample_period
    return [
        LogFinding(
            "torque steps",
            coarse,
            float(steps[worst]),
            _TORQUE_NOISE,
            np.inf,
            f"rounding of the {name} is up to {steps[worst]:.2%} of its variation ({names[worst]})",
            "log the torque with more digits, or in the drive's own counts",
        ),
        LogFinding(
            "aliasing",
            loud,
            float(folded[most]),
            _FOLDED,
            np.inf,
            f"the {name} of {names[most]} has power up to half the sample rate ({half:.4g} Hz), so that what lies "
            f"above may be folded into it: up to {folded[most]:.1%} of its variation below {signals.cutoff:.3g} Hz"
            if loud
            else f"the {name} has little power near half the sample rate ({half:.4g} Hz): folded below "
            f"{signals.cutoff:.3g} Hz it is {folded[most]:.1%} of its variation at most",
            "record faster, or filter before sampling (the drive's own filter): what is folded no later filter takes "
            "away",
        ),
    ]


def _density_near_half_rate(values: Array) -> float:
    """Amplitude density in the highest fifth of the band, per root of a cycle a sample; 0 where power falls to it."""
    if len(values) < 64:
        return 0.0
    frequency, density = scipy.signal.welch(values, 1.0, nperseg=min(len(values), 1024))
    middle = float(np.median(density[(frequency >= 0.2) & (frequency < 0.3)]))
    top = float(np.median(density[(frequency >= 0.4) & (frequency < 0.5)]))
    if top <= _FALLEN * middle:
        return 0.0
    return float(np.sqrt(top))
