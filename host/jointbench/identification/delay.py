"""The delay between recorded torque and recorded motion: estimated from the data alone, and taken out."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.identification.least_squares import least_squares
from jointbench.identification.parallel_filter import TorqueStretch
from jointbench.identification.rows import Block, JointRows

_SCAN_STEPS = 40
"""Steps of the first look from one end of the allowed range to the other; only its best one is gone on from."""


@dataclass(frozen=True, eq=False)
class DelayRows:
    """Rows of one stretch that a delay is estimated from.

    Attributes:
        joints: each joint's columns of the regressor.
        rates: their derivatives by time.
        torque: around the rows.
        used: rows to use, of which torque is known for all delays within the limit, shape (n, n_joints).
    """

    joints: tuple[JointRows, ...]
    rates: tuple[JointRows, ...]
    torque: TorqueStretch
    used: NDArray[np.bool_]


class DelayData:
    """The used rows of all stretches, joint by joint, of each without the columns that are always zero.

    Attributes:
        stretches: where they come from.
        n_parameters: columns of the whole regressor.
        step: sample period [s].
        joints, rates: columns of the used rows and their derivatives.
        triangles: R of the QR decomposition of each joint's rows.
    """

    def __init__(self, stretches: Sequence[DelayRows], n_parameters: int, step: float) -> None:
        self.stretches = stretches
        self.n_parameters = n_parameters
        self.step = step
        joints = range(stretches[0].used.shape[1])
        self.joints: list[JointRows] = [self._gathered(j, [stretch.joints[j] for stretch in stretches]) for j in joints]
        self.rates: list[JointRows] = [self._gathered(j, [stretch.rates[j] for stretch in stretches]) for j in joints]
        self.triangles: list[Array] = [cast(Array, np.linalg.qr(rows.columns.T, mode="r")) for rows in self.joints]

    def torque(self, delay: Array) -> list[Array]:
        """Torque of each joint's used rows, taken `delay` [s] earlier."""
        earlier = [stretch.torque.earlier(delay / self.step) for stretch in self.stretches]
        return [
            np.concatenate(
                [torque[stretch.used[:, j], j] for torque, stretch in zip(earlier, self.stretches, strict=True)]
            )
            for j in range(len(self.joints))
        ]

    def _gathered(self, joint: int, parts: list[JointRows]) -> JointRows:
        used = [stretch.used[:, joint] for stretch in self.stretches]
        columns = [part.columns[:, which] for part, which in zip(parts, used, strict=True)]
        return JointRows(parts[0].parameters, np.concatenate(columns, axis=1))


class Projection:
    """Weighted rows with what the parameters explain taken out."""

    def __init__(self, data: DelayData, weight: Array, per_joint: bool) -> None:
        self._data, self._weight = data, weight
        self._groups = np.arange(len(weight)) if per_joint else np.zeros(len(weight), dtype=np.intp)
        stack = np.zeros((sum(map(len, data.triangles)), data.n_parameters))
        row = 0
        for rows, triangle, w in zip(data.joints, data.triangles, weight, strict=True):
            stack[row : row + len(triangle), rows.parameters] = w * triangle
            row += len(triangle)
        scale = np.linalg.norm(stack, axis=0)
        scale[scale == 0.0] = 1.0
        _, s, vt = np.linalg.svd(stack / scale, full_matrices=False)
        excited = s > 1e-10 * s[0]  # directions that the motion does not excite explain nothing
        self._inverse = vt[excited].T / s[excited] / scale[:, None]

    def weights(self, torque: list[Array]) -> Array:
        """One over the deviation of each joint's residual, 1 where there is none."""
        mean_squares = [
            float(np.mean(part**2)) / w**2 if len(part) else 0.0
            for part, w in zip(self._residual(self._weighted(torque)), self._weight, strict=True)
        ]
        return np.array([1.0 / np.sqrt(square) if square > 0.0 else 1.0 for square in mean_squares])

    def parameters(self, torque: list[Array]) -> Array:
        """The parameters that explain most, shape (n_parameters,)."""
        return self._inverse @ self._explained(self._weighted(torque))

    def squares(self, torque: list[Array]) -> float:
        """Sum of all joints' squared residuals [(N·m)²], as weighted least squares leave them."""
        residuals = self._residual(self._weighted(torque))
        return sum(float(np.sum((part / w) ** 2)) for part, w in zip(residuals, self._weight, strict=True))

    def scan(self, limit: float) -> Array:
        """Best delay, the same for all joints, of a grid over the whole range."""
        delays = np.linspace(-limit, limit, _SCAN_STEPS + 1)
        costs: list[float] = []
        for delay in delays:
            residuals = self._residual(self._weighted(self._data.torque(np.full(len(self._weight), delay))))
            costs.append(sum(float(part @ part) for part in residuals))
        return np.full(len(self._weight), delays[int(np.argmin(costs))])

    def newton_step(self, torque: list[Array]) -> Array:
        """Gauss-Newton step of the delays, one for all joints or one for each."""
        values = self._weighted(torque)
        parameters = self._inverse @ self._explained(values)
        rates = [
            w * (parameters[rows.parameters] @ rows.columns)
            for w, rows in zip(self._weight, self._data.rates, strict=True)
        ]
        columns: list[Array] = []
        for group in range(self._groups.max() + 1):
            group_rates = [part if self._groups[j] == group else 0.0 * part for j, part in enumerate(rates)]
            columns.append(np.concatenate(self._residual(group_rates)))
        step = np.linalg.lstsq(np.stack(columns, axis=1), np.concatenate(self._residual(values)))[0]
        return np.asarray(step, dtype=np.float64)

    def _weighted(self, torque: list[Array]) -> list[Array]:
        return [w * part for w, part in zip(self._weight, torque, strict=True)]

    def _explained(self, values: list[Array]) -> Array:
        """Weighted values along the directions that parameters explain, shape (n_told,)."""
        products = np.zeros(self._data.n_parameters)
        for w, rows, part in zip(self._weight, self._data.joints, values, strict=True):
            products[rows.parameters] += w * (rows.columns @ part)
        return self._inverse.T @ products

    def _residual(self, values: list[Array]) -> list[Array]:
        """Part of the weighted values that no parameters explain."""
        parameters = self._inverse @ self._explained(values)
        return [
            part - w * (parameters[rows.parameters] @ rows.columns)
            for w, rows, part in zip(self._weight, self._data.joints, values, strict=True)
        ]


