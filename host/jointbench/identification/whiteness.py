"""Tests of residuals: whether they are white, and how much of them follows from the rows before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, special

from jointbench.arrays import Array


class RunningVariance:
    """Sum of squares about the mean of each column, over all parts that were added.

    Attributes:
        rows: how many values were counted, shape (n_columns,).
        mean: of them, shape (n_columns,).
        squares: Σ (value - mean)², shape (n_columns,).

    Source: Chan, Golub & LeVeque, The American Statistician 37(3), 1983: no difference of large sums.
    """

    def __init__(self, n_columns: int) -> None:
        """Nothing counted yet."""
        self.rows: NDArray[np.intp] = np.zeros(n_columns, dtype=np.intp)
        self.mean: Array = np.zeros(n_columns)
        self.squares: Array = np.zeros(n_columns)

    def add(self, values: Array, counted: NDArray[np.bool_]) -> None:
        """Count a part; both of shape (n, n_columns)."""
        rows = counted.sum(axis=0)
        mean = np.where(counted, values, 0.0).sum(axis=0) / np.maximum(rows, 1)
        apart, together = mean - self.mean, np.maximum(self.rows + rows, 1)
        self.squares += np.sum(np.where(counted, values - mean, 0.0) ** 2, axis=0)
        self.squares += apart**2 * self.rows * rows / together
        self.mean += apart * rows / together
        self.rows += rows


class RowsBefore:
    """The last rows of the blocks so far, not used where there is a gap."""

    def __init__(self, length: int, n_columns: int) -> None:
        """Keep this many rows; before the first block none is used."""
        self._length = length
        self._values, self._used = np.zeros((length, n_columns)), np.zeros((length, n_columns), dtype=np.bool_)
        self._stop = 0

    def join(self, start: int, values: Array, used: NDArray[np.bool_]) -> tuple[Array, NDArray[np.bool_]]:
        """Put the rows before in front of a block, and keep its last ones for the next.

        Args:
            start: place of its first row on the grid of times; blocks come in order.
            values: shape (n, n_columns).
            used: which of them count, shape (n, n_columns).

        Returns:
            Values, 0 where not used, and which are used, shape (length + n, n_columns).
        """
        if start != self._stop:
            self._values[:], self._used[:] = 0.0, False
        self._stop = start + len(values)
        values = np.concatenate([self._values, np.where(used, values, 0.0)])
        used = np.concatenate([self._used, used])
        self._values, self._used = values[len(values) - self._length :], used[len(used) - self._length :]
        return values, used


_LAGS = 20
"""Lags looked at: with the default cut-off, one period of the motion's fastest part."""

_ORDER = 5
"""Rows before that a prediction uses: two and a half periods of the cut-off."""

_FEWEST = 4 * _LAGS
"""Pairs of rows at the longest lag below which nothing is said."""

_PENALTY = 2.4
"""q of Escanciano and Lobato: where their choice of lags changes from that of Schwarz to that of Akaike."""

WHITE_SHARE = 0.10
"""A residual is noise up to this predictable share: the low-pass alone makes 2 % of white noise predictable."""

STRUCTURED_SHARE = 0.50
"""Beyond this share most of a residual is an error of the model's form, not noise."""


