"""Motor drives: the current loop and its brake, power stages that give a voltage, and windings that warm up.

u is the duty times the supply, k w the back-EMF of the motor at its speed w; k, in V·s/rad, is the torque constant in
N·m/A. With u and w of a tick's begin the current is exact within it: it goes to (u - k w) / R with the lag L / R.
"""

import math

import numpy as np
from numpy.typing import NDArray

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


class Drives:
    """All drives, each behind its own gear: at its joint, or at its input of a coupling.

    The current follows the command with a first-order lag, solved exactly within a tick:
    i(t) = command + (i(0) - command) exp(-t / lag). A drive that is not enabled carries no current, and its brake
    holds the motor where it closed: a critically damped spring that slips at its holding torque. Where a joint has no
    drive, current limit and rotor inertia are 0, and nothing holds it.

    Args:
        torque_per_current: torque behind the gear per motor current [N·m/A], shape (n,).
        current_limit: what the power stage can give [A], shape (n,).
        rotor_inertia: reflected through the gear [kg·m²], shape (n,); with `brake_frequency` it sets the brake's
            stiffness.
        lag: of the current loop [s]; of each drive, shape (n,), where there are bridges.
        brake_frequency: of the rotor against its closed brake [rad/s].
        by_voltage: drives whose current no loop of theirs limits, shape (n,); none by default.
    """

    def __init__(
        self,
        torque_per_current: Array,
        current_limit: Array,
        rotor_inertia: Array,
        lag: float | Array,
        brake_frequency: float,
        by_voltage: NDArray[np.bool_] | None = None,
    ) -> None:
        """Start with every drive off and its brake closed at position zero."""
        count = len(torque_per_current)
        self._torque_per_current = torque_per_current
        self._limit = current_limit if by_voltage is None else np.where(by_voltage, np.inf, current_limit)
        self._lag = lag
        stiffness = rotor_inertia * brake_frequency**2
        self._stiffness = np.where(stiffness > 0.0, stiffness, 1.0)  # any will do for a brake that is not there
        self._damping = 2.0 * rotor_inertia * brake_frequency
        self._holding = 1.5 * np.abs(torque_per_current) * current_limit  # brakes hold more than motors give
        self._has_brake = self._holding > 0.0
        self._grip = self._holding.copy()  # of the brakes as they are: none where open
        self._brake_torque, self._brake_damping = np.zeros((2, count))
        self._opened = np.zeros(count, dtype=bool)
        self._command = np.zeros(count)
        self._excess = np.zeros(count)  # current beyond the command at the tick, which fades
        self._steady_torque, self._fading_torque, self._torque = np.zeros((3, count))
        self._latch = np.zeros(count)
        self._tick_time = 0.0
        self.any_braked = True

    def close_brakes(self, position: Array, load: Array) -> None:
        """Latch every brake so that it holds `load` [N·m] at `position` [rad]."""
        self._latch[:] = position + load / self._stiffness

    def begin_tick(
        self,
        time: float,
        enabled: NDArray[np.bool_],
        command: Array,
        position: Array,
        held: NDArray[np.bool_] | None = None,
    ) -> None:
        """Take the boards' outputs at the tick at `time` [s]; a brake that closes latches at `position` [rad].

        The brakes that hold are those of `held`, by default those of drives that are off.
        """
        excess, limited = self._excess, self._command
        np.multiply(excess, self._decay(time), excess)
        np.add(excess, limited, excess)  # the current that flows
        np.minimum(command, self._limit, out=limited)
        np.maximum(limited, -self._limit, out=limited)
        np.subtract(excess, limited, excess)
        self._tick_time = time
        if not enabled.all():
            excess[~enabled] = limited[~enabled] = 0.0
        np.multiply(limited, self._torque_per_current, self._steady_torque)
        np.multiply(excess, self._torque_per_current, self._fading_torque)
        opened = enabled if held is None else ~held
        if (opened != self._opened).any():
            closing = self._opened & ~opened
            self._latch[closing] = position[closing]
            self._opened[:] = opened
            self._grip[:] = np.where(opened, 0.0, self._holding)
            self.any_braked = bool((self._has_brake & ~opened).any())

    def torque_at(self, time: float) -> Array:
        """Motor torque [N·m] at `time` [s] within the tick, shape (n,); valid until the next call."""
        torque = self._torque
        np.multiply(self._fading_torque, self._decay(time), torque)
        return np.add(torque, self._steady_torque, torque)

    def _decay(self, time: float) -> float | Array:
        """What is left of the currents' excess at `time` [s]."""
        if isinstance(self._lag, float):
            return math.exp((self._tick_time - time) / self._lag)
        return np.exp((self._tick_time - time) / self._lag)

    def mean_torque(self, start: float, duration: float) -> Array:
        """Mean motor torque [N·m] from `start` [s] on, within the tick, shape (n,); valid until the next call."""
        if isinstance(self._lag, float):
            share = -math.expm1(-duration / self._lag) * self._lag / duration
        else:
            share = -np.expm1(-duration / self._lag) * self._lag / duration
        torque = np.multiply(self._fading_torque, self._decay(start) * share, self._torque)
        return np.add(torque, self._steady_torque, torque)

    def currents_at(self, times: Array) -> Array:
        """Motor currents [A] at `times` [s], shape (len(times), n)."""
        return self._command + np.exp((self._tick_time - times)[:, None] / self._lag) * self._excess

    def brake_torque(self, position: Array, velocity: Array) -> Array:
        """Torque of the brakes [N·m], shape (n,), zero where one is open; valid until the next call."""
        torque, damping = self._brake_torque, self._brake_damping
        np.subtract(self._latch, position, torque)
        np.multiply(torque, self._stiffness, torque)
        np.multiply(velocity, self._damping, damping)
        np.subtract(torque, damping, torque)
        np.minimum(torque, self._grip, out=torque)
        return np.maximum(torque, -self._grip, out=torque)

    def slip(self, position: Array) -> None:
        """Let brakes that are loaded beyond their holding torque slip; to be called once a tick."""
        stretch = self._holding / self._stiffness
        self._latch[:] = position + np.maximum(np.minimum(self._latch - position, stretch), -stretch)
