"""Mean and standard deviation over the periods of a repeated motion, with rejection of outliers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy  # its submodules load on first use; each takes up to a second
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.memory_mapping import chunks, read_rows

_OUTLIER_LIMIT = 6.0
"""Distance from the median of its phase, in robust standard deviations (or quantisation steps), beyond which a value
is an outlier: of a billion Gaussian values a few."""

_SIGMA_OF_MEDIAN_DIFFERENCE = 1.4826 / np.sqrt(2.0)
"""Standard deviation of Gaussian values over the median absolute difference of two of them."""

_MIN_PERIODS = 3
"""Periods that an outlier test needs: of two values that differ, neither is the outlier."""

_SCALE_WINDOW = 9
"""Phases over which the scale is median-filtered, so that an outlier does not raise its own limit."""

_BLOCK_BYTES = 16e6
"""Size of the values processed together: a long record is averaged over some phases at a time."""

_ROUNDING = 1e-12
"""Change of a value, relative to the largest of its column, that is rounding and no quantisation step."""

_SCALE_SAMPLES = 1 << 17
"""Rows of a record beyond which the scale over all phases is estimated from a subset of them."""


@dataclass(frozen=True)
class PeriodAverage:
    """Mean over the periods of a repeated motion, sample by sample.

    Attributes:
        mean: shape (n_period, n_columns).
        standard_deviation: of one period about the mean, shape (n_columns,); nan for one period.
        count: number of periods averaged at each sample, shape (n_period,).
        n_outliers: number of outliers in each column, shape (n_columns,).
        rejected: rows left out because one of their values is an outlier, shape (n,).
    """

    mean: Array
    standard_deviation: Array
    count: NDArray[np.intp]
    n_outliers: NDArray[np.intp]
    rejected: NDArray[np.bool_]

    @property
    def valid(self) -> NDArray[np.bool_]:
        """Samples at which at least one period was averaged, shape (n_period,)."""
        return self.count > 0


def average_periods(
    values: Array | Sequence[Array],
    valid: NDArray[np.bool_],
    play_tick: NDArray[np.intp],
    period: int,
    *,
    reject_outliers: bool = False,
) -> PeriodAverage:
    """Average the periods of a repeated motion; samples missing in one period are taken from the others.

    An outlier is judged against the median over at least three periods at the same phase. Its limit scales with the
    median difference of consecutive periods at neighbouring phases or over all phases, whichever is larger, so that
    phases at which periods truly differ, as where friction changes sign, are not thinned out. Memory is bounded for
    records of any length.

    Args:
        values: shape (n, n_columns), or several such arrays whose columns are joined.
        valid: samples to use, shape (n,).
        play_tick: samples since the motion began, negative before, shape (n,).
        period: samples per period.
        reject_outliers: leave out rows with an outlier in any column.

    Returns:
        Mean, standard deviation and counts; samples without a valid period have a mean of 0 and are not `valid`.

    Source: Swevers et al., Optimal robot excitation and identification, IEEE T-RA 13(5), 1997; median absolute
    differences as in Rousseeuw & Croux, JASA 88, 1993.
    """
    record = _PeriodicRecord([values] if isinstance(values, np.ndarray) else list(values), valid, play_tick, period)
    n_columns = record.n_columns
    limits = record.outlier_limits() if reject_outliers else None
    rejected = np.zeros(len(valid), dtype=np.bool_)
    n_outliers, squares = np.zeros(n_columns, dtype=np.intp), np.zeros(n_columns)
    mean, count = np.zeros((period, n_columns)), np.zeros(period, dtype=np.intp)
    for phases, selected, rows in record.blocks():
        phase = selected.phase
        if limits is not None:
            is_outlier = np.abs(rows - limits.median[phases][phase]) > limits.distance[phases][phase]
            n_outliers += is_outlier.sum(axis=0)
            has_outlier = is_outlier.any(axis=1)
            rejected[selected.row[has_outlier]] = True
            phase, rows = phase[~has_outlier], rows[~has_outlier]
        n_phases = phases.stop - phases.start
        count[phases] = np.bincount(phase, minlength=n_phases)
        total = np.column_stack([np.bincount(phase, column, n_phases) for column in rows.T])
        mean[phases] = total / np.maximum(count[phases], 1)[:, None]
        squares += np.sum((rows - mean[phases][phase]) ** 2, axis=0)
    degrees_of_freedom = int(np.sum(np.maximum(count - 1, 0)))
    deviation = np.sqrt(squares / degrees_of_freedom) if degrees_of_freedom else np.full(n_columns, np.nan)
    return PeriodAverage(mean, deviation, count, n_outliers, rejected)


class _SelectedRows(NamedTuple):
    """Rows of the record that fall into a block of phases, and their phases within the block."""

    row: NDArray[np.intp]
    phase: NDArray[np.intp]


class _OutlierLimits(NamedTuple):
    """Median of each phase and largest distance from it, shape (period, n_columns) each."""

    median: Array
    distance: Array


@dataclass(frozen=True)
class _PeriodicRecord:
    """Record of a repeated motion, read in blocks of phases."""

    columns: Sequence[Array]
    valid: NDArray[np.bool_]
    play_tick: NDArray[np.intp]
    period: int

    @property
    def n_columns(self) -> int:
        return sum(array.shape[1] for array in self.columns)

    def blocks(self) -> Iterator[tuple[slice, _SelectedRows, Array]]:
        """Iterate over blocks of phases: the phases, the valid rows at them, and the values of these rows."""
        n_blocks = int(np.ceil(8.0 * len(self.valid) * self.n_columns / _BLOCK_BYTES))
        for phases in chunks(self.period, -(-self.period // max(1, min(self.period, n_blocks)))):
            selected = self._select(phases)
            yield phases, selected, np.hstack([read_rows(array, selected.row) for array in self.columns])

    def outlier_limits(self) -> _OutlierLimits:
        """Estimate the limits; infinite at phases with fewer than three periods."""
        shape = self.period, self.n_columns
        median, distance, difference = np.zeros(shape), np.full(shape, np.inf), np.zeros(shape)
        testable = np.zeros(self.period, dtype=np.bool_)
        samples: list[list[Array]] = [[] for _ in range(self.n_columns)]
        quantisation = np.full(self.n_columns, np.inf)
        rounding = _ROUNDING * self._largest_magnitude()
        stride = -(-len(self.valid) // _SCALE_SAMPLES)
        for phases, selected, rows in self.blocks():
            testable[phases], tables = _phase_tables(rows, selected.phase, phases.stop - phases.start)
            for column, table in enumerate(tables if testable[phases].any() else ()):
                differences = np.abs(np.diff(table, axis=1))
                difference[phases, column][testable[phases]] = np.nanmedian(differences, axis=1)
                median[phases, column][testable[phases]] = np.nanmedian(table, axis=1)
                samples[column].append(differences[::stride].ravel())
                quantisation[column] = min(quantisation[column], _quantisation_step(table, float(rounding[column])))
        if testable.any():
            over_all_phases = np.array([np.nanmedian(np.concatenate(parts)) for parts in samples])
            nearby = scipy.ndimage.median_filter(difference[testable], (_SCALE_WINDOW, 1), mode="wrap")
            sigma = _SIGMA_OF_MEDIAN_DIFFERENCE * np.maximum(nearby, over_all_phases)
            step = np.where(np.isfinite(quantisation), quantisation, 0.0)
            distance[testable] = _OUTLIER_LIMIT * np.maximum(sigma, step)
        return _OutlierLimits(median, distance)

    def _largest_magnitude(self) -> Array:
        """Return the largest valid magnitude of each column, shape (n_columns,)."""
        largest = np.zeros(self.n_columns)
        for chunk in chunks(len(self.valid)):
            rows = np.hstack([read_rows(array, chunk) for array in self.columns])[self.valid[chunk]]
            largest = np.fmax(largest, np.fmax.reduce(np.abs(rows), axis=0, initial=0.0))
        return largest

    def _select(self, phases: slice) -> _SelectedRows:
        """Select the valid rows at these phases."""
        selected_rows: list[NDArray[np.intp]] = []
        selected_phases: list[NDArray[np.intp]] = []
        for chunk in chunks(len(self.valid)):
            tick = read_rows(self.play_tick, chunk)
            phase = tick % self.period
            row = np.flatnonzero(self.valid[chunk] & (tick >= 0) & (phase >= phases.start) & (phase < phases.stop))
            selected_rows.append(row + chunk.start)
            selected_phases.append(phase[row] - phases.start)
        return _SelectedRows(np.concatenate(selected_rows), np.concatenate(selected_phases))


def _phase_tables(
    rows: Array, phase: NDArray[np.intp], n_phases: int
) -> tuple[NDArray[np.bool_], Iterator[Array]]:  # fmt: skip
    """Arrange each column by phase and period.

    Returns:
        Phases with at least three periods, shape (n_phases,); and for each column a table with a row for each of these
        phases and a column for each period, nan where missing.
    """
    order = np.argsort(phase, kind="stable")
    count = np.bincount(phase, minlength=n_phases)
    occurrence = np.empty(len(phase), dtype=np.intp)
    occurrence[order] = np.arange(len(phase)) - np.repeat(np.cumsum(count) - count, count)
    testable = count >= _MIN_PERIODS

    def table(column: int) -> Array:
        values = np.full((n_phases, int(count.max(initial=0))), np.nan)
        values[phase, occurrence] = rows[:, column]
        return values[testable]

    return testable, (table(column) for column in range(rows.shape[1]))


def _quantisation_step(table: Array, rounding: float) -> float:
    """Return the smallest change between phases above rounding, an encoder's step; inf if there is none."""
    change = np.abs(np.diff(table, axis=0))
    change = change[np.isfinite(change)]
    return float(change[change > rounding].min(initial=np.inf))
