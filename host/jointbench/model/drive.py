"""Drives: motor, gear and sensors of a joint, motors that joints share, and all drives of a robot together."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from jointbench.arrays import Array
from jointbench.errors import RobotError

DRIVE_KINDS = ("direct", "harmonic", "coupled")
"""Kinds of drives in robot files: "direct" is any stiff transmission, "harmonic" one with a strain-wave gear, and
"coupled" a stiff one whose ratio the joint's coupling says."""


@dataclass(frozen=True)
class Drive:
    """A motor with its gear, as far as the host must know it: what is not known here is identified.

    The motor side is before the gear, the link side behind it; quantities of the motor side are about the motor's axis.

    Attributes:
        name: unique within the robot.
        joint: name of the joint it drives (in a coupling: the joint of the same row).
        kind: "direct", "harmonic", "coupled", or "none" where nothing drives the joint.
        ratio: motor turns per joint turn, negative where they turn against each other; in a coupling its matrix counts.
        torque_constant: motor torque per current [N·m/A].
        current_limit: largest magnitude of the motor current [A].
        rotor_inertia: about the motor's axis [kg·m²], where known.
        stiffness: of the gear at the joint side [N·m/rad], where known.
        motor_coulomb, motor_viscous: friction of the motor side [N·m, N·m·s/rad], where known.
        link_coulomb, link_viscous: friction of the link side [N·m, N·m·s/rad; N, N·s/m], where known.
        motor_encoder, link_encoder, torque_sensor: what measures: position on either side, torque on the link side.
        torque_mode: the motor's current is held at zero while the others move, so that a hand or the load turns the
            joint; else it follows a reference.
    """

    name: str
    joint: str
    kind: Literal["direct", "harmonic", "coupled", "none"]
    ratio: float
    torque_constant: float
    current_limit: float
    rotor_inertia: float | None = None
    stiffness: float | None = None
    motor_coulomb: float | None = None
    motor_viscous: float | None = None
    link_coulomb: float | None = None
    link_viscous: float | None = None
    motor_encoder: bool = True
    link_encoder: bool = False
    torque_sensor: bool = False
    torque_mode: bool = False

    @staticmethod
    def none(joint: str) -> Drive:
        """Return the stand-in for the drive of a joint that has none; position is measured at the joint itself."""
        return Drive(joint, joint, "none", 1.0, 0.0, 0.0, motor_encoder=False, link_encoder=True)

    @property
    def torque_per_current(self) -> float:
        """Torque at the joint per motor current [N·m/A] where the drive is not coupled."""
        return self.ratio * self.torque_constant

    @property
    def flexible(self) -> bool:
        """True where motor and link move apart under load: of all harmonic drives, and of any with a stiffness."""
        return self.kind == "harmonic" or self.stiffness is not None

    def twist(self, torque: Array) -> Array:
        """Lead of the motor over the link at the joint side: torque / stiffness [rad].

        Its rates follow from the torque's: the motor's velocity from dtorque/dt, its acceleration from d²torque/dt².

        Args:
            torque: through the gear, at the joint side [N·m], any shape.

        Raises:
            RobotError: the drive is flexible, and nothing says how much.
        """
        if not self.flexible:
            return np.zeros_like(torque)
        if self.stiffness is None:
            raise RobotError(
                f"drive {self.name!r} is {self.kind}, and its stiffness is not known; "
                f"give stiffness_Nm_rad in the robot file, or identify it"
            )
        return torque / self.stiffness


@dataclass(frozen=True)
class Coupling:
    """Joints that share motors through a constant matrix M, of as many rows as motors, at least one for each joint.

    motor position = M @ joint position, and so joint position = M⁺ @ motor position and
    joint torque = Mᵀ @ motor torque. M replaces the ratios of the drives of these joints.

    Attributes:
        name: of the mechanism, such as "wrist".
        joints: names of the joints, in the order of M's columns.
        matrix: M, rows as tuples: first the motors of the joints' own drives in the order of `joints`, then `more`.
        more: drives beyond one for each joint, as where two motors hold a joint against each other.
    """

    name: str
    joints: tuple[str, ...]
    matrix: tuple[tuple[float, ...], ...]
    more: tuple[Drive, ...] = ()


_BEVELS_OF_OUTPUTS = np.array([[1.0, 1.0], [-1.0, 1.0]])


