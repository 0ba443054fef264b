"""Logged velocities: how they are related to the positions, and positions' motion with them in place of differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy  # its submodules load on first use; each takes up to a second
from numpy.typing import NDArray

from jointbench.arrays import Array, read_rows, scratch_array
from jointbench.identification.cutoff import CutoffChoice, choose_cutoff
from jointbench.identification.recorded_signals import RecordedSignals
from jointbench.model import BaseParameters
from jointbench.recording import Run
from jointbench.signals import LowPass, smooth_motion

_LONGEST_S, _STEPS = 0.3, 5
"""Lags that are looked for, and steps to find them."""

_LAG_CUTOFF_HZ = 20.0
"""Cut-off, at most, behind which lags are estimated."""

_DIFFERENT = 0.1
"""Deviation of the factor from 1, and of the rest from nothing, from which on a velocity is not the position's."""

_LARGEST_LAG_S = 0.1
"""Lag from which on a velocity is not corrected but left: a fault of the log."""

_MOST = 1 << 16
"""Samples of the longest part without a gap from which lags are estimated."""


_BETTER = 0.1
"""Share by which logged velocities must err less than differences, behind the same low-pass: with 3 % less on quarters
of one public recording, models were no better on another of the same arm."""


@dataclass(frozen=True, eq=False)
class LoggedVelocity:
    """Velocities that a log has beside its positions.

    Attributes:
        values: at the times of the positions [rad/s or m/s], shape (n, n_joints).
        joints: whose velocities are taken in place of differences, shape (n_joints,).
        lag: by which each was later than its position, taken out of the values [s], shape (n_joints,).
    """

    values: Array
    joints: NDArray[np.bool_]
    lag: Array


@dataclass(frozen=True)
class VelocityRelation:
    """Relation of a logged velocity to that of the positions: factor x velocity, so much later.

    Attributes:
        factor: 1 where all is right.
        lag: of the logged velocity [s].
        rest: root mean square of what is left, relative to what follows.
    """

    factor: float
    lag: float
    rest: float

    @property
    def difference(self) -> float:
        """Distance from being the same, but for the lag."""
        return abs(self.factor - 1.0) + self.rest


def velocity_relation(own: Array, logged: Array, step: float) -> VelocityRelation:
    """Find factor and lag of logged(t) = factor x own(t - lag), by Newton steps of the lag.

    logged = factor x (own - lag x own'), where the noise of own' would make the lag too small; so the slope of the
    logged velocity, whose noise is another, is the instrument.

    Args:
        own: differences of the positions, shape (n,).
        logged: shape (n,).
        step: from one row to the next [s].
    """
    rows, lag = np.arange(len(own), dtype=np.float64), 0.0
    spline = scipy.interpolate.CubicSpline(rows, own)
    shifted = own
    for _ in range(_STEPS):
        columns = np.column_stack([shifted, np.gradient(shifted)])
        instruments = np.column_stack([shifted, np.gradient(logged)])
        products = instruments.T @ columns
        if abs(np.linalg.det(products)) <= 1e-12 * float(np.prod(np.diag(np.abs(products)))):
            break
        factor, turned = np.linalg.solve(products, instruments.T @ logged).tolist()
        if abs(lag * factor - turned) > abs(factor) * _LONGEST_S / step:
            break
        lag -= turned / factor
        shifted = spline(np.clip(rows - lag, 0.0, rows[-1]))
    at_once, later = _same_time(own, logged, 0.0), _same_time(shifted, logged, lag * step)
    return later if later.rest < at_once.rest / 2.0 else at_once  # slow motion does not tell a lag


def _same_time(own: Array, logged: Array, lag: float) -> VelocityRelation:
    """Return the relation of two velocities once one is shifted by the lag [s]."""
    power = max(float(own @ own), 1e-300)
    factor = float(own @ logged) / power
    rest = float(np.sqrt(np.sum((logged - factor * own) ** 2) / max(factor**2 * power, 1e-300)))
    return VelocityRelation(factor, lag, rest)


