"""The delay between recorded torque and recorded motion: estimated from the data alone, and taken out."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jointbench.identification.least_squares import weighted_least_squares
from jointbench.robot import Array
from jointbench.signals import at_places

_SCAN_STEPS = 40
"""Steps of the first look from one end of the allowed range to the other; only its best one is gone on from."""

_CLEAR = 0.2
"""Share of the squared error that a delay must explain to be taken out unasked. Of two real arms, a fast one's is 0.29,
and those of a slow one up to 0.12, where runs contradict each other by their sign."""

_PASSES = 2
"""How often the joints' weights are taken anew from the residuals."""

_NEWTON_STEPS = 20
_CLOSE = 1e-3
"""Share of a sample period at which steps end: far below any delay's standard deviation."""


@dataclass(frozen=True, eq=False)
class Delay:
    """How much later than the torque the motion was recorded: torque(t) belongs to motion(t + delay).

    Attributes:
        seconds: of each joint [s], shape (n_joints,); negative where the torque is the later one.
        sigma: its standard deviation [s], shape (n_joints,); nan where it was given and not estimated.
            It knows of noise, not of friction unlike the model's: what joints of one recording say may differ by more.
        source: "given", "estimated", or "not told" by this motion, and then taken as 0.
        reason: in a sentence, with the figures.
        explained: share of the squared error of all joints' torques together that goes with the delay; nan where it
            was not estimated.
    """

    seconds: Array
    sigma: Array
    source: Literal["given", "estimated", "not told"]
    reason: str
    explained: float = float("nan")

    def if_clear(self) -> Delay:
        """The delay where it explains a fifth of the squared error, otherwise none.

        In slow motion the torque's rate is that of gravity, nearly proportional to velocity: there the friction that a
        model lacks looks like a delay. Such an error takes a small share with it, and a delay that matters a large one.
        """
        if self.source != "estimated" or self.explained >= _CLEAR:
            return self
        reason = (
            f"{self.reason}, which explains only {self.explained:.1%} of the torque's squared error: friction unlike "
            f"the model's can do that too"
        )
        return _untold(len(self.seconds), reason)


def given_delay(seconds: Array, reason: str) -> Delay:
    """A delay that is known, or taken as that."""
    return Delay(seconds, np.full(len(seconds), np.nan), "given", reason)


class TorqueStretch(NamedTuple):
    """Filtered torque of a stretch without gaps at the full sample rate, shape (n_stretch, n_joints).

    `rows` are the rows of the observations in it, `places` their samples in the stretch, `settling` how many samples
    from its ends are not used.
    """

    rows: NDArray[np.intp]
    places: NDArray[np.intp]
    values: Array
    settling: int

    def reaches(self, samples: Array) -> NDArray[np.bool_]:
        """Rows whose torque is still away from the ends when each joint's is taken `samples` earlier."""
        earlier = self.places[:, None] - samples
        last = len(self.values) - 1 - self.settling
        return np.asarray(((earlier >= self.settling) & (earlier <= last)).all(axis=1))


def delayed_torque(stretches: list[TorqueStretch], shape: tuple[int, int], samples: Array) -> Array:
    """Torque `samples` of each joint before the motion's rows, zero where it is not reached, shape (n, n_joints)."""
    torque = np.zeros(shape)
    for stretch in stretches:
        reached = stretch.reaches(samples)
        for joint, late in enumerate(samples):
            places = stretch.places[reached] - late
            torque[stretch.rows[reached], joint] = at_places(stretch.values[:, joint], places)
    return torque


def estimate_delay(
    regressor: Array, rate: Array, torque_at: Callable[[Array], Array], used: NDArray[np.bool_], *,
    limit: float, step: float, each: bool,
) -> Delay:
    """Estimate parameters and delay together from the torque rows, and keep the delay.

    min over d, pi of Σ_kj (torque_j(t_k - d_j) - regressor_kj @ pi)² / sigma_j². For each d the best pi is known in
    closed form, so that only d is searched: first over the whole range, then by Gauss-Newton steps on
    torque(t - d) ≈ (regressor + (delay - d) rate) @ pi. Only the model is differentiated, never the noise. The
    standard deviation is that of the fit with the delay as one more parameter, correlated residuals allowed.

    Args:
        regressor: shape (n, n_joints, p).
        rate: its time derivative, same shape.
        torque_at: torque of the rows, each joint taken d_j [s] earlier, d of shape (n_joints,); shape (n, n_joints).
        used: rows to use, shape (n, n_joints), for which torque is known for all d within the limit.
        limit: largest |delay| [s].
        step: sample period [s].
        each: whether each joint has a delay of its own; a joint without rows gets no estimate, sigma nan.

    Returns:
        The delay; its source is "not told" where the range holds no minimum or the motion says nothing.

    Source: variable projection, Golub & Pereyra, SIAM J. Numerical Analysis 10(2), 1973.
    """
    joints = used.shape[1]
    rows, rates = regressor[used], rate[used]
    joint = np.nonzero(used)[1]
    if len(rows) <= rows.shape[1] + joints or not rows.any():
        return _untold(joints, f"{len(rows)} rows are too few to tell a delay")
    delay = np.zeros(joints)
    weight = np.ones(len(rows))
    explained = 0.0
    for number in range(_PASSES):
        weight = _weights(rows, torque_at(delay)[used], weight, joint, joints)
        fitted = _Projection(rows, rates, weight, joint if each else np.zeros_like(joint), joints if each else 1)
        if number == 0:
            delay = fitted.scan(lambda d: torque_at(d)[used], limit, joints)
        for _ in range(_NEWTON_STEPS):
            change = np.broadcast_to(fitted.newton_step(torque_at(delay)[used]), (joints,))
            delay = np.clip(delay + change, -limit, limit)
            if np.abs(change).max() < _CLOSE * step:
                break
        without, left = (
            float(np.sum((fitted.residual(torque_at(d)[used] * weight) / weight) ** 2)) for d in (0.0 * delay, delay)
        )
        explained = 1.0 - left / without if without > 0.0 else 0.0
    found = _judged(regressor, rate, torque_at, used, delay, limit, each)
    return dataclasses.replace(found, explained=explained)


