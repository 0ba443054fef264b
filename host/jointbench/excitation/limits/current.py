"""The limit of the motor currents, as far as a model known beforehand predicts the torques they make."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.excitation.limits.limit import Motion
from jointbench.excitation.limits.torque import TorqueLimit
from jointbench.robot import DriveTrain


@dataclass(frozen=True, eq=False)
class CurrentLimit:
    """Current of every motor, by magnitude; the scalars are all motors upwards, then all downwards.

    i = M⁻ᵀ tau / torque constant, with tau of a `TorqueLimit`; Coulomb friction counts in full on both sides here, too.
    Where joints share motors, no limits of their torques say the same.

    Attributes:
        torque: what predicts the joints' torques.
        allowed: largest magnitude of each motor's current [A], shape (n_motors,).
    """

    torque: TorqueLimit
    allowed: Array

    @property
    def names(self) -> tuple[str, ...]:
        """Such as "motor 'j2' current (+)"."""
        return tuple(f"motor {drive.name!r} current ({side})" for side in "+-" for drive in self._train.drives)

    def usage(self, motion: Motion) -> Array:
        """Share of the limit, shape (n_samples, 2 n_motors)."""
        current = self.torque.predict(motion) @ self._of_torque
        friction = self.torque.drives.coulomb @ np.abs(self._of_torque)
        return np.concatenate([current + friction, friction - current], axis=1) * self._shares

    def gradient(self, motion: Motion, which: NDArray[np.int64]) -> Motion:
        """Derivatives of the usage; none by the jerk."""
        n = self._train.n_motors
        shares = self._shares[which] * np.where(which < n, 1.0, -1.0)
        return self.torque.adjoint(motion, shares[:, None] * self._of_torque.T[which % n])

    def between(self, bounds: Array, step: float) -> Array:
        """From the bound of the torques' second derivatives: step²/8 of it."""
        curvature = self.torque.curvature(bounds) @ np.abs(self._of_torque)
        return step * step / 8.0 * np.concatenate([curvature] * 2) * self._shares

    def say(self, scalar: int, usage: float) -> str:
        """Such as "motor 'j2' current reaches 8.1 A, at most 7 A of the limit 7 A is allowed"."""
        motor = scalar % self._train.n_motors
        drive, allowed = self._train.drives[motor], self.allowed[motor]
        return (
            f"motor {drive.name!r} current reaches {usage * allowed:.6g} A, "
            f"at most {allowed:.6g} A of the limit {drive.current_limit:.6g} A is allowed"
        )

    @property
    def is_implied(self) -> bool:
        """Whether the limits of the joints' torques keep all currents within theirs already."""
        return bool(np.all(self.torque.allowed @ np.abs(self._of_torque) * self._shares[: self._train.n_motors] <= 1.0))

    @cached_property
    def _train(self) -> DriveTrain:
        return self.torque.robot.drive_train

    @cached_property
    def _of_torque(self) -> Array:
        """Motor current per joint torque [A/(N·m)], shape (n_joints, n_motors); 0 where there is no motor or model."""
        constants = np.array([drive.torque_constant for drive in self._train.drives])
        per_torque = np.divide(1.0, constants, out=np.zeros_like(constants), where=constants != 0.0)
        return self.torque.robot.modelled[:, None] * self._train.inverse * per_torque

    @cached_property
    def _shares(self) -> Array:
        shares = np.divide(1.0, self.allowed, out=np.zeros_like(self.allowed), where=self.allowed > 0.0)
        return np.concatenate([shares, shares])


def current_limit(torque: TorqueLimit, share: float) -> CurrentLimit | None:
    """The limit of the motor currents, None where that of the joints' torques says as much.

    Args:
        torque: what predicts the joints' torques.
        share: of each motor's current limit that may be used.
    """
    limits = np.array([drive.current_limit for drive in torque.robot.drive_train.drives])
    limit = CurrentLimit(torque, share * limits)
    return None if limit.is_implied else limit