def with_logged_velocity(
    signals: RecordedSignals, run: Run, parts: Sequence[slice], cutoff_Hz: float
) -> RecordedSignals | None:
    """Return a log's signals with its velocities in place of differences, each shifted to the time of its positions.

    Only joints whose velocity is the slope of the position, but for a lag, have theirs taken.

    Args:
        signals: of the log.
        run: that they are of.
        parts: samples without gaps; lags are estimated by the longest.
        cutoff_Hz: of the low-pass behind which they are, but 20 Hz at most.

    Returns:
        The signals; None where the log has no such velocity.
    """
    logged, n, h = run.samples.joint_velocity, len(signals.position), signals.sample_period
    if logged is None or len(logged) != n or signals.spacing > h:
        return None
    low_pass, part = LowPass(min(cutoff_Hz, _LAG_CUTOFF_HZ, 0.4 / h), h), max(parts, key=lambda p: p.stop - p.start)
    part = slice(part.start, min(part.stop, part.start + _MOST))
    edge = low_pass.settling
    if part.stop - part.start <= 4 * edge:
        return None
    values, places = scratch_array(logged.shape, np.float64), np.arange(n, dtype=np.float64)
    whole = read_rows(logged, slice(0, n))
    slope = smooth_motion(read_rows(signals.position, part), low_pass).dq[edge:-edge]
    lag, taken = np.zeros(logged.shape[1]), np.zeros(logged.shape[1], dtype=np.bool_)
    for joint, own in enumerate(whole.T):
        known = np.isfinite(own)
        if not known[part].any() or not np.ptp(own[known]) or not np.ptp(slope[:, joint]):
            continue
        filled = np.interp(places, places[known], own[known])
        smooth = low_pass.apply(filled[part])[edge:-edge]
        relation = velocity_relation(slope[:, joint], smooth, h)
        if relation.difference >= _DIFFERENT or abs(relation.lag) >= _LARGEST_LAG_S:
            continue
        lag[joint], taken[joint] = relation.lag, True
        values[:, joint] = scipy.interpolate.CubicSpline(places, filled)(
            np.clip(places + relation.lag / h, 0.0, n - 1.0)
        )
    return replace(signals, velocity=LoggedVelocity(values, taken, lag)) if taken.any() else None


def better_states(
    run: Run, signals: RecordedSignals, base: BaseParameters, parts: Sequence[slice], delay: Array, choice: CutoffChoice
) -> tuple[CutoffChoice, bool]:
    """Choose between differences of the positions and logged velocities, by the error on quarters of time left out.

    Returns:
        The choice of the cut-off with the better ones, and whether these are the logged ones.
    """
    logged = with_logged_velocity(signals, run, parts, choice.cutoff_Hz)
    if logged is None or logged.velocity is None:
        return choice, False
    other = choose_cutoff(logged, base, parts, delay, choice.knee_Hz)
    if other is None or not np.isfinite(other.error_at(choice.cutoff_Hz)):
        return choice, False
    late = 1e3 * logged.velocity.lag[logged.velocity.joints]
    gain = 1.0 - other.error_at(choice.cutoff_Hz) / choice.error_at(choice.cutoff_Hz)
    beside = (
        f"the logged ones, {late.min():.2g} to {late.max():.2g} ms later than the positions and shifted by as much, "
        f"err {abs(gain):.1%} {'less' if gain >= 0.0 else 'more'} on quarters of the time left out"
    )
    if gain < _BETTER:
        return replace(choice, states=f"velocities: differences of the positions; {beside}"), False
    names = [name for name, taken in zip(base.robot.joint_names, logged.velocity.joints, strict=True) if taken]
    which = "" if logged.velocity.joints.all() else f" of {', '.join(names)}"
    return replace(
        choice, states=f"velocities{which}: logged, in place of differences of the positions; {beside}"
    ), True
