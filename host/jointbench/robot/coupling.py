"""Joints that share motors, as in a geared wrist or a differential."""

from dataclasses import dataclass

from jointbench.robot.drive import Drive


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
