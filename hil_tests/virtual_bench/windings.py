"""How motor windings warm up."""

import math

import numpy as np

from hil_tests.virtual_bench.plant_file import TICK, PowerTruth
from jointbench.arrays import Array


class Windings:
    """The windings of all motors, each one thermal mass: tau dT/dt = ambient + R_th P - T, P = R i² its copper loss."""

    def __init__(self, power: PowerTruth, count: int, tick: float = TICK) -> None:
        """Start `count` of them at the ambient temperature; a tick lasts so long [s]."""
        self._power = power
        self._part = -math.expm1(-tick / power.winding_time_constant)  # of the way to the steady temperature in a tick
        self._temperature = np.full(count, power.ambient)

    @property
    def temperature(self) -> Array:
        """Temperatures [degC], shape (n,)."""
        return self._temperature

    def advance(self, current: Array) -> float:
        """Let one tick pass with these currents [A], shape (instants, n), and return all windings' loss [W]."""
        copper_loss = self._power.winding_resistance / len(current) * np.einsum("ij,ij->j", current, current)
        steady = self._power.ambient + self._power.winding_thermal_resistance * copper_loss
        self._temperature = self._temperature + self._part * (steady - self._temperature)
        return float(copper_loss.sum())
