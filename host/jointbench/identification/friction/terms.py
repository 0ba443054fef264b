"""Terms of friction laws: Coulomb, viscous, asymmetric, Stribeck, Makkar, temperature, load, rotor inertia."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.identification.friction.data import FrictionData
from jointbench.identification.friction.law import (
    INERTIA,
    PER_SPEED,
    SHARE,
    SPEED,
    TORQUE,
    TORQUE_PER_KELVIN,
    VISCOSITY,
    VISCOSITY_PER_KELVIN,
    Form,
    Law,
    LawElement,
    LawTerm,
    Parameter,
    spread,
)


@dataclass(frozen=True)
class CoulombViscous(LawTerm):
    """torque = coulomb sign(v) + viscous v."""

    @property
    def coefficients(self) -> tuple[Parameter, ...]:
        """Coulomb and viscous."""
        return Parameter("coulomb", TORQUE), Parameter("viscous", VISCOSITY)

    def columns(self, data: FrictionData, shapes: Array) -> Array:
        """sign(v) and v."""
        return spread(np.stack([np.sign(data.velocity), data.velocity], axis=-1), shapes)

    def elements(self, coefficients: Sequence[float], shapes: Sequence[float]) -> tuple[LawElement, ...]:
        """sign(v) and v."""
        coulomb, viscous = coefficients
        return LawElement(Form.SIGN, coulomb), LawElement(Form.SPEED, viscous)


@dataclass(frozen=True)
class Offset(LawTerm):
    """torque = offset: what does not turn with the direction, such as a sensor's zero or a remainder of gravity."""

    @property
    def coefficients(self) -> tuple[Parameter, ...]:
        """The offset, of either sign."""
        return (Parameter("offset", TORQUE, -np.inf),)

    def columns(self, data: FrictionData, shapes: Array) -> Array:
        """Ones."""
        return spread(np.ones((data.n_rows, 1)), shapes)


@dataclass(frozen=True)
class Asymmetric(LawTerm):
    """torque = coulomb_± sign(v) + viscous_± v, with values of their own for v > 0 and v < 0."""

    @property
    def coefficients(self) -> tuple[Parameter, ...]:
        """Coulomb and viscous forward, then backward."""
        return (
            Parameter("coulomb_forward", TORQUE),
            Parameter("viscous_forward", VISCOSITY),
            Parameter("coulomb_backward", TORQUE),
            Parameter("viscous_backward", VISCOSITY),
        )

    def columns(self, data: FrictionData, shapes: Array) -> Array:
        """Sign and velocity of the one direction, then of the other."""
        forward, backward = np.maximum(data.velocity, 0.0), np.minimum(data.velocity, 0.0)
        return spread(np.stack([np.sign(forward), forward, np.sign(backward), backward], axis=-1), shapes)

    def elements(self, coefficients: Sequence[float], shapes: Sequence[float]) -> tuple[LawElement, ...]:
        """Sign and speed of the one direction, then of the other."""
        kinds = product((1, -1), (Form.SIGN, Form.SPEED))
        return tuple(
            LawElement(form, coefficient, direction=direction)
            for (direction, form), coefficient in zip(kinds, coefficients, strict=True)
        )


@dataclass(frozen=True)
class Stribeck(LawTerm):
    """torque = sign(v) (coulomb + static_rise exp(-(v / stribeck_speed)²)) + viscous v.

    Breakaway takes coulomb + static_rise.

    Source: Armstrong-Hélouvry, Dupont & Canudas de Wit, Automatica 30(7), 1994, with the exponent 2.
    """

    @property
    def coefficients(self) -> tuple[Parameter, ...]:
        """Coulomb, what static friction is above it, and viscous."""
        return Parameter("coulomb", TORQUE), Parameter("static_rise", TORQUE), Parameter("viscous", VISCOSITY)

    @property
    def shapes(self) -> tuple[Parameter, ...]:
        """The speed at which friction has fallen to 37 % of the rise."""
        return (Parameter("stribeck_speed", SPEED),)

    @property
    def bends(self) -> tuple[str, ...]:
        """The rise."""
        return ("static_rise",)

    def shape_bounds(self, data: FrictionData) -> Array:
        """Return bounds from the slowest row, below which no rise is seen, to the fastest, where it never ends."""
        speed = np.abs(data.velocity[data.velocity != 0.0])
        return np.array([[speed.min(), speed.max()]])

    def columns(self, data: FrictionData, shapes: Array) -> Array:
        """sign(v), sign(v) exp(…), v."""
        bell, sign = self._bell(data, shapes), np.sign(data.velocity)
        straight = np.broadcast_to(data.velocity, bell.shape)
        return np.stack([np.broadcast_to(sign, bell.shape), sign * bell, straight], axis=-1)

    def by_shapes(self, data: FrictionData, shapes: Array, coefficients: Array) -> Array:
        """static_rise sign(v) exp(…) 2 v² / stribeck_speed³."""
        slope = 2.0 * data.velocity**2 / shapes**3
        return (coefficients[..., 1:2] * np.sign(data.velocity) * self._bell(data, shapes) * slope)[..., None]

    def elements(self, coefficients: Sequence[float], shapes: Sequence[float]) -> tuple[LawElement, ...]:
        """sign(v), sign(v) exp(…), v."""
        coulomb, rise, viscous = coefficients
        return LawElement(Form.SIGN, coulomb), LawElement(Form.BELL, rise, shapes[0]), LawElement(Form.SPEED, viscous)

    def _bell(self, data: FrictionData, shapes: Array) -> Array:
        return np.exp(-((data.velocity / shapes) ** 2))


