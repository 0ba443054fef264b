"""The mean of a motion that was played several times, outliers left out."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from jointbench.robot import Array

OUTLIER = 6.0
"""An outlier lies more than this many robust deviations from the median of its phase: of a billion Gaussian values a
few; and more than so many steps of a value that comes in steps."""

_MEDIAN_DIFFERENCE = 1.4826 / np.sqrt(2.0)
"""Deviation of Gaussian values by the median size of the difference of two."""

_LEAST_PERIODS = 3
"""Of two values that differ, none is the outlier."""

_NEIGHBOURS = 9
"""Phases among which the median scale is taken, so that no outlier makes its own scale."""


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
    values: Array, valid: NDArray[np.bool_], play_tick: NDArray[np.intp], period: int, *, reject_outliers: bool = False
) -> PeriodAverage:
    """Average the periods of a repeated motion; what is missing in one period, or an outlier, comes from the others.

    Outliers are judged phase by phase against the median of at least three periods. What counts as far is the median
    difference of neighbouring periods, about this phase or over all of them, whichever is larger: so phases at which
    periods truly differ, as where friction turns over, are not thinned out.

    Args:
        values: shape (n, n_columns).
        valid: samples to use, shape (n,).
        play_tick: samples since the motion began, negative where it was not playing, shape (n,).
        period: samples in a period.
        reject_outliers: whether to leave them out.

    Returns:
        The mean, its spread, its counts and what was left out.

    Source: Swevers et al., Optimal robot excitation and identification, IEEE T-RA 13(5), 1997; median absolute
    differences as in Rousseeuw & Croux, JASA 88, 1993.
    """
    used = np.flatnonzero(valid & (play_tick >= 0))
    rejected = np.zeros(len(values), dtype=np.bool_)
    far = np.zeros((len(used), values.shape[1]), dtype=np.bool_)
    if reject_outliers:
        far = _outliers(values[used], play_tick[used] % period, period)
        rejected[used] = far.any(axis=1)
        used = used[~rejected[used]]
    phase, rows = play_tick[used] % period, values[used]
    count = np.bincount(phase, minlength=period)
    least = np.maximum(count, 1)
    total = np.column_stack([np.bincount(phase, column, period) for column in rows.T])
    mean = total / least[:, None]
    freedom = int(np.sum(np.maximum(count - 1, 0)))
    squares = np.sum((rows - mean[phase]) ** 2, axis=0)
    spread = np.sqrt(squares / freedom) if freedom else np.full(values.shape[1], np.nan)
    return PeriodAverage(mean, spread, count, far.sum(axis=0), rejected)


def _outliers(rows: Array, phase: NDArray[np.intp], period: int) -> NDArray[np.bool_]:
    """Which values lie too far from the median of their phase, shape of `rows`."""
    order = np.argsort(phase, kind="stable")
    count = np.bincount(phase, minlength=period)
    turn = np.empty(len(phase), dtype=np.intp)
    turn[order] = np.arange(len(phase)) - np.repeat(np.cumsum(count) - count, count)
    far = np.zeros(rows.shape, dtype=np.bool_)
    if count.max(initial=0) < _LEAST_PERIODS:
        return far
    enough = count >= _LEAST_PERIODS
    for column in range(rows.shape[1]):
        table = np.full((period, int(count.max())), np.nan)
        table[phase, turn] = rows[:, column]
        table = table[enough]
        apart = np.abs(np.diff(table, axis=1))
        about = ndimage.median_filter(np.nanmedian(apart, axis=1), _NEIGHBOURS, mode="wrap")
        scale = _MEDIAN_DIFFERENCE * np.maximum(about, np.nanmedian(apart))
        limit = np.full(period, np.inf)
        limit[enough] = OUTLIER * np.maximum(scale, _step(table))
        middle = np.zeros(period)
        middle[enough] = np.nanmedian(table, axis=1)
        far[:, column] = np.abs(rows[:, column] - middle[phase]) > limit[phase]
    return far


def _step(table: Array) -> float:
    """Smallest change from one phase to the next that is more than rounding: the step of an encoder, if it is one."""
    change = np.abs(np.diff(table, axis=0))
    known = change[np.isfinite(change)]
    above = known[known > 1e-9 * known.max(initial=0.0)]
    return float(above.min()) if len(above) else 0.0
