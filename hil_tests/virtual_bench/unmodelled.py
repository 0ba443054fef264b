"""What joints do that no candidate law of friction contains: it goes by position, or by time.

    friction swells with the joint's position    times 1 + Σ_c share_c sin(c q + phase), c = 1, 2 a turn of the joint
    friction falls as the grease warms           times 1 - drop (1 - exp(-t / time constant))
    gear ripple                                  torque at the motor, twice a turn of the wave generator, and its second
                                                 harmonic of half the size
    torque ripple of the motor                   torque times 1 + share sin(30 motor turns): six a turn of 5 pole pairs

Measured: what harmonic gears take goes up and down with the wave generator's turn (Tuttle, Understanding and
Modeling the Behavior of a Harmonic Drive Gear Transmission, MIT AI-TR 1365, 1992; Kircanski & Goldenberg, IJRR
16(2), 1997); friction of a robot's joint over angle, load and temperature, of which temperature does most
(Bittencourt, Wernholt, Sander-Tavallaey & Brogårdh, IROS 2010); friction that falls over a warm-up by tens of percent
(Simoni, Beschi, Legnani & Visioli, Robotica 37(5), 2019). Where in these ranges a joint lies is drawn, RANGES.
"""

import numpy as np

from jointbench.arrays import Array

RANGES = {
    "swell": (0.01, 0.04),  # share of friction, once a turn of the joint; half of it twice a turn
    "drop": (0.10, 0.25),  # share of friction that is gone when warm
    "warm_up_s": (300.0, 900.0),
    "gear_ripple": (0.03, 0.10),  # of Coulomb friction
    "motor_ripple": (0.005, 0.015),  # of the motor's torque
}
_GEAR, _MOTOR = 2.0, 30.0  # a turn of the motor
_STREAM = 0xE7


class Unmodelled:
    """The effects of all joints, drawn from one seed.

    Attributes:
        drawn: sizes by the names of RANGES, shape (n,) each.
    """

    def __init__(self, coulomb: Array, ratio: Array, seed: int) -> None:
        """Take Coulomb friction [N·m] and motor turns per joint turn, shape (n,) each."""
        rng = np.random.default_rng([_STREAM, seed])
        n = len(coulomb)
        self.drawn = {name: rng.uniform(low, high, n) for name, (low, high) in RANGES.items()}
        self._phases = rng.uniform(0.0, 2.0 * np.pi, (5, n))
        self._ripple = self.drawn["gear_ripple"] * coulomb
        self._gear, self._motor = _GEAR * ratio, _MOTOR * ratio

    @property
    def largest_swell(self) -> float:
        """By how much friction can be more than without."""
        return 1.0 + 1.5 * float(self.drawn["swell"].max())

    def rub(self, friction: Array, position: Array, time: float) -> Array:
        """Friction [N·m] as it is at this position [rad] and time [s], in place."""
        swell, first, second = self.drawn["swell"], self._phases[0], self._phases[1]
        cold = 1.0 - self.drawn["drop"] * -np.expm1(-time / self.drawn["warm_up_s"])
        angle = 1.0 + swell * (np.sin(position + first) + 0.5 * np.sin(2.0 * position + second))
        return np.multiply(friction, cold * angle, friction)

    def drive(self, torque: Array, position: Array) -> Array:
        """Torque of motors [N·m] as it arrives behind the gears, at this position of theirs [rad], in place."""
        ripple = self.drawn["motor_ripple"] * np.sin(self._motor * position + self._phases[2])
        np.multiply(torque, 1.0 + ripple, torque)
        gear = self._gear * position
        torque += self._ripple * (np.sin(gear + self._phases[3]) + 0.5 * np.sin(2.0 * gear + self._phases[4]))
        return torque
