"""A stance from a motion and the corner forces beside it."""

from __future__ import annotations

import numpy as np

from jointbench.arrays import Array
from jointbench.dynamics import FreeBaseMotion, floating_regressor, floating_standard_parameters
from jointbench.errors import StanceError
from jointbench.identification.zero_moment_point.measured_point import measured_point, numerators, support_foot
from jointbench.identification.zero_moment_point.nuisance import (
    SensorSheet,
    nuisance_names,
    nuisance_numerators,
    pulled_arms,
)
from jointbench.identification.zero_moment_point.smooth_forces import smooth_forces, told_parameters
from jointbench.identification.zero_moment_point.stance import Stance
from jointbench.memory_mapping import chunks
from jointbench.robot import Foot, Robot
from jointbench.signals import FirstOrderLag, LowPass, Motion

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
        FixedBase: the robot's base does not move.
        StanceError: the foot is not its base, too few samples, or uneven times.
        ShapeError: the motion does not match the robot.
    """
    sole = support_foot(robot, foot)
    h = float(time[-1] - time[0]) / max(len(time) - 1, 1)
    inertial, stride = FirstOrderLag(filter_time, h), max(1, int(sample_period / h * (1.0 + 1e-9)))
    after = low_pass.settling if low_pass else 0
    before = after + inertial.settling
    if len(time) <= before + after:
        raise StanceError(
            f"{len(time)} samples in a row are too few for the filters, which need more than {before + after}; record "
            f"longer without a gap"
        )
    if np.abs(np.diff(time) - h).max() > _UNEVEN * h:
        raise StanceError(
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
