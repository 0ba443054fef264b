"""The panels of residual spectra: each joint's residual beside its torque, and the level that noise would have."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from jointbench.arrays import Array
from jointbench.identification import Model, Validation
from jointbench.results.content import Panel
from jointbench.results.digits import percent
from jointbench.results.joint_panels import panel_of, panel_style
from jointbench.results.panels import name_vertical, stack
from jointbench.results.spectrum import residual_spectra
from jointbench.results.theme import PALETTE
from jointbench.results.units import torque_unit

_DEPTH = 1e-5
"""What a panel shows at least: five decades below the torque's peak are noise of rounding."""
_STEPS = ((1.0, 2.0, 5.0), (1.0, 3.0), (1.0,))
"""Marks of a decade, the most first."""


def spectrum_panels(model: Model, validation: Validation) -> tuple[Panel, ...]:
    """Return the spectrum of each joint's residual."""
    spectra = residual_spectra(validation)
    band = float(spectra.frequency[-1])
    panels: list[Panel] = []
    with panel_style():
        for joint, name in enumerate(validation.joint_names):
            level = float(model.fit_rms[joint]) / np.sqrt(band)
            torque, residual = spectra.torque[:, joint], spectra.residual[:, joint]
            figure = spectrum_panel(spectra.frequency, torque, residual, level, torque_unit(model.robot, joint))
            share = percent(float(validation.whiteness.predictable[joint]))
            note = f"{validation.whiteness.words[joint]}, {share} follows from the rows before"
            panels.append(panel_of(figure, f"spectrum-{joint}", name, note, "spectrum of the residual"))
    return tuple(panels)


def spectrum_panel(frequency: Array, torque: Array, residual: Array, level: float, unit: str) -> Figure:
    """Draw both densities over frequency [Hz], each axis logarithmic, and the level of white noise.

    Args:
        frequency: above zero, ascending [Hz], shape (n,).
        torque, residual: root of the power density [unit/√Hz], nan or zero where there is none, shape (n,).
        level: of white noise as large as the residual of the fit.
        unit: of the torque.
    """
    figure, (axes,) = stack([130.0], left=64.0)  # its unit is a long one
    for values, colour, width in ((torque, PALETTE.rule, 2.4), (residual, PALETTE.measured, 1.2)):
        axes.plot(frequency, np.where(values > 0.0, values, np.nan), color=colour, linewidth=width)
    if level > 0.0:
        axes.axhline(level, color=PALETTE.limit, linewidth=1.0, dashes=(4, 3))
    seen = np.concatenate([torque, residual, [level]])
    seen = seen[np.isfinite(seen) & (seen > 0.0)]
    axes.set_xscale("log")
    axes.set_xlim(frequency[0], frequency[-1])
    if seen.size:
        axes.set_yscale("log")
        high = 1.6 * float(seen.max())
        axes.set_ylim(max(0.6 * float(seen.min()), _DEPTH * high), high)
        _mark(axes, "y", 5, "")
    else:
        axes.set_yticks([])
    _mark(axes, "x", 6, "Hz")
    name_vertical(axes, f"{unit}/√Hz")
    return figure


def _mark(axes: Axes, which: str, most: int, unit: str) -> None:
    """Put at most so many round values along a logarithmic axis, the last with its unit."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    low, high = axes.get_xlim() if which == "x" else axes.get_ylim()
    values = next((found for steps in _STEPS if len(found := _round(low, high, steps)) <= most), _decades(low, high))
    labels = [f"{value:g}".replace("-", "−") for value in values]
    axis.set_ticks(values, [*labels[:-1], f"{labels[-1]} {unit}".rstrip()] if labels else labels)
    axis.set_minor_locator(NullLocator())


def _round(low: float, high: float, steps: tuple[float, ...], every: int = 1) -> list[float]:
    """These steps of each decade, or of every second one, between two values."""
    decades = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    values = [step * 10.0**decade for decade in decades if decade % every == 0 for step in steps]
    return [value for value in values if low <= value <= high]


def _decades(low: float, high: float) -> list[float]:
    """Every second decade, for ranges that have many."""
    return _round(low, high, (1.0,), every=2)
