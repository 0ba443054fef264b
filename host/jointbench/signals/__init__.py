"""From recorded samples to clean rows: filters, derivatives, gaps, periods, rest."""

from jointbench.signals.board_filter import BoardFilter
from jointbench.signals.gaps import spans
from jointbench.signals.low_pass import LowPass
from jointbench.signals.motion import Motion, bandwidth, smooth_motion
from jointbench.signals.periods import PeriodAverage, average_periods
from jointbench.signals.rest import moving, rest_threshold

__all__ = [
    "BoardFilter",
    "LowPass",
    "Motion",
    "PeriodAverage",
    "average_periods",
    "bandwidth",
    "moving",
    "rest_threshold",
    "smooth_motion",
    "spans",
]
