"""The picture that says where a residual holds: each joint's torque error on its own mission and on others."""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from jointbench.identification.residual import Mission, Residual, gain_of
from jointbench.results.digits import percent
from jointbench.results.panels import draw_torques
from jointbench.results.theme import PALETTE, house_style
from jointbench.results.thinning import thin
from jointbench.results.units import torque_unit

WIDTH, ROW_HEIGHT, HEAD, FOOT = 10.0, 1.6, 0.85, 0.5
"""Inches."""
BINS = 500
"""Groups of samples along the time axis of a panel: about one per pixel of the file."""
RESOLUTION = 200
"""Dots per inch: 2000 pixels across."""


def residual_png(missions: Sequence[Mission], state: Residual, polynomial: Residual) -> bytes:
    """Return the picture as a PNG file; the same residuals give the same bytes."""
    buffer = io.BytesIO()
    with house_style():
        residual_figure(missions, state, polynomial).savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()


def residual_figure(missions: Sequence[Mission], state: Residual, polynomial: Residual) -> Figure:
    """Draw a row for each joint and a column for each mission, gains in the headings.

    Args:
        missions: the residuals' own first.
        state, polynomial: a residual of the state, and one of time.
    """
    robot = missions[0].robot
    height = HEAD + robot.n_joints * ROW_HEIGHT + FOOT
    figure = Figure(figsize=(WIDTH, height), dpi=RESOLUTION, facecolor="white")
    FigureCanvasAgg(figure)
    top, bottom = 1.0 - (HEAD + 0.3) / height, FOOT / height
    grid = figure.add_gridspec(
        robot.n_joints, len(missions), left=0.06, right=0.98, top=top, bottom=bottom, wspace=0.14, hspace=0.62
    )
    for column, mission in enumerate(missions):
        by_state, by_time = gain_of(state, mission).gain, gain_of(polynomial, mission).gain
        torques = state.along(mission), polynomial.along(mission)
        for joint, name in enumerate(robot.joint_names):
            axes = figure.add_subplot(grid[joint, column])
            _draw(axes, mission, joint, *(torque[:, joint] for torque in torques))
            if column == 0:
                axes.set_title(f"{name}  [{torque_unit(robot, joint)}]", loc="left", fontsize=10, pad=5)
            gains = f"gain {percent(float(by_state[joint]))}, of time {percent(float(by_time[joint]))}"
            axes.set_title(gains, loc="right", fontsize=9, color=PALETTE.muted, pad=5)
            if joint == 0:
                where = axes.get_position()
                label = f"mission {mission.name}" + (", fitted" if column == 0 else ", unseen")
                figure.text(where.x0, 1.0 - (HEAD - 0.1) / height, label, fontsize=10, va="center")
    line = 1.0 - 0.3 / height
    figure.text(0.06, line, f"{robot.name}: torque that the model lacks", fontsize=11.5, va="center")
    handles = [
        Line2D([], [], color=PALETTE.measured, linewidth=3.6, alpha=0.4, label="measured"),
        Line2D([], [], color=PALETTE.predicted, linewidth=1.4, label="residual of the state"),
        Line2D([], [], color=PALETTE.limit, linewidth=1.4, linestyle="--", label="of time"),
    ]
    figure.legend(
        handles=handles, loc="center right", bbox_to_anchor=(0.985, line), ncols=3, frameon=False, fontsize=10
    )
    return figure


def _draw(axes: Axes, mission: Mission, joint: int, by_state: np.ndarray, by_time: np.ndarray) -> None:
    rows = np.flatnonzero(mission.complete)
    part = slice(int(rows[0]), int(rows[-1]) + 1)
    time, present = mission.time[part], mission.compared[part, joint]
    error, state, polynomial = (
        np.where(present, values[part], np.nan) for values in (mission.error[:, joint], by_state, by_time)
    )
    draw_torques(axes, time, error, state, BINS)
    low, high = axes.get_ylim()
    axes.plot(*thin(time, polynomial, BINS), color=PALETTE.limit, linewidth=1.2, linestyle="--")
    # What leaves the panel is off by more than the whole error: the panel stays that of the measured one.
    axes.set_ylim(low, high)
