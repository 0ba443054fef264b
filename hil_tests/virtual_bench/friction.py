"""Friction of a joint at its motor side, of the gears behind coupled motors, and what no candidate law contains.

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

import math
from typing import Protocol

import numpy as np

from jointbench.arrays import Array

GREASE_STILL = 0.01  # [rad/s], v0: below it grease drags by the speed itself


class Friction(Protocol):
    """Friction of all joints but its viscous part, which is linear and left to the simulator."""

    def torque(self, velocity: Array, deflection: Array) -> Array:
        """Friction [N·m] at `velocity` [rad/s] and gear `deflection` [rad]; the array is valid until the next call."""
        ...

    def slope(self, deflection: Array) -> Array:
        """Steepest rise over velocity [N·m·s/rad], gears deflected by this much [rad]."""
        ...


class StribeckFriction:
    """Coulomb friction with a Stribeck rise and a part in proportion to the gear's load; smooth through standstill.

    tau = (coulomb + stribeck exp(-(v / stribeck_velocity)²) + load |gear deflection|) tanh(v / transition)
    (Armstrong-Hélouvry, Dupont & Canudas de Wit, Automatica 30(7), 1994; load term as in harmonic drives).
    The load is per deflection [N·m/rad].

    This runs eight times a tick, hence the operations in place.
    """

    def __init__(
        self, coulomb: Array, transition: float, stribeck: Array, stribeck_velocity: Array, load: Array
    ) -> None:
        """Take the coefficients, each of shape (n,), in SI units."""
        self._coulomb = coulomb
        self._transition = transition
        self._per_transition = 1.0 / transition
        self._stribeck = stribeck
        self._exponent = -1.0 / stribeck_velocity**2
        self._load = load
        self._size = np.empty_like(coulomb)
        self._other = np.empty_like(coulomb)

    def torque(self, velocity: Array, deflection: Array) -> Array:
        """Friction [N·m] at `velocity` [rad/s] and gear `deflection` [rad]; the array is valid until the next call."""
        size, other = self.size(velocity, deflection), self._other
        np.multiply(velocity, self._per_transition, other)
        np.tanh(other, other)
        return np.multiply(size, other, size)

    def size(self, velocity: Array, deflection: Array) -> Array:
        """How much it is, whatever its sign [N·m]; the array is valid until the next call."""
        size, other = self._size, self._other
        np.multiply(velocity, velocity, size)
        np.multiply(size, self._exponent, size)
        np.exp(size, size)
        np.multiply(size, self._stribeck, size)
        np.add(size, self._coulomb, size)
        np.abs(deflection, other)
        np.multiply(other, self._load, other)
        return np.add(size, other, size)

    def largest(self, deflection: Array) -> Array:
        """Friction at standstill [N·m], gears deflected by this much [rad]."""
        return self._coulomb + self._stribeck + self._load * deflection

    def slope(self, deflection: Array) -> Array:
        """Steepest rise over velocity [N·m·s/rad], through standstill, gears deflected by this much [rad]."""
        return self.largest(deflection) / self._transition


class PreslidingFriction(StribeckFriction):
    """The same sizes, but friction that turns its sign over distance and remembers where it stood.

    tau = (coulomb + stribeck exp(-(v / stribeck_velocity)²) + load |gear deflection|) Σ share s / reach, with the stop
    operators s[k] = clip(s[k-1] + q[k] - q[k-1], ±reach) (Al-Bender, Lampaert & Swevers, IEEE Trans. Automatic Control
    50(11), 2005). At rest the joint is held as by springs. `step` takes their state on after each step of integration;
    within a step each stage has that of its own position.
    """

    REACH = 1e-3 * np.array([[0.1], [0.3], [1.0], [2.5]])  # [rad]: what harmonic gears turn before they slide
    SHARE = np.array([[0.35], [0.30], [0.20], [0.15]])

    def __init__(self, coulomb: Array, stribeck: Array, stribeck_velocity: Array, load: Array, position: Array) -> None:
        """Take the coefficients, each of shape (n,), in SI units, and the motors' position, which is looked at."""
        super().__init__(coulomb, 1.0, stribeck, stribeck_velocity, load)
        self._position = position
        self._stops = np.zeros((len(self.REACH), len(coulomb)))
        self._from = position.copy()

    def torque(self, velocity: Array, deflection: Array) -> Array:
        """Friction [N·m] at `velocity` [rad/s], gear `deflection` [rad] and the motors' position."""
        size = self.size(velocity, deflection)
        return np.multiply(size, np.sum(self.SHARE / self.REACH * self._moved(), axis=0), size)

    def begin(self) -> None:
        """Begin at the motors' position, stops in their middle."""
        self._stops[:] = 0.0
        self._from[:] = self._position

    def step(self) -> None:
        """Remember where the stops have come to at the motors' position."""
        self._stops = self._moved()
        self._from[:] = self._position

    def slope(self, deflection: Array) -> Array:
        """No rise over velocity: at rest it is the position that friction rises over."""
        return np.zeros_like(deflection)

    def stiffness(self, deflection: Array) -> Array:
        """Steepest rise over position [N·m/rad], gears deflected by this much [rad]."""
        return self.largest(deflection) * np.sum(self.SHARE / self.REACH)

    def _moved(self) -> Array:
        return np.clip(self._stops + (self._position - self._from), -self.REACH, self.REACH)


