"""Panels of reports: torques, residuals, motions and cut-offs of one joint."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.drawing import (
    BINS,
    PALETTE,
    draw_torques,
    mark_horizontal,
    mark_time,
    mark_vertical,
    name_vertical,
    stack,
    thin,
)


def torque_panel(time: Array, measured: Array, predicted: Array, unit: str) -> Figure:
    """Measured (wide, pale) under predicted (thin) torque of one joint over time [s]."""
    figure, (axes,) = stack([150.0])
    draw_torques(axes, time, measured, predicted, BINS)
    name_vertical(axes, unit)
    return figure


def residual_panel(time: Array, residual: Array, moving: NDArray[np.bool_], fit_rms: float, unit: str) -> Figure:
    """Residual of one joint over time between lines at two fit rms, and its distribution beside a normal one.

    What counts, where the joint moves, sets the scale; near rest the residual is pale and may leave the frame. The
    normal density has the fit's rms: what the residual would look like if the model held on this motion as it did on
    that of the fit, and all that is left were Gaussian noise.

    Args:
        time: [s], shape (n,).
        residual: measured less predicted torque, NaN in gaps, shape (n,).
        moving: rows that the error counts, none of them in a gap, shape (n,).
        fit_rms: of the residual over the fitted rows.
        unit: of the torque.
    """
    figure, (trace, shape) = stack([110.0, 82.0])
    counted = residual[moving]
    reach = 1.05 * float(max(np.abs(counted).max(initial=0.0), 2.5 * fit_rms)) or 1.0
    trace.plot(*thin(time, residual, BINS), color=PALETTE.rule, linewidth=0.8)
    trace.plot(*thin(time, np.where(moving, residual, np.nan), BINS), color=PALETTE.measured, linewidth=0.6)
    _draw_bounds(trace, -2.0 * fit_rms, 2.0 * fit_rms)
    trace.set_ylim(-reach, reach)
    mark_vertical(trace, most=5, symmetric=True)
    mark_time(trace, time)
    name_vertical(trace, unit)

    if counted.size:
        bins = int(np.clip(np.sqrt(counted.size), 11, 81))
        shape.hist(
            counted, bins=bins, range=(-reach, reach), density=True, histtype="stepfilled",
            color=PALETTE.measured, alpha=0.45,
        )  # fmt: skip
    if fit_rms > 0.0:
        x = np.linspace(-reach, reach, 201)
        shape.plot(x, np.exp(-0.5 * (x / fit_rms) ** 2) / (fit_rms * np.sqrt(2.0 * np.pi)), color=PALETTE.limit, lw=1.0)
    shape.set_xlim(-reach, reach)
    shape.set_yticks([])
    shape.spines["left"].set_visible(False)
    mark_horizontal(shape, unit)
    return figure


def excitation_panel(
    time: Array, motion: tuple[Array, ...], bounds: tuple[tuple[float, float], ...], units: tuple[str, ...]
) -> Figure:
    """Position, velocity and acceleration of one joint over time [s], each between its two limits."""
    figure, stacked = stack([70.0, 70.0, 70.0], gap=30.0)
    for axes, values, (low, high), unit in zip(stacked, motion, bounds, units, strict=True):
        axes.plot(*thin(time, values, BINS), color=PALETTE.measured, linewidth=1.2)
        _draw_bounds(axes, low, high)
        room = 0.06 * (high - low)
        axes.set_ylim(low - room, high + room)
        zero = [0.0] if low + 0.2 * (high - low) < 0.0 < high - 0.2 * (high - low) else []
        marks = [low, *zero, high]
        axes.set_yticks(marks, [f"{mark:.4g}".replace("-", "−") for mark in marks])
        mark_time(axes, time)
        name_vertical(axes, unit)
        axes.tick_params(labelbottom=axes is stacked[-1])
    return figure


def cutoff_panel(tried: Array, chosen: float) -> Figure:
    """Error on time left out by cut-off, over that of the best, and the cut-off that was taken.

    Args:
        tried: cut-off [Hz] and relative error of each, shape (n, 2).
        chosen: the one that was taken [Hz].
    """
    figure, (axes,) = stack([110.0])
    axes.set_xscale("log")
    axes.plot(tried[:, 0], 100.0 * (tried[:, 1] - 1.0), "o-", color=PALETTE.measured, linewidth=1.2, markersize=3.5)
    axes.axvline(chosen, color=PALETTE.limit, linewidth=1.0, dashes=(4, 3), zorder=3)
    axes.set_ylim(-0.06 * axes.get_ylim()[1], axes.get_ylim()[1])
    mark_vertical(axes, most=4)
    places = [f for decade in range(-2, 5) for f in (10.0**decade, 2.0 * 10.0**decade, 5.0 * 10.0**decade)]
    low, high = axes.get_xlim()
    inside = [f for f in places if low <= f <= high]
    labels = [f"{f:g}" for f in inside]
    axes.set_xticks(inside, [*labels[:-1], f"{labels[-1]} Hz"] if labels else labels)
    axes.set_xticks([], minor=True)
    name_vertical(axes, "%")
    return figure


def _draw_bounds(axes: Axes, low: float, high: float) -> None:
    """Draw two dashed lines across."""
    for bound in (low, high):
        axes.axhline(bound, color=PALETTE.limit, linewidth=1.0, dashes=(4, 3), zorder=3)
