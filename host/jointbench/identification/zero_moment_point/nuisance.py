"""What is between a model's zero-moment point and the measured one beside noise: sensors, cables, the sole's give."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from jointbench.arrays import Array
from jointbench.dynamics import forward_kinematics
from jointbench.identification.zero_moment_point.measured_point import corner_numerators, numerators
from jointbench.identification.zero_moment_point.sole_give import wrench_by_give
from jointbench.robot import CORNERS, Foot, Robot
from jointbench.signals import Motion

_AXES = ("x", "y", "z")


@dataclass(frozen=True)
class SensorSheet:
    """What is known of soles and cables before anything is recorded: standard deviations about nothing.

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
        """In the order of `nuisance_names`, shape (k,)."""
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
    """Where cables pull: origins of the feet's links in the base frame, z from the ground [m], (n, n_feet, 3).

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
