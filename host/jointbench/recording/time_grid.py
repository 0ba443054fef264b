"""The even grid of times that samples stand on, and what a log puts on its places."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.errors import ImportedDataError, SignalError
from jointbench.signals import resample

_MOST_SPARSE, _FEW = 100, 100_000
"""Rows of an even grid for each of a log, and rows that are few whatever the log has."""


@dataclass(frozen=True, eq=False)
class TimeGrid:
    """An even grid of times.

    Attributes:
        start: time of its first place [s].
        sample_period: [s].
        length: number of places.
        places: where each row of the log stands on the grid, shape (rows,).
    """

    start: float
    sample_period: float
    length: int
    places: NDArray[np.intp]

    @property
    def time(self) -> Array:
        """Times of all places [s], shape (length,)."""
        return self.start + self.sample_period * np.arange(self.length, dtype=np.float64)

    def place(self, values: Array) -> Array:
        """Values of the rows, shape (rows, n), on the grid, nan where no row stands, shape (length, n)."""
        placed = np.full((self.length, values.shape[1]), np.nan)
        placed[self.places] = values
        return placed

    def place_known(self, known: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which places hold a row that is known, of a mask of the rows."""
        placed = np.zeros(self.length, dtype=np.bool_)
        placed[self.places] = known
        return placed


