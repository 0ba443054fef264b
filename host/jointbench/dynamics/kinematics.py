"""Where the links are."""

import numpy as np
from numpy.typing import ArrayLike

from jointbench.arrays import Array, Vector3
from jointbench.dynamics.shapes import motion_arrays
from jointbench.robot import Robot


def forward_kinematics(robot: Robot, q: ArrayLike) -> tuple[Array, Array]:
    """Orientation and origin of every link frame in the base frame.

    Args:
        robot: the kinematic tree.
        q: joint position [rad; m for prismatic joints], shape (n_samples, n_joints).

    Returns:
        rotations, shape (n_samples, n_links, 3, 3), whose columns are the frames' axes in the base frame, and
        origins [m], shape (n_samples, n_links, 3).

    Raises:
        ShapeError: q does not match the robot.

    Source: Craig, Introduction to Robotics, 1986, ch. 3; rotation about any axis by Rodrigues' formula.
    """
    (q,) = motion_arrays(robot, q=q)
    rotations = np.empty((q.shape[0], robot.n_links, 3, 3))
    origins = np.empty((q.shape[0], robot.n_links, 3))
    positions = robot.all_positions(q)
    for i, joint in enumerate(robot.joints):
        fixed_rotation, fixed_origin = joint.placement
        local_rotation = np.broadcast_to(fixed_rotation, (q.shape[0], 3, 3))
        local_origin = np.broadcast_to(fixed_origin, (q.shape[0], 3))
        if joint.kind == "revolute":
            local_rotation = local_rotation @ rotations_about(joint.axis, positions[:, i])
        else:
            local_origin = local_origin + positions[:, i, None] * (fixed_rotation @ joint.axis)
        if joint.parent < 0:
            rotations[:, i], origins[:, i] = local_rotation, local_origin
        else:
            carrier = rotations[:, joint.parent]
            rotations[:, i] = carrier @ local_rotation
            origins[:, i] = origins[:, joint.parent] + np.einsum("kab,kb->ka", carrier, local_origin)
    return rotations, origins


def rotations_about(axis: Vector3, angle: Array) -> Array:
    """Rotation matrices about an axis of length 1 by angles [rad], shape (n_samples, 3, 3).

    R = a aᵀ + cos(angle) (E - a aᵀ) + sin(angle) [a]×
    """
    x, y, z = axis
    along = np.outer(axis, axis)
    across = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    cosine, sine = np.cos(angle)[:, None, None], np.sin(angle)[:, None, None]
    return along + cosine * (np.eye(3) - along) + sine * across
