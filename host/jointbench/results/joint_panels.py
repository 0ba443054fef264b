"""The panels of a report: each joint's torque, residual and excitation as pictures on the page."""

import html
from contextlib import AbstractContextManager

import numpy as np
from matplotlib.figure import Figure

from jointbench.arrays import Array
from jointbench.excitation import Excitation
from jointbench.identification import Model, Validation
from jointbench.results.content import Panel
from jointbench.results.digits import column, percent
from jointbench.results.panels import TEXT, excitation_panel, residual_panel, torque_panel
from jointbench.results.theme import house_style, inline_svg
from jointbench.results.units import torque_unit
from jointbench.robot import Robot

_INSTANTS = 1001
"""Points of a planned motion played once: more than a panel has pixels."""


def shown_rows(validation: Validation) -> slice:
    """Rows from the first to the last complete one."""
    rows = np.flatnonzero(validation.complete)
    return slice(int(rows[0]), int(rows[-1]) + 1)


def torque_series(validation: Validation) -> tuple[Array, Array, Array]:
    """Time [s], measured and predicted torque of the rows that are shown, NaN in the gaps between them."""
    part = shown_rows(validation)
    present = validation.complete[part, None]
    measured = np.where(present, validation.measured[part], np.nan)
    predicted = np.where(present, validation.predicted[part], np.nan)
    return validation.time[part], measured, predicted


def torque_panels(model: Model, validation: Validation) -> tuple[Panel, ...]:
    """Return measured and predicted torque of each joint."""
    time, measured, predicted = torque_series(validation)
    panels: list[Panel] = []
    with panel_style():
        for joint, name in enumerate(validation.joint_names):
            figure = torque_panel(time, measured[:, joint], predicted[:, joint], torque_unit(model.robot, joint))
            note = f"error {percent(float(validation.relative[joint]))}"
            panels.append(panel_of(figure, f"torque-{joint}", name, note, "measured and predicted torque"))
    return tuple(panels)


def residual_panels(model: Model, validation: Validation) -> tuple[Panel, ...]:
    """Return the residual of each joint: all complete rows over time, those away from rest as a distribution."""
    time, measured, predicted = torque_series(validation)
    moving = validation.moving[shown_rows(validation)]
    panels: list[Panel] = []
    with panel_style():
        for joint, name in enumerate(validation.joint_names):
            unit = torque_unit(model.robot, joint)
            residual = measured[:, joint] - predicted[:, joint]
            figure = residual_panel(time, residual, moving[:, joint], float(model.fit_rms[joint]), unit)
            here, there = column([float(validation.rms[joint]), float(model.fit_rms[joint])])
            note = f"rms {here}, in the fit {there} {unit}"
            panels.append(panel_of(figure, f"residual-{joint}", name, note, "residual torque"))
    return tuple(panels)


def excitation_panels(robot: Robot, excitation: Excitation) -> tuple[Panel, ...]:
    """Return the planned motion of each joint, played once, between the robot's limits."""
    time = np.linspace(0.0, excitation.duration, _INSTANTS)
    motion = excitation.evaluate(time)
    panels: list[Panel] = []
    with panel_style():
        for joint, margins in enumerate(excitation.margins):
            turns = robot.independent_joints[joint].kind == "revolute"
            scale = float(np.rad2deg(1.0)) if turns else 1.0
            units = ("°", "°/s", "°/s²") if turns else ("m", "m/s", "m/s²")
            low, high = robot.position_limits[joint]
            speed, acceleration = robot.velocity_limits[joint], robot.acceleration_limits[joint]
            bounds = ((low, high), (-speed, speed), (-acceleration, acceleration))
            figure = excitation_panel(
                time,
                tuple(scale * values[:, joint] for values in motion),
                tuple((scale * float(below), scale * float(above)) for below, above in bounds),
                units,
            )
            note = f"least margin {percent(margins.smallest)}"
            panels.append(panel_of(figure, f"excitation-{joint}", margins.joint, note, "planned motion in its limits"))
    return tuple(panels)


def panel_style() -> AbstractContextManager[None]:
    """The house's style with letters that are large enough on a phone."""
    return house_style(TEXT)


def panel_of(figure: Figure, identity: str, joint: str, note: str, what: str) -> Panel:
    """Return a figure as a panel, with all that its heading says for those who cannot see it."""
    return Panel(joint, note, inline_svg(figure, identity, html.escape(f"{joint}: {what}; {note}")))
