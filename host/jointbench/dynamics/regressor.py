"""The joint-torque regressor: torque as a linear function of the inertial parameters."""

import numpy as np
from numpy.typing import ArrayLike

from jointbench.dynamics.motion import LinkMotion, link_motions
from jointbench.dynamics.shapes import motion_arrays
from jointbench.dynamics.vectors import cross, dot
from jointbench.errors import ShapeError
from jointbench.robot import Array, Robot

_CHUNK = 512
"""Samples per pass: the intermediate arrays then stay in the processor's cache."""


def regressor(robot: Robot, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, out: Array | None = None) -> Array:
    """Joint-torque regressor W of a rigid-body robot, stacked over samples.

    tau = W(q, dq, ddq) @ pi, with pi the ten standard parameters of each link in link order:
    m, m*cx, m*cy, m*cz, Ixx, Ixy, Ixz, Iyy, Iyz, Izz (inertia about the link frame).

    Args:
        robot: the kinematic tree.
        q, dq, ddq: joint position [rad], velocity [rad/s], acceleration [rad/s²], shape (n_samples, n_joints);
            m, m/s, m/s² for prismatic joints.
        out: filled and returned where given, float64 and C-contiguous, of the shape of the result.

    Returns:
        W, shape (n_samples * n_joints, 10 * n_links), row k*n_joints + j is joint j at sample k.

    Raises:
        ShapeError: the three arrays differ in shape, or do not match the robot; or `out` does not match them.

    Source: Atkeson, An & Hollerbach, IJRR 5(3), 1986; joint axes carried outward as twists as in
    Featherstone, RBDA, 2008, sec. 5.3.
    """
    q, dq, ddq = motion_arrays(robot, q=q, dq=dq, ddq=ddq)
    shape = (q.shape[0] * robot.n_joints, 10 * robot.n_links)
    if out is None:
        out = np.zeros(shape)
    else:
        _check_out(out, shape)
        out[...] = 0.0
    by_sample = out.reshape(q.shape[0], robot.n_joints, robot.n_links, 10)
    for start in range(0, q.shape[0], _CHUNK):
        part = slice(start, start + _CHUNK)
        _fill(robot, q[part], dq[part], ddq[part], by_sample[part])
    return out


def _fill(robot: Robot, q: Array, dq: Array, ddq: Array, out: Array) -> None:
    """Fill out (n_samples, n_joints, n_links, 10), which holds zeros.

    The twist (z, v) of every joint that moves a link is carried outward with the link's frame; the torque of that
    joint against the link's inertia is then z · moment + v · force.
    """
    twists: list[tuple[list[int], Array, Array]] = []
    for i, motion in enumerate(link_motions(robot, q, dq, ddq)):
        joint = robot.joints[i]
        own = np.zeros((2, 3, 1, q.shape[0]))
        own[0 if joint.kind == "revolute" else 1, 2] = 1.0
        if joint.parent < 0:
            rows, z, v = [i], own[0], own[1]
        else:
            parent_rows, z, v = twists[joint.parent]
            rows = [*parent_rows, i]
            v = np.concatenate([motion.into_link(v + cross(z, motion.origin[:, None])), own[1]], axis=1)
            z = np.concatenate([motion.into_link(z), own[0]], axis=1)
        twists.append((rows, z, v))
        out[:, rows, i] = _link_columns(motion, z, v)


def _link_columns(motion: LinkMotion, z: Array, v: Array) -> Array:
    """One link's ten columns for the joints that move it, (n_samples, n_rows, 10); z and v are (3, n_rows, n_samples).

    Force and moment of a body: m a + alpha × mc + omega × (omega × mc), and mc × a + I alpha + omega × (I omega).
    """
    omega = motion.velocity[:, None]
    alpha = motion.acceleration[:, None]
    felt = motion.origin_acceleration[:, None]
    columns = np.empty((10, *z.shape[1:]))
    columns[0] = dot(v, felt)
    columns[1:4] = cross(v, alpha) + omega * dot(v, omega) - v * dot(omega, omega) + cross(felt, z)
    turned = cross(z, omega)
    k = 4
    for a in range(3):
        for b in range(a, 3):
            columns[k] = z[a] * alpha[b] + turned[a] * omega[b]
            if a != b:
                columns[k] += z[b] * alpha[a] + turned[b] * omega[a]
            k += 1
    return columns.transpose(2, 1, 0)


def _check_out(out: Array, shape: tuple[int, int]) -> None:
    if out.shape != shape or out.dtype != np.float64 or not out.flags.c_contiguous:
        raise ShapeError(
            f"out is {out.dtype} of shape {out.shape}{'' if out.flags.c_contiguous else ', not C-contiguous'}; "
            f"it must be C-contiguous float64 of shape {shape}"
        )
