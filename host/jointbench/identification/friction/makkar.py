"""Friction as one smooth curve through zero: the continuously differentiable model of Makkar and others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jointbench.arrays import Array
from jointbench.identification.friction.data import FrictionData
from jointbench.identification.friction.element import Element, Form
from jointbench.identification.friction.law import PER_SPEED, TORQUE, VISCOSITY, Parameter, Term

_LINEAR = 0.2
"""tanh(x) differs from x by 1.3 % here: less steep over all speeds, it is another viscous friction."""

_SATURATED = 3.0
"""1 - tanh(x) is 0.5 % here: steeper at the slowest row, it is another Coulomb friction."""

_LARGEST_RISE = 2.0
"""Times the largest torque measured: where γ2 and γ3 are nearly the same, γ1 could grow without end."""


@dataclass(frozen=True)
class Makkar(Term):
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
        """From straight over all speeds to saturated at the slowest."""
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

    def elements(self, coefficients: Sequence[float], shapes: Sequence[float]) -> tuple[Element, ...]:
        """The three tanh, and v."""
        gamma1, gamma4, gamma6 = coefficients
        factors = (gamma1, -gamma1, gamma4)
        bent = (Element(Form.TANH, factor, shape) for factor, shape in zip(factors, shapes, strict=True))
        return *bent, Element(Form.SPEED, gamma6)