class _Projection:
    """Weighted rows with what the parameters explain taken out."""

    def __init__(self, rows: Array, rates: Array, weight: Array, group: NDArray[np.intp], groups: int) -> None:
        scale = np.linalg.norm(rows, axis=0)
        scale[scale == 0.0] = 1.0
        u, s, vt = np.linalg.svd(rows / scale * weight[:, None], full_matrices=False)
        told = s > 1e-10 * s[0]  # directions that the motion does not excite explain nothing
        self._u, self._inverse = u[:, told], vt[told].T / s[told] / scale[:, None]
        self._rates, self._weight, self._group, self._groups = rates, weight, group, groups

    def residual(self, values: Array) -> Array:
        """Part of the weighted values that no parameters explain."""
        return values - self._u @ (self._u.T @ values)

    def scan(self, torque_at: Callable[[Array], Array], limit: float, joints: int) -> Array:
        """Best delay, the same for all joints, of a grid over the whole range."""
        delays = np.linspace(-limit, limit, _SCAN_STEPS + 1)
        costs = [float(np.sum(self.residual(torque_at(np.full(joints, d)) * self._weight) ** 2)) for d in delays]
        return np.full(joints, delays[int(np.argmin(costs))])

    def newton_step(self, torque: Array) -> Array:
        """Gauss-Newton step of the delays, shape (groups,)."""
        values = torque * self._weight
        slope = self._rates @ (self._inverse @ (self._u.T @ values)) * self._weight
        columns = np.zeros((len(values), self._groups))
        columns[np.arange(len(values)), self._group] = slope
        return np.asarray(np.linalg.lstsq(self.residual(columns), self.residual(values))[0], dtype=np.float64)


def _weights(rows: Array, torque: Array, weight: Array, joint: NDArray[np.intp], joints: int) -> Array:
    """One over the deviation of each joint's residual."""
    scale = np.linalg.norm(rows, axis=0)
    scale[scale == 0.0] = 1.0
    solution = np.linalg.lstsq(rows / scale * weight[:, None], torque * weight)[0]
    squares = np.bincount(joint, (torque - rows / scale @ solution) ** 2, joints)
    deviation = np.sqrt(squares / np.maximum(np.bincount(joint, minlength=joints), 1))
    return 1.0 / np.where(deviation > 0.0, deviation, 1.0)[joint]


def _judged(
    regressor: Array, rate: Array, torque_at: Callable[[Array], Array], used: NDArray[np.bool_], delay: Array,
    limit: float, each: bool,
) -> Delay:
    """One more step, as a fit with the delay among its parameters, which also tells its deviation."""
    joints, p = used.shape[1], regressor.shape[2]
    torque = torque_at(delay)
    parameters = weighted_least_squares(regressor, torque, used).parameters
    slope = rate @ parameters
    columns = np.eye(joints) * slope[:, :, None] if each else slope[:, :, None]
    estimate = weighted_least_squares(np.concatenate([regressor, columns], axis=2), torque, used)
    sigma = np.broadcast_to(np.sqrt(np.diag(estimate.covariance)[p:]), (joints,)).copy()
    delay = delay + np.broadcast_to(estimate.parameters[p:], (joints,))
    resting = ~used.any(axis=0)
    told = resting | ((np.abs(delay) < limit) & (sigma < limit))
    if resting.all() or not told.all():
        worst = int(np.argmin(told))
        found = f"joint {worst + 1}: {1e3 * delay[worst]:.3g} ± {1e3 * sigma[worst]:.2g} ms"
        return _untold(
            joints, f"the torque's error has no clear minimum over delays up to ±{1e3 * limit:.3g} ms ({found})"
        )
    if each:
        delay, sigma = np.where(resting, 0.0, delay), np.where(resting, np.nan, sigma)
    figures = ", ".join(
        f"{1e3 * d:.3f} ± {1e3 * s:.2g}" for d, s in list(zip(delay, sigma, strict=True))[: joints if each else 1]
    )
    return Delay(delay, sigma, "estimated", f"motion recorded {figures} ms after the torque")


def _untold(joints: int, reason: str) -> Delay:
    return Delay(np.zeros(joints), np.full(joints, np.nan), "not told", reason)
