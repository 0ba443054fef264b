"""What the zero-moment point feels of a foot that rocks on its sole, as soft sensors or rubber let it."""

from __future__ import annotations

import numpy as np

from jointbench.arrays import Array
from jointbench.dynamics import FreeBaseMotion, floating_inverse_dynamics
from jointbench.robot import Foot, Robot
from jointbench.signals import Motion

_GIVE = 1e-6
"""[m/N] at which the effect is computed: so small that it is linear, so large that rounding is none of it."""


def rocking_base(robot: Robot, foot: Foot, forces: Motion, give: float) -> FreeBaseMotion:
    """How the base moves when each corner of its level sole sinks by give times its force.

    The sole is the plane nearest to the corners; it turns about its middle, and the base frame with it.

    Args:
        robot: its gravity is along -z.
        foot: part of the base.
        forces: at the corners and their derivatives [N, N/s, N/s²], shape (n, 4) each.
        give: [m/N].
    """
    corners = np.array(foot.corners)[:, :2] - foot.origin[:2]
    plane = np.asarray(np.linalg.pinv(np.column_stack([np.ones(len(corners)), corners])), dtype=np.float64)
    _, tilt = _sunk(plane, give * forces.q)
    _, omega = _sunk(plane, give * forces.dq)
    heave, alpha = _sunk(plane, give * forces.ddq)
    gravity = np.array(robot.gravity)
    felt = np.cross(alpha, -foot.origin) + heave - gravity + np.cross(tilt, gravity)
    return FreeBaseMotion(omega, alpha, felt)


def _sunk(plane: Array, depths: Array) -> tuple[Array, Array]:
    """Heave of a sole's middle and its turn, as vectors, of depths of its corners, shape (n, 3) each."""
    up, forward, left = -plane @ depths.T
    nothing = np.zeros_like(up)
    return np.stack([nothing, nothing, up], axis=1), np.stack([left, -forward, nothing], axis=1)


def wrench_by_give(robot: Robot, foot: Foot, motion: Motion, forces: Motion, parameters: Array) -> Array:
    """Derivative of the wrench on the base by the give of its sole's corners.

    Args:
        robot, foot: as of `rocking_base`.
        motion: of the joints, shape (n, n_joints) each.
        forces: smooth ones; their second derivatives count.
        parameters: of base link and links, shape (10 * (1 + n_links),).

    Returns:
        Force and moment [N, N·m] per [m/N], shape (n, 6).
    """
    rocking, level = (
        floating_inverse_dynamics(
            robot, rocking_base(robot, foot, forces, give), motion.q, motion.dq, motion.ddq, parameters
        )[:, :6]
        for give in (_GIVE, 0.0)
    )
    return np.asarray((rocking - level) / _GIVE, dtype=np.float64)