_LINEAR = 0.2
"""tanh(x) differs from x by 1.3 % here: less steep over all speeds, it is another viscous friction."""

_SATURATED = 3.0
"""1 - tanh(x) is 0.5 % here: steeper at the slowest row, it is another Coulomb friction."""

_LARGEST_RISE = 2.0
"""Times the largest torque measured: where γ2 and γ3 are nearly the same, γ1 could grow without end."""


@dataclass(frozen=True)
class Makkar(LawTerm):
    """torque = γ1 (tanh γ2 v - tanh γ3 v) + γ4 tanh γ5 v + γ6 v, all γ positive.

    γ1 + γ4 is static friction, the first bracket the Stribeck effect where γ2 > γ3, γ4 Coulomb, γ6 viscous.

    Source: Makkar, Dixon, Sawyer & Hu, IEEE/ASME AIM, 2005.
    """

    @property
    def coefficients(self) -> tuple[Parameter, ...]:
        """γ1, γ4, γ6."""
        return Parameter("gamma1", TORQUE), Parameter("gamma4", TORQUE), Parameter("gamma6", VISCOSITY)

    @property
    def shapes(self) -> tuple[Parameter, ...]:
        """γ2, γ3, γ5."""
        return Parameter("gamma2", PER_SPEED), Parameter("gamma3", PER_SPEED), Parameter("gamma5", PER_SPEED)

    @property
    def bends(self) -> tuple[str, ...]:
        """γ1 the first two, γ4 the last."""
        return "gamma1", "gamma1", "gamma4"

    def coefficient_bounds(self, data: FrictionData) -> Array:
        """None negative, and γ1 not out of all proportion."""
        return np.array([[0.0, _LARGEST_RISE * np.abs(data.torque).max()], [0.0, np.inf], [0.0, np.inf]])

    def shape_bounds(self, data: FrictionData) -> Array:
        """Return bounds from straight over all speeds to saturated at the slowest."""
        speed = np.abs(data.velocity[data.velocity != 0.0])
        return np.tile([_LINEAR / speed.max(), _SATURATED / speed.min()], (3, 1))

    def columns(self, data: FrictionData, shapes: Array) -> Array:
        """The difference tanh γ2 v - tanh γ3 v, tanh γ5 v, and v."""
        rise = np.tanh(shapes[..., None] * data.velocity)
        straight = np.broadcast_to(data.velocity, rise.shape[:-2] + rise.shape[-1:])
        return np.stack([rise[..., 0, :] - rise[..., 1, :], rise[..., 2, :], straight], axis=-1)

    def by_shapes(self, data: FrictionData, shapes: Array, coefficients: Array) -> Array:
        """γ v (1 - tanh²) for each tanh, with its sign."""
        slope = data.velocity * (1.0 - np.tanh(shapes[..., None] * data.velocity) ** 2)
        factors = np.stack([coefficients[..., 0], -coefficients[..., 0], coefficients[..., 1]], axis=-1)
        return np.swapaxes(factors[..., None] * slope, -1, -2)

    def elements(self, coefficients: Sequence[float], shapes: Sequence[float]) -> tuple[LawElement, ...]:
        """The three tanh, and v."""
        gamma1, gamma4, gamma6 = coefficients
        factors = (gamma1, -gamma1, gamma4)
        bent = (LawElement(Form.TANH, factor, shape) for factor, shape in zip(factors, shapes, strict=True))
        return *bent, LawElement(Form.SPEED, gamma6)


ROOM_K = 298.15


