"""The panels of friction curves."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from jointbench.identification import Model
from jointbench.results.content import Panel
from jointbench.results.friction_curves import FrictionCurve
from jointbench.results.joint_panels import panel_of, panel_style
from jointbench.results.panels import mark_horizontal, mark_vertical, name_vertical, stack
from jointbench.results.theme import PALETTE
from jointbench.results.units import torque_unit


def friction_panels(model: Model, curves: Sequence[FrictionCurve]) -> tuple[Panel, ...]:
    """Return the friction of each joint that has a curve."""
    robot = model.base.robot
    panels: list[Panel] = []
    with panel_style():
        for curve in curves:
            joint = robot.joint_index(curve.joint)
            unit = torque_unit(robot, joint)
            figure = friction_panel(curve, unit, "rad/s" if unit == "N·m" else "m/s")
            note = curve.law if curve.load is None else f"{curve.law}, at a load of {curve.load:.3g} {unit}"
            name = model.robot.joint_names[joint]
            panels.append(panel_of(figure, f"friction-{joint}", name, note, "friction over speed"))
    return tuple(panels)


def friction_panel(curve: FrictionCurve, unit: str, speed_unit: str) -> Figure:
    """Draw what a run shows, median and middle 80 % of each class of speeds, under the model's curve and its ± 2 σ."""
    figure, (axes,) = stack([150.0])
    axes.axhline(0.0, color=PALETTE.rule, linewidth=0.8)
    low, middle, high = curve.shown
    axes.vlines(curve.classes, low, high, color=PALETTE.measured, linewidth=3.0, alpha=0.35)
    axes.plot(curve.classes, middle, "o", color=PALETTE.measured, markersize=3.2)
    for side in (curve.speed < 0.0, curve.speed > 0.0):
        speed, torque, sigma = (values[side] for values in (curve.speed, curve.torque, curve.sigma))
        if np.isfinite(sigma).all():
            axes.fill_between(
                speed, torque - 2.0 * sigma, torque + 2.0 * sigma, color=PALETTE.predicted, alpha=0.25, linewidth=0
            )
        axes.plot(speed, torque, color=PALETTE.predicted, linewidth=1.4)
    axes.margins(x=0.02, y=0.08)
    mark_vertical(axes, most=5)
    mark_horizontal(axes, speed_unit)
    name_vertical(axes, unit)
    return figure
