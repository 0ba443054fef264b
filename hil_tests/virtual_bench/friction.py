"""Friction of a joint at its motor side."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Friction:
    """Coulomb friction with a Stribeck rise and a part in proportion to the gear's load; smooth through standstill.

    tau = (coulomb + stribeck exp(-(v / stribeck_velocity)²) + load |gear deflection|) tanh(v / transition)
    (Armstrong-Hélouvry, Dupont & Canudas de Wit, Automatica 30(7), 1994; load term as in harmonic drives).
    The load is per deflection [N·m/rad]. The viscous part is linear and left to the simulator.

    This runs eight times a tick, hence the operations in place.
    """

    def __init__(
        self, coulomb: Array, transition: float, stribeck: Array, stribeck_velocity: Array, load: Array
    ) -> None:
        """Take the coefficients, each of shape (n,), in SI units."""
        self._coulomb = coulomb
        self._per_transition = 1.0 / transition
        self._stribeck = stribeck
        self._exponent = -1.0 / stribeck_velocity**2
        self._load = load
        self._size = np.empty_like(coulomb)
        self._other = np.empty_like(coulomb)

    def coulomb_torque(self, velocity: Array) -> Array:
        """Pure Coulomb friction [N·m] at `velocity` [rad/s]; the array is valid until the next call."""
        size = self._size
        np.multiply(velocity, self._per_transition, size)
        np.tanh(size, size)
        return np.multiply(size, self._coulomb, size)

    def torque(self, velocity: Array, deflection: Array) -> Array:
        """Friction [N·m] at `velocity` [rad/s] and gear `deflection` [rad]; the array is valid until the next call."""
        size, other = self._size, self._other
        np.multiply(velocity, velocity, size)
        np.multiply(size, self._exponent, size)
        np.exp(size, size)
        np.multiply(size, self._stribeck, size)
        np.add(size, self._coulomb, size)
        np.abs(deflection, other)
        np.multiply(other, self._load, other)
        np.add(size, other, size)
        np.multiply(velocity, self._per_transition, other)
        np.tanh(other, other)
        return np.multiply(size, other, size)
