"""What a residual model is: torque that is added to another model's."""

from __future__ import annotations

from typing import Protocol

from jointbench.arrays import Array
from jointbench.identification.residual.mission import Mission


class Residual(Protocol):
    """Torque that a model lacks, learnt from its error along one mission."""

    def torque(self, time: Array, q: Array, dq: Array, ddq: Array) -> Array:
        """What is to be added to the model's torque.

        Args:
            time: since the mission began [s], shape (n,).
            q, dq, ddq: joint position [rad], velocity [rad/s], acceleration [rad/s²], shape (n, n_joints); or of m.

        Returns:
            Torque [N·m or N], shape (n, n_joints).

        Raises:
            ShapeError: of residuals that look at the motion: it does not match the robot.
        """
        ...

    def along(self, mission: Mission) -> Array:
        """The same at a mission's rows, filtered as its measured torque was, shape (n, n_joints)."""
        ...

    def distance_along(self, mission: Mission) -> Array:
        """How far a mission's rows are from what it was fitted to, of each joint, shape (n, n_joints).

        Up to 1 inside of it, beyond that so many times as far out; infinite where it knows nothing.
        """
        ...
