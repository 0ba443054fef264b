"""The zero-moment point that a foot's corner forces tell."""

from __future__ import annotations

import numpy as np

from jointbench.arrays import Array
from jointbench.errors import StanceError
from jointbench.robot import Foot, Robot

_LEVEL = 1e-6  # of a direction's component; a sole tilted by a milliradian reads a robot 0.5 m high 0.5 mm off


def support_foot(robot: Robot, name: str) -> Foot:
    """The foot that the robot stands on: part of the base, its sole level.

    Raises:
        UnknownFoot: the robot has no foot of this name.
        StanceError: the base is no such foot.
    """
    foot = robot.foot(name)
    if foot.joint >= 0:
        carrier = robot.joints[foot.joint].name
        base = ", ".join(each.name for each in robot.feet if each.joint < 0) or "none"
        raise StanceError(
            f"foot {name!r} of robot {robot.name!r} is moved by joint {carrier!r}; the support foot must be its base "
            f"(here: {base}), as the robot's motion is told from the base"
        )
    if abs(foot.axes[2, 2] - 1.0) > _LEVEL or np.abs(robot.gravity[:2]).max() > _LEVEL * abs(robot.gravity[2]):
        raise StanceError(
            f"the sole of foot {name!r} of robot {robot.name!r} is not level: its up is {foot.axes[:, 2].round(4)} in "
            f"the base frame, gravity {robot.gravity}; the base's z axis must be up"
        )
    return foot


def measured_point(foot: Foot, forces: Array) -> Array:
    """Zero-moment point on the level sole of a foot that is the base: sum of f_i c_i over sum of f_i.

    Args:
        foot: whose corners c are given in the base frame, z up.
        forces: at the corners, positive when pressed [N], shape (n, 4), their sum above zero.

    Returns:
        x and y in the base frame [m], shape (n, 2).

    Source: Vukobratović & Borovac, Int. J. Humanoid Robotics 1(1), 2004.
    """
    x, y, force = (forces @ corner_numerators(foot)).T
    return np.stack([x / force, y / force], axis=1)


def corner_numerators(foot: Foot) -> Array:
    """What a corner's force of 1 N adds to the numerators [m] and to the vertical force, shape (4, 3)."""
    return np.column_stack([np.array(foot.corners)[:, :2], np.ones(len(foot.corners))])


def numerators(foot: Foot, wrench: Array) -> Array:
    """What the zero-moment point on a foot's ground is divided from: h f_x - n_y, h f_y + n_x, and f_z.

    Args:
        foot: part of the base, its sole at the height h.
        wrench: force and moment about the base frame's origin that the ground exerts, or columns of them, (n, 6, ...).

    Returns:
        Shape (n, 3, ...).
    """
    height = float(foot.origin[2])
    fx, fy, fz, nx, ny, _ = np.moveaxis(wrench, 1, 0)
    return np.stack([height * fx - ny, height * fy + nx, fz], axis=1)
