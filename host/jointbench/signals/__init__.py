"""From recorded samples to clean rows: filters, derivatives, gaps, periods, rest; and the boards' own filters."""

from jointbench.signals.between_samples import at_places
from jointbench.signals.biquad import BiquadCoefficients, Biquads, section_pair
from jointbench.signals.board_filter import BoardFilter
from jointbench.signals.boxcar import boxcar
from jointbench.signals.butterworth import butterworth_sections
from jointbench.signals.cic import Cic
from jointbench.signals.cubic_smoother import cubic_smooth, cubic_smoother_gain
from jointbench.signals.fourier_motion import FourierMotion, fourier_motion
from jointbench.signals.gaps import spans
from jointbench.signals.inertial_filter import InertialFilter
from jointbench.signals.low_pass import LowPass
from jointbench.signals.motion import Motion, bandwidth, smooth_motion
from jointbench.signals.mt_velocity import MtVelocity
from jointbench.signals.periods import PeriodAverage, average_periods
from jointbench.signals.resample import Resampled, resample
from jointbench.signals.rest import moving, rest_threshold
from jointbench.signals.tracking_observer import TrackingObserver

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
