"""How a base moves that is free to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from jointbench.arrays import IDENTITY, Array
from jointbench.errors import ShapeError
from jointbench.robot import Robot
from jointbench.robot.free_base import BASE_JOINTS


@dataclass(frozen=True, eq=False)
class FreeBaseMotion:
    """The motion of a free base over samples, in its own axes, shape (n_samples, 3) each.

    Where it is does not matter, nor how fast its origin goes: no force depends on that.

    Attributes:
        omega, alpha: angular velocity [rad/s] and acceleration [rad/s²].
        felt: acceleration of its frame's origin minus gravity [m/s²], as an accelerometer there measures.
    """

    omega: Array
    alpha: Array
    felt: Array

    def __post_init__(self) -> None:
        """Refuse what is not three columns of the same samples.

        Raises:
            ShapeError: an array has another shape than (n_samples, 3), or than the first one.
        """
        for name in ("omega", "alpha", "felt"):
            shape = getattr(self, name).shape
            if shape != (*self.omega.shape[:1], 3):
                raise ShapeError(
                    f"{name} of the base has shape {shape}; omega, alpha and felt need one shape (n_samples, 3)"
                )

    @staticmethod
    def from_world(
        robot: Robot, rotation: ArrayLike, omega: ArrayLike, alpha: ArrayLike, acceleration: ArrayLike
    ) -> FreeBaseMotion:
        """The motion as motion capture tells it, in the axes of the world, where the robot's gravity is given.

        Args:
            robot: whose base it is.
            rotation: the base's axes in the world as columns, shape (n_samples, 3, 3).
            omega, alpha: angular velocity [rad/s] and acceleration [rad/s²], shape (n_samples, 3).
            acceleration: of the base frame's origin [m/s²], shape (n_samples, 3).

        Raises:
            ShapeError: an array has another shape.
        """
        turn = np.asarray(rotation, dtype=np.float64)
        vectors = [np.asarray(each, dtype=np.float64) for each in (omega, alpha, acceleration)]
        if any(turn.shape != (*each.shape, 3) or each.shape[1:] != (3,) for each in vectors):
            shapes = ", ".join(str(each.shape) for each in vectors)
            raise ShapeError(
                f"rotation has shape {turn.shape} and omega, alpha, acceleration have {shapes}; needed are "
                f"(n_samples, 3, 3) and (n_samples, 3)"
            )
        vectors[-1] = vectors[-1] - robot.gravity
        return FreeBaseMotion(*(np.einsum("kba,kb->ka", turn, each) for each in vectors))

    @staticmethod
    def from_imu(
        omega: ArrayLike,
        alpha: ArrayLike,
        felt: ArrayLike,
        rotation: ArrayLike = IDENTITY,
        origin: ArrayLike = (0.0, 0.0, 0.0),
    ) -> FreeBaseMotion:
        """The motion as an inertial measurement unit on the base tells it.

        At the base frame's origin felt is that of the unit, less alpha × origin + omega × (omega × origin).

        Args:
            omega: angular velocity [rad/s], in the unit's axes, shape (n_samples, 3).
            alpha: its derivative [rad/s²], likewise.
            felt: what the accelerometer measures [m/s²], likewise.
            rotation: the unit's axes in the base's as columns, shape (3, 3).
            origin: of the unit in the base frame [m], shape (3,).

        Raises:
            ShapeError: omega, alpha and felt differ in shape, or are not (n_samples, 3).
        """
        turn, arm = (np.asarray(each, dtype=np.float64) for each in (rotation, origin))
        unit = FreeBaseMotion(*(np.asarray(each, dtype=np.float64) for each in (omega, alpha, felt)))
        spin, slope, there = (each @ turn.T for each in (unit.omega, unit.alpha, unit.felt))
        return FreeBaseMotion(spin, slope, there - np.cross(slope, arm) - np.cross(spin, np.cross(spin, arm)))

    def beside(self, q: Array, dq: Array, ddq: Array) -> tuple[Array, Array, Array]:
        """Motion of joints of `on_free_base`: the base's six, at zero where their axes are its own, and the robot's.

        The three that turn carry each other: with their speeds x, y, z, alpha = (ddx + y z, ddy - x z, ddz + x y).

        Args:
            q, dq, ddq: of the robot's joints, shape (n_samples, n_joints).

        Returns:
            q, dq, ddq, shape (n_samples, 6 + n_joints) each.

        Raises:
            ShapeError: the base's motion has another number of samples.
        """
        if len(self.omega) != len(q):
            raise ShapeError(
                f"the base's motion has {len(self.omega)} samples but q has {len(q)}; they must be the same"
            )
        x, y, z = self.omega.T
        turning = self.alpha + np.stack([-y * z, x * z, -x * y], axis=1)
        return (
            np.hstack([np.zeros((len(q), BASE_JOINTS)), q]),
            np.hstack([np.zeros_like(self.omega), self.omega, dq]),
            np.hstack([self.felt, turning, ddq]),
        )
