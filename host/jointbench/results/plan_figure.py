"""The figure of a plan: quantities between their limits, views of the arm, and the sole where it stands on a foot."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from jointbench.drawing import PALETTE, mark_time, mark_vertical, thin
from jointbench.excitation import motion_at, sole_half_lengths
from jointbench.results.arm_views import SIDE, TOP, ArmPoses, draw_view
from jointbench.results.content import percent
from jointbench.results.plan_evidence import PlanEvidence, SupportEvidence, Trace, plain

_MM = 1e3

WIDTH, RESOLUTION = 13.0, 130
"""Inches and dots an inch: 1690 pixels across."""

_HEAD, _ROW, _FOOT = 1.5, 0.92, 4.6
"""Inches: of the words on top, of each joint, and of what stands below the joints."""

_BINS = 300
_POSES = 400
_MOST_WEAK = 12
_SHORT = 4
"""Letters of a joint's name that there is room for beside its row."""


def draw_sole(axes: Axes, evidence: SupportEvidence) -> None:
    """The sole from above, forward up and left to the left, with the margin and the predicted zero-moment point."""
    sole, points = evidence.balance.foot, _MM * evidence.balance.points
    forward, sideways = _MM * sole.points.T
    axes.fill(sideways, forward, facecolor=PALETTE.rule, alpha=0.18, linewidth=0)
    axes.fill(sideways, forward, fill=False, edgecolor=PALETTE.rule, linewidth=1.0)
    axes.plot(sideways, forward, "o", color=PALETTE.muted, markersize=4)
    room = _MM * (sole_half_lengths(sole) - evidence.support.margin)
    inside = Rectangle((-room[1], -room[0]), 2.0 * room[1], 2.0 * room[0], fill=False, edgecolor=PALETTE.limit)
    inside.set_linestyle((0, (4, 3)))
    axes.add_patch(inside)
    axes.plot(points[:, 1], points[:, 0], color=PALETTE.measured, linewidth=0.5)
    axes.set_aspect("equal", adjustable="datalim")
    axes.set_ylim(forward.min() - 8.0, forward.max() + 8.0)
    axes.invert_xaxis()
    axes.grid(visible=False)
    axes.tick_params(labelsize=8)
    axes.set_xticks([sideways.max(), 0.0, sideways.min()])
    axes.set_yticks([forward.min(), 0.0, forward.max()])
    axes.set_xlabel("left, mm of the sole's middle", color=PALETTE.muted, fontsize=9, labelpad=2)


def draw_foreseen(axes: Axes, evidence: SupportEvidence) -> None:
    """A bar for each parameter: the least σ of it, over its value."""
    places, shares = np.arange(len(evidence.names)), 100.0 * evidence.relative_sigma
    axes.barh(places, shares, color=PALETTE.predicted, alpha=0.75, height=0.22)
    axes.set_xscale("log")
    axes.set_xlim(0.3 * shares.min(), 3.0 * shares.max())
    axes.set_ylim(len(places) - 0.6, -0.8)
    for place, name, value, sigma in zip(places, evidence.names, evidence.values, evidence.sigma, strict=True):
        axes.annotate(
            f"{name} {_sized(name, value)} ± {_sized(name, sigma)}", (0.0, float(place)), xytext=(6, 4),
            xycoords=("axes fraction", "data"), textcoords="offset points", fontsize=8, va="bottom",
        )  # fmt: skip
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.minorticks_off()
    axes.tick_params(axis="x", labelsize=8)
    axes.set_xlabel("least σ, % of the parameter", color=PALETTE.muted, fontsize=9, labelpad=2)


def _sized(name: str, value: float) -> str:
    """A length in millimetres, a mass in kilograms."""
    return f"{_MM * value:.3g} mm" if name.startswith("lc") else f"{value:.3g} kg"


