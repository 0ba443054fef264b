"""The measured zero-moment point of corner forces, and errors of their sensors."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.identification.zero_moment_point.contact import wrench_by_give
from jointbench.model import CORNERS, Foot, Robot, forward_kinematics
from jointbench.signals import Motion

_TOLD = 1e-3
"""Combinations of parameters that move the forces by less than this share of what the strongest does tell noise."""


def told_parameters(foot: Foot, columns: Array, forces: Array, known: Array) -> Array:
    """Inertial parameters that give the forces under a foot at rest best: `known` where these do not tell.

    They are good for what this motion shows, and may be nobody's where it shows little.

    Args:
        foot: the support foot.
        columns: of numerators and vertical force, filtered like the forces, shape (n, 3, p).
        forces: at the corners [N], shape (n, 4).
        known: beforehand, shape (p,).
    """
    told = columns.reshape(-1, len(known))
    size = np.sqrt(np.mean(told**2, axis=0))
    size[size == 0.0] = 1.0
    missing = (forces @ corner_numerators(foot)).ravel() - told @ known
    return known + np.linalg.lstsq(told / size, missing, rcond=_TOLD)[0] / size


def smooth_forces(
    foot: Foot, columns: Array, parameters: Array, forces: Array, rows: NDArray[np.intp], sample_period: float
) -> Motion:
    """Forces at some rows, and their derivatives.

    Numerators and vertical force are those of the parameters, and so nearly without noise. What corners read beside
    these three, one against another, stays as it is.

    Args:
        foot: the support foot.
        columns: of numerators and vertical force at all samples, filtered like the forces, shape (n, 3, p).
        parameters: of `told_parameters`, shape (p,).
        forces: at the corners [N], shape (len(rows), 4).
        rows: samples they are of.
        sample_period: of the columns [s].

    Returns:
        Forces [N], their first [N/s] and second derivatives [N/s²], shape (len(rows), 4) each.
    """
    by_corner = corner_numerators(foot)
    to_corners = np.linalg.pinv(by_corner)
    smooth = columns @ parameters
    rate = np.gradient(smooth, sample_period, axis=0)
    curvature = np.gradient(rate, sample_period, axis=0)
    noise = forces @ by_corner - smooth[rows]
    return Motion(forces - noise @ to_corners, rate[rows] @ to_corners, curvature[rows] @ to_corners)


_AXES = ("x", "y", "z")


@dataclass(frozen=True)
class SensorSheet:
    """Prior knowledge of soles and cables: standard deviations about nothing.

    Attributes:
        gain: of a corner's gain about the nominal one [1]; a gain within ±1.5 % at random has 0.015/√3.
        zero: of a corner's zero after calibration [N].
        pull: of each component of the constant force of a cable at a foot [N].
        give: of how far a corner sinks under its force [m/N]; load cells of 500 N on thin rubber sink by 0.5 mm.
        delay: of how much later forces are read than positions [s].
    """

    gain: float = 0.015 / sqrt(3.0)
    zero: float = 0.3
    pull: float = 1.0
    give: float = 1e-6
    delay: float = 1e-3

    def sigmas(self, robot: Robot) -> Array:
        """Return sigmas in the order of `nuisance_names`, shape (k,)."""
        corners = len(CORNERS)
        of_each = [self.gain, self.zero, self.pull, self.give, self.delay]
        return np.repeat(of_each, [corners, corners, len(_AXES) * len(robot.feet), 1, 1])


def nuisance_names(robot: Robot, foot: Foot) -> tuple[str, ...]:
    """Names: each corner's gain and zero error, then each foot's pull along x, y and z, the sole's give, the delay."""
    corners = [f"{foot.name}.{corner.replace(' ', '_')}" for corner in CORNERS]
    return (
        *(f"{corner}.{kind}" for kind in ("gain", "zero") for corner in corners),
        *(f"{each.name}.pull_{axis}" for each in robot.feet for axis in _AXES),
        f"{foot.name}.give",
        f"{foot.name}.delay",
    )


