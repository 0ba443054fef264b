"""The limits an excitation is planned within, and the scaling that brings a motion inside them."""

from dataclasses import dataclass

import numpy as np

from jointbench.dynamics import gravity_torques, inverse_dynamics
from jointbench.errors import InfeasibleExcitation
from jointbench.excitation.basis import RestToRestBasis
from jointbench.robot import Array, Robot

USABLE_MOTION = 0.95
"""Share of the motion limits that a plan uses: the board stops at the limit itself and follows with an error."""

USABLE_TORQUE = 0.8
"""Share of the torque limit that the links' nominal inertias may ask for: the rest is for friction and error."""

_SHRINK = 0.95
_SHRINKS = 200
"""Factor by which a motion shrinks about home while it asks for too much torque, and how often at most (to 4e-5)."""

FINE_STEP = 1e-3
"""Time step [s] of the check that decides whether a motion is feasible."""


@dataclass(frozen=True, eq=False)
class UsableLimits:
    """Limits about the home position, per joint, shape (n_joints,).

    Attributes:
        down, up: largest excursion from home [rad], both positive.
        velocity, acceleration: largest magnitudes [rad/s, rad/s²].
        torque: largest magnitude [N·m], or None where the robot has no nominal inertias to predict it from.
    """

    down: Array
    up: Array
    velocity: Array
    acceleration: Array
    torque: Array | None

    @staticmethod
    def of(robot: Robot) -> "UsableLimits":
        """Limits of a robot.

        Raises:
            InfeasibleExcitation: at home, gravity alone asks a joint for more than its usable torque.
        """
        home = np.array(robot.home)
        low, high = robot.position_limits.T
        torque = None
        if robot.standard_parameters is not None:
            torque = USABLE_TORQUE * robot.torque_limits
            held = np.abs(gravity_torques(robot, home[None], robot.standard_parameters)[0])
            for name, needed, usable in zip(robot.joint_names, held, torque, strict=True):
                if needed >= usable:
                    raise InfeasibleExcitation(
                        f"robot {robot.name!r}, joint {name!r}: gravity at home asks for {needed:.3g} N·m, of the "
                        f"torque limit {usable / USABLE_TORQUE:.3g} N·m only {usable:.3g} may be used; choose another "
                        f"home or raise the torque limit"
                    )
        return UsableLimits(
            USABLE_MOTION * (home - low),
            USABLE_MOTION * (high - home),
            USABLE_MOTION * robot.velocity_limits,
            USABLE_MOTION * robot.acceleration_limits,
            torque,
        )

    def joint_usage(self, moved: Array, velocity: Array, acceleration: Array) -> Array:
        """Largest share of any motion limit each joint uses over a motion (n_samples, n_joints), from home."""
        shares = [moved / self.up, -moved / self.down, np.abs(velocity) / self.velocity]
        shares.append(np.abs(acceleration) / self.acceleration)
        return np.max([share.max(axis=0) for share in shares], axis=0)


def scale_into_limits(
    robot: Robot, limits: UsableLimits, basis: RestToRestBasis, weights: Array, *, fill: float | None = None
) -> Array:
    """Scale a motion about home until it is inside the usable limits on a fine time grid.

    Every joint is scaled by itself until its motion fits; then, where torque is still too large, all of them
    together. Home itself is inside all limits, so small motions are.

    Args:
        robot, limits: the robot and its limits.
        basis: of the motion.
        weights: shape (n_joints, basis.size).
        fill: where given, joints are also scaled up, to this share of their tightest motion limit.

    Returns:
        The scaled weights.

    Raises:
        InfeasibleExcitation: at home, a joint is so close to its usable torque that no motion is left.
    """
    time = np.arange(0.0, basis.period, FINE_STEP)
    phi, dphi, ddphi = basis.evaluate(time)
    usage = limits.joint_usage(phi @ weights.T, dphi @ weights.T, ddphi @ weights.T)
    usage = np.maximum(usage, 1e-12)  # a joint at rest uses nothing
    scale = np.minimum(1.0 / usage, 1.0) if fill is None else fill / usage
    weights = weights * scale[:, None]
    if limits.torque is None or robot.standard_parameters is None:
        return weights
    torques = np.zeros(robot.n_joints)
    for _ in range(_SHRINKS):
        motion = (np.array(robot.home) + phi @ weights.T, dphi @ weights.T, ddphi @ weights.T)
        torques = np.abs(inverse_dynamics(robot, *motion, robot.standard_parameters)).max(axis=0)
        if np.all(torques <= limits.torque):
            return weights
        weights = _SHRINK * weights
    worst = int(np.argmax(torques / limits.torque))
    raise InfeasibleExcitation(
        f"robot {robot.name!r}, joint {robot.joint_names[worst]!r}: even a tiny motion about home asks for "
        f"{torques[worst]:.4g} N·m, more than the {limits.torque[worst]:.4g} N·m that may be used; choose another home "
        f"or raise the torque limit"
    )
