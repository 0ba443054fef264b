"""Pictures for a page or a paper: a model's torques, residuals of missions, and zero-moment points of a foot."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence

import numpy as np
import scipy  # its submodules load on first use; each takes up to a second
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.drawing import PALETTE, draw_torques, house_style, mark_time, mark_vertical, thin
from jointbench.identification import Model, Validation
from jointbench.identification.residual import Mission, Residual, gain_of
from jointbench.identification.zero_moment_point.stance import Stance
from jointbench.model.model_columns import torque_unit
from jointbench.results.content import fixed, percent
from jointbench.results.evidence import PressureModel
from jointbench.results.joint_panels import torque_series

COLUMNS = 3
WIDTH, ROW_HEIGHT, HEAD, FOOT = 10.0, 2.2, 0.5, 0.22
"""Inches; shown 900 pixels wide, ten-point type is twelve and a half pixels high."""
BINS = 700
"""Groups of samples along the time axis: about one per pixel of the file."""
RESOLUTION = 200
"""Dots per inch: 2000 pixels across."""

MISSION_ROW_HEIGHT, MISSION_HEAD, MISSION_FOOT = 1.6, 0.85, 0.5
"""Inches."""
MISSION_BINS = 500
"""As `BINS`, of a panel."""

STANCE_BINS = 600
"""As `BINS`."""
_SOLE_HEIGHT, _TIME_HEIGHT, _BOTTOM_HEIGHT, _HEAD, _FOOT = 2.9, 1.25, 2.45, 0.95, 0.5
_LEFT, _RIGHT = 0.075, 0.98
_OTHERS = (PALETTE.muted, "#009e73", PALETTE.limit, "#cc79a7")
"""Of models beside the one that counts; green and pink are those of Okabe & Ito."""
_MM = 1e3
_SHOWN_S = 20.0
"""How much of the paths is drawn on the soles: more of them is a tangle."""


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
    height = MISSION_HEAD + robot.n_joints * MISSION_ROW_HEIGHT + MISSION_FOOT
    figure = Figure(figsize=(WIDTH, height), dpi=RESOLUTION, facecolor="white")
    FigureCanvasAgg(figure)
    top, bottom = 1.0 - (MISSION_HEAD + 0.3) / height, MISSION_FOOT / height
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
                figure.text(where.x0, 1.0 - (MISSION_HEAD - 0.1) / height, label, fontsize=10, va="center")
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
    draw_torques(axes, time, error, state, MISSION_BINS)
    low, high = axes.get_ylim()
    axes.plot(*thin(time, polynomial, MISSION_BINS), color=PALETTE.limit, linewidth=1.2, linestyle="--")
    # What leaves the panel is off by more than the whole error: the panel stays that of the measured one.
    axes.set_ylim(low, high)


def stance_png(stance: Stance, measured: Array, models: Sequence[PressureModel], reference: PressureModel) -> bytes:
    """Return the picture as a PNG file; the same stance gives the same bytes."""
    buffer = io.BytesIO()
    with house_style():
        stance_figure(stance, measured, models, reference).savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()


def stance_figure(stance: Stance, measured: Array, models: Sequence[PressureModel], reference: PressureModel) -> Figure:
    """Draw a sole for each model, x and y with their errors over time, mean distances, and parameters.

    Args:
        stance: what the support foot felt.
        measured: zero-moment points, corrected by what is known of the sensors [m], shape (n, 2).
        models: at most five, that which counts last.
        reference: whose parameters the others are drawn beside.
    """
    time, foot = stance.time - stance.time[0], stance.robot.foot(stance.foot)
    height = _HEAD + _SOLE_HEIGHT + 3.0 * _TIME_HEIGHT + _BOTTOM_HEIGHT + _FOOT
    figure = Figure(figsize=(WIDTH, height), dpi=RESOLUTION, facecolor="white")
    FigureCanvasAgg(figure)
    colours = [*_OTHERS[: len(models) - 1], PALETTE.predicted]

    def rows(top: float, bottom: float) -> dict[str, float]:
        """Rectangle of a block of panels, by its distances from the upper edge in inches."""
        return {"left": _LEFT, "right": _RIGHT, "top": 1.0 - top / height, "bottom": 1.0 - bottom / height}

    top = _HEAD
    soles = figure.add_gridspec(1, len(models), wspace=0.12, **rows(top, top + _SOLE_HEIGHT - 0.35))
    shown = time <= _SHOWN_S
    corners = np.array(foot.corners)[:, :2]
    seen = np.vstack([corners, measured, *(model.points[shown] for model in models)])
    for column, (model, colour) in enumerate(zip(models, colours, strict=True)):
        axes = figure.add_subplot(soles[0, column])
        _draw_sole(axes, corners, measured, shown, model.points, colour)
        _frame_sole(axes, seen)
        off = _MM * model.distance
        axes.set_title(f"{model.label}: {fixed(off, 1 if off > 1.0 else 2)} mm", loc="center", fontsize=10, pad=5)
    note = f"from above, forward up; paths of the first {_SHOWN_S:g} s, and where the foot felt the rest"
    figure.text(_LEFT, 1.0 - 0.58 / height, note, fontsize=8.5, color=PALETTE.muted, va="center")
    top += _SOLE_HEIGHT
    over_time = figure.add_gridspec(
        4, 1, height_ratios=(1.5, 1.0, 1.5, 1.0), hspace=0.45, **rows(top + 0.1, top + 3.0 * _TIME_HEIGHT - 0.3)
    )
    for axis, (name, way) in enumerate((("x", "forward"), ("y", "to the left"))):
        axes, errors = (figure.add_subplot(over_time[2 * axis + row, 0]) for row in (0, 1))
        _draw_track(axes, time, measured[:, axis], models[-1].points[:, axis])
        axes.set_title(f"{name}, {way}  [mm]", loc="left", fontsize=10, pad=3)
        for model, colour in zip(models, colours, strict=True):
            if model.sigmas:
                _draw_error(errors, time, model.points[:, axis] - measured[:, axis], colour)
        errors.set_title(
            f"error of {name}, of what was estimated  [mm]", loc="left", fontsize=9, color=PALETTE.muted, pad=2
        )
        for panel in (axes, errors):
            mark_time(panel, time)
            if panel is not errors or axis == 0:
                panel.set_xticklabels([])
    top += 3.0 * _TIME_HEIGHT
    within = rows(top + 0.35, height - _FOOT) | {"left": 0.14}
    below = figure.add_gridspec(1, 2, width_ratios=(1.0, 1.5), wspace=0.25, **within)
    _draw_distances(figure.add_subplot(below[0, 0]), models, colours)
    _draw_parameters(figure.add_subplot(below[0, 1]), models, colours, reference)
    _label(figure, f"{stance.robot.name} on {stance.foot}", height, models, colours)
    return figure


def _label(figure: Figure, title: str, height: float, models: Sequence[PressureModel], colours: Sequence[str]) -> None:
    line = 1.0 - 0.3 / height
    figure.text(_LEFT, line, title, fontsize=11.5, va="center")
    handles = [
        Line2D([], [], color=PALETTE.measured, linewidth=3.6, alpha=0.4, label="measured"),
        *(
            Line2D([], [], color=colour, linewidth=1.8, label=model.label)
            for model, colour in zip(models, colours, strict=True)
        ),
    ]
    figure.legend(
        handles=handles,
        loc="center right",
        bbox_to_anchor=(0.985, line),
        ncols=len(handles),
        frameon=False,
        fontsize=9.5,
        columnspacing=1.2,
        handlelength=1.4,
    )


def _draw_sole(
    axes: Axes, corners: Array, measured: Array, shown: NDArray[np.bool_], predicted: Array, colour: str
) -> None:
    """The sole from above, forward up, with the paths of both points; left of the robot is left of the picture."""
    sideways, forward = _MM * corners[:, 1], _MM * corners[:, 0]
    axes.fill(sideways, forward, facecolor=PALETTE.rule, alpha=0.18, linewidth=0)
    axes.fill(sideways, forward, fill=False, edgecolor=PALETTE.rule, linewidth=1.0)
    axes.plot(sideways, forward, "o", color=PALETTE.muted, markersize=4)
    around = _MM * measured[scipy.spatial.ConvexHull(measured).vertices]
    axes.fill(around[:, 1], around[:, 0], facecolor=PALETTE.measured, alpha=0.1, linewidth=0)
    axes.plot(_MM * measured[shown, 1], _MM * measured[shown, 0], color=PALETTE.measured, linewidth=2.6, alpha=0.4)
    axes.plot(_MM * predicted[shown, 1], _MM * predicted[shown, 0], color=colour, linewidth=0.9)


def _frame_sole(axes: Axes, seen: Array) -> None:
    """The same piece of ground in every panel, without axes: the sole is the scale."""
    axes.set_aspect("equal")
    (back, right), (front, left) = _MM * seen.min(axis=0) - 6.0, _MM * seen.max(axis=0) + 6.0
    axes.set_ylim(back, front)
    axes.set_xlim(left, right)
    axes.set_axis_off()


def _draw_track(axes: Axes, time: Array, measured: Array, predicted: Array) -> None:
    axes.plot(*thin(time, _MM * measured, STANCE_BINS), color=PALETTE.measured, linewidth=3.2, alpha=0.4)
    axes.plot(*thin(time, _MM * predicted, STANCE_BINS), color=PALETTE.predicted, linewidth=1.0)
    axes.margins(y=0.08)
    mark_vertical(axes, most=4)


def _draw_error(axes: Axes, time: Array, error: Array, colour: str) -> None:
    axes.plot(*thin(time, _MM * error, STANCE_BINS), color=colour, linewidth=0.8)
    axes.margins(y=0.1)
    mark_vertical(axes, most=3)


def _draw_distances(axes: Axes, models: Sequence[PressureModel], colours: Sequence[str]) -> None:
    """A dot for each model on a scale of decades; a stroke: without correction, a ring: what is printed."""
    rows = np.arange(len(models), 0, -1)
    every = [_MM * each for model in models for each in (model.distance, model.uncorrected, model.printed) if each]
    low, high = 0.6 * min(every, default=0.1), max(every, default=100.0)
    axes.set_xscale("log")
    for row, model, colour in zip(rows, models, colours, strict=True):
        said = fixed(_MM * model.distance, 2)
        axes.plot([low, max(low, _MM * model.distance)], [row, row], color=colour, linewidth=1.0, alpha=0.5)
        axes.plot(max(low, _MM * model.distance), row, "o", color=colour, markersize=8)
        if model.uncorrected:
            axes.plot(_MM * model.uncorrected, row, "|", color=colour, markersize=14, markeredgewidth=2.0)
            said += f"  | {fixed(_MM * model.uncorrected, 2)}"
        if model.printed:
            axes.plot(_MM * model.printed, row, "o", color=PALETTE.ink, markersize=9, fillstyle="none")
            said += f"  \u25cb {fixed(_MM * model.printed, 1)}"
        axes.annotate(said, (1.0, row + 0.3), xycoords=("axes fraction", "data"), ha="right", fontsize=9)
    axes.set_yticks(rows, [model.label for model in models])
    axes.set_ylim(0.5, len(models) + 0.7)
    axes.set_xlim(low, 2.0 * high)
    axes.grid(visible=False, axis="y")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_title("mean distance from measured  [mm]", loc="left", fontsize=10, pad=5)
    note = "| sensors as they were calibrated   \u25cb printed in the paper"
    axes.text(0.0, -0.135, note, transform=axes.transAxes, fontsize=8.5, color=PALETTE.muted, va="top")


def _draw_parameters(
    axes: Axes, models: Sequence[PressureModel], colours: Sequence[str], reference: PressureModel
) -> None:
    """Draw each parameter's distance from the reference's, in per cent of that, ± 2 σ; longer bars leave the panel."""
    names = list(reference.parameters)
    shown = [(model, colour) for model, colour in zip(models, colours, strict=True) if model.parameters]
    places, farthest = np.arange(len(names), dtype=np.float64), 0.0
    for which, (model, colour) in enumerate(shown):
        offset = 0.16 * (which - 0.5 * (len(shown) - 1))
        for place, name in zip(places, names, strict=True):
            if name not in model.parameters:
                continue
            scale = 100.0 / abs(reference.parameters[name])
            value = scale * (model.parameters[name] - reference.parameters[name])
            sigma = model.sigmas.get(name, 0.0)
            reach = 2.0 * scale * sigma if np.isfinite(sigma) else 0.0
            if reach > 0.0:
                axes.plot(2 * [place + offset], [value - reach, value + reach], color=colour, linewidth=1.6)
            axes.plot(place + offset, value, "o", color=colour, markersize=4)
            farthest = max(farthest, abs(value) + (reach if model is models[-1] else 0.0))
    axes.axhline(0.0, color=PALETTE.ink, linewidth=0.8)
    farthest = 1.15 * farthest or 1.0
    axes.set_ylim(-farthest, farthest)
    axes.set_xticks(places, [name.replace("_", "\n", 1) for name in names])
    axes.tick_params(axis="x", length=0)
    axes.set_title(f"parameters ± 2σ, off {reference.label}  [%]", loc="left", fontsize=10, pad=5)
    mark_vertical(axes, most=5)
