"""Friction as what remains of the motors' torque when the torque of all else is taken away."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.dynamics import inverse_dynamics, model_columns
from jointbench.errors import FitError
from jointbench.identification.friction.data import FrictionData
from jointbench.identification.model import Model
from jointbench.recording.run import Run
from jointbench.signals import LowPass, Motion, smooth_motion

_FRICTION = (".viscous", ".coulomb")
"""How the parameters end that are friction."""

Rest = Callable[[Run, slice, Motion, Model | None], Array]
"""Torque behind the friction, of a stretch and its motion, not yet filtered [N·m or N], shape (n, n_joints)."""


@dataclass(frozen=True, eq=False)
class Rows:
    """All joints' friction, two rows per period of the low-pass's cut-off.

    Attributes:
        motion: filtered, shape (n, n_joints) each; its acceleration twice, as torque is.
        friction: [N·m or N], shape (n, n_joints).
        load: [N·m or N], shape (n, n_joints).
        temperature: [K], or None where not measured, shape (n, n_joints).
    """

    motion: Motion
    friction: Array
    load: Array
    temperature: Array | None

    def of_joint(self, j: int, rows: NDArray[np.bool_], with_acceleration: bool) -> FrictionData:
        """One joint's rows, picked by a mask."""
        return FrictionData(
            velocity=self.motion.dq[rows, j],
            torque=self.friction[rows, j],
            load=self.load[rows, j],
            temperature=None if self.temperature is None else self.temperature[rows, j],
            acceleration=self.motion.ddq[rows, j] if with_acceleration else None,
            in_time=True,
        )


def subtracted(run: Run, part: slice, torque: Array, low_pass: LowPass, rest: Rest, model: Model | None) -> Rows:
    """Friction over one stretch without a gap, its ends left out as far as they feel the edge.

    friction = motor torque - torque of all else - known rotor inertia x acceleration, all through one low-pass.
    """
    motion = smooth_motion(run.samples.motor_position[part], low_pass)
    load = low_pass.apply(rest(run, part, motion, model))
    acceleration = low_pass.apply(motion.ddq)
    friction = low_pass.apply(np.where(run.robot.modelled, torque, 0.0)) - load
    if model is None:
        friction = friction - acceleration @ run.robot.drive_train.known_inertia.T
    warm = _temperature(run)
    rows = slice(low_pass.settling, len(torque) - low_pass.settling, low_pass.stride)
    kept = Motion(motion.q[rows], motion.dq[rows], acceleration[rows])
    return Rows(kept, friction[rows], load[rows], None if warm is None else warm[part][rows])


def concatenate(stretches: list[Rows]) -> Rows:
    """One stretch after the other."""
    warm = [rows.temperature for rows in stretches if rows.temperature is not None]
    return Rows(
        motion=Motion(*(np.vstack([getattr(rows.motion, name) for rows in stretches]) for name in ("q", "dq", "ddq"))),
        friction=np.vstack([rows.friction for rows in stretches]),
        load=np.vstack([rows.load for rows in stretches]),
        temperature=np.vstack(warm) if warm else None,
    )


def sensor_torque(run: Run, part: slice, motion: Motion, model: Model | None) -> Array:
    """What the joints' torque sensors measured.

    Raises:
        FitError: there are none.
    """
    if run.samples.joint_torque is None:
        raise FitError(f"run {run.path} has no joint_torque; tell friction by a model, or by a sweep of speeds")
    return run.samples.joint_torque[part]


def rigid_torque(run: Run, part: slice, motion: Motion, model: Model | None) -> Array:
    """What a fitted model without its friction gives, or the nominal inertias without the rotors.

    Raises:
        FitError: there is neither, or the model is of another robot.
    """
    robot = run.robot
    if model is not None:
        if model.robot.joint_names != robot.joint_names:
            raise FitError(
                f"the model is of joints {', '.join(model.robot.joint_names)}, and run {run.path} of "
                f"{', '.join(robot.joint_names)}; fit one of the same robot"
            )
        columns, names = model_columns(model.robot, motion.q, motion.dq, motion.ddq)
        columns[:, [name.endswith(_FRICTION) for name in names]] = 0.0
        return (model.base.project(columns) @ model.parameters).reshape(-1, robot.n_joints)
    if robot.standard_parameters is None:
        raise FitError(
            f"robot {robot.name!r} has no nominal inertias, so the rest of the torque is not known; give a fitted "
            f"model, or record a sweep of steady speeds in both directions"
        )
    return inverse_dynamics(robot, motion.q, motion.dq, motion.ddq, robot.standard_parameters)


def _temperature(run: Run) -> Array | None:
    """Motor temperatures at every sample, between those that were measured; None where a joint has none."""
    measured = run.samples.temperature
    if measured is None or not np.isfinite(measured).any(axis=0).all():
        return None
    time = run.samples.time
    known = np.isfinite(measured)
    return np.column_stack(
        [np.interp(time, time[known[:, j]], measured[known[:, j], j]) for j in range(measured.shape[1])]
    )
