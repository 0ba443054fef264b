"""A drive: the motor that moves a joint, the gear between them, and what measures on either side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from jointbench.arrays import Array
from jointbench.errors import UnknownStiffness

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

    @staticmethod
    def none(joint: str) -> Drive:
        """What stands for the drive of a joint that has none, its position measured at the joint itself."""
        return Drive(joint, joint, "none", 1.0, 0.0, 0.0, motor_encoder=False, link_encoder=True)

    @property
    def torque_per_current(self) -> float:
        """Torque at the joint per motor current [N·m/A] where the drive is not coupled."""
        return self.ratio * self.torque_constant

    @property
    def flexible(self) -> bool:
        """Whether motor and link move apart under load: all harmonic drives, and what has a stiffness."""
        return self.kind == "harmonic" or self.stiffness is not None

    def twist(self, torque: Array) -> Array:
        """How far the motor, seen at the joint side, is ahead of the link: torque / stiffness [rad].

        Its rates follow from the torque's: the motor's velocity from dtorque/dt, its acceleration from d²torque/dt².

        Args:
            torque: through the gear, at the joint side [N·m], any shape.

        Raises:
            UnknownStiffness: the drive is flexible, and nothing says how much.
        """
        if not self.flexible:
            return np.zeros_like(torque)
        if self.stiffness is None:
            raise UnknownStiffness(
                f"drive {self.name!r} is {self.kind}, and its stiffness is not known; "
                f"give stiffness_Nm_rad in the robot file, or identify it"
            )
        return torque / self.stiffness