class PreslidingMakkarFriction(PreslidingFriction):
    """The sizes of Makkar's law, but friction that turns its sign over distance and remembers where it stood.

    tau = (g4 + g1 (1 - tanh(g3 |v|)) + load |gear deflection|) Σ share s / reach + grease v / (v² + v0²)^(1/6)

    The stops s take the place of tanh(g2 v) and tanh(g5 v), which turn the law's sign; its fall from g1 + g4 at
    standstill to g4, tanh(g3 v), and the drag of the grease are of speed as in `MakkarFriction`.
    """

    def __init__(self, gammas: Array, grease: Array, load: Array, position: Array) -> None:
        """Take g1 … g5 as rows, shape (5, n), of which g2 and g5 have no meaning here, and the rest as both others."""
        g1, _, g3, g4, _ = gammas
        super().__init__(g4, g1, np.ones_like(g1), load, position)
        self._fall, self._grease = g3, grease

    def torque(self, velocity: Array, deflection: Array) -> Array:
        """Friction [N·m] at `velocity` [rad/s], gear `deflection` [rad] and the motors' position."""
        drag = self._grease * velocity * (velocity**2 + GREASE_STILL**2) ** (-1.0 / 6.0)
        return super().torque(velocity, deflection) + drag

    def size(self, velocity: Array, deflection: Array) -> Array:
        """How much the part that turns its sign is [N·m]."""
        fall = 1.0 - np.tanh(self._fall * np.abs(velocity))
        return self._coulomb + self._stribeck * fall + self._load * np.abs(deflection)

    def slope(self, deflection: Array) -> Array:
        """Steepest rise over velocity [N·m·s/rad]: that of the grease through standstill."""
        return self._grease * GREASE_STILL ** (-1.0 / 3.0)


class CoulombFriction:
    """tau = coulomb tanh(v / transition), of a rigid gear: what a simple model has, smooth through standstill."""

    def __init__(self, coulomb: Array, transition: float) -> None:
        """Take the coefficients, of shape (n,), in SI units."""
        self._coulomb = coulomb
        self._transition = transition
        self._per_transition = 1.0 / transition
        self._torque = np.empty_like(coulomb)

    def torque(self, velocity: Array, deflection: Array) -> Array:
        """Friction [N·m] at `velocity` [rad/s]; the array is valid until the next call."""
        torque = self._torque
        np.multiply(velocity, self._per_transition, torque)
        np.tanh(torque, torque)
        return np.multiply(torque, self._coulomb, torque)

    def slope(self, deflection: Array) -> Array:
        """Steepest rise over velocity [N·m·s/rad], through standstill."""
        return self._coulomb / self._transition


