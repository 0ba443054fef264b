"""All drives of a robot together: what its motors do is what its joints do, seen through one constant matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jointbench.arrays import Array
from jointbench.robot.drive import Drive

Sign = Callable[[Array], Array]


@dataclass(frozen=True, eq=False)
class DriveTrain:
    """Maps between motors and joints; rows of arrays are samples, columns motors or joints.

    motor position = M @ joint position and joint torque = Mᵀ @ motor torque, so that both sides have the same power:
    joint torque · joint velocity = motor torque · motor velocity. Gears count as rigid here; `Drive.twist` is what a
    flexible one adds.

    Attributes:
        drives: the motors, in the order of M's rows.
        matrix: M, of full column rank, shape (n_motors, n_joints).
    """

    drives: tuple[Drive, ...]
    matrix: Array

    @property
    def n_motors(self) -> int:
        """How many motors there are: one for each joint, or more."""
        return len(self.drives)

    @cached_property
    def inverse(self) -> Array:
        """M⁻¹, or M⁺ = (MᵀM)⁻¹Mᵀ where there are more motors than joints, shape (n_joints, n_motors)."""
        square = self.matrix.shape[0] == self.matrix.shape[1]
        # The pseudo-inverse of a regular matrix is its inverse, but with more rounding.
        return np.asarray(np.linalg.inv(self.matrix) if square else np.linalg.pinv(self.matrix), dtype=np.float64)

    def motor_motion(self, joint_motion: Array) -> Array:
        """Motors' positions, velocities or accelerations of those of the joints, shape (…, n_joints)."""
        return joint_motion @ self.matrix.T

    def joint_motion(self, motor_motion: Array) -> Array:
        """Joints' positions, velocities or accelerations of those of the motors, shape (…, n_motors).

        Where there are more motors than joints, the ones that fit the motors best, least squares.
        """
        return motor_motion @ self.inverse.T

    def joint_torque(self, motor_torque: Array) -> Array:
        """Torque at the joints [N·m or N] of the motors' [N·m], shape (…, n_motors)."""
        return motor_torque @ self.matrix

    def motor_torque(self, joint_torque: Array) -> Array:
        """Motors' torque [N·m] for a torque at the joints [N·m or N], shape (…, n_joints).

        Where there are more motors than joints, the one of least Σ torque².
        """
        return joint_torque @ self.inverse

    def joint_torque_of_current(self, current: Array) -> Array:
        """Torque at the joints [N·m or N] of the motors' currents [A], shape (…, n_motors)."""
        return self.joint_torque(current * np.array([drive.torque_constant for drive in self.drives]))

    @cached_property
    def known_inertia(self) -> Array:
        """Mᵀ J M of the rotors whose inertia the drives give [kg·m² or kg], shape (n_joints, n_joints)."""
        return (self.matrix.T * _known(drive.rotor_inertia for drive in self.drives)) @ self.matrix

    @cached_property
    def known_viscous(self) -> Array:
        """Mᵀ F M of the motor sides' viscous friction and that of the link sides [N·m·s/rad or N·s/m], likewise."""
        link = np.diag(_known(drive.link_viscous for drive in self._of_joints))
        return (self.matrix.T * _known(drive.motor_viscous for drive in self.drives)) @ self.matrix + link

    @cached_property
    def known_coulomb(self) -> Array:
        """The most that the Coulomb friction the drives give can be at each joint [N·m or N], shape (n_joints,)."""
        motor = _known(drive.motor_coulomb for drive in self.drives)
        return motor @ np.abs(self.matrix) + _known(drive.link_coulomb for drive in self._of_joints)

    def known_friction(self, joint_velocity: Array, sign: Sign = np.sign) -> Array:
        """Friction of both sides at the joints [N·m or N], as far as the drives give it; what is not known is left out.

        Σ over motors Mᵀ (coulomb sign(M dq) + viscous M dq), and coulomb sign(dq) + viscous dq of the link sides.

        Args:
            joint_velocity: dq [rad/s or m/s], shape (…, n_joints).
            sign: the sign function, or a smooth stand-in such as tanh(v / v0).
        """
        motor = _known(drive.motor_coulomb for drive in self.drives) * sign(self.motor_motion(joint_velocity))
        link = _known(drive.link_coulomb for drive in self._of_joints) * sign(joint_velocity)
        return self.joint_torque(motor) + link + joint_velocity @ self.known_viscous.T

    @property
    def _of_joints(self) -> tuple[Drive, ...]:
        return self.drives[: self.matrix.shape[1]]


def _known(values: Iterable[float | None]) -> Array:
    return np.array([0.0 if value is None else value for value in values])
