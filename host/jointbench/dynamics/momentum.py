"""Momentum regressor: the joints' momenta as a linear function of the inertial parameters."""

import numpy as np
from numpy.typing import ArrayLike

from jointbench.arrays import Array
from jointbench.dynamics.base_motion import BaseMotion
from jointbench.dynamics.body_columns import momentum_columns
from jointbench.dynamics.jacobians import coordinate_matrix
from jointbench.dynamics.shapes import motion_arrays
from jointbench.robot import Robot


def momentum_regressor(robot: Robot, q: ArrayLike, dq: ArrayLike) -> Array:
    """Regressor P of the generalised momentum of the links, stacked over samples: M(q) dq = P(q, dq) @ pi.

    With it torques are identified without accelerations: d(P pi)/dt - (what C and g do) = tau.

    Args:
        robot: the kinematic tree; rows of passive joints are zero, and so are columns of neglected links.
        q, dq: joint position [rad] and velocity [rad/s] (m, m/s), shape (n_samples, n_joints).

    Returns:
        P, shape (n_samples * n_joints, 10 * n_links), row k*n_joints + j is joint j at sample k.

    Raises:
        ShapeError: the arrays differ in shape or do not match the robot.

    Source: Slotine & Li, Applied Nonlinear Control, 1991, sec. 9.2 (filtered and momentum forms).
    """
    q, dq = motion_arrays(robot, q=q, dq=dq)
    motion = BaseMotion.of(robot, q, dq, np.zeros_like(dq))
    folded, rows = coordinate_matrix(robot) * robot.modelled, np.zeros((len(q), robot.n_links, robot.n_links, 10))
    for i in np.flatnonzero(robot.modelled_links).tolist():
        z = motion.jacobians.angular(i)
        v = motion.jacobians.linear(i, motion.jacobians.origins[:, i])
        omega, velocity = motion.omega[:, i, None], motion.velocity[:, i, None]
        rows[:, :, i] = momentum_columns(*(motion.in_link(i, each) for each in (z, v, omega, velocity)))
    return np.einsum("lj,klic->kjic", folded, rows).reshape(len(q) * robot.n_joints, 10 * robot.n_links)
