"""A robot on one foot: its motion, the measured zero-moment point, and what calibrates it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from jointbench.arrays import Array, chunks
from jointbench.errors import FitError
from jointbench.identification.zero_moment_point.measured_point import (
    SensorSheet,
    measured_point,
    nuisance_names,
    nuisance_numerators,
    numerators,
    pulled_arms,
    smooth_forces,
    support_foot,
    told_parameters,
)
from jointbench.model import Foot, FreeBaseMotion, Robot, floating_regressor, floating_standard_parameters
from jointbench.signals import FirstOrderLag, LowPass, Motion

_OF_ROWS = (
    "time", "q", "dq", "ddq", "columns", "measured", "vertical_force", "forces", "weight", "pulled_arms",
    "nuisance_columns", "force_nuisance_columns",
)  # fmt: skip


_SAME_PERIOD = 1e-3
"""Share by which sample periods may differ: clocks run apart by some 1e-5 of it, and sums of steps by rounding."""


@dataclass(frozen=True, eq=False)
class Stance:
    """Rows of a motion on one foot, all filtered alike and late alike.

    Theory: z(pi) = (columns[:, :2] @ pi) / (columns[:, 2] @ pi)[:, None], as numerators and force are filtered before
    they are divided, like the measured ones. Measured: z(pi) + nuisance_columns @ nuisance + noise, to first order.

    Attributes:
        robot: with a base link, the support foot.
        foot: its name.
        time: when it happened, the filters' delay taken off [s], shape (n,).
        q, dq, ddq: joint position [rad], velocity [rad/s], acceleration [rad/s²], shape (n, n_joints).
        columns: x numerator [N·m], y numerator [N·m] and vertical force [N] by the standard parameters of base link and
            links, shape (n, 3, 10 * (1 + n_links)).
        measured: zero-moment point on the ground by the sensors as calibrated, x and y in the base frame [m], (n, 2).
        vertical_force: sum of the corners' [N], shape (n,).
        forces: of the corners [N], shape (n, 4).
        weight: vertical force that the weighed mass should show in this motion, spread over the links as the robot file
            says [N], shape (n,).
        pulled_arms: where cables may pull each foot, in the base frame, z from the ground [m], shape (n, n_feet, 3).
        nuisance_names: of what lies between theory and measurement: sensors' gains and zeros, cables' pulls, the sole's
            give, the forces' delay.
        nuisance_columns: derivative of the measured point by these, shape (n, 2, k).
        force_nuisance_columns: derivative of the measured vertical force by them, shape (n, k).
        data_sheet: standard deviation of each before anything was recorded, about zero, shape (k,).
        sample_period: from row to row, gaps apart [s].
    """

    robot: Robot
    foot: str
    time: Array
    q: Array
    dq: Array
    ddq: Array
    columns: Array
    measured: Array
    vertical_force: Array
    forces: Array
    weight: Array
    pulled_arms: Array
    nuisance_names: tuple[str, ...]
    nuisance_columns: Array
    force_nuisance_columns: Array
    data_sheet: Array
    sample_period: float

    @property
    def n_samples(self) -> int:
        """Rows."""
        return len(self.time)


def joined(stances: Sequence[Stance]) -> Stance:
    """Rows of several stances of one robot with the same sensors.

    Raises:
        FitError: there are none, or they are of different robots, feet, rates or data sheets.
    """
    if not stances:
        raise FitError("there are no stances to join; give at least one")
    first = stances[0]
    for other in stances[1:]:
        for name in ("foot", "nuisance_names", "data_sheet", "sample_period"):
            same = np.array_equal(getattr(other, name), getattr(first, name))
            if name == "sample_period":
                same = bool(np.isclose(other.sample_period, first.sample_period, rtol=_SAME_PERIOD, atol=0.0))
            if not same:
                raise FitError(
                    f"stances to join differ in {name}: {getattr(first, name)} and {getattr(other, name)}; "
                    f"fit them one by one"
                )
    if any(other.robot != first.robot for other in stances[1:]):
        raise FitError("stances to join are of different robots; fit them one by one")
    rows: dict[str, Any] = {name: np.concatenate([getattr(stance, name) for stance in stances]) for name in _OF_ROWS}
    return Stance(**{field.name: rows.get(field.name, getattr(first, field.name)) for field in fields(Stance)})


FILTER_TIME = 0.05
"""Time constant of the inertial filter [s]: as long as the time between samples, so that nothing folds over them."""

SAMPLE_PERIOD = 0.05
"""From row to row [s]; the longest whole number of recorded samples up to it is taken."""

_UNEVEN = 0.01
"""Share of a step by which steps may differ."""

_PIECE = 1024
"""Samples whose columns are computed at once: some 20 MB for twelve joints."""


def stance_of(
    robot: Robot,
    foot: str,
    time: Array,
    q: Array,
    dq: Array,
    ddq: Array,
    forces: Array,
    total_mass: float,
    *,
    filter_time: float = FILTER_TIME,
    sample_period: float = SAMPLE_PERIOD,
    sheet: SensorSheet | None = None,
    low_pass: LowPass | None = None,
) -> Stance:
    """Filter a motion's columns and the forces alike, and keep a row each `sample_period`.

    Args:
        robot: with a base link, its support foot.
        foot: name of that foot.
        time: evenly spaced without gaps [s], shape (n,).
        q, dq, ddq: joint position [rad], velocity [rad/s], acceleration [rad/s²], shape (n, n_joints).
        forces: of the foot's corners as calibrated [N], shape (n, 4).
        total_mass: of the robot as weighed [kg].
        filter_time: time constant of the inertial filter [s].
        sample_period: from row to row at most [s].
        sheet: what is known of sensors and cables beforehand; None: `SensorSheet()`.
        low_pass: goes over forces and columns before the inertial filter; None: there is none.

    Returns:
        The stance, without the rows that feel a filter's edge.

    Raises:
        RobotError: the robot's base does not move.
        FitError: the foot is not its base, too few samples, or uneven times.
        ShapeError: the motion does not match the robot.
    """
    sole = support_foot(robot, foot)
    h = float(time[-1] - time[0]) / max(len(time) - 1, 1)
    inertial, stride = FirstOrderLag(filter_time, h), max(1, int(sample_period / h * (1.0 + 1e-9)))
    after = low_pass.settling if low_pass else 0
    before = after + inertial.settling
    if len(time) <= before + after:
        raise FitError(
            f"{len(time)} samples in a row are too few for the filters, which need more than {before + after}; record "
            f"longer without a gap"
        )
    if np.abs(np.diff(time) - h).max() > _UNEVEN * h:
        raise FitError(
            f"times must be evenly spaced; steps go from {np.diff(time).min():g} s to {np.diff(time).max():g} s"
        )
    rows = np.arange(before, len(time) - after, stride)

    def filtered(values: Array) -> Array:
        return inertial.apply(values if low_pass is None else low_pass.apply(values))

    every_column, pressed = filtered(_columns(robot, sole, q, dq, ddq)), filtered(forces)[rows]
    motion = Motion(*(filtered(values)[rows] for values in (q, dq, ddq)))
    columns, vertical, measured = every_column[rows], pressed.sum(axis=1), measured_point(sole, pressed)
    arms = filtered(pulled_arms(robot, sole, q))[rows]
    nominal = floating_standard_parameters(robot)
    parameters = told_parameters(sole, columns, pressed, np.zeros(columns.shape[2]) if nominal is None else nominal)
    smooth = smooth_forces(sole, every_column, parameters, pressed, rows, h)
    unknown = nuisance_numerators(robot, sole, motion, smooth, arms, parameters)
    return Stance(
        robot=robot,
        foot=foot,
        time=time[rows] - inertial.delay,
        q=motion.q,
        dq=motion.dq,
        ddq=motion.ddq,
        columns=columns,
        measured=measured,
        vertical_force=vertical,
        forces=pressed,
        weight=_weight(robot, columns, nominal, total_mass),
        pulled_arms=arms,
        nuisance_names=nuisance_names(robot, sole),
        nuisance_columns=(unknown[:, :2] - measured[:, :, None] * unknown[:, 2:]) / vertical[:, None, None],
        force_nuisance_columns=unknown[:, 2],
        data_sheet=(sheet or SensorSheet()).sigmas(robot),
        sample_period=stride * h,
    )


def _columns(robot: Robot, foot: Foot, q: Array, dq: Array, ddq: Array) -> Array:
    """Numerators and vertical force of the wrench that a base at rest needs, by the standard parameters."""
    columns = np.empty((len(q), 3, 10 * (1 + robot.n_links)))
    for part in chunks(len(q), _PIECE):
        still = np.zeros((len(q[part]), 3))
        base = FreeBaseMotion(still, still, still - np.array(robot.gravity))
        wrench = floating_regressor(robot, base, q[part], dq[part], ddq[part])
        columns[part] = numerators(foot, wrench.reshape(len(still), -1, columns.shape[2])[:, :6])
    return columns


def _weight(robot: Robot, columns: Array, nominal: Array | None, total_mass: float) -> Array:
    """Vertical force of the weighed mass, spread over the links as the robot file says."""
    if nominal is None:
        return np.full(len(columns), total_mass * float(np.linalg.norm(robot.gravity)))
    return columns[:, 2] @ nominal * (total_mass / nominal[::10].sum())


@dataclass(frozen=True, eq=False)
class Calibration:
    """m = (Σ f_i c_i - Σ (r_z P_xy - r_xy P_z)) / F, F = Σ f_i + Σ P_z, with f_i = (reading - zero_i)/(1 + gain_i).

    Corners i are at c_i, and cables pull with P at r, r_z from the ground. It is exact for constant gains, zeros and
    pulls, for filters are linear; products of gains' errors are 0.02 mm, which is more than the noise of one minute.
    Whatever else the stance names as nuisance is linear.

    Attributes:
        stance: of the readings.
    """

    stance: Stance

    @cached_property
    def _corners(self) -> Array:
        return np.array(self.stance.robot.foot(self.stance.foot).corners)[:, :2]

    def __call__(self, nuisance: Array) -> tuple[Array, Array]:
        """The point's x and y [m] and the vertical force F [N], shape (n, 3), and derivatives by nu, (n, 3, k)."""
        stance, arms, n = self.stance, self.stance.pulled_arms, len(self._corners)
        gains, zeros, pulls, others = np.split(nuisance, [n, 2 * n, 2 * n + arms[0].size])
        pulls = pulls.reshape(-1, 3)
        forces = (stance.forces - zeros) / (1.0 + gains)
        vertical = forces.sum(axis=1) + pulls[:, 2].sum()
        turned = arms[:, :, 2:] * pulls[:, :2] - arms[:, :, :2] * pulls[:, 2:]
        point = (forces @ self._corners - turned.sum(axis=1)) / vertical[:, None]
        by_zero, by_pull = np.ones((*forces.shape, 3)), np.zeros((*arms.shape, 3))
        by_zero[:, :, :2] = (self._corners - point[:, None]) / vertical[:, None, None]
        by_zero /= -(1.0 + gains)[:, None]
        by_pull[:, :, 0, 0] = by_pull[:, :, 1, 1] = -arms[:, :, 2]
        by_pull[:, :, 2, :2] = arms[:, :, :2] - point[:, None]
        by_pull /= vertical[:, None, None, None]
        by_pull[:, :, 2, 2] = 1.0
        slopes = np.concatenate([by_zero * forces[:, :, None], by_zero, by_pull.reshape(len(point), -1, 3)], axis=1)
        rest = np.concatenate([stance.nuisance_columns, stance.force_nuisance_columns[:, None]], axis=1)
        rest = rest[:, :, len(nuisance) - len(others) :]
        found = np.column_stack([point, vertical]) - rest @ others
        return found, np.concatenate([slopes.transpose(0, 2, 1), -rest], axis=2)
