"""What turns motor current into joint torque: drives, and the couplings between them."""

from dataclasses import dataclass
from typing import Literal

DRIVE_KINDS = ("direct", "harmonic")
"""Kinds of drives: "direct" is any stiff transmission, "harmonic" one with a strain-wave gear."""


@dataclass(frozen=True)
class Drive:
    """A motor with its gear, as far as the host must know it: the physics of friction is identified, not given.

    Attributes:
        name: unique within the robot.
        joint: name of the joint it drives (in a coupling: the joint of the same row).
        kind: "direct" or "harmonic".
        ratio: motor turns per joint turn, negative where they turn against each other.
        torque_constant: motor torque per current [N·m/A].
        current_limit: largest magnitude of the motor current [A].
        rotor_inertia: about the motor's axis [kg·m²], where known.
        stiffness: of the gear at the joint side [N·m/rad], where known.
    """

    name: str
    joint: str
    kind: Literal["direct", "harmonic"]
    ratio: float
    torque_constant: float
    current_limit: float
    rotor_inertia: float | None = None
    stiffness: float | None = None

    @property
    def torque_per_current(self) -> float:
        """Torque at the joint per motor current [N·m/A] where the drive is not coupled."""
        return self.ratio * self.torque_constant


@dataclass(frozen=True)
class Coupling:
    """Joints that share motors through a constant matrix M, as in a geared wrist or a differential.

    motor position = M @ joint position, and so joint position = M⁻¹ @ motor position and
    joint torque = Mᵀ @ motor torque. M replaces the ratios of the drives of these joints.

    Attributes:
        name: of the mechanism, such as "wrist".
        joints: names of the joints, in the order of M's rows (motors) and columns (joints).
        matrix: M, rows as tuples.
    """

    name: str
    joints: tuple[str, ...]
    matrix: tuple[tuple[float, ...], ...]
