"""From recorded samples to clean rows: filters, derivatives, gaps, periods, rest; and the boards' own filters."""

from jointbench.signals.board_filter import BiquadCoefficients, BoardFilter, butterworth_sections, section_pair
from jointbench.signals.differentiation import FourierMotion, Motion, bandwidth, fourier_motion, smooth_motion
from jointbench.signals.encoder_velocity import MtVelocity, TrackingObserver
from jointbench.signals.filters import InertialFilter, LowPass, cubic_smooth, cubic_smoother_gain
from jointbench.signals.fixed_point_filters import Biquads, Cic, boxcar
from jointbench.signals.period_averaging import PeriodAverage, average_periods
from jointbench.signals.resampling import Resampled, at_places, resample
from jointbench.signals.segmentation import moving, rest_threshold, spans

__all__ = [
    "BiquadCoefficients",
    "Biquads",
    "BoardFilter",
    "Cic",
    "FourierMotion",
    "InertialFilter",
    "LowPass",
    "Motion",
    "MtVelocity",
    "PeriodAverage",
    "Resampled",
    "TrackingObserver",
    "at_places",
    "average_periods",
    "bandwidth",
    "boxcar",
    "butterworth_sections",
    "cubic_smooth",
    "cubic_smoother_gain",
    "fourier_motion",
    "moving",
    "resample",
    "rest_threshold",
    "section_pair",
    "smooth_motion",
    "spans",
]