@dataclass(frozen=True)
class Temperature(LawTerm):
    """torque = (coulomb_per_K sign(v) + viscous_per_K v) (T - reference_K).

    With terms for Coulomb and viscous friction beside it, those are the values at the reference.

    Attributes:
        reference_K: where it vanishes; best amid the temperatures of the data.
    """

    reference_K: float = ROOM_K

    @property
    def coefficients(self) -> tuple[Parameter, ...]:
        """Both of either sign."""
        return (
            Parameter("coulomb_per_K", TORQUE_PER_KELVIN, -np.inf),
            Parameter("viscous_per_K", VISCOSITY_PER_KELVIN, -np.inf),
        )

    def columns(self, data: FrictionData, shapes: Array) -> Array:
        """sign(v) (T - reference), v (T - reference).

        Raises:
            FitError: the data has no temperature.
        """
        if data.temperature is None:
            raise FitError("a friction law with temperature needs that of each row; give it, or a law without")
        warm = data.temperature - self.reference_K
        return spread(np.stack([warm * np.sign(data.velocity), warm * data.velocity], axis=-1), shapes)


@dataclass(frozen=True)
class LoadFriction(LawTerm):
    """torque = load_share |load| sign(v): with a Coulomb term beside it, friction is affine in the load's size.

    Source: Zhang & Ding, Information and Control 52(3), 2023: meshing and rolling friction of a harmonic drive.
    """

    @property
    def coefficients(self) -> tuple[Parameter, ...]:
        """The share of the load that friction takes."""
        return (Parameter("load_share", SHARE),)

    def columns(self, data: FrictionData, shapes: Array) -> Array:
        """|load| sign(v).

        Raises:
            FitError: the data has no load.
        """
        if data.load is None:
            raise FitError("a friction law with load needs the load of each row; give it, or a law without load")
        return spread((np.abs(data.load) * np.sign(data.velocity))[:, None], shapes)

    def elements(self, coefficients: Sequence[float], shapes: Sequence[float]) -> tuple[LawElement, ...]:
        """|load| sign(v)."""
        return (LawElement(Form.LOAD, coefficients[0]),)


@dataclass(frozen=True)
class RotorInertia(LawTerm):
    """torque = rotor_inertia a, seen at the joint."""

    @property
    def coefficients(self) -> tuple[Parameter, ...]:
        """The inertia, not negative."""
        return (Parameter("rotor_inertia", INERTIA),)

    def columns(self, data: FrictionData, shapes: Array) -> Array:
        """The acceleration.

        Raises:
            FitError: the data has none.
        """
        if data.acceleration is None:
            raise FitError("a friction law with inertia needs the acceleration of each row; give it, or a law without")
        return spread(data.acceleration[:, None], shapes)


SPEED_TERMS: dict[str, LawTerm] = {
    "coulomb_viscous": CoulombViscous(),
    "asymmetric": Asymmetric(),
    "stribeck": Stribeck(),
    "makkar": Makkar(),
}
"""What a law begins with."""

EXTRAS = ("offset", "load", "temperature", "inertia")
"""What may be added to it with "+"."""


def friction_law(name: str, data: FrictionData | None = None) -> Law:
    """The law of a name such as "stribeck" or "makkar+load+temperature".

    Args:
        name: one of `SPEED_TERMS`, and any of `EXTRAS` after it.
        data: a temperature term refers to the mean of its temperatures, in whole kelvins; None: to room temperature.

    Raises:
        FitError: no law has this name.
    """
    first, *added = name.split("+")
    unknown = [each for each in added if each not in EXTRAS or added.count(each) > 1]
    if first not in SPEED_TERMS or unknown:
        raise FitError(
            f"friction law {name!r} is not known; a law is one of {', '.join(SPEED_TERMS)}, and may have "
            f"{', '.join('+' + each for each in EXTRAS)} after it, each once"
        )
    warm = None if data is None else data.temperature
    reference = ROOM_K if warm is None else float(np.round(warm.mean()))
    extra: dict[str, LawTerm] = {
        "offset": Offset(),
        "load": LoadFriction(),
        "temperature": Temperature(reference),
        "inertia": RotorInertia(),
    }
    return Law(name, (SPEED_TERMS[first], *(extra[each] for each in added)))


def laws_for(data: FrictionData) -> tuple[Law, ...]:
    """Every law that these data can be asked about, the simplest first.

    Data of one direction cannot tell an offset or a difference between directions, and load or temperature must have
    been measured and have changed. An asymmetric law has an offset already. An acceleration is there to be fitted.
    """
    known = {
        "offset": data.both_directions,
        "load": data.load is not None and bool(np.ptp(np.abs(data.load)) > 0.0),
        "temperature": data.temperature is not None and bool(np.ptp(data.temperature) > 0.0),
    }
    extras = [name for name in known if known[name]]
    always = () if data.acceleration is None else ("inertia",)
    names = [
        "+".join((first, *chosen, *always))
        for first in SPEED_TERMS
        for count in range(len(extras) + 1)
        for chosen in combinations(extras, count)
        if not (first == "asymmetric" and ("offset" in chosen or not data.both_directions))
    ]
    laws = (friction_law(name, data) for name in names)
    return tuple(sorted((law for law in laws if len(law.names) < data.n_rows), key=lambda law: len(law.names)))
