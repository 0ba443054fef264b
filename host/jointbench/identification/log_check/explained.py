"""How well a joint's motion, and what the robot's file says of its links, explain a torque."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
from scipy.optimize import nnls

from jointbench.arrays import Array
from jointbench.dynamics import compensation_columns, inverse_dynamics
from jointbench.robot import Robot
from jointbench.signals import Motion, rest_threshold

_LEAST, _MOST = 0.2, 5.0
"""Factor by which a file's inertias may be off, as a whole for each joint."""

_FLOOR = 0.02
"""Share of a torque's variation that no file explains: below it, models are equally good."""


@dataclass(frozen=True, eq=False)
class Causes:
    """What torque each joint's motion may cause, up to factors that are not negative.

    Attributes:
        rigid: by the inertias of the robot's file [N·m or N], shape (n, n_joints), or None where it has none.
        resisting: rotor inertia, viscous and dry friction, up to a factor each, shape (3, n, n_joints).
        free: what may have any sign: the robot's compensations, and where the file has no inertias, the gravity of a
            single link, shape (n_free, n, n_joints).
    """

    rigid: Array | None
    resisting: Array
    free: Array

    @classmethod
    def of_motion(cls, robot: Robot, motion: Motion) -> Causes:
        """Those of a motion."""
        q, dq, ddq = motion.q, motion.dq, motion.ddq
        slow = np.maximum(rest_threshold(dq), 1e-12)
        parameters = robot.standard_parameters
        known = parameters is not None and bool(np.any(parameters))
        rigid = inverse_dynamics(robot, q, dq, ddq, parameters) if known and parameters is not None else None
        columns, names = compensation_columns(robot, q, dq, ddq)
        free = np.moveaxis(columns.reshape(*q.shape, len(names)), 2, 0)
        if rigid is None:
            free = np.concatenate([[np.sin(q), np.cos(q)], free])
        return cls(rigid, np.stack([ddq, dq, np.tanh(dq / slow)]), free)

    def free_at(self, joint: int) -> list[Array]:
        """Those of a joint that vary, shape (n,) each."""
        return [each for each in self.free[:, :, joint] if np.ptp(each) > 0.0]


def unexplained(torque: Array, causes: Causes, joint: int, scale: float = 1.0) -> float:
    """Share of a torque's variation that a joint's motion does not explain, 1 where it explains nothing.

    min over x of |torque - offset - x0 rigid - x1 ddq - x2 dq - x3 sign(dq)|² / |torque - offset|², with x1 to x3 not
    negative, for friction resists and rotors have mass, and x0 within a factor of 5 of `scale`; less what is free.

    Args:
        torque: [N·m or N], shape (n,).
        causes: of a motion, for all joints.
        joint: whose motion.
        scale: of the torque, against that of the file.

    Returns:
        The share, 0.02 at least: what is left below that tells no model from another.
    """
    rigid = None if causes.rigid is None else causes.rigid[:, joint]
    columns = causes.free_at(joint)
    free = len(columns)
    columns += [causes.resisting[k, :, joint] for k in range(3)]
    if rigid is not None:
        columns.append(rigid)
    columns.append(torque)
    centred = np.column_stack(columns)
    centred -= centred.mean(axis=0)
    whole = float(centred[:, -1] @ centred[:, -1])
    if whole == 0.0:
        return 1.0
    if rigid is None:
        return max(_least_squares(centred, free) / whole, _FLOOR)
    centred[:, -1] -= _LEAST * scale * centred[:, -2]
    factors: list[float] = []
    left = _least_squares(centred, free, factors)
    if factors and factors[-1] > (_MOST - _LEAST) * scale:
        centred[:, -1] -= (_MOST - _LEAST) * scale * centred[:, -2]
        left = _least_squares(np.delete(centred, -2, axis=1), free)
    return max(min(left / whole, 1.0), _FLOOR)


def _least_squares(columns: Array, free: int, factors: list[float] | None = None) -> float:
    """Squares left of the last column by the others, whose factors are not negative but for the first, free ones."""
    size = np.sqrt(np.sum(columns**2, axis=0))
    r = cast(Array, np.linalg.qr(columns / np.where(size > 0.0, size, 1.0), mode="r"))
    # Free columns come first: what they leave of the others is the lower right part of the triangle.
    part, wanted = r[free:, free:-1], r[free:, -1]
    found, left = nnls(part, wanted)
    if factors is not None:
        factors += (found * size[-1] / np.where(size[free:-1] > 0.0, size[free:-1], np.inf)).tolist()
    return float(left**2 * size[-1] ** 2)