def plan_figure(evidence: PlanEvidence) -> Figure:
    """Draw a row for each joint, and below them what the motion tells, and the arm.

    That is the singular values and the parameters that it excites poorly, or the sole that a robot stands on and what
    the forces under it tell.
    """
    joints = evidence.robot.n_joints
    height = _HEAD + _ROW * joints + _FOOT
    figure = Figure(figsize=(WIDTH, height), dpi=RESOLUTION, facecolor="white")
    FigureCanvasAgg(figure)
    _write_head(figure, evidence, height)
    top, split = 1.0 - _HEAD / height, (_FOOT - 0.1) / height
    rows = figure.add_gridspec(
        joints,
        len(evidence.traces),
        left=0.085,
        right=0.985,
        top=top,
        bottom=split,
        wspace=0.05 * len(evidence.traces),
        hspace=0.34,
    )
    for column, trace in enumerate(evidence.traces):
        for joint in range(joints):
            axes = figure.add_subplot(rows[joint, column])
            _draw_trace(axes, evidence, trace, joint)
            if joint == 0:
                axes.set_title(f"{trace.name} [{trace.unit}]", loc="left", fontsize=10.5, pad=16)
            if column == 0:
                _name_row(axes, evidence.robot.joint_names, joint)
            axes.tick_params(labelbottom=joint == joints - 1)
    below = figure.add_gridspec(
        1, 4, left=0.055, right=0.985, top=(_FOOT - 0.95) / height, bottom=0.68 / height, wspace=0.26,
        width_ratios=(1.0, 1.5, 1.6, 1.6),
    )  # fmt: skip
    panels = figure.add_subplot(below[0]), figure.add_subplot(below[1])
    if evidence.support is None:
        _draw_singular_values(panels[0], evidence)
        _draw_weak(panels[1], evidence)
    else:
        draw_sole(panels[0], evidence.support)
        _title(panels[0], "zero-moment point")
        draw_foreseen(panels[1], evidence.support)
        _title(panels[1], "what the foot tells")
    poses = _poses(evidence)
    for place, view, name in ((2, SIDE, "from the side"), (3, TOP, "from above")):
        axes = figure.add_subplot(below[place])
        axes.grid(visible=False)
        draw_view(axes, poses, view)
        _title(axes, name)
    figure.text(
        0.985, 0.12 / height, _cut(_key(poses), 150), fontsize=8.5, color=PALETTE.muted, ha="right", va="center"
    )
    return figure


def _write_head(figure: Figure, evidence: PlanEvidence, height: float) -> None:
    """Whose plan, of which family, and whether it is feasible."""
    plan = evidence.excitation
    lines = [f"{plan.basis.description}; {_numbers(evidence)}", evidence.answer, *_nearest(evidence)]
    figure.text(0.02, 1.0 - 0.26 / height, f"{plan.robot_name}: planned excitation", fontsize=14, va="center")
    for place, line in enumerate(lines):
        y = 1.0 - (0.53 + 0.22 * place) / height
        kept = evidence.certificate.feasible or place != 1
        figure.text(0.02, y, _cut(line, 165), fontsize=10, va="center", color=PALETTE.muted if kept else "#b00020")


def _numbers(evidence: PlanEvidence) -> str:
    if evidence.support is not None:
        distance = 1e3 * evidence.support.support.distance
        return (
            f"the predicted zero-moment point stays {distance:.0f} mm from the edge of {evidence.support.support.foot}"
        )
    plan = evidence.excitation
    scaled = f"{evidence.scaled_condition_number:.1f} with columns of one length"
    return f"condition number {plan.condition_number:.1f}, {scaled}"


def _name_row(axes: Axes, names: Sequence[str], joint: int) -> None:
    """The joint's name to the left of its row; long ones are turned, and small enough not to run into the next."""
    longest = max(map(len, names))
    turned = longest > _SHORT
    axes.annotate(
        names[joint], (0.0, 0.5), xytext=(-52, 0), xycoords="axes fraction", textcoords="offset points", ha="center",
        va="center", fontsize=min(10.5, 100.0 / longest) if turned else 10.5, rotation=90 if turned else 0,
    )  # fmt: skip


def _nearest(evidence: PlanEvidence) -> list[str]:
    """The limit in space that it comes nearest to, where there are any, and what of space was not watched."""
    nearest = [
        f"nearest in space: {name}, {1e3 * room:.0f} mm to spare"
        for name, room in list(evidence.excitation.distances.items())[:1]
    ]
    unchecked = evidence.excitation.not_checked
    return ["; ".join([*nearest, unchecked])] if unchecked else nearest


def _draw_trace(axes: Axes, evidence: PlanEvidence, trace: Trace, joint: int) -> None:
    """One quantity of one joint between its limits, with what it uses of them."""
    if not trace.says(joint):
        axes.set_yticks([])
        axes.annotate("–", (0.5, 0.5), xycoords="axes fraction", ha="center", va="center", color=PALETTE.muted)
        mark_time(axes, evidence.time)
        axes.tick_params(labelsize=8)
        return
    low, high = trace.limits[joint].tolist()
    values = trace.values[:, joint]
    axes.plot(*thin(evidence.time, values, _BINS), color=PALETTE.measured, linewidth=1.0)
    if trace.either_way[joint] > 0.0:
        more = float(trace.either_way[joint])
        axes.fill_between(evidence.time, values - more, values + more, color=PALETTE.measured, alpha=0.2, linewidth=0)
    if np.isfinite(high):
        for limit in (low, high):
            axes.axhline(limit, color=PALETTE.limit, linewidth=1.0, dashes=(4, 3))
        room = 0.06 * (high - low)
        axes.set_ylim(min(low, float(trace.lowest[joint])) - room, max(high, float(trace.highest[joint])) + room)
        zero = [0.0] if low + 0.2 * (high - low) < 0.0 < high - 0.2 * (high - low) else []
        marks = [low, *zero, high]
        axes.set_yticks(marks, [plain(mark) for mark in marks])
    else:
        mark_vertical(axes, most=3, symmetric=True)
    axes.annotate(
        _use(trace, joint), (1.0, 1.0), xytext=(0, 2), xycoords="axes fraction", textcoords="offset points",
        ha="right", va="bottom", fontsize=8, color=PALETTE.muted,
    )  # fmt: skip
    mark_time(axes, evidence.time)
    axes.tick_params(labelsize=8)


