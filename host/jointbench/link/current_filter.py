"""The low-pass that each board runs on its current and torque samples, as its registers have it."""

from __future__ import annotations

from typing import cast

from jointbench.link.client import RegisterName
from jointbench.signals import butterworth_sections

COEFFICIENTS = ("b0", "b1", "b2", "a1", "a2")


def butterworth_registers(cutoff_hz: float, tick_period: float, order: int = 2) -> dict[RegisterName, int]:
    """Butterworth low-pass as the registers filter.1.b0 ... filter.2.a2, Q27; its gain at rest is exactly one.

    Args:
        cutoff_hz: where the gain is -3 dB [Hz].
        tick_period: [s].
        order: 2 (the second section passes all through) or 4.

    Raises:
        SignalError: another order, or the cut-off is not between 0.1 % and 45 % of the sampling rate.
    """
    sections = butterworth_sections(order, cutoff_hz, 1.0 / tick_period)
    return {
        cast(RegisterName, f"filter.{number}.{name}"): value
        for number, section in enumerate(sections, 1)
        for name, value in zip(COEFFICIENTS, section, strict=True)
    }