@dataclass(frozen=True)
class Whiteness:
    """Correlation in time of each joint's residual.

    The error bars of a fit are right for a correlated residual, which they take into account. But correlation means
    that the model leaves something out, and this may be larger on another motion: only held-out motion shows that.

    Attributes:
        predictable: share of the residual's power that follows from the five rows before, 0 for noise; nan where too
            few rows follow each other, shape (n_joints,).
        p_value: how likely white noise is at least as correlated, noise of changing size included, (n_joints,).
        correlation: with the residual 1, 2, … 20 rows before, shape (n_joints, 20).
    """

    predictable: Array
    p_value: Array
    correlation: Array

    @property
    def words(self) -> tuple[str, ...]:
        """Level of each joint: "white", "coloured", "structured", or "unknown"."""
        return tuple(map(_word, self.predictable.tolist()))

    def sentence(self, names: tuple[str, ...], *, held_out: bool = False) -> str:
        """Return a sentence on the residuals of these joints, and what to do about them.

        Args:
            names: of the joints.
            held_out: whether the motion is another than was fitted, where errors of the parameters are left over too.
        """
        known = [(name, share) for name, share in zip(names, self.predictable.tolist(), strict=True) if share >= 0.0]
        if not known:
            return "There are too few rows to tell whether the residuals are noise."
        largest = max(share for _, share in known)
        if largest <= WHITE_SHARE:
            return f"The residuals are noise: at most {largest:.0%} of their power follows from the rows before."
        listed = ", ".join(f"{name} {share:.0%}" for name, share in known if share > WHITE_SHARE)
        found = (
            f"What the model leaves over is not only noise: of its power this follows from the rows before: {listed}."
        )
        lacks = "The model lacks something there, most often friction: try `jointbench fit RUN --friction choose`"
        if held_out:
            if largest <= STRUCTURED_SHARE:
                return f"{found} Beside noise there are errors of the parameters, or what the model leaves out."
            return f"{found} {lacks}, and judge by the error on this motion."
        return (
            f"{found} {lacks}. The error bars allow for the correlation, but not for what it does on another motion: "
            f"trust the held-out error."
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain names and arrays, for a file."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Whiteness:
        """Read what `to_dict` wrote, None for nan."""
        return cls(*(np.array(values[name], dtype=np.float64) for name in ("predictable", "p_value", "correlation")))

    @classmethod
    def unknown(cls, n_joints: int) -> Whiteness:
        """Return that of files from before this was computed: nan."""
        nothing = np.full(n_joints, np.nan)
        return cls(nothing, nothing.copy(), np.full((n_joints, _LAGS), np.nan))


class WhitenessSums:
    """Sums over blocks of residuals, of which a `Whiteness` is made."""

    def __init__(self, n_joints: int) -> None:
        """No row yet."""
        self._before = RowsBefore(_LAGS, n_joints)
        self._products, self._fourth, self._pairs = np.zeros((3, n_joints, _LAGS + 1))

    def add(self, start: int, residual: Array, used: NDArray[np.bool_]) -> None:
        """Count a block.

        Args:
            start: place of its first row on the grid of times; blocks come in order.
            residual: [N·m or N], shape (n, n_joints).
            used: rows that count, shape (n, n_joints).
        """
        n = len(residual)
        residual, used = self._before.join(start, residual, used)
        for joint in range(residual.shape[1]):
            values = np.ascontiguousarray(residual[:, joint])
            for sums, series in (
                (self._products, values), (self._fourth, values**2), (self._pairs, used[:, joint].astype(np.float64))
            ):  # fmt: skip
                now = series[_LAGS:]
                sums[joint] += [now @ series[_LAGS - lag : _LAGS - lag + n] for lag in range(_LAGS + 1)]

    def result(self) -> Whiteness:
        """Return the whiteness of the rows so far.

        Σ_l γ_l² / τ_l over the lags l <= p, with γ_l = Σ r_k r_{k-l} and τ_l = Σ r_k² r_{k-l}², is χ² with one degree
        of freedom for white noise of any changing size, when p is chosen as they do. The predictable share is that of
        the Yule-Walker equations, rows that are missing taken for zero.

        Source: Escanciano & Lobato, J. Econometrics 151(2), 2009.
        """
        n_joints = len(self._pairs)
        found = Whiteness.unknown(n_joints)
        for joint in range(n_joints):
            if self._pairs[joint, -1] < _FEWEST or self._products[joint, 0] <= 0.0:
                continue
            found.correlation[joint] = _correlation(self._products[joint], self._pairs[joint])
            found.p_value[joint] = _p_value(self._products[joint], self._fourth[joint], self._pairs[joint, 0])
            found.predictable[joint] = _predictable(self._products[joint])
        return found


def whiteness(residual: Array, used: NDArray[np.bool_]) -> Whiteness:
    """Correlation in time of residuals in one block, shape (n, n_joints), where they are used."""
    sums = WhitenessSums(residual.shape[1])
    sums.add(0, residual, used)
    return sums.result()


def _word(predictable: float) -> str:
    if np.isnan(predictable):
        return "unknown"
    if predictable <= WHITE_SHARE:
        return "white"
    return "coloured" if predictable <= STRUCTURED_SHARE else "structured"


def _correlation(products: Array, pairs: Array) -> Array:
    return (products[1:] / pairs[1:]) / (products[0] / pairs[0])


def _p_value(products: Array, fourth: Array, n: float) -> float:
    statistic = np.divide(products[1:] ** 2, fourth[1:], out=np.zeros(_LAGS), where=fourth[1:] > 0.0)
    many = float(np.log(n)) if statistic.max() <= _PENALTY * np.log(n) else 2.0
    total = np.cumsum(statistic)
    return float(special.chdtrc(1, total[np.argmax(total - many * np.arange(1, _LAGS + 1))]))


def _predictable(products: Array) -> float:
    column = products[:_ORDER].copy()
    column[0] *= 1.0 + 1e-9  # a constant residual is predicted wholly, and its equations are singular
    coefficients = linalg.solve_toeplitz(column, products[1 : _ORDER + 1])
    return float(np.clip(coefficients @ products[1 : _ORDER + 1] / products[0], 0.0, 1.0))