@dataclass(frozen=True)
class RowsWithDelay:
    """The rows with the delays as further parameters: what a second of delay changes, of all joints or of each."""

    data: DelayData
    delay_samples: Array
    parameters: Array
    per_joint: bool

    @property
    def n_joints(self) -> int:
        """Torques a row of time."""
        return len(self.data.joints)

    @property
    def n_parameters(self) -> int:
        """Columns, those of the delays the last of them."""
        return self.data.n_parameters + (self.n_joints if self.per_joint else 1)

    def blocks(self) -> Iterator[Block]:
        """A block for each stretch; what lies between them is a gap."""
        start, first = 0, self.data.n_parameters
        for stretch in self.data.stretches:
            joints: list[JointRows] = []
            for j, (rows, rates) in enumerate(zip(stretch.joints, stretch.rates, strict=True)):
                slope = self.parameters[rates.parameters] @ rates.columns
                which = np.append(rows.parameters, first + (j if self.per_joint else 0))
                joints.append(JointRows(which, np.vstack([rows.columns, slope])))
            torque = stretch.torque.earlier(self.delay_samples)
            complete = np.asarray(stretch.used.any(axis=1))
            yield Block(start, tuple(joints), self.n_parameters, torque, stretch.used, complete)
            start += len(torque) + 1


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
    """Delay of the recorded motion behind the torque: torque(t) belongs to motion(t + delay).

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
    stretches: Sequence[DelayRows], n_parameters: int, *, limit: float, step: float, per_joint: bool
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
        per_joint: whether each joint has a delay of its own; a joint without rows gets no estimate, sigma nan.

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
        weight = Projection(data, weight, per_joint).weights(data.torque(delay))
        fitted = Projection(data, weight, per_joint)
        if number == 0:
            delay = fitted.scan(limit)
        for _ in range(_NEWTON_STEPS):
            change = np.broadcast_to(fitted.newton_step(data.torque(delay)), (joints,))
            delay = np.clip(delay + change, -limit, limit)
            if np.abs(change).max() < _CLOSE * step:
                break
        without, with_delay = (fitted.squares(data.torque(d)) for d in (0.0 * delay, delay))
        explained = 1.0 - with_delay / without if without > 0.0 else 0.0
    return dataclasses.replace(_judged(data, delay, limit, per_joint), explained=explained)


def _judged(data: DelayData, delay: Array, limit: float, per_joint: bool) -> Delay:
    """One more step, as a fit with the delay among its parameters, which also tells its deviation."""
    joints, p = len(data.joints), data.n_parameters
    samples = delay / data.step
    weight = Projection(data, np.ones(joints), per_joint).weights(data.torque(delay))
    parameters = Projection(data, weight, per_joint).parameters(data.torque(delay))
    estimate = least_squares([RowsWithDelay(data, samples, parameters, per_joint)])
    sigma = np.broadcast_to(np.sqrt(np.diag(estimate.covariance)[p:]), (joints,)).copy()
    delay = delay + np.broadcast_to(estimate.parameters[p:], (joints,))
    resting = np.array([rows.columns.shape[1] == 0 for rows in data.joints])
    determined = resting | ((np.abs(delay) < limit) & (sigma < limit))
    if resting.all() or not determined.all():
        worst = int(np.argmin(determined))
        joint = f"joint {worst + 1}: {1e3 * delay[worst]:.3g} ± {1e3 * sigma[worst]:.2g} ms"
        return _untold(
            joints, f"the torque's error has no clear minimum over delays up to ±{1e3 * limit:.3g} ms ({joint})"
        )
    if per_joint:
        delay, sigma = np.where(resting, 0.0, delay), np.where(resting, np.nan, sigma)
    figures = ", ".join(
        f"{1e3 * d:.3f} ± {1e3 * s:.2g}" for d, s in list(zip(delay, sigma, strict=True))[: joints if per_joint else 1]
    )
    return Delay(delay, sigma, "estimated", f"motion recorded {figures} ms after the torque")


def _untold(joints: int, reason: str) -> Delay:
    return Delay(np.zeros(joints), np.full(joints, np.nan), "not told", reason)
