"""Panels of a model's report, one per joint: torques, residuals and their spectra, friction, excitation."""

import dataclasses
import html
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np
import scipy  # its submodules load on first use; each takes up to a second
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.drawing import (
    PALETTE,
    TEXT,
    house_style,
    inline_svg,
    mark_horizontal,
    mark_vertical,
    name_vertical,
    stack,
)
from jointbench.excitation import Excitation
from jointbench.identification import Model, Validation
from jointbench.identification.friction.joint_laws import friction_data, joints_with_friction
from jointbench.identification.friction.law_search import friction_left
from jointbench.identification.observations import observe
from jointbench.model import Robot
from jointbench.model.model_columns import torque_unit
from jointbench.recording import Run
from jointbench.results.content import Panel, column, percent
from jointbench.results.panels import cutoff_panel, excitation_panel, residual_panel, torque_panel

_INSTANTS = 1001
"""Points of a planned motion played once: more than a panel has pixels."""

_SEGMENTS = 4
"""Of a record without overlap: more would say less of slow motion, fewer would leave the line ragged."""
_SHORTEST, _LONGEST = 64, 1024
"""Rows of a segment."""

_DEPTH = 1e-5
"""What a panel shows at least: five decades below the torque's peak are noise of rounding."""
_STEPS = ((1.0, 2.0, 5.0), (1.0, 3.0), (1.0,))
"""Marks of a decade, the most first."""

_CLASSES = 40
"""Of equal width from the fastest speed one way to the fastest the other."""
_FEWEST = 5
"""Rows of a class below which its spread says nothing."""
_POINTS = 60
"""Of a curve in each direction."""
_PLAIN = "Coulomb and viscous"


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
            panels.append(
                panel_of(figure, f"excitation-{joint}", margins.joint, note, "planned motion within its limits")
            )
    return tuple(panels)


def cutoff_panels(model: Model) -> tuple[Panel, ...]:
    """Return the error of each cut-off that was tried on time left out, of each run that chose one by it."""
    panels: list[Panel] = []
    with panel_style():
        choices = zip(model.figures.get("cutoffs_tried", ()), model.figures.get("cutoffs_chosen", ()), strict=True)
        for number, (tried, chosen) in enumerate(choices):
            figure = cutoff_panel(np.array(tried, dtype=np.float64), float(chosen))
            name = "cut-off" if number == 0 else f"cut-off, run {number + 1}"
            note = f"{chosen:.3g} Hz is taken"
            panels.append(panel_of(figure, f"cutoff-{number}", name, note, "error on unseen quarters of the time"))
    return tuple(panels)


def panel_style() -> AbstractContextManager[None]:
    """The house's style with letters that are large enough on a phone."""
    return house_style(TEXT)


def panel_of(figure: Figure, identity: str, joint: str, note: str, what: str) -> Panel:
    """Return a figure as a panel, with all that its heading says for those who cannot see it."""
    return Panel(joint, note, inline_svg(figure, identity, html.escape(f"{joint}: {what}; {note}")))


@dataclass(frozen=True, eq=False)
class Spectra:
    """Root of each joint's power density; nan where no row counts.

    Attributes:
        frequency: [Hz], without zero, up to half the rate of the rows, shape (n,).
        torque: of the measured torque's changes, all complete rows [N·m/√Hz or N/√Hz], shape (n, n_joints).
        residual: of measured less predicted torque where the joint moves, of that shape and unit.
    """

    frequency: Array
    torque: Array
    residual: Array


def residual_spectra(validation: Validation) -> Spectra:
    """Return the spectra of a validation by Welch's mean over half-overlapping segments.

    As for the whiteness, rows that do not count are taken for zero; the density is divided by the share of the others.

    Source: Welch, IEEE Trans. Audio and Electroacoustics 15(2), 1967.
    """
    part = shown_rows(validation)
    complete, moving = validation.complete[part], validation.moving[part]
    measured, predicted = validation.measured[part], validation.predicted[part]
    rate = 1.0 / float(np.median(np.diff(validation.time[part])))
    middle = measured[complete].mean(axis=0)
    frequency, torque = _density(measured - middle, np.broadcast_to(complete[:, None], moving.shape), rate)
    _, residual = _density(measured - predicted, moving, rate)
    return Spectra(frequency, torque, residual)


