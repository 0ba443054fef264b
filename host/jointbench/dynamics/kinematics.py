"""Where the links are."""

import numpy as np
from numpy.typing import ArrayLike

from jointbench.dynamics.shapes import motion_arrays
from jointbench.robot import Array, Robot


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

    Source: Craig, Introduction to Robotics, 1986, sec. 3.6 (modified Denavit-Hartenberg).
    """
    (q,) = motion_arrays(robot, q=q)
    rotations = np.empty((q.shape[0], robot.n_links, 3, 3))
    origins = np.empty((q.shape[0], robot.n_links, 3))
    for i, joint in enumerate(robot.joints):
        fixed_rotation, fixed_origin = joint.placement
        local_rotation = np.broadcast_to(fixed_rotation, (q.shape[0], 3, 3))
        local_origin = np.broadcast_to(fixed_origin, (q.shape[0], 3))
        if joint.kind == "revolute":
            local_rotation = local_rotation @ _about_z(q[:, i])
        else:
            local_origin = local_origin + q[:, i, None] * fixed_rotation[:, 2]
        if joint.parent < 0:
            rotations[:, i], origins[:, i] = local_rotation, local_origin
        else:
            carrier = rotations[:, joint.parent]
            rotations[:, i] = carrier @ local_rotation
            origins[:, i] = origins[:, joint.parent] + np.einsum("kab,kb->ka", carrier, local_origin)
    return rotations, origins


def _about_z(angle: Array) -> Array:
    """Rotation matrices about z, shape (n_samples, 3, 3)."""
    matrices = np.zeros((len(angle), 3, 3))
    matrices[:, 0, 0] = matrices[:, 1, 1] = np.cos(angle)
    matrices[:, 1, 0] = np.sin(angle)
    matrices[:, 0, 1] = -matrices[:, 1, 0]
    matrices[:, 2, 2] = 1.0
    return matrices
