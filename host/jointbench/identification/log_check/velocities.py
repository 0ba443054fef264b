"""Logged velocities against differences of the positions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.interpolate import CubicSpline

from jointbench.arrays import Array
from jointbench.identification.log_check.finding import Finding
from jointbench.identification.log_check.log_signals import LogSignals

_DISAGREEING = (0.1, 0.5)
"""Deviation of the factor from 1, and of the rest from nothing: slips of time of some milliseconds make percents."""

_LATE_S = (0.03, 0.1)
"""Lag from which on a velocity is suspicious, and wrong: filters of encoders take some milliseconds, and a real log
with lost rows has shown 14."""

_LONGEST_S, _STEPS = 0.3, 5
"""Lags that are looked for, and steps to find them."""

_NEAR = 0.1
"""How near a factor must be to the one of a wrong unit or sign."""

_DEGREES = 180.0 / np.pi


@dataclass(frozen=True)
class _Relation:
    """How a logged velocity follows from positions: factor x velocity, so much later.

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
        """How far it is from being the same, but for the lag."""
        return abs(self.factor - 1.0) + self.rest


def check_velocities(signals: LogSignals, left_out: list[str]) -> list[Finding]:
    """Say where a velocity is not what the positions do, and what would make it so."""
    if signals.velocity is None:
        left_out.append("velocities: the log has none; positions are held against limits and torques only")
        return []
    names, motion, logged = signals.robot.joint_names, signals.motion, signals.velocity
    moving = np.flatnonzero(np.ptp(motion.q, axis=0) > 0.0).tolist()
    found: list[Finding] = []
    worst, latest, step = 0.0, 0.0, signals.stride * signals.sample_period
    for j in moving:
        own = {i: _relation(motion.dq[:, i], logged[:, j], step) for i in moving}
        relation = own[j]
        worst, latest = max(worst, relation.difference), max(latest, abs(relation.lag))
        if relation.difference >= _DISAGREEING[0]:
            what, advice, joints = _reason(names, own, j)
            found.append(Finding("velocity", joints, relation.difference, *_DISAGREEING, what, advice))
        elif abs(relation.lag) >= _LATE_S[0]:
            what = f"the velocity is {1e3 * abs(relation.lag):.0f} ms {'late' if relation.lag > 0.0 else 'early'}"
            advice = "check when position and velocity are sampled, and what filters them"
            found.append(Finding("velocity", (names[j],), abs(relation.lag), *_LATE_S, what, advice))
    if found:
        return found
    what = f"logged velocities are the positions' differences within {worst:.1%}"
    what += f", up to {1e3 * latest:.0f} ms early or late" if latest else ""
    return [Finding("velocity", names, worst, *_DISAGREEING, what, "")]


def _relation(own: Array, logged: Array, step: float) -> _Relation:
    """Find factor and lag of logged(t) = factor x own(t - lag), by Newton steps of the lag.

    logged = factor x (own - lag x own'), where the noise of own' would make the lag too small; so the slope of the
    logged velocity, whose noise is another, is the instrument.

    Args:
        own: differences of the positions, shape (n,).
        logged: shape (n,).
        step: from one row to the next [s].
    """
    rows, lag = np.arange(len(own), dtype=np.float64), 0.0
    spline = CubicSpline(rows, own)
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


def _same_time(own: Array, logged: Array, lag: float) -> _Relation:
    """What two velocities are to each other once one is shifted by the lag [s]."""
    power = max(float(own @ own), 1e-300)
    factor = float(own @ logged) / power
    rest = float(np.sqrt(np.sum((logged - factor * own) ** 2) / max(factor**2 * power, 1e-300)))
    return _Relation(factor, lag, rest)


def _reason(names: tuple[str, ...], own: dict[int, _Relation], j: int) -> tuple[str, str, tuple[str, ...]]:
    """What a velocity is instead, what to do about it, and the joints concerned."""
    others = {i: relation for i, relation in own.items() if i != j}
    nearest = min(others, key=lambda i: others[i].difference, default=j)
    factor, rest = own[j].factor, own[j].rest
    if own[nearest].difference < min(_DISAGREEING[0], rest):
        what = f"the velocity is that of {names[nearest]}'s position: columns of velocity or position are exchanged"
        return what, "correct the order of the columns", (names[j], names[nearest])
    if rest >= _DISAGREEING[1]:
        what = f"the velocity does not follow the position: {min(rest, 1.0):.0%} of it is something else"
        return what, "check that both columns are of this joint, and when they are sampled", (names[j],)
    of = f"{factor:.3g} times the positions' differences"
    what, advice = f"the velocity is {of}", "check the units, and sample_rate_Hz or [time]"
    if abs(factor + 1.0) < _NEAR:
        what, advice = f"the velocity has the opposite sign ({of})", "write gain = -1 for it, or for the position"
    elif abs(factor / _DEGREES - 1.0) < _NEAR:
        what = f"the velocity is in degrees, or the position in radians was taken for degrees ({of})"
        advice = "correct the unit of [velocity] or [position]"
    elif abs(factor * _DEGREES - 1.0) < _NEAR:
        what = f"the position is in degrees taken for radians, or the velocity in radians was taken for degrees ({of})"
        advice = "correct the unit of [position] or [velocity]"
    return what, advice, (names[j],)
