"""The one picture that says what a model is worth: every joint's torque, measured and predicted."""

import io
import math

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from jointbench.identification import Model, Validation
from jointbench.results.digits import percent
from jointbench.results.joint_panels import torque_series
from jointbench.results.panels import draw_torques
from jointbench.results.theme import PALETTE, house_style
from jointbench.results.units import torque_unit

COLUMNS = 3
WIDTH, ROW_HEIGHT, HEAD, FOOT = 10.0, 2.2, 0.5, 0.22
"""Inches; shown 900 pixels wide, ten-point type is twelve and a half pixels high."""
BINS = 700
"""Groups of samples along the time axis: about one per pixel of the file."""
RESOLUTION = 200
"""Dots per inch: 2000 pixels across."""


def torques_png(model: Model, validation: Validation) -> bytes:
    """Return the picture as a PNG file; the same model gives the same bytes."""
    buffer = io.BytesIO()
    with house_style():
        torques_figure(model, validation).savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()


def torques_figure(model: Model, validation: Validation) -> Figure:
    """Draw a grid of joints, each with its unit and its relative error in its heading."""
    time, measured, predicted = torque_series(validation)
    names = validation.joint_names
    columns = min(COLUMNS, len(names))
    rows = math.ceil(len(names) / columns)
    height = HEAD + rows * ROW_HEIGHT + FOOT
    figure = Figure(figsize=(WIDTH, height), dpi=RESOLUTION, facecolor="white")
    FigureCanvasAgg(figure)
    top, bottom = 1.0 - (HEAD + 0.34) / height, (0.3 + FOOT) / height
    grid = figure.add_gridspec(rows, columns, left=0.05, right=0.98, top=top, bottom=bottom, wspace=0.2, hspace=0.42)
    for joint, name in enumerate(names):
        axes = figure.add_subplot(grid[joint // columns, joint % columns])
        draw_torques(axes, time, measured[:, joint], predicted[:, joint], BINS)
        axes.set_title(f"{name}  [{torque_unit(model.robot, joint)}]", loc="left", fontsize=10.5, pad=8)
        error = f"error {percent(float(validation.relative[joint]))}"
        axes.set_title(error, loc="right", fontsize=10, color=PALETTE.muted, pad=8)
    line = 1.0 - 0.3 / height
    figure.text(0.05, line, f"{model.robot.name}: joint torque, verification motion", fontsize=11.5, va="center")
    note = "error: rms of the difference over rms of the torque, where the joint moves"
    figure.text(0.98, 0.12 / height, note, fontsize=8.5, color=PALETTE.muted, ha="right", va="center")
    pair = [
        Line2D([], [], color=PALETTE.measured, linewidth=3.6, alpha=0.4, label="measured"),
        Line2D([], [], color=PALETTE.predicted, linewidth=1.4, label="predicted"),
    ]
    anchor = (0.985, line)
    figure.legend(handles=pair, loc="center right", bbox_to_anchor=anchor, ncols=2, frameon=False, fontsize=10)
    return figure
