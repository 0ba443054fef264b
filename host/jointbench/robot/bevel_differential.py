"""The coupled drive: two motors that turn and pitch one joint through a bevel differential."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from jointbench.arrays import Array
from jointbench.robot.coupling import Coupling

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
        both, apart = self.first_bevel + self.second_bevel, self.first_bevel - self.second_bevel
        pitching = both + self.carrier + self.third_mass * self.third_radius**2
        return np.array([[both + self.third_bevel, apart], [apart, pitching]])

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