@dataclass(frozen=True)
class BevelDifferential:
    """A differential of equal bevel gears: two of its bevels are inputs, the third and its carrier the outputs.

    Bevel positions φ1 = q1 + q2 and φ2 = q2 - q1, and so rotation q1 = (φ1 - φ2) / 2 and pitch q2 = (φ1 + φ2) / 2.
    Alone, on an upright rotation axis, it moves as J ddq + G(q2) = Q, from the Lagrangian of
    E = ½ J11 dq1² + J12 dq1 dq2 + ½ J22 dq2² and U = -mHe g rHe cos q2 - m3 g rH. The paper prints Q1 in both rows of
    Q, an evident misprint.

    In a robot's file it is a coupling of kind "bevel_differential": its input bevels with all that turns with them are
    then the motors' `rotor_inertia` times ratio², its other bodies parts of the links.

    Attributes:
        ratio: motor turns per turn of an input bevel.
        first_bevel, second_bevel: inertia of either input bevel, with gear and rotor, about its axis, J1, J2 [kg·m²].
        third_bevel: inertia of the output bevel about the rotation axis, J3 [kg·m²].
        carrier: inertia of the carrier about the pitch axis, JH [kg·m²].
        third_mass, third_radius: of the output bevel, m3 [kg], and how far it is from the pitch axis, rH [m].
        load_mass, load_radius: of all that pitches, mHe [kg], and how far its centre of mass is from the pitch axis
            while it hangs at q2 = 0, rHe [m].

    Source: Lu et al., Chinese Journal of Mechanical Engineering 37:74, 2024.
    """

    ratio: float = 1.0
    first_bevel: float = 0.0
    second_bevel: float = 0.0
    third_bevel: float = 0.0
    carrier: float = 0.0
    third_mass: float = 0.0
    third_radius: float = 0.0
    load_mass: float = 0.0
    load_radius: float = 0.0

    @property
    def matrix(self) -> tuple[tuple[float, ...], ...]:
        """M of motor position = M @ (rotation, pitch), as a `Coupling` has it."""
        return ((self.ratio, self.ratio), (-self.ratio, self.ratio))

    def coupling(self, name: str, rotation: str, pitch: str) -> Coupling:
        """The coupling of two joints of a robot by this differential; names of it and of the joints."""
        return Coupling(name, (rotation, pitch), self.matrix)

    def bevel_motion(self, output_motion: ArrayLike) -> Array:
        """Input bevels' positions, velocities or accelerations of rotation and pitch, shape (…, 2)."""
        return np.asarray(output_motion, dtype=np.float64) @ _BEVELS_OF_OUTPUTS.T

    def output_motion(self, bevel_motion: ArrayLike) -> Array:
        """Rotation and pitch, their velocities or accelerations, of those of the input bevels, shape (…, 2)."""
        return np.asarray(bevel_motion, dtype=np.float64) @ (0.5 * _BEVELS_OF_OUTPUTS)

    @property
    def inertia(self) -> Array:
        """J = [[J11, J12], [J12, J22]] [kg·m²] with J11 = J1 + J2 + J3, J12 = J1 - J2, J22 = J1 + J2 + JH + m3 rH²."""
        bevel_sum, bevel_difference = self.first_bevel + self.second_bevel, self.first_bevel - self.second_bevel
        pitching = bevel_sum + self.carrier + self.third_mass * self.third_radius**2
        return np.array([[bevel_sum + self.third_bevel, bevel_difference], [bevel_difference, pitching]])

    def gravity_torque(self, pitch: ArrayLike, gravity: float = 9.80665) -> Array:
        """G = ∂U/∂q = (0, mHe g rHe sin q2) [N·m], shape (…, 2).

        Args:
            pitch: q2 [rad], shape (…).
            gravity: g [m/s²].
        """
        torque = self.load_mass * gravity * self.load_radius * np.sin(np.asarray(pitch, dtype=np.float64))
        return np.stack([np.zeros_like(torque), torque], axis=-1)

    def generalised_forces(
        self, first: ArrayLike, second: ArrayLike, third: ArrayLike = 0.0, carrier: ArrayLike = 0.0
    ) -> Array:
        """Q = (T1 - T2 + T3, T1 + T2 + TH) [N·m] of the torques on the bevels and on the carrier, shape (…, 2)."""
        t1, t2, t3, th = (np.asarray(torque, dtype=np.float64) for torque in (first, second, third, carrier))
        return np.stack([t1 - t2 + t3, t1 + t2 + th], axis=-1)

    def required_forces(self, pitch: ArrayLike, acceleration: ArrayLike, gravity: float = 9.80665) -> Array:
        """Q = J ddq + G(q2) [N·m], shape (…, 2), for pitch [rad], shape (…), and ddq [rad/s²], shape (…, 2)."""
        return np.asarray(acceleration, dtype=np.float64) @ self.inertia + self.gravity_torque(pitch, gravity)


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
        """Number of motors: one for each joint, or more."""
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
        link = np.diag(_known(drive.link_viscous for drive in self._joint_drives))
        return (self.matrix.T * _known(drive.motor_viscous for drive in self.drives)) @ self.matrix + link

    @cached_property
    def known_coulomb(self) -> Array:
        """Largest Coulomb friction at each joint by the values that the drives give [N·m or N], shape (n_joints,)."""
        motor = _known(drive.motor_coulomb for drive in self.drives)
        return motor @ np.abs(self.matrix) + _known(drive.link_coulomb for drive in self._joint_drives)

    def known_friction(self, joint_velocity: Array, sign: Sign = np.sign) -> Array:
        """Friction of both sides at the joints [N·m or N], as far as the drives give it; what is not known is left out.

        Σ over motors Mᵀ (coulomb sign(M dq) + viscous M dq), and coulomb sign(dq) + viscous dq of the link sides.

        Args:
            joint_velocity: dq [rad/s or m/s], shape (…, n_joints).
            sign: the sign function, or a smooth stand-in such as tanh(v / v0).
        """
        motor = _known(drive.motor_coulomb for drive in self.drives) * sign(self.motor_motion(joint_velocity))
        link = _known(drive.link_coulomb for drive in self._joint_drives) * sign(joint_velocity)
        return self.joint_torque(motor) + link + joint_velocity @ self.known_viscous.T

    @property
    def _joint_drives(self) -> tuple[Drive, ...]:
        return self.drives[: self.matrix.shape[1]]


def _known(values: Iterable[float | None]) -> Array:
    return np.array([0.0 if value is None else value for value in values])
