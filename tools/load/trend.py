"""Whether something grows over hours: a straight line, and how well its slope is known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

_WARM_UP = 0.1  # share of the time in which buffers and caches fill
_SIDES = 0.975  # a 95 % interval, both ends of it


@dataclass(frozen=True)
class Trend:
    """A straight line through values over hours.

    Attributes:
        slope, half_width: per hour, and to both ends of its 95 % interval; NaN where there are too few values.
        least, most: of all values, those of the warm-up included.
        count: of values behind the line.
    """

    slope: float
    half_width: float
    least: float
    most: float
    count: int

    @property
    def growth(self) -> float:
        """The most it may grow per hour: the upper end of the slope's interval."""
        return self.slope + self.half_width

    @property
    def decline(self) -> float:
        """The most it may fall per hour: the lower end of the slope's interval, turned round."""
        return self.half_width - self.slope

    def to_dict(self) -> dict[str, float]:
        """The trend as plain values."""
        return {
            "slope_per_hour": self.slope,
            "half_width": self.half_width,
            "least": self.least,
            "most": self.most,
            "count": self.count,
        }


def trend(hours: Sequence[float], values: Sequence[float]) -> Trend:
    """The line of least squares through all but the first tenth of the time.

    Memory goes up in steps and stays: neighbours are alike, and say less than as many values by themselves. The
    interval is widened by sqrt((1 + r) / (1 - r)), r being how alike the residuals of neighbours are.
    """
    time, value = np.asarray(hours, dtype=float), np.asarray(values, dtype=float)
    least, most = (float(value.min()), float(value.max())) if len(value) else (math.nan, math.nan)
    used = time >= _WARM_UP * time.max(initial=0.0)
    time, value = time[used], value[used]
    count = len(time)
    if count < 4:
        return Trend(math.nan, math.nan, least, most, count)
    centred = time - time.mean()
    spread = float(centred @ centred)
    slope = float(centred @ value) / spread
    left = value - value.mean() - slope * centred
    power = float(left @ left)
    alike = max(0.0, float(left[1:] @ left[:-1]) / power) if power else 0.0
    sigma = math.sqrt(power / (count - 2) / spread * (1.0 + alike) / (1.0 - alike))
    return Trend(slope, float(stats.t.ppf(_SIDES, count - 2)) * sigma, least, most, count)
