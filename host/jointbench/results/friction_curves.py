"""Friction of each joint over its speed: what a run shows of it, and what a model has."""

import dataclasses
from dataclasses import dataclass

import numpy as np

from jointbench.arrays import Array
from jointbench.identification import Model
from jointbench.identification.friction.joint_laws import friction_data, joints_with_friction
from jointbench.identification.friction.law_search import friction_left
from jointbench.identification.observations import observe
from jointbench.recording import Run

_CLASSES = 40
"""Of equal width from the fastest speed one way to the fastest the other."""
_FEWEST = 5
"""Rows of a class below which its spread says nothing."""
_POINTS = 60
"""Of a curve in each direction."""
_PLAIN = "Coulomb and viscous"


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
    found: list[FrictionCurve] = []
    for joint in joints_with_friction(model.base):
        data = friction_left([rows], model.base, model.parameters, joint)
        if data.n_rows >= _FEWEST:
            assert data.load is not None
            load = float(np.median(np.abs(data.load)))
            found.append(_curve(model, joint, load, data.velocity, data.torque))
    return tuple(found)


def _curve(model: Model, joint: str, load: float, velocity: Array, left: Array) -> FrictionCurve:
    one_way = np.linspace(float(np.abs(velocity).min()), float(np.abs(velocity).max()), _POINTS)
    sides = [side * one_way[::side] for side in (-1, 1) if (side * velocity > 0.0).any()]
    speed = np.concatenate(sides)
    laws = model.friction
    has_law = laws is not None and joint in laws.laws.laws
    torque, sigma = _of_law(model, joint, speed, load) if has_law else _plain(model, joint, speed)
    classes, shown = _in_classes(velocity, left)
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


def _in_classes(velocity: Array, left: Array) -> tuple[Array, Array]:
    """Median speed of each class that has rows enough, and the tenths and median of the torque there."""
    fastest = float(np.abs(velocity).max())
    edges = np.linspace(-fastest, fastest, _CLASSES + 1)[1:-1]
    of_row = np.digitize(velocity, edges)
    classes = [of_row == k for k in range(_CLASSES) if np.count_nonzero(of_row == k) >= _FEWEST]
    speed = np.array([np.median(velocity[each]) for each in classes])
    shown = [np.quantile(left[each], (0.1, 0.5, 0.9)) for each in classes]
    return speed, np.array(shown).reshape(-1, 3).T