def _use(trace: Trace, joint: int) -> str:
    unit, peak = trace.units[joint], plain(float(trace.peak[joint]), 3)
    if not np.isfinite(trace.limits[joint, 1]):
        return f"{peak} {unit}, no limit"
    share = percent(float(trace.share[joint]))
    if trace.name == "position":
        low, high = plain(float(trace.lowest[joint])), plain(float(trace.highest[joint]))
        return f"{low} … {high}, {share} visited"
    return f"{peak} of {plain(float(trace.limits[joint, 1]))} {unit}, {share}"


def _draw_singular_values(axes: Axes, evidence: PlanEvidence) -> None:
    """Both spectra, each over its largest value."""
    for values, colour, name in zip(
        evidence.singular_values, (PALETTE.measured, PALETTE.predicted), ("raw", "columns of one length"), strict=True
    ):
        axes.semilogy(np.arange(1, len(values) + 1), values / values[0], ".", color=colour, markersize=5, label=name)
    _title(axes, "singular values")
    axes.yaxis.set_major_locator(LogLocator(numticks=8))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))  # the style has no mathematical type
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("number; each over the largest", color=PALETTE.muted, fontsize=9, labelpad=2)
    axes.legend(loc="lower left", frameon=False, fontsize=8, handletextpad=0.1, borderaxespad=0.1)
    axes.tick_params(labelsize=8)


def _draw_weak(axes: Axes, evidence: PlanEvidence) -> None:
    """A bar for each poorly excited parameter, the worst on top, under what it is hard to tell from."""
    weak = evidence.weak
    relative = weak.judged_by == "relative_sigma"
    _title(axes, f"poorly excited: {len(weak.parameters)} of {weak.n_parameters} parameters")
    shown = weak.parameters[:_MOST_WEAK]
    values = [100.0 * (parameter.relative_sigma or 0.0) if relative else parameter.inflation for parameter in shown]
    limit = 100.0 * weak.limit if relative else weak.limit
    axes.barh(np.arange(len(shown)), values, color=PALETTE.predicted, alpha=0.75, height=0.22)
    axes.axvline(limit, color=PALETTE.limit, linewidth=1.0, dashes=(4, 3))
    axes.set_xscale("log")
    axes.set_xlim(0.5 * limit, max([20.0 * limit, *(2.0 * value for value in values)]))
    axes.set_ylim(_MOST_WEAK - 0.6, -0.8)
    for place, parameter in enumerate(shown):
        text = (
            f"{parameter.name}, like {' and '.join(parameter.confused_with)}"
            if parameter.confused_with
            else parameter.name
        )
        axes.annotate(
            _cut(text, 38), (0.0, place), xytext=(6, 4), xycoords=("axes fraction", "data"),
            textcoords="offset points", fontsize=8, va="bottom",
        )  # fmt: skip
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="x", labelsize=8)
    axes.xaxis.set_minor_locator(NullLocator())
    marks = [limit * 10.0**power for power in range(9) if limit * 10.0**power < axes.get_xlim()[1]]
    axes.set_xticks(marks, [f"{mark:g}" for mark in marks])
    what = "σ, % of the parameter" if relative else "σ over that if all others were known"
    axes.set_xlabel(what, color=PALETTE.muted, fontsize=9, labelpad=2)
    if not shown:
        axes.text(0.5, 0.5, "none", transform=axes.transAxes, ha="center", va="center", color=PALETTE.muted)
    elif len(weak.parameters) > len(shown):
        axes.set_xlabel(
            f"{what}; {len(weak.parameters) - len(shown)} more", color=PALETTE.muted, fontsize=9, labelpad=2
        )


def _poses(evidence: PlanEvidence) -> ArmPoses:
    plan = evidence.excitation
    time = np.linspace(0.0, plan.duration, _POSES + 1)
    return ArmPoses.of(evidence.robot, motion_at(plan.basis, plan.home, plan.weights, time)[0], evidence.workspace)


def _key(poses: ArmPoses) -> str:
    """Return what the colours of the views mean."""
    ways = ", ".join(dict.fromkeys(name for name, _ in poses.points))
    words = ["black: home", "grey: other poses", f"orange: way of {ways}"]
    if poses.robot.capsules:
        words.append("pale: all that the capsules pass through")
    if poses.workspace is not None and poses.workspace.points:
        words.append("dashed: faces of boxes")
    return " · ".join(words)


def _title(axes: Axes, text: str) -> None:
    axes.set_title(text, loc="left", fontsize=10.5, pad=8)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
