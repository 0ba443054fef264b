"""The mean of a motion that was played several times, outliers left out."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy  # each of its parts is imported where it is first used: all take a second
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.memory_mapping import part_of, pieces

OUTLIER = 6.0
"""An outlier lies more than this many robust deviations from the median of its phase: of a billion Gaussian values a
few; and more than so many steps of a value that comes in steps."""

_MEDIAN_DIFFERENCE = 1.4826 / np.sqrt(2.0)
"""Deviation of Gaussian values by the median size of the difference of two."""

_LEAST_PERIODS = 3
"""Of two values that differ, none is the outlier."""

_NEIGHBOURS = 9
"""Phases among which the median scale is taken, so that no outlier makes its own scale."""

_TOGETHER = 16e6
"""Bytes of values that are looked at together: a long record is folded some phases at a time."""

_ROUNDING = 1e-12
"""Change of a value, relative to the largest of its column, that is rounding and no step."""

_TELLING = 1 << 17
"""Differences of each column that tell what is usual: all of a short record, of a long one those of some phases."""


@dataclass(frozen=True)
class PeriodAverage:
    """Sample by sample mean over the periods of a repeated motion.

    Attributes:
        mean: shape (n_period, n_columns).
        spread: standard deviation of one period about the mean, per column, shape (n_columns,); nan for one period.
        count: how many periods were used at each sample, shape (n_period,).
        outliers: how many values of each column lay too far off, shape (n_columns,).
        rejected: rows left out because of such a value, all columns of them, shape (n,).
    """

    mean: Array
    spread: Array
    count: NDArray[np.intp]
    outliers: NDArray[np.intp]
    rejected: NDArray[np.bool_]

    @property
    def valid(self) -> NDArray[np.bool_]:
        """Samples at which at least one period was used, shape (n_period,)."""
        return self.count > 0


def average_periods(
    values: Array | Sequence[Array],
    valid: NDArray[np.bool_],
    play_tick: NDArray[np.intp],
    period: int,
    *,
    reject_outliers: bool = False,
) -> PeriodAverage:
    """Average the periods of a repeated motion; what is missing in one period, or an outlier, comes from the others.

    Outliers are judged phase by phase against the median of at least three periods. What counts as far is the median
    difference of neighbouring periods, about this phase or over all of them, whichever is larger: so phases at which
    periods truly differ, as where friction turns over, are not thinned out. A record of any length takes the memory of
    some of its phases.

    Args:
        values: shape (n, n_columns), or several such arrays whose columns are taken side by side.
        valid: samples to use, shape (n,).
        play_tick: samples since the motion began, negative where it was not playing, shape (n,).
        period: samples in a period.
        reject_outliers: whether to leave them out.

    Returns:
        The mean, its spread, its counts and what was left out.

    Source: Swevers et al., Optimal robot excitation and identification, IEEE T-RA 13(5), 1997; median absolute
    differences as in Rousseeuw & Croux, JASA 88, 1993.
    """
    folded = _Folded([values] if isinstance(values, np.ndarray) else list(values), valid, play_tick, period)
    n_columns = folded.n_columns
    middle, limit = folded.usual() if reject_outliers else (None, None)
    rejected = np.zeros(len(valid), dtype=np.bool_)
    outliers, squares = np.zeros(n_columns, dtype=np.intp), np.zeros(n_columns)
    mean, count = np.zeros((period, n_columns)), np.zeros(period, dtype=np.intp)
    for part, used, rows in folded.blocks():
        phase = used.phase
        if middle is not None and limit is not None:
            far = np.abs(rows - middle[part][phase]) > limit[part][phase]
            outliers += far.sum(axis=0)
            left_out = far.any(axis=1)
            rejected[used.row[left_out]] = True
            phase, rows = phase[~left_out], rows[~left_out]
        length = part.stop - part.start
        count[part] = np.bincount(phase, minlength=length)
        total = np.column_stack([np.bincount(phase, column, length) for column in rows.T])
        mean[part] = total / np.maximum(count[part], 1)[:, None]
        squares += np.sum((rows - mean[part][phase]) ** 2, axis=0)
    freedom = int(np.sum(np.maximum(count - 1, 0)))
    spread = np.sqrt(squares / freedom) if freedom else np.full(n_columns, np.nan)
    return PeriodAverage(mean, spread, count, outliers, rejected)


class _Used(NamedTuple):
    """Rows to use and their phases, counted from the first of a block."""

    row: NDArray[np.intp]
    phase: NDArray[np.intp]


@dataclass(frozen=True)
class _Folded:
    """A record whose periods lie upon each other."""

    values: Sequence[Array]
    valid: NDArray[np.bool_]
    play_tick: NDArray[np.intp]
    period: int

    @property
    def n_columns(self) -> int:
        return sum(each.shape[1] for each in self.values)

    def blocks(self) -> Iterator[tuple[slice, _Used, Array]]:
        """Some phases at a time: which they are, the rows to use, and their values."""
        count = min(self.period, int(np.ceil(8.0 * len(self.valid) * self.n_columns / _TOGETHER)))
        for part in pieces(self.period, -(-self.period // max(1, count))):
            used = self._rows(part)
            yield part, used, np.hstack([part_of(each, used.row) for each in self.values])

    def usual(self) -> tuple[Array, Array]:
        """Median of each phase, and how far from it is too far, shape (period, n_columns)."""
        middle, limit = np.zeros((self.period, self.n_columns)), np.full((self.period, self.n_columns), np.inf)
        apart, enough = np.zeros_like(middle), np.zeros(self.period, dtype=np.bool_)
        some: list[list[Array]] = [[] for _ in range(self.n_columns)]
        step = np.full(self.n_columns, np.inf)
        rounding = _ROUNDING * self._largest()
        every = -(-len(self.valid) // _TELLING)
        for part, used, rows in self.blocks():
            enough[part], tables = _tables(rows, used.phase, part.stop - part.start)
            for column, table in enumerate(tables if enough[part].any() else ()):
                each = np.abs(np.diff(table, axis=1))
                apart[part, column][enough[part]] = np.nanmedian(each, axis=1)
                middle[part, column][enough[part]] = np.nanmedian(table, axis=1)
                some[column].append(each[::every].ravel())
                step[column] = min(step[column], _step(table, float(rounding[column])))
        if enough.any():
            over_all = np.array([np.nanmedian(np.concatenate(each)) for each in some])
            about = scipy.ndimage.median_filter(apart[enough], (_NEIGHBOURS, 1), mode="wrap")
            least = np.where(np.isfinite(step), step, 0.0)
            limit[enough] = OUTLIER * np.maximum(_MEDIAN_DIFFERENCE * np.maximum(about, over_all), least)
        return middle, limit

    def _largest(self) -> Array:
        """Largest magnitude of each column where it is valid, shape (n_columns,)."""
        largest = np.zeros(self.n_columns)
        for piece in pieces(len(self.valid)):
            rows = np.hstack([part_of(each, piece) for each in self.values])[self.valid[piece]]
            largest = np.fmax(largest, np.fmax.reduce(np.abs(rows), axis=0, initial=0.0))
        return largest

    def _rows(self, part: slice) -> _Used:
        """Rows to use in these phases, and their phases from the first of them on."""
        found: list[NDArray[np.intp]] = []
        phases: list[NDArray[np.intp]] = []
        for piece in pieces(len(self.valid)):
            tick = part_of(self.play_tick, piece)
            phase = tick % self.period
            row = np.flatnonzero(self.valid[piece] & (tick >= 0) & (phase >= part.start) & (phase < part.stop))
            found.append(row + piece.start)
            phases.append(phase[row] - part.start)
        return _Used(np.concatenate(found), np.concatenate(phases))


def _tables(rows: Array, phase: NDArray[np.intp], length: int) -> tuple[NDArray[np.bool_], Iterator[Array]]:
    """Which phases have periods enough, and each column's values in them, a row for each phase, nan where missing."""
    order = np.argsort(phase, kind="stable")
    count = np.bincount(phase, minlength=length)
    turn = np.empty(len(phase), dtype=np.intp)
    turn[order] = np.arange(len(phase)) - np.repeat(np.cumsum(count) - count, count)
    enough = count >= _LEAST_PERIODS

    def table(column: int) -> Array:
        values = np.full((length, int(count.max(initial=0))), np.nan)
        values[phase, turn] = rows[:, column]
        return values[enough]

    return enough, (table(column) for column in range(rows.shape[1]))


def _step(table: Array, rounding: float) -> float:
    """Smallest change from one phase to the next that is more than rounding: the step of an encoder, if it is one."""
    change = np.abs(np.diff(table, axis=0))
    known = change[np.isfinite(change)]
    above = known[known > rounding]
    return float(above.min()) if len(above) else np.inf
