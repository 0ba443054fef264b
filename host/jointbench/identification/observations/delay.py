"""The delay between recorded torque and recorded motion: estimated from the data alone, and taken out."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from jointbench.arrays import Array
from jointbench.identification.least_squares import least_squares
from jointbench.identification.observations.delay_rows import DelayData, DelayRows, Projection, WithSlopes

_CLEAR = 0.2
"""Share of the squared error that a delay must explain to be taken out unasked. Of two real arms, a fast one's is 0.29,
and those of a slow one up to 0.12, where runs contradict each other by their sign."""

_LONGEST = 0.25
"""Periods of the cut-off that a delay taken out unasked may last; those of real arms, 2 and 3 ms, are far shorter."""

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

    def if_clear(self, cutoff_Hz: float) -> Delay:
        """The delay where it explains a fifth of the squared error and is within a quarter of the cut-off's period.

        In slow motion the torque's rate is that of gravity, nearly proportional to velocity: there the friction that a
        model lacks looks like a delay. Such an error takes a small share with it, and a delay that matters a large one.
        A longer shift may bring swings of whatever kind into step by chance.
        """
        longest = _LONGEST / cutoff_Hz
        if self.source != "estimated":
            return self
        if self.explained < _CLEAR:
            doubt = (
                f"which explains only {self.explained:.1%} of the torque's squared error: friction unlike the model's "
                f"can do that too"
            )
        elif np.abs(self.seconds).max() > longest:
            doubt = (
                f"more than a quarter of the cut-off's period, {1e3 * longest:.3g} ms: so long a shift may fit swings "
                f"by chance"
            )
        else:
            return self
        return _untold(len(self.seconds), f"{self.reason}, {doubt}")


def given_delay(seconds: Array, reason: str) -> Delay:
    """A delay that is known, or taken as that."""
    return Delay(seconds, np.full(len(seconds), np.nan), "given", reason)


def estimate_delay(
    stretches: Sequence[DelayRows], n_parameters: int, *, limit: float, step: float, each: bool
) -> Delay:
    """Estimate parameters and delay together from torque rows, and keep the delay.

    min over d, pi of Σ_kj (torque_j(t_k - d_j) - regressor_kj @ pi)² / sigma_j². For each d the best pi is known in
    closed form, so that only d is searched: first over the whole range, then by Gauss-Newton steps on
    torque(t - d) ≈ (regressor + (delay - d) rate) @ pi. Only the model is differentiated, never the noise. The
    standard deviation is that of the fit with the delay as one more parameter, correlated residuals allowed.

    Args:
        stretches: the rows, in order of time.
        n_parameters: columns of the whole regressor.
        limit: largest |delay| [s].
        step: sample period [s].
        each: whether each joint has a delay of its own; a joint without rows gets no estimate, sigma nan.

    Returns:
        The delay; its source is "not told" where the range holds no minimum or the motion says nothing.

    Source: variable projection, Golub & Pereyra, SIAM J. Numerical Analysis 10(2), 1973.
    """
    data = DelayData(stretches, n_parameters, step)
    joints, count = len(data.joints), sum(len(rows.columns.T) for rows in data.joints)
    if count <= n_parameters + joints or not any(rows.columns.any() for rows in data.joints):
        return _untold(joints, f"{count} rows are too few to tell a delay")
    delay, weight, explained = np.zeros(joints), np.ones(joints), 0.0
    for number in range(_PASSES):
        weight = Projection(data, weight, each).weights(data.torque(delay))
        fitted = Projection(data, weight, each)
        if number == 0:
            delay = fitted.scan(limit)
        for _ in range(_NEWTON_STEPS):
            change = np.broadcast_to(fitted.newton_step(data.torque(delay)), (joints,))
            delay = np.clip(delay + change, -limit, limit)
            if np.abs(change).max() < _CLOSE * step:
                break
        without, left = (fitted.squares(data.torque(d)) for d in (0.0 * delay, delay))
        explained = 1.0 - left / without if without > 0.0 else 0.0
    found = _judged(data, delay, limit, each)
    return dataclasses.replace(found, explained=explained)


def _judged(data: DelayData, delay: Array, limit: float, each: bool) -> Delay:
    """One more step, as a fit with the delay among its parameters, which also tells its deviation."""
    joints, p = len(data.joints), data.n_parameters
    samples = delay / data.step
    weight = Projection(data, np.ones(joints), each).weights(data.torque(delay))
    parameters = Projection(data, weight, each).parameters(data.torque(delay))
    estimate = least_squares([WithSlopes(data, samples, parameters, each)])
    sigma = np.broadcast_to(np.sqrt(np.diag(estimate.covariance)[p:]), (joints,)).copy()
    delay = delay + np.broadcast_to(estimate.parameters[p:], (joints,))
    resting = np.array([rows.columns.shape[1] == 0 for rows in data.joints])
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
