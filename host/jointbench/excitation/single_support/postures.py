"""Joint positions from where trunk and swing foot shall be: inverse kinematics of two legs in a row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointbench.arrays import Array
from jointbench.dynamics.jacobians import Jacobians
from jointbench.errors import InfeasibleExcitation
from jointbench.robot import Robot

LEG = 6
"""Joints of a leg."""

_ENDS = (LEG - 1, 2 * LEG - 1)
"""Links that are the trunk and the swing foot."""

_HIPS = (LEG - 1, LEG)
"""Joints that turn a leg about the trunk's upright."""

_SIX, _UPRIGHT = 6, 5
"""Numbers of a pose's error, place and turn, and which of them is the turn about the upright."""

_ITERATIONS = 40
_NEAR = 1e-10
"""Metres and radians: what rounding leaves of a solved pose is 1e-15."""

_LONGEST_TURN = 0.4
"""Of a joint in one iteration [rad]: from afar Newton's step overshoots."""


@dataclass(frozen=True, eq=False)
class Poses:
    """Where trunk and swing foot are over samples, in the base frame: the foot that the robot stands on.

    Attributes:
        rotations: of the trunk and of the swing foot, shape (n_samples, 2, 3, 3).
        origins: of their frames [m], shape (n_samples, 2, 3).
    """

    rotations: Array
    origins: Array


def poses_of(robot: Robot, q: Array) -> Poses:
    """Poses of trunk and swing foot at joint positions [rad], shape (n_samples, 12)."""
    frames = Jacobians.of(robot, q)
    return Poses(frames.rotations[:, _ENDS], frames.origins[:, _ENDS])


def positions_at(robot: Robot, poses: Poses, start: Array, *, hips_turn: bool = True) -> Array:
    """Joint positions [rad] at poses, by Newton's method for all samples at once, shape (n_samples, 12).

    Args:
        robot: a chain of twelve joints: one leg up to the trunk, another one down to the swing foot.
        poses: where they shall be.
        start: joint positions that are near, shape (n_samples, 12).
        hips_turn: whether the joints next to the trunk move. Where they do not, trunk and swing foot are turned about
            the upright as comes of it, and all else is where it shall be.

    Raises:
        InfeasibleExcitation: a leg does not reach that far.
    """
    q = start.copy()
    joints = np.array([j for j in range(2 * LEG) if hips_turn or j not in _HIPS])
    rows = np.array([k for k in range(2 * _SIX) if hips_turn or k % _SIX != _UPRIGHT])
    for _ in range(_ITERATIONS):
        frames = Jacobians.of(robot, q)
        errors, slopes = zip(*(_error(frames, poses, end) for end in range(2)), strict=True)
        error = np.concatenate(errors, axis=1)[:, rows]
        if np.abs(error).max() < _NEAR:
            return q
        slope = np.concatenate(slopes, axis=1)[:, rows][:, :, joints]
        turn = np.linalg.solve(slope, error[..., None])[..., 0]
        longest = np.abs(turn).max(axis=1, keepdims=True)
        q[:, joints] += turn * np.minimum(1.0, _LONGEST_TURN / np.maximum(longest, _NEAR))
    raise InfeasibleExcitation(
        f"robot {robot.name!r}: its legs do not reach where trunk and swing foot are to be; plan a smaller motion"
    )


def _error(frames: Jacobians, poses: Poses, end: int) -> tuple[Array, Array]:
    """What a pose is off, place [m] and turn [rad], shape (n_samples, 6), and its Jacobian (n_samples, 6, 12)."""
    link = _ENDS[end]
    there = frames.origins[:, link]
    off = poses.rotations[:, end] @ frames.rotations[:, link].transpose(0, 2, 1)
    # 1/2 (R - Rᵀ)ᵛ is the turn up to its third order.
    turn = 0.5 * np.stack([off[:, 2, 1] - off[:, 1, 2], off[:, 0, 2] - off[:, 2, 0], off[:, 1, 0] - off[:, 0, 1]], -1)
    slope = np.concatenate([frames.linear(link, there), frames.angular(link)], axis=2)
    return np.concatenate([poses.origins[:, end] - there, turn], axis=1), slope.transpose(0, 2, 1)
