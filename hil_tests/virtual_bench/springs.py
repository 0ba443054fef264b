"""Springs between links, as arms have them to carry their weight or to return to the middle."""

import numpy as np

from jointbench.arrays import Array


class Springs:
    """A torsion spring and a sine spring at each joint, either of which may be missing (strength 0).

    tau = -torsion (q - torsion_zero) - sine sin(q - sine_zero), q the position of the link. The sine is the torque of a
    spring of no rest length from a point beyond the joint to one on the link, as balancers are built.

    Args:
        torsion: [N·m/rad], shape (n,).
        sine: largest torque [N·m], shape (n,).
        torsion_zero, sine_zero: positions without torque [rad], shape (n,).
    """

    def __init__(self, torsion: Array, torsion_zero: Array, sine: Array, sine_zero: Array) -> None:
        """Take the strengths and rests of all joints' springs."""
        self._torsion, self._torsion_zero = torsion, torsion_zero
        self._sine, self._sine_zero = sine, sine_zero

    @property
    def any(self) -> bool:
        """Whether there is any spring."""
        return bool(self._torsion.any() or self._sine.any())

    def torque(self, position: Array) -> Array:
        """Torque on the links [N·m], shape (n,)."""
        return -self._torsion * (position - self._torsion_zero) - self._sine * np.sin(position - self._sine_zero)

    def energy(self, position: Array) -> float:
        """Energy in the springs [J], zero where all are at rest."""
        torsion = 0.5 * self._torsion * (position - self._torsion_zero) ** 2
        return float(np.sum(torsion + self._sine * (1.0 - np.cos(position - self._sine_zero))))
