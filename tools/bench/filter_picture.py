"""The picture of docs/filters.md: `python -m tools.bench.filter_picture docs/filters.png` draws it anew."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.drawing import PALETTE, house_style
from jointbench.signals import (
    BoardFilter,
    TrackingObserver,
    butterworth_sections,
    dequantise_biquad,
    moving_average_response,
)

TICK_S = 1e-3
LOWEST_DB = -100.0
WIDTH, HEIGHT, RESOLUTION = 10.0, 3.6, 150


def draw(path: Path) -> None:
    """Write the picture: the path of current and torque on the left, both velocities on the right."""
    with house_style():
        figure = Figure(figsize=(WIDTH, HEIGHT), dpi=RESOLUTION, facecolor="white")
        FigureCanvasAgg(figure)
        left, right = figure.subplots(1, 2, gridspec_kw={"left": 0.07, "right": 0.98, "bottom": 0.15, "wspace": 0.18})
        _draw_path(left)
        _draw_velocities(right)
        for axes in (left, right):
            axes.xaxis.set_major_formatter("{x:g}")
            axes.set_xlabel("frequency [Hz]", color=PALETTE.muted)
            axes.set_ylabel("gain [dB]", color=PALETTE.muted)
        figure.savefig(path, metadata={"Software": None})


def _draw_path(axes: Axes) -> None:
    frequency = np.geomspace(1.0, 8000.0, 6000)
    wide = BoardFilter(sections=(), cic_order=1, window=TICK_S, sample_period=TICK_S)
    steep = BoardFilter(
        sections=tuple(dequantise_biquad(each) for each in butterworth_sections(4, 50.0, 1.0 / TICK_S)),
        cic_order=2, window=TICK_S, sample_period=TICK_S,
    )  # fmt: skip
    triangle = BoardFilter(sections=(), cic_order=2, window=TICK_S, sample_period=TICK_S)
    _line(axes, frequency, wide.response(frequency), PALETTE.measured, "mean of a tick")
    _line(axes, frequency, triangle.response(frequency), PALETTE.predicted, "triangle over two ticks")
    _line(axes, frequency, steep.response(frequency), PALETTE.ink, "triangle, then order 4 at 50 Hz")
    axes.axvline(0.5 / TICK_S, color=PALETTE.limit, linewidth=0.8)
    axes.text(0.53 / TICK_S, 2.0, "half the tick rate", color=PALETTE.limit, fontsize=8.0)
    axes.set_ylim(LOWEST_DB, 8.0)
    axes.set_title("current and torque, from time to samples", loc="left", fontsize=10.0)
    axes.legend(loc="lower left", frameon=False, fontsize=8.0)


def _draw_velocities(axes: Axes) -> None:
    frequency = np.geomspace(1.0, 0.5 / TICK_S, 2000)
    for alpha, beta, colour in ((128, 512, PALETTE.measured), (64, 100, PALETTE.predicted)):
        response = TrackingObserver(alpha, beta).response(frequency, TICK_S)
        _line(axes, frequency, response, colour, f"tracking observer, alpha {alpha}, beta {beta}")
    _line(axes, frequency, moving_average_response(frequency, TICK_S), PALETTE.ink, "M/T counting, edges a tick apart")
    axes.set_ylim(-40.0, 8.0)
    axes.set_title("velocity, from the motor's to the board's", loc="left", fontsize=10.0)
    axes.legend(loc="lower left", frameon=False, fontsize=8.0)


def _line(axes: Axes, frequency: Array, response: NDArray[np.complex128], colour: str, label: str) -> None:
    gain = 20.0 * np.log10(np.maximum(np.abs(response), 1e-9))
    axes.semilogx(frequency, gain, color=colour, linewidth=1.3, label=label)


if __name__ == "__main__":
    draw(Path(sys.argv[1]))