def pulled_arms(robot: Robot, foot: Foot, q: Array) -> Array:
    """Return where cables pull: origins of the feet's links in the base frame, z from the ground [m], (n, n_feet, 3).

    A cable that ends elsewhere on the foot pulls with nearly the same effect: 1 N at 50 mm from it moves the
    zero-moment point of 25 kg by 0.2 mm.
    """
    _, origins = forward_kinematics(robot, q)
    base = np.zeros((len(q), 3))
    arms = np.stack([base if each.joint < 0 else origins[:, each.joint] for each in robot.feet], axis=1)
    return arms - [0.0, 0.0, foot.origin[2]]


def nuisance_numerators(
    robot: Robot, foot: Foot, motion: Motion, forces: Motion, arms: Array, parameters: Array
) -> Array:
    """Derivatives of the measured numerators and vertical force by what is not known, to first order.

    measured = theory + columns @ nuisance. With corner i at c_i and its reading f_i, numerators and force grow by
    f_i [c_i, 1] with its gain and by [c_i, 1] with its zero; by [r_z P_xy - r_xy P_z, -P_z] with a pull P at r, which
    takes its share of what the ground must bear; with the give, as the foot rocks and accelerates what stands on it;
    and by -d/dt of themselves with the delay.

    Args:
        robot, foot: as of `wrench_by_give`.
        motion: of the joints, shape (n, n_joints) each.
        forces: of the corners and their derivatives, without the noise of the measured ones: that would be in both
            sides of a fit, and pass for gains, give and delay [N, N/s, N/s²], shape (n, 4) each.
        arms: of `pulled_arms`, r_z from the ground [m], shape (n, n_feet, 3).
        parameters: inertial ones that explain the motion, shape (10 * (1 + n_links),).

    Returns:
        Shape (n, 3, k), in the order of `nuisance_names`.
    """
    n, feet = arms.shape[:2]
    by_corner = corner_numerators(foot)
    gains = forces.q[:, None] * by_corner.T
    zeros = np.broadcast_to(by_corner.T, gains.shape)
    pulls = np.zeros((n, 3, feet, 3))
    pulls[:, 0, :, 0] = pulls[:, 1, :, 1] = arms[:, :, 2]
    pulls[:, :2, :, 2] = -arms[:, :, :2].transpose(0, 2, 1)
    pulls[:, 2, :, 2] = -1.0
    give = numerators(foot, wrench_by_give(robot, foot, motion, forces, parameters))
    delay = -forces.dq @ by_corner
    return np.concatenate([gains, zeros, pulls.reshape(n, 3, -1), give[:, :, None], delay[:, :, None]], axis=2)


_LEVEL = 1e-6  # of a direction's component; a sole tilted by a milliradian reads a robot 0.5 m high 0.5 mm off


def support_foot(robot: Robot, name: str) -> Foot:
    """The foot that the robot stands on: part of the base, its sole level.

    Raises:
        RobotError: the robot has no foot of this name.
        FitError: the base is no such foot.
    """
    foot = robot.foot(name)
    if foot.joint >= 0:
        carrier = robot.joints[foot.joint].name
        base = ", ".join(each.name for each in robot.feet if each.joint < 0) or "none"
        raise FitError(
            f"foot {name!r} of robot {robot.name!r} is moved by joint {carrier!r}; the support foot must be its base "
            f"(here: {base}), as the robot's motion is told from the base"
        )
    if abs(foot.axes[2, 2] - 1.0) > _LEVEL or np.abs(robot.gravity[:2]).max() > _LEVEL * abs(robot.gravity[2]):
        raise FitError(
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
    """Share of a corner's force of 1 N in the numerators [m] and in the vertical force, shape (4, 3)."""
    return np.column_stack([np.array(foot.corners)[:, :2], np.ones(len(foot.corners))])


def numerators(foot: Foot, wrench: Array) -> Array:
    """Return the dividends of the zero-moment point on a foot's ground: h f_x - n_y, h f_y + n_x, and f_z.

    Args:
        foot: part of the base, its sole at the height h.
        wrench: force and moment about the base frame's origin that the ground exerts, or columns of them, (n, 6, ...).

    Returns:
        Shape (n, 3, ...).
    """
    height = float(foot.origin[2])
    fx, fy, fz, nx, ny, _ = np.moveaxis(wrench, 1, 0)
    return np.stack([height * fx - ny, height * fy + nx, fz], axis=1)
