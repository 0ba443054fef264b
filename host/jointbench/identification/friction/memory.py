"""Friction with memory: of a joint at rest and near it as well as at speed, linear in weights that are not negative.

    torque(t) = Σ_c Σ_a w_ca c(t) a(t),  w_ca >= 0

    carriers c    tanh(v / width): friction that turns its sign within some speed;
                  s / threshold, where s[k] = clip(s[k-1] + q[k] - q[k-1], ±threshold) is the stop operator of the
                  position: friction that turns its sign within some distance, and remembers where it stood
    amplitudes a  1; |load|; exp(-(v / v_s)²), the Stribeck rise

Weights that are not negative make of each term one that takes energy and never gives it, and need no regularisation:
most come out zero. They are no physical parameters; the friction at steady speed that they make is.

Sources: Al-Bender, Lampaert & Swevers, IEEE Trans. Automatic Control 50(11), 2005 (generalised Maxwell slip); Rizos &
Fassois, Chaos 14(2), 2004 (its identification by linear regression); Armstrong-Hélouvry, Dupont & Canudas de Wit,
Automatica 30(7), 1994 (Stribeck); Lawson & Hanson, Solving Least Squares Problems, 1974 (non-negative least squares).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple, cast

import numpy as np
import scipy  # its submodules load on first use; each takes up to a second
from numpy.typing import NDArray

from jointbench.arrays import Array, lazy_njit
from jointbench.errors import FitError
from jointbench.identification.judgement import FOLDS, simplest_within_one_standard_error

_GONE = 40.0
"""exp(-40) is less than rounding beside 1."""

_SINGULAR = 1e-10
"""Relative singular value under which a direction of the unbounded columns is open."""


@dataclass(frozen=True)
class Carriers:
    """The grids whose products are the columns; a gear's own widths and distances lie within, a factor of 2 apart.

    Attributes:
        widths: of tanh [rad/s or m/s].
        thresholds: of the stop operators [rad or m].
        stribeck_speeds: [rad/s or m/s].
        load: whether friction may grow with the load's size.
    """

    widths: tuple[float, ...] = tuple(1e-3 * 2.0**k for k in range(1, 11))
    thresholds: tuple[float, ...] = tuple(1e-4 * 2.0**k for k in range(9))
    stribeck_speeds: tuple[float, ...] = (0.05, 0.1, 0.2)
    load: bool = True

    @property
    def n_amplitudes(self) -> int:
        """Amplitudes a carrier has."""
        return 1 + self.load + len(self.stribeck_speeds)

    @property
    def n_columns(self) -> int:
        """Carriers times amplitudes."""
        return (len(self.widths) + len(self.thresholds)) * self.n_amplitudes

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, such as "tanh(v/0.008)·|load|" or "stop(0.0004)"."""
        carriers = [f"tanh(v/{width:.3g})" for width in self.widths] + [f"stop({r:.3g})" for r in self.thresholds]
        amplitudes = ["", *(["·|load|"] if self.load else []), *(f"·exp(-(v/{v:.3g})²)" for v in self.stribeck_speeds)]
        return tuple(carrier + amplitude for carrier, amplitude in product(carriers, amplitudes))

    def columns(self, position: Array, velocity: Array, load: Array, stops: Array | None = None) -> Array:
        """Torque per unit of each weight.

        Args:
            position: of one joint, at every sample of a stretch without gaps [rad or m], shape (n,).
            velocity: [rad/s or m/s], shape (n,).
            load: torque that the gear carries [N·m or N], shape (n,).
            stops: as `stops` gives them, where they do not begin in their middle.

        Returns:
            Shape (n, n_columns). Stops begin in their middle, and are right once the joint has gone one way by twice
            the threshold.
        """
        turning = np.tanh(velocity[:, None] / np.array(self.widths)) if self.widths else np.empty((len(velocity), 0))
        stops = self.stops(position) if stops is None else stops
        return self._products(np.hstack([turning, stops]), velocity, load)

    def stops(self, position: Array, start: Array | None = None, before: float | None = None) -> Array:
        """Stop operators over their thresholds, in [-1, 1], shape (n, n_thresholds).

        Args:
            position: [rad or m], shape (n,).
            start: of the stops before the first sample, shape (n_thresholds,); None: in their middle.
            before: position at which they were so; None: that of the first sample.
        """
        thresholds = np.array(self.thresholds)
        moved = np.diff(position, prepend=position[:1] if before is None else [before])
        return _stops(moved, thresholds, np.zeros_like(thresholds) if start is None else start)

    def pieces(self, most: int) -> Iterator[tuple[Carriers, slice]]:
        """Grids whose columns, one after the other, are these, `most` at a time or a carrier's; and their stops."""
        size = max(1, most // self.n_amplitudes)
        for start in range(0, len(self.widths), size):
            yield replace(self, widths=self.widths[start : start + size], thresholds=()), slice(0, 0)
        for start in range(0, len(self.thresholds), size):
            part = slice(start, start + size)
            yield replace(self, widths=(), thresholds=self.thresholds[part]), part

    def steady_columns(self, velocity: Array, load: Array) -> Array:
        """Columns at steady velocity, all stops slipping."""
        slipping = np.repeat(np.sign(velocity)[:, None], len(self.thresholds), axis=1)
        turning = np.tanh(velocity[:, None] / np.array(self.widths)) if self.widths else np.empty((len(velocity), 0))
        return self._products(np.hstack([turning, slipping]), velocity, load)

    def _products(self, carriers: Array, velocity: Array, load: Array) -> Array:
        amplitudes = [np.ones_like(velocity), *([np.abs(load)] if self.load else [])]
        exponents = [np.square(velocity / speed) for speed in self.stribeck_speeds]
        # What is nothing beside 1 is 0: numbers next to it make what is computed of them a hundred times slower.
        amplitudes += [np.where(exponent < _GONE, np.exp(-exponent), 0.0) for exponent in exponents]
        return (carriers[:, :, None] * np.stack(amplitudes, axis=1)[:, None, :]).reshape(len(velocity), -1)

    def candidates(self) -> Iterator[tuple[str, NDArray[np.bool_]]]:
        """Families of columns from the simplest to all of them: by carrier, then by amplitude.

        Yields:
            What the family is called, and which columns it has, shape (n_columns,).
        """
        carrier = np.repeat(["speed"] * len(self.widths) + ["distance"] * len(self.thresholds), self.n_amplitudes)
        amplitude = np.tile(
            ["1", *(["load"] if self.load else []), *(["Stribeck"] * len(self.stribeck_speeds))],
            len(self.widths) + len(self.thresholds),
        )
        more = [("1",)]
        for each in ("load", "Stribeck"):
            more += [(*more[-1], each)] if each in amplitude else []
        carriers = [each for each in (("speed",), ("distance",), ("speed", "distance")) if set(each) <= {*carrier}]
        for own, kinds in product(more, carriers):
            yield f"{' and '.join(kinds)}; {', '.join(own)}", np.isin(carrier, kinds) & np.isin(amplitude, own)


@dataclass(frozen=True, eq=False)
class FrictionWithMemory:
    """Friction of one joint as `fit_with_memory` found it.

    Attributes:
        carriers: the grids.
        weights: [N·m or N], those of load's columns without unit; shape (carriers.n_columns,).
        family: which carriers and amplitudes the held-out rows asked for.
        held_out_rms: error on rows that the weights were not fitted to, by family [N·m or N].
    """

    carriers: Carriers
    weights: Array
    family: str
    held_out_rms: dict[str, float]

    @property
    def used(self) -> dict[str, float]:
        """Weights that are not zero, by the names of their columns."""
        return {name: float(w) for name, w in zip(self.carriers.names, self.weights, strict=True) if w > 0.0}

    @property
    def compact(self) -> FrictionWithMemory:
        """Return friction of the same torque on grids that hold only the elements in use."""
        carriers, n, count = self.carriers, len(self.carriers.widths), self.carriers.n_amplitudes
        table = self.weights.reshape(-1, count)
        rows: NDArray[np.bool_] = np.asarray(table.any(axis=1))
        rises: NDArray[np.bool_] = np.asarray(table[:, 1 + carriers.load :].any(axis=0))
        load = carriers.load and bool(table[:, 1].any())
        return FrictionWithMemory(
            Carriers(
                tuple(width for width, used in zip(carriers.widths, rows[:n], strict=True) if used),
                tuple(threshold for threshold, used in zip(carriers.thresholds, rows[n:], strict=True) if used),
                tuple(speed for speed, used in zip(carriers.stribeck_speeds, rises, strict=True) if used),
                load,
            ),
            table[rows][:, np.concatenate([[True], [load] * carriers.load, rises]).astype(np.bool_)].ravel(),
            self.family,
            self.held_out_rms,
        )

    def torque(self, position: Array, velocity: Array, load: Array) -> Array:
        """Friction of a motion [N·m or N], shape (n,); arguments as of `Carriers.columns`."""
        return self.carriers.columns(position, velocity, load) @ self.weights

    def steady(self, velocity: Array, load: Array) -> Array:
        """Friction at steady velocity [N·m or N]: the curve to look at, shape (n,)."""
        return self.carriers.steady_columns(velocity, load) @ self.weights


class MemoryFit(NamedTuple):
    """Result of `fit_with_memory`: parameters of the unbounded columns, shape (n_free,), and the friction."""

    free: Array
    friction: FrictionWithMemory


def fit_with_memory(carriers: Carriers, free: Array, columns: Array, torque: Array) -> MemoryFit:
    """Least squares of torque = free @ p + columns @ w, w >= 0, over all rows alike.

    A family of columns is taken where it errs less on held-out rows than every simpler one by more than chance, as
    `compare_laws` chooses a law; folds are stretches of time.

    Args:
        carriers: whose columns they are.
        free: columns of any sign, filtered as the torque was, shape (n_rows, n_free).
        columns: of `carriers.columns`, filtered alike, shape (n_rows, n_columns).
        torque: [N·m or N], shape (n_rows,), rows in order of time.

    Raises:
        FitError: fewer rows than a fold needs.
    """
    n, n_free = free.shape
    if n < FOLDS * (n_free + 2):
        raise FitError(
            f"{n} rows are too few for friction with memory, which holds a fifth of them out in turn; at least "
            f"{FOLDS * (n_free + 2)} are needed: record a longer motion"
        )
    table = np.column_stack([free, columns, torque])
    triangles = [_stacked([part]) for part in np.array_split(table, FOLDS)]
    counts = [len(part) for part in np.array_split(torque, FOLDS)]
    families = list(carriers.candidates())
    others = [_stacked(triangles[:fold] + triangles[fold + 1 :]) for fold in range(FOLDS)]
    squares = np.array(
        [
            [_mean_square(triangles[fold], _solve(others[fold], n_free, which), counts[fold]) for fold in range(FOLDS)]
            for _, which in families
        ]
    )
    name, which = families[simplest_within_one_standard_error(squares)]
    p, w = _solve(_stacked(triangles), n_free, which)
    rms = {family: float(np.sqrt(np.mean(square))) for (family, _), square in zip(families, squares, strict=True)}
    return MemoryFit(p, FrictionWithMemory(carriers, w, name, rms))


def _stacked(triangles: Sequence[Array]) -> Array:
    """The triangle that stands for the rows of several."""
    return cast(Array, np.linalg.qr(np.vstack(triangles), mode="r"))


def _mean_square(triangle: Array, solution: tuple[Array, Array], count: int) -> float:
    """Return the mean square of a solution's residual over the rows that a triangle stands for."""
    residual = triangle @ np.concatenate([*solution, [-1.0]])
    return float(residual @ residual) / count


def _solve(triangle: Array, n_free: int, which: NDArray[np.bool_]) -> tuple[Array, Array]:
    """P and w of the rows that the triangle stands for; the unbounded columns are projected out first."""
    free, columns, torque = triangle[:, :n_free], triangle[:, n_free:-1][:, which], triangle[:, -1]
    scale = np.sqrt(np.sum(columns**2, axis=0))
    scale[scale == 0.0] = 1.0
    basis = np.linalg.qr(free)[0]
    projected = columns / scale - basis @ (basis.T @ (columns / scale))
    weights = np.zeros(len(which))
    solution = scipy.optimize.nnls(projected, torque - basis @ (basis.T @ torque), maxiter=100 * projected.shape[1])[0]
    weights[which] = solution / scale
    size = np.linalg.norm(free, axis=0)
    size[size == 0.0] = 1.0
    p = np.linalg.lstsq(free / size, torque - columns @ weights[which], rcond=_SINGULAR)[0] / size
    return p, weights


@lazy_njit
def _stops(moved: Array, thresholds: Array, start: Array) -> Array:
    """Stop operators of a position, over their thresholds, from the steps between samples, shape (n, n_thresholds)."""
    out = np.empty((len(moved), len(thresholds)))
    for j in range(len(thresholds)):
        state, threshold = start[j] * thresholds[j], thresholds[j]
        for k in range(len(moved)):
            state = min(max(state + moved[k], -threshold), threshold)
            out[k, j] = state / threshold
    return out