def _density(values: Array, counted: NDArray[np.bool_], rate: float) -> tuple[Array, Array]:
    """Frequencies and root of power density of the rows that count, both without frequency zero."""
    rows = len(values)
    segment = min(rows, max(_SHORTEST, min(_LONGEST, rows // _SEGMENTS)))
    frequency, power = scipy.signal.welch(np.where(counted, values, 0.0), rate, nperseg=segment, detrend=False, axis=0)
    share = counted.mean(axis=0)
    power = np.divide(power, share, out=np.full_like(power, np.nan), where=share > 0.0)
    return frequency[1:], np.sqrt(power[1:])


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
    values = next((ticks for steps in _STEPS if len(ticks := _round(low, high, steps)) <= most), _decades(low, high))
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


@dataclass(frozen=True, eq=False)
class FrictionCurve:
    """Friction and offset of one joint over its speed.

    Attributes:
        joint: its name.
        law: that the model has.
        load: that the curve is drawn for [N·m or N]; None where friction does not depend on it.
        classes: median speed of the rows of each class [rad/s or m/s], shape (n,).
        shown: lowest tenth, median and highest tenth of what is left there of the torque [N·m or N], shape (3, n).
        speed: of the curve, from one direction to the other [rad/s or m/s], shape (m,).
        torque: the model's [N·m or N], shape (m,).
        sigma: standard deviation of that, nan where a parameter is not told, shape (m,).
    """

    joint: str
    law: str
    load: float | None
    classes: Array
    shown: Array
    speed: Array
    torque: Array
    sigma: Array


def friction_curves(model: Model, run: Run) -> tuple[FrictionCurve, ...]:
    """Return the curves of the joints that have friction of their own and move in a run, filtered as for the fit."""
    settings = dataclasses.replace(model.settings, interval=None)
    rows = observe(run, model.base.robot, model.base, settings)
    curves: list[FrictionCurve] = []
    for joint in joints_with_friction(model.base):
        data = friction_left([rows], model.base, model.parameters, joint)
        if data.n_rows >= _FEWEST:
            assert data.load is not None
            load = float(np.median(np.abs(data.load)))
            curves.append(_curve(model, joint, load, data.velocity, data.torque))
    return tuple(curves)


def _curve(model: Model, joint: str, load: float, velocity: Array, friction: Array) -> FrictionCurve:
    one_way = np.linspace(float(np.abs(velocity).min()), float(np.abs(velocity).max()), _POINTS)
    sides = [side * one_way[::side] for side in (-1, 1) if (side * velocity > 0.0).any()]
    speed = np.concatenate(sides)
    laws = model.friction
    has_law = laws is not None and joint in laws.laws.laws
    torque, sigma = _of_law(model, joint, speed, load) if has_law else _plain(model, joint, speed)
    classes, shown = _in_classes(velocity, friction)
    return FrictionCurve(
        joint=joint,
        law=laws.laws.laws[joint].name if laws is not None and has_law else _PLAIN,
        load=load if laws is not None and has_law and laws.laws.needs_load(joint) else None,
        classes=classes,
        shown=shown,
        speed=speed,
        torque=torque,
        sigma=sigma,
    )


def _plain(model: Model, joint: str, speed: Array) -> tuple[Array, Array]:
    """Coulomb's and viscous friction with the offset, and its σ."""
    columns = {"coulomb": np.sign(speed), "viscous": speed, "offset": np.ones_like(speed)}
    there = [end for end in columns if f"{joint}.{end}" in model.names]
    which = [model.names.index(f"{joint}.{end}") for end in there]
    jacobian = np.stack([columns[end] for end in there], axis=1)
    return jacobian @ model.parameters[which], _sigma(jacobian, model.covariance[np.ix_(which, which)])


def _of_law(model: Model, joint: str, speed: Array, load: float) -> tuple[Array, Array]:
    """A law's friction at a load with the offset beside it, and its σ."""
    laws = model.friction
    assert laws is not None
    law, part = laws.laws.laws[joint], laws.laws.parts[joint]
    data, values = friction_data(speed, np.full_like(speed, load)), laws.parameters[part]
    torque, jacobian, covariance = law.torque(data, values), law.jacobian(data, values), laws.covariance[part, part]
    offset = f"{joint}.offset"
    if offset in model.names and offset not in laws.replaced:
        k = model.names.index(offset)
        torque = torque + model.parameters[k]
        jacobian = np.column_stack([np.ones_like(speed), jacobian])
        beside = laws.with_base[k : k + 1, part]
        covariance = np.block([[model.covariance[k : k + 1, k : k + 1], beside], [beside.T, covariance]])
    return torque, _sigma(jacobian, covariance)


def _sigma(jacobian: Array, covariance: Array) -> Array:
    """σ of each row's torque; nan where the covariance is not that of told parameters alone."""
    if not np.isfinite(covariance).all():
        return np.full(len(jacobian), np.nan)
    return np.sqrt(np.maximum(np.einsum("ni,ij,nj->n", jacobian, covariance, jacobian), 0.0))


def _in_classes(velocity: Array, friction: Array) -> tuple[Array, Array]:
    """Median speed of each class that has rows enough, and the tenths and median of the torque there."""
    fastest = float(np.abs(velocity).max())
    edges = np.linspace(-fastest, fastest, _CLASSES + 1)[1:-1]
    of_row = np.digitize(velocity, edges)
    classes = [of_row == k for k in range(_CLASSES) if np.count_nonzero(of_row == k) >= _FEWEST]
    speed = np.array([np.median(velocity[rows]) for rows in classes])
    shown = [np.quantile(friction[rows], (0.1, 0.5, 0.9)) for rows in classes]
    return speed, np.array(shown).reshape(-1, 3).T


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
