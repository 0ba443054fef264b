"""The mean of a motion that was played several times."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jointbench.robot import Array


@dataclass(frozen=True)
class PeriodAverage:
    """Sample by sample mean over the periods of a repeated motion.

    Attributes:
        mean: shape (n_period, n_columns).
        spread: standard deviation of one period about the mean, per column, shape (n_columns,); nan for one period.
        count: how many periods were valid at each sample, shape (n_period,).
    """

    mean: Array
    spread: Array
    count: NDArray[np.intp]

    @property
    def valid(self) -> NDArray[np.bool_]:
        """Samples at which at least one period was valid, shape (n_period,)."""
        return self.count > 0


def average_periods(values: Array, valid: NDArray[np.bool_], play_tick: NDArray[np.intp], period: int) -> PeriodAverage:
    """Average the periods of a repeated motion; what was missing in one period is taken from the others.

    Args:
        values: shape (n, n_columns).
        valid: samples to use, shape (n,).
        play_tick: samples since the motion began, negative where it was not playing, shape (n,).
        period: samples in a period.

    Returns:
        The mean, its spread and its counts.

    Source: Swevers et al., Optimal robot excitation and identification, IEEE T-RA 13(5), 1997.
    """
    used = valid & (play_tick >= 0)
    phase = play_tick[used] % period
    rows = values[used]
    count = np.bincount(phase, minlength=period)
    least = np.maximum(count, 1)
    total = np.column_stack([np.bincount(phase, column, period) for column in rows.T])
    mean = total / least[:, None]
    freedom = int(np.sum(np.maximum(count - 1, 0)))
    squares = np.sum((rows - mean[phase]) ** 2, axis=0)
    spread = np.sqrt(squares / freedom) if freedom else np.full(values.shape[1], np.nan)
    return PeriodAverage(mean, spread, count)
