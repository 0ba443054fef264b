"""Rows that a delay is estimated from, joint by joint, and what no parameters explain of their torque."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.identification.rows import Block, JointRows
from jointbench.signals import interpolate_samples

_SCAN_STEPS = 40
"""Steps of the first look from one end of the allowed range to the other; only its best one is gone on from."""


class TorqueStretch(NamedTuple):
    """Filtered torque around some rows at the full sample rate.

    Attributes:
        places: sample of each row, counted from that of the first value, shape (n_rows,).
        values: shape (n, n_joints).
        first, last: places, maybe beyond the values, that are away from the ends of the log and its gaps.
    """

    places: NDArray[np.intp]
    values: Array
    first: int
    last: int

    def reaches(self, samples: Array) -> NDArray[np.bool_]:
        """Rows whose torque is still away from the ends when each joint's is taken `samples` earlier."""
        earlier = self.places[:, None] - samples
        return np.asarray(((earlier >= self.first) & (earlier <= self.last)).all(axis=1))

    def earlier(self, samples: Array) -> Array:
        """Torque of each joint that many samples before the rows, zero where not reached, shape (n_rows, n_joints)."""
        torque = np.zeros((len(self.places), len(samples)))
        reached = self.reaches(samples)
        places = self.places[reached]
        for joint, late in enumerate(samples):
            if late == np.rint(late):
                torque[reached, joint] = self.values[places - int(late), joint]
                continue
            torque[reached, joint] = interpolate_samples(self.values[:, joint], places - late)
        return torque


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
        self.joints: list[JointRows] = [self._gathered(j, [each.joints[j] for each in stretches]) for j in joints]
        self.rates: list[JointRows] = [self._gathered(j, [each.rates[j] for each in stretches]) for j in joints]
        self.triangles: list[Array] = [cast(Array, np.linalg.qr(rows.columns.T, mode="r")) for rows in self.joints]

    def torque(self, delay: Array) -> list[Array]:
        """Torque of each joint's used rows, taken `delay` [s] earlier."""
        earlier = [each.torque.earlier(delay / self.step) for each in self.stretches]
        return [
            np.concatenate([torque[each.used[:, j], j] for torque, each in zip(earlier, self.stretches, strict=True)])
            for j in range(len(self.joints))
        ]

    def _gathered(self, joint: int, parts: list[JointRows]) -> JointRows:
        used = [each.used[:, joint] for each in self.stretches]
        columns = [part.columns[:, which] for part, which in zip(parts, used, strict=True)]
        return JointRows(parts[0].parameters, np.concatenate(columns, axis=1))


class Projection:
    """Weighted rows with what the parameters explain taken out."""

    def __init__(self, data: DelayData, weight: Array, each: bool) -> None:
        self._data, self._weight = data, weight
        self._groups = np.arange(len(weight)) if each else np.zeros(len(weight), dtype=np.intp)
        stack = np.zeros((sum(map(len, data.triangles)), data.n_parameters))
        row = 0
        for rows, triangle, own in zip(data.joints, data.triangles, weight, strict=True):
            stack[row : row + len(triangle), rows.parameters] = own * triangle
            row += len(triangle)
        scale = np.linalg.norm(stack, axis=0)
        scale[scale == 0.0] = 1.0
        _, s, vt = np.linalg.svd(stack / scale, full_matrices=False)
        told = s > 1e-10 * s[0]  # directions that the motion does not excite explain nothing
        self._inverse = vt[told].T / s[told] / scale[:, None]

    def weights(self, torque: list[Array]) -> Array:
        """One over the deviation of each joint's residual, 1 where there is none."""
        left = [
            float(np.mean(part**2)) / own**2 if len(part) else 0.0
            for part, own in zip(self._residual(self._weighted(torque)), self._weight, strict=True)
        ]
        return np.array([1.0 / np.sqrt(square) if square > 0.0 else 1.0 for square in left])

    def parameters(self, torque: list[Array]) -> Array:
        """The parameters that explain most, shape (n_parameters,)."""
        return self._inverse @ self._explained(self._weighted(torque))

    def squares(self, torque: list[Array]) -> float:
        """Sum of all joints' squared residuals [(N·m)²], as weighted least squares leave them."""
        left = self._residual(self._weighted(torque))
        return sum(float(np.sum((part / own) ** 2)) for part, own in zip(left, self._weight, strict=True))

    def scan(self, limit: float) -> Array:
        """Best delay, the same for all joints, of a grid over the whole range."""
        delays = np.linspace(-limit, limit, _SCAN_STEPS + 1)
        costs: list[float] = []
        for delay in delays:
            left = self._residual(self._weighted(self._data.torque(np.full(len(self._weight), delay))))
            costs.append(sum(float(part @ part) for part in left))
        return np.full(len(self._weight), delays[int(np.argmin(costs))])

    def newton_step(self, torque: list[Array]) -> Array:
        """Gauss-Newton step of the delays, one for all joints or one for each."""
        values = self._weighted(torque)
        parameters = self._inverse @ self._explained(values)
        slope = [
            own * (parameters[rows.parameters] @ rows.columns)
            for own, rows in zip(self._weight, self._data.rates, strict=True)
        ]
        columns: list[Array] = []
        for group in range(self._groups.max() + 1):
            own = [part if self._groups[j] == group else 0.0 * part for j, part in enumerate(slope)]
            columns.append(np.concatenate(self._residual(own)))
        step = np.linalg.lstsq(np.stack(columns, axis=1), np.concatenate(self._residual(values)))[0]
        return np.asarray(step, dtype=np.float64)

    def _weighted(self, torque: list[Array]) -> list[Array]:
        return [own * part for own, part in zip(self._weight, torque, strict=True)]

    def _explained(self, values: list[Array]) -> Array:
        """Weighted values along the directions that parameters explain, shape (n_told,)."""
        products = np.zeros(self._data.n_parameters)
        for own, rows, part in zip(self._weight, self._data.joints, values, strict=True):
            products[rows.parameters] += own * (rows.columns @ part)
        return self._inverse.T @ products

    def _residual(self, values: list[Array]) -> list[Array]:
        """Part of the weighted values that no parameters explain."""
        parameters = self._inverse @ self._explained(values)
        return [
            part - own * (parameters[rows.parameters] @ rows.columns)
            for own, rows, part in zip(self._weight, self._data.joints, values, strict=True)
        ]


@dataclass(frozen=True)
class WithSlopes:
    """The rows with the delays as further parameters: what a second of delay changes, of all joints or of each."""

    data: DelayData
    delay_samples: Array
    parameters: Array
    each: bool

    @property
    def n_joints(self) -> int:
        """Torques a row of time."""
        return len(self.data.joints)

    @property
    def n_parameters(self) -> int:
        """Columns, those of the delays the last of them."""
        return self.data.n_parameters + (self.n_joints if self.each else 1)

    def blocks(self) -> Iterator[Block]:
        """A block for each stretch; what lies between them is a gap."""
        start, first = 0, self.data.n_parameters
        for stretch in self.data.stretches:
            joints: list[JointRows] = []
            for j, (rows, rates) in enumerate(zip(stretch.joints, stretch.rates, strict=True)):
                slope = self.parameters[rates.parameters] @ rates.columns
                which = np.append(rows.parameters, first + (j if self.each else 0))
                joints.append(JointRows(which, np.vstack([rows.columns, slope])))
            torque = stretch.torque.earlier(self.delay_samples)
            complete = np.asarray(stretch.used.any(axis=1))
            yield Block(start, tuple(joints), self.n_parameters, torque, stretch.used, complete)
            start += len(torque) + 1
