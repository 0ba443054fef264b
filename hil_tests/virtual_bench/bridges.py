"""Power stages that give a motor a voltage, and what its winding makes of it: L di/dt = u - R i - k w.

u is the duty times the supply, k w the back-EMF of the motor at its speed w; k, in V·s/rad, is the torque constant in
N·m/A. With u and w of a tick's begin the current is exact within it: it goes to (u - k w) / R with the lag L / R.
"""

import numpy as np
from numpy.typing import NDArray

from hil_tests.virtual_bench.plant_file import PowerTruth
from jointbench.arrays import Array


class Bridges:
    """Those of a robot's drives that take a voltage; the others have a current loop of their own.

    Attributes:
        by_voltage: which drives they are, shape (n,).
    """

    def __init__(self, by_voltage: NDArray[np.bool_], torque_per_current: Array, power: PowerTruth) -> None:
        """Know the motors.

        Args:
            by_voltage: which drives have a bridge, shape (n,).
            torque_per_current: behind the gear [N·m/A], and so back-EMF per velocity there [V·s/rad], shape (n,).
            power: supply and windings.
        """
        self.by_voltage = by_voltage
        self._back_emf = torque_per_current
        self._resistance = power.winding_resistance
        self._lag = power.winding_inductance / power.winding_resistance

    def lags(self, otherwise: float) -> Array:
        """Lag of each drive's current [s], shape (n,): `otherwise` where it has a current loop."""
        return np.where(self.by_voltage, self._lag, otherwise)

    def steady_currents(self, command: Array, supply: float, velocity: Array) -> Array:
        """Where the currents go to [A], shape (n,).

        Args:
            command: of drives with a current loop a current [A], of the others a part of the supply's voltage from -1
                to 1, shape (n,).
            supply: [V].
            velocity: of the drives behind their gears [rad/s], shape (n,).
        """
        return np.where(self.by_voltage, (command * supply - self._back_emf * velocity) / self._resistance, command)
