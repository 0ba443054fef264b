"""Dry friction and lubricant: Coulomb and viscous."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jointbench.arrays import Array
from jointbench.identification.friction.data import FrictionData
from jointbench.identification.friction.element import Element, Form
from jointbench.identification.friction.law import TORQUE, VISCOSITY, Parameter, Term, spread


@dataclass(frozen=True)
class CoulombViscous(Term):
    """torque = coulomb sign(v) + viscous v."""

    @property
    def coefficients(self) -> tuple[Parameter, ...]:
        """Coulomb and viscous."""
        return Parameter("coulomb", TORQUE), Parameter("viscous", VISCOSITY)

    def columns(self, data: FrictionData, shapes: Array) -> Array:
        """sign(v) and v."""
        return spread(np.stack([np.sign(data.velocity), data.velocity], axis=-1), shapes)

    def elements(self, coefficients: Sequence[float], shapes: Sequence[float]) -> tuple[Element, ...]:
        """sign(v) and v."""
        coulomb, viscous = coefficients
        return Element(Form.SIGN, coulomb), Element(Form.SPEED, viscous)


@dataclass(frozen=True)
class Offset(Term):
    """torque = offset: what does not turn with the direction, such as a sensor's zero or a remainder of gravity."""

    @property
    def coefficients(self) -> tuple[Parameter, ...]:
        """The offset, of either sign."""
        return (Parameter("offset", TORQUE, -np.inf),)

    def columns(self, data: FrictionData, shapes: Array) -> Array:
        """Ones."""
        return spread(np.ones((data.n_rows, 1)), shapes)
