"""From recorded samples to clean rows: filters, derivatives, gaps, periods, rest; and the boards' own filters."""

from jointbench.signals.biquad import BiquadCoefficients, Biquads, section_pair
from jointbench.signals.board_filter import BoardFilter
from jointbench.signals.boxcar import boxcar
from jointbench.signals.butterworth import butterworth_sections
from jointbench.signals.cic import Cic
from jointbench.signals.gaps import spans
from jointbench.signals.low_pass import LowPass
from jointbench.signals.motion import Motion, bandwidth, smooth_motion
from jointbench.signals.mt_velocity import MtVelocity
from jointbench.signals.periods import PeriodAverage, average_periods
from jointbench.signals.rest import moving, rest_threshold
from jointbench.signals.tracking_observer import TrackingObserver

__all__ = [
    "BiquadCoefficients",
    "Biquads",
    "BoardFilter",
    "Cic",
    "LowPass",
    "Motion",
    "MtVelocity",
    "PeriodAverage",
    "TrackingObserver",
    "average_periods",
    "bandwidth",
    "boxcar",
    "butterworth_sections",
    "moving",
    "rest_threshold",
    "section_pair",
    "smooth_motion",
    "spans",
]
