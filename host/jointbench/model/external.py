"""What joints give against a force from outside: a push at the hand, a weight that hangs there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from jointbench.arrays import Array
from jointbench.errors import ShapeError
from jointbench.model.kinematics import Jacobians, coordinate_matrix
from jointbench.model.motion_arrays import motion_arrays
from jointbench.model.robot import Robot


@dataclass(frozen=True, eq=False)
class Wrench:
    """A force and a moment on the robot, at the origin of one of its frames.

    Attributes:
        frame: name of a link or of another frame of the robot.
        force: on the robot [N], shape (3,), or (n_samples, 3) where it changes, as a recorded channel does.
        moment: on the robot, about that origin [N·m], of the same shapes.
        turns: whether both are in the axes of that frame, as of a sensor fixed there; else in those of the base.

    >>> weight = Wrench("hand", [0.0, 0.0, -29.4])  # 3 kg
    >>> weight.frame, weight.turns
    ('hand', False)
    """

    frame: str
    force: ArrayLike
    moment: ArrayLike = (0.0, 0.0, 0.0)
    turns: bool = False

    def part(self, rows: slice) -> Wrench:
        """Of some of the samples."""
        given = map(np.asarray, (self.force, self.moment))
        force, moment = (each[rows] if each.ndim == 2 else each for each in given)
        return Wrench(self.frame, force, moment, self.turns)


def external_torques(robot: Robot, q: ArrayLike, wrench: Wrench) -> Array:
    """Joint torques that balance a wrench on the robot, beside all that its motion takes.

    M(q) ddq + C(q, dq) dq + G(q) + tau_f + tau_ext = tau with tau_ext = -J(q)ᵀ w, so that a weight on the hand and a
    heavier hand ask the same of the joints.

    Args:
        robot: whose base stands still.
        q: joint positions [rad or m], shape (n_samples, n_joints).
        wrench: what acts on it.

    Returns:
        tau_ext [N·m or N], shape (n_samples, n_joints).

    Raises:
        RobotFileError: the robot has no such frame.
        ShapeError: q does not match the robot, or force or moment do not match q, or are not finite.

    >>> from jointbench.model import load_robot
    >>> stretched = [[0.0, -np.pi / 2, np.pi / 2, 0.0, 0.0, 0.0]]
    >>> weight = Wrench("hand", [0.0, 0.0, -10.0])
    >>> external_torques(load_robot("nursing_arm"), stretched, weight).shape
    (1, 6)
    """
    (q,) = motion_arrays(robot, q=q)
    frame = robot.frame(wrench.frame)
    force, moment = (_per_sample(name, getattr(wrench, name), len(q)) for name in ("force", "moment"))
    if frame.joint < 0:
        return np.zeros((len(q), robot.n_joints))
    jacobians = Jacobians.of(robot, q)
    link = jacobians.rotations[:, frame.joint]
    point = jacobians.origins[:, frame.joint] + link @ frame.origin
    if wrench.turns:
        axes = link @ np.array(frame.rotation)
        force, moment = (np.einsum("kab,kb->ka", axes, each) for each in (force, moment))
    own = np.einsum("kja,ka->kj", jacobians.linear(frame.joint, point), force)
    own += np.einsum("kja,ka->kj", jacobians.angular(frame.joint), moment)
    return -own @ coordinate_matrix(robot)


def _per_sample(name: str, value: ArrayLike, n: int) -> Array:
    array = np.asarray(value, dtype=np.float64)
    if array.shape not in ((3,), (n, 3)) or not np.isfinite(array).all():
        raise ShapeError(
            f"{name} of a wrench has shape {array.shape}; it must be (3,), or ({n}, 3) for {n} samples, and finite"
        )
    return np.broadcast_to(array, (n, 3))