class MakkarFriction:
    """The continuously differentiable law of six parameters, and two things it does not know: grease, and load.

    tau = g1 (tanh(g2 v) - tanh(g3 v)) + g4 tanh(g5 v) + grease v / (v² + v0²)^(1/6) + load |gear deflection|
    tanh(v / transition), with g6 v viscous (Makkar, Dixon, Sawyer & Hu, IEEE/ASME AIM, 2005). Grease in rolling
    bearings drags by the speed to the power of 2/3 (Palmgren, Ball and Roller Bearing Engineering, 1959), here smooth
    through standstill. The load is per deflection [N·m/rad].
    """

    def __init__(self, gammas: Array, grease: Array, load: Array, transition: float) -> None:
        """Take g1 … g5 as rows, shape (5, n), the drag at 1 rad/s and the load's share, shape (n,), in SI units."""
        g1, g2, g3, g4, g5 = gammas
        self._grease = grease
        self._drag = np.empty_like(g1)
        self._sizes = np.stack([g1, -g1, g4, np.zeros_like(g1)])
        self._rates = np.stack([g2, g3, g5, np.full_like(g1, 1.0 / transition)])
        self._load = load
        self._work = np.empty_like(self._rates)

    def torque(self, velocity: Array, deflection: Array) -> Array:
        """Friction [N·m] at `velocity` [rad/s] and gear `deflection` [rad]."""
        work, loaded = self._work, self._sizes[3]
        np.abs(deflection, loaded)
        np.multiply(loaded, self._load, loaded)
        np.multiply(self._rates, velocity, work)
        np.tanh(work, work)
        np.multiply(work, self._sizes, work)
        drag = np.multiply(velocity, velocity, self._drag)
        np.add(drag, GREASE_STILL**2, drag)
        np.power(drag, -1.0 / 6.0, drag)
        np.multiply(drag, velocity, drag)
        np.multiply(drag, self._grease, drag)
        return np.add(np.add.reduce(work), drag, drag)

    def slope(self, deflection: Array) -> Array:
        """Steepest rise over velocity [N·m·s/rad], gears deflected by this much [rad]: that through standstill."""
        rise = np.einsum("ij,ij->j", self._sizes[:3], self._rates[:3])
        return rise + self._grease * GREASE_STILL ** (-1.0 / 3.0) + self._load * deflection * self._rates[3]


class MeshRipple:
    """Friction that swells from tooth to tooth and shrinks as the gears warm up, of which no law of speed knows.

    Times (1 + share sin(teeth q + a) + second sin(2 teeth q + b)) (1 - warming (1 - exp(-t / warming_time))).
    """

    def __init__(
        self,
        share: float,
        teeth: int,
        count: int,
        *,
        second: float = 0.0,
        phases: Array | None = None,
        warming: float = 0.0,
        warming_time: float = 1.0,
    ) -> None:
        """Take the swell, the teeth in a turn of each of `count` joints, and phases a and b, shape (2, count)."""
        self.share = share + second
        self._first, self._second, self._teeth = share, second, teeth
        self._phases = np.zeros((2, count)) if phases is None else phases
        self._warming, self._warming_time = warming, warming_time
        self._factor, self._other = np.ones(count), np.ones(count)

    def turn_to(self, position: Array, time: float = 0.0) -> None:
        """Take where the joints are [rad], and when [s]: once a tick, in which they go on by hundredths of a tooth."""
        factor, other = self._factor, self._other
        np.multiply(position, self._teeth, factor)
        np.multiply(factor, 2.0, other)
        for phase, share, wave in zip(self._phases, (self._first, self._second), (factor, other), strict=True):
            np.add(wave, phase, wave)
            np.sin(wave, wave)
            np.multiply(wave, share, wave)
        np.add(factor, other, factor)
        np.add(factor, 1.0, factor)
        factor *= 1.0 + self._warming * math.expm1(-time / self._warming_time)

    def swell(self, friction: Array) -> Array:
        """Friction as it is there [N·m], in place."""
        return np.multiply(friction, self._factor, friction)


class GearLoss:
    """What the gears of coupled drives take of their load: tau = share |load| tanh(v / transition).

    All of it is at the drives' side: the load of a gear is what it must carry of both its joints' torques.
    """

    def __init__(self, share: Array, load_of_deflection: Array, transition: float) -> None:
        """Take the shares, (n,), and the matrix that makes gears' loads [N·m] of joints' deflections [rad], (n, n)."""
        self._share = share
        self._load_of_deflection = load_of_deflection
        self._per_transition = 1.0 / transition

    def torque(self, velocity: Array, deflection: Array) -> Array:
        """Loss [N·m] at the drives' `velocity` [rad/s] and the joints' gear `deflection` [rad], shape (n,)."""
        load = self._load_of_deflection @ deflection
        np.abs(load, load)
        np.multiply(load, self._share, load)
        return load * np.tanh(velocity * self._per_transition)

    def slope(self, load: Array) -> Array:
        """Steepest rise over velocity [N·m·s/rad], through standstill, under this load [N·m]."""
        return self._share * load * self._per_transition


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
