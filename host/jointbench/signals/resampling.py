"""Valid spans of a recording, resampling onto an even grid, values between samples, and means over periods."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy  # its submodules load on first use; each takes up to a second
from numpy.typing import NDArray

from jointbench.arrays import Array, chunks, read_rows
from jointbench.errors import SignalError

_REST_SHARE = 0.03
"""Share of a joint's largest speed below which it may be sticking, where the Coulomb law does not hold."""

_MAX_STEP = 1.6
"""Longest step between neighbours [sample periods]; beyond it, a sample is missing between them."""

_GRID_TOLERANCE = 1e-9
"""Distance [sample periods] within which a grid time coincides with a sample: rounding must not lose it."""

_INTERPOLATION_POINTS = 6


def valid_spans(valid: NDArray[np.bool_], min_length: int = 1) -> Iterator[slice]:
    """Iterate over the spans of consecutive valid samples, in order.

    Filters and differences run within a span and never across its ends, so that missing samples are not invented.

    Args:
        valid: shape (n,).
        min_length: shorter spans are left out [samples].

    Yields:
        One slice per span.

    >>> list(valid_spans(np.array([True, True, False, True]), min_length=2))
    [slice(0, 2, None)]
    """
    edges = np.flatnonzero(np.diff(np.concatenate([[False], valid, [False]]).astype(np.int8)))
    for start, stop in zip(edges[::2], edges[1::2], strict=True):
        if stop - start >= min_length:
            yield slice(int(start), int(stop))


def rest_threshold(velocity: Array) -> Array:
    """Return the speed below which each joint counts as at rest: 3 % of its largest speed in this motion.

    Args:
        velocity: [rad/s or m/s], shape (n, n_joints), n >= 1.

    Returns:
        Thresholds, same unit, shape (n_joints,).
    """
    return _REST_SHARE * np.max(np.abs(velocity), axis=0)


def moving_mask(velocity: Array, threshold: Array, guard: int = 0) -> NDArray[np.bool_]:
    """Return the samples at which each joint is faster than its threshold, also within `guard` samples around them.

    Args:
        velocity: [rad/s or m/s], shape (n, n_joints).
        threshold: [rad/s or m/s], shape (n_joints,).
        guard: samples before and after rest that count as rest too, because a filter smears rest so far.

    Returns:
        True where moving, shape (n, n_joints).
    """
    at_rest = np.abs(velocity) <= threshold
    if guard:
        at_rest = scipy.ndimage.maximum_filter1d(at_rest, 2 * guard + 1, axis=0, mode="constant", cval=0)
    return ~np.asarray(at_rest, dtype=np.bool_)


@dataclass(frozen=True, eq=False)
class UniformSamples:
    """Values on an even time grid.

    Attributes:
        time: [s], shape (n,).
        values: nan where not valid, shape (n, n_columns).
        valid: grid times between good samples, shape (n,); the others must not be used.
        sample_period: [s].
        jitter: root mean square deviation of the original steps from the sample period, gaps excluded [s].
        n_gaps: number of gaps between the first and the last grid time.
    """

    time: Array
    values: Array
    valid: NDArray[np.bool_]
    sample_period: float
    jitter: float
    n_gaps: int


