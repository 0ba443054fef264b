"""The low-pass that each board runs on its current samples, as the whole numbers the board computes with."""

from __future__ import annotations

from typing import cast

from scipy import signal

from jointbench.errors import TrajectoryError
from jointbench.link.client import RegisterName
from jointbench.robot import Array

ONE = 1 << 14


def butterworth_registers(cutoff_hz: float, tick_period: float) -> dict[RegisterName, int]:
    """Second-order Butterworth low-pass as the registers filter.b0 ... filter.a2, Q14.

    b1 takes the rounding of the others, so that the gain at rest is exactly one.

    Args:
        cutoff_hz: where the gain is -3 dB [Hz].
        tick_period: [s].

    Raises:
        TrajectoryError: the cut-off is not between 1 Hz and 45 % of the sampling rate.
    """
    highest = 0.45 / tick_period
    if not 1.0 <= cutoff_hz <= highest:
        raise TrajectoryError(f"current filter: cut-off {cutoff_hz:g} Hz must be from 1 to {highest:g} Hz")
    b, a = cast(tuple[Array, Array], signal.butter(2, cutoff_hz, fs=1.0 / tick_period))
    a1, a2 = round(float(a[1]) * ONE), round(float(a[2]) * ONE)
    b0 = b2 = round(float(b[0]) * ONE)
    b1 = ONE + a1 + a2 - b0 - b2
    return {"filter.b0": b0, "filter.b1": b1, "filter.b2": b2, "filter.a1": a1, "filter.a2": a2}