@dataclass(frozen=True, eq=False)
class UnevenTimes:
    """Rows at uneven times, and the even grid that their values are interpolated onto.

    Attributes:
        rows: time of each row [s], rising.
        known: rows that values may come from, shape (rows,).
        time: of the grid's places [s], shape (length,).
        covered: places with known rows around them, shape (length,).
        sample_period: [s].
        jitter: root mean square of what steps between rows differ from the sample period, gaps apart [s].
        gaps: stretches of the grid that no known row is near.
    """

    rows: Array
    known: NDArray[np.bool_]
    time: Array
    covered: NDArray[np.bool_]
    sample_period: float
    jitter: float
    gaps: int

    def place(self, values: Array) -> Array:
        """Values of the rows, shape (rows, n), interpolated onto the grid, nan in gaps, shape (length, n)."""
        return resample(self.rows, values, self.known, sample_period=self.sample_period).values

    def place_known(self, known: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which places values can be interpolated to; `known` must be that of the grid."""
        assert np.array_equal(known, self.known)
        return self.covered


def uneven_times(
    time: Array,
    lines: NDArray[np.intp],
    file: str,
    known: NDArray[np.bool_],
    *,
    sample_period: float | None,
    counted: str = "line",
) -> UnevenTimes:
    """Make an even grid for rows at uneven times.

    Args:
        time: of each row [s].
        lines: of the file, for messages; `counted` says what they are.
        file: its name, for messages.
        known: rows that values may come from.
        sample_period: of the grid [s]; None: the median spacing.

    Raises:
        ImportedDataError: times that repeat or go back, or are nowhere regular enough to interpolate.
    """
    _check_rising(time, lines, file, counted)
    _check_span(time, lines, file, counted, sample_period)
    try:
        made = resample(time, time[:, None], known, sample_period=sample_period)
    except SignalError as error:
        raise ImportedDataError(f"{file}: {error}") from error
    return UnevenTimes(time, known, made.time, made.valid, made.sample_period, made.jitter, made.n_gaps)


def even_grid(rows: int, first_row: int, sample_period: float) -> TimeGrid:
    """Place rows of a log that has no times: row k of the file is at k sample periods."""
    return TimeGrid(first_row * sample_period, sample_period, rows, np.arange(rows))


def grid_of_times(
    time: Array,
    lines: NDArray[np.intp],
    file: str,
    *,
    sample_period: float | None,
    tolerance: float,
    allow_gaps: bool,
    counted: str = "line",
) -> TimeGrid:
    """Place the rows of a log by their times.

    Nothing is interpolated: times must be evenly spaced up to the tolerance, but for gaps of whole sample periods.

    Args:
        time: of each row [s], at least two.
        lines: of the file, for messages; `counted` says what they are.
        file: its name, for messages.
        sample_period: [s]; None: the median spacing.
        tolerance: largest deviation from a whole number of sample periods between neighbours, as a share of one.
        allow_gaps: whether rows may be missing.

    Raises:
        ImportedDataError: times that repeat or go back, are unevenly spaced, or leave a gap that is not allowed.
    """
    _check_rising(time, lines, file, counted)
    steps = np.diff(time)
    period = float(np.median(steps)) if sample_period is None else sample_period
    periods = np.maximum(np.round(steps / period), 1.0)
    _check_span(time, lines, file, counted, sample_period)
    _check_jitter(time, steps - periods * period, lines, file, counted, period, tolerance)
    gaps = np.flatnonzero(periods > 1.0)
    if len(gaps) and not allow_gaps:
        row = int(gaps[np.argmax(periods[gaps])])
        missing = int(np.sum(periods[gaps] - 1.0))
        raise ImportedDataError(
            f"{file}: {missing} rows are missing in {len(gaps)} gap{'s' if len(gaps) > 1 else ''}; the longest lasts "
            f"{steps[row]:.6g} s from {time[row]:.9g} s ({counted} {lines[row]}) at one row each {period:.6g} s; set "
            f"allow_gaps = true to import them marked as missing, or take rows on one side with first_row and end_row"
        )
    places = np.concatenate([[0], np.cumsum(periods)]).astype(np.intp)
    if sample_period is None:
        period = float((time[-1] - time[0]) / places[-1])  # the median of rounded times is itself rounded
    return TimeGrid(float(time[0]), period, int(places[-1]) + 1, places)


def _check_span(time: Array, lines: NDArray[np.intp], file: str, counted: str, sample_period: float | None) -> None:
    """Refuse times of which an even grid would have many times more rows than the log: a clock was set meanwhile."""
    steps = np.diff(time)
    period = float(np.median(steps)) if sample_period is None else sample_period
    if (time[-1] - time[0]) / period <= _MOST_SPARSE * len(time) + _FEW:
        return
    row = int(np.argmax(steps))
    raise ImportedDataError(
        f"{file}: its {len(time)} rows are spread over {time[-1] - time[0]:.6g} s, which would be "
        f"{(time[-1] - time[0]) / period:.3g} rows each {period:.6g} s; time jumps by {steps[row]:.6g} s after "
        f"{counted} {lines[row]}: correct the clock, or take rows on one side with first_row and end_row"
    )


def _check_rising(time: Array, lines: NDArray[np.intp], file: str, counted: str) -> None:
    steps = np.diff(time)
    back = np.flatnonzero(steps <= 0.0)
    if not len(back):
        return
    row, repeats = int(back[0]), int(np.sum(steps == 0.0))
    what = "is there twice" if steps[row] == 0.0 else f"comes after {time[row]:.9g} s"
    count = f"; {repeats} of {len(time)} rows repeat the time before" if repeats > 1 else ""
    raise ImportedDataError(
        f"{file}, {counted} {lines[row + 1]}: time {time[row + 1]:.9g} s {what}{count}; times must rise from row to "
        f"row: remove the row, or give sample_rate_Hz instead of [time] where rows are evenly spaced in truth"
    )


def _check_jitter(
    time: Array,
    deviation: Array,
    lines: NDArray[np.intp],
    file: str,
    counted: str,
    period: float,
    tolerance: float,
) -> None:
    row = int(np.argmax(np.abs(deviation)))
    share = abs(deviation[row]) / period
    if share > tolerance:
        uneven = int(np.sum(np.abs(deviation) > tolerance * period))
        raise ImportedDataError(
            f"{file}: times are uneven: {uneven} of {len(deviation)} steps are off a sample period of {period:.6g} s "
            f"by more than {tolerance:.0%} of it, most at {counted} {lines[row + 1]} (t = {time[row + 1]:.9g} s, "
            f"{share:.0%}); nothing is interpolated unasked: set resample = true in [time] to have it done, or raise "
            f"time_tolerance if the sampling was even and only the time stamps jitter"
        )