def resample(
    time: Array, values: Array, valid: NDArray[np.bool_] | None = None, *, sample_period: float | None = None
) -> UniformSamples:
    """Resample unevenly timed values onto an even grid, by a cubic spline through each span without a gap.

    Neighbours within a span are at most 1.6 sample periods apart. No value is computed across a gap or from an
    invalid sample, and a span of fewer than four samples gives none. Motion up to a tenth of the sample rate keeps
    its shape; noise near the Nyquist frequency is attenuated unevenly, so low-pass the result before judging its
    spectrum.

    Args:
        time: of each sample [s], increasing, shape (n,).
        values: shape (n, n_columns).
        valid: False for samples to ignore, shape (n,); None: use all. Rows with nan or inf are ignored in any case.
        sample_period: of the grid [s]; None: the median step.

    Returns:
        The grid from the first to the last valid sample.

    Raises:
        SignalError: fewer than four good samples, times that do not rise, or no span that is regular enough.
    """
    good = np.isfinite(values).all(axis=1) & np.isfinite(time)
    if valid is not None:
        good &= valid
    good_time, good_values = time[good], values[good]
    if len(good_time) < 4:
        raise SignalError(f"{len(good_time)} good samples are too few to resample; at least 4 are needed")
    steps = np.diff(good_time)
    if steps.min() <= 0.0:
        row = int(np.argmin(steps))
        raise SignalError(
            f"times must rise: {good_time[row + 1]:.9g} s follows {good_time[row]:.9g} s; sort or drop such rows"
        )
    period = float(np.median(steps)) if sample_period is None else sample_period
    contiguous = steps <= _MAX_STEP * period
    n_grid = 1 + int(np.floor((good_time[-1] - good_time[0]) / period + _GRID_TOLERANCE))
    grid = good_time[0] + period * np.arange(n_grid, dtype=np.float64)
    resampled = np.full((n_grid, good_values.shape[1]), np.nan)
    covered = np.zeros(n_grid, dtype=np.bool_)
    tolerance = _GRID_TOLERANCE * period
    for steps_span in valid_spans(contiguous, min_length=3):
        span = slice(steps_span.start, steps_span.stop + 1)  # n steps join n + 1 samples
        first, last = good_time[span][0], good_time[span][-1]
        inside = (grid >= first - tolerance) & (grid <= last + tolerance)
        spline = scipy.interpolate.CubicSpline(good_time[span], good_values[span], axis=0)
        resampled[inside] = spline(np.clip(grid[inside], first, last))
        covered |= inside
    if not covered.any():
        raise SignalError(
            f"no four samples in a row lie within {_MAX_STEP:g} sample periods of {period:.6g} s of each other; "
            f"the times are too irregular to resample, record with a steadier clock or give a longer sample_period"
        )
    jitter = float(np.sqrt(np.mean((steps[contiguous] - period) ** 2)))
    return UniformSamples(grid, resampled, covered, period, jitter, n_gaps=sum(1 for _ in valid_spans(~covered)))


def interpolate_samples(values: Array, index: Array) -> Array:
    """Interpolate evenly spaced samples at fractional indices, by the polynomial through the six nearest samples.

    At whole indices the samples are returned bit for bit. Half way between two samples, a sine of ten samples per cycle
    keeps 99.97 % of its amplitude, one of five samples per cycle 98.5 %.

    Args:
        values: evenly sampled without gaps, shape (n, ...), n >= 6.
        index: fractional sample index, 0 to n - 1, shape (m,).

    Returns:
        Interpolated values, shape (m, ...).

    Raises:
        SignalError: too few samples, or an index outside of them.

    Source: Lagrange fractional delay, Laakso et al., IEEE Signal Processing Magazine 13(1), 1996.
    """
    n = len(values)
    if n < _INTERPOLATION_POINTS:
        raise SignalError(f"{n} samples are too few to interpolate; at least {_INTERPOLATION_POINTS} are needed")
    if len(index) and not (index.min() >= 0.0 and index.max() <= n - 1):
        raise SignalError(
            f"sample indices from {index.min():g} to {index.max():g} must lie within the samples, 0 to {n - 1}; "
            f"shift or shorten the range, nothing is known beyond the samples"
        )
    first = np.clip(np.floor(index).astype(np.intp) - (_INTERPOLATION_POINTS // 2 - 1), 0, n - _INTERPOLATION_POINTS)
    result = np.zeros((len(index), *values.shape[1:]))
    for k, weight in enumerate(lagrange_weights(index - first, _INTERPOLATION_POINTS)):
        result += weight.reshape(-1, *(1,) * (values.ndim - 1)) * values[first + k]
    return result


def lagrange_weights(position: Array, n_points: int) -> Array:
    """Return the Lagrange basis polynomials on the nodes 0, 1 ... n_points - 1.

    w_k(x) = prod_{j != k} (x - j) / (k - j), so that sum_k w_k(x) y_k is the polynomial through the n_points samples y.

    Args:
        position: x, shape (m,).
        n_points: number of nodes.

    Returns:
        Weights, shape (n_points, m); exactly 0 and 1 at the nodes.
    """
    weights = np.ones((n_points, len(position)))
    for k in range(n_points):
        for j in range(n_points):
            if j != k:
                weights[k] *= (position - j) / (k - j)
    return weights


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
