"""Friction that differs between the directions, as worm and pre-loaded gears have it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from jointbench.arrays import Array
from jointbench.identification.friction.data import FrictionData
from jointbench.identification.friction.element import Element, Form
from jointbench.identification.friction.law import TORQUE, VISCOSITY, Parameter, Term, spread


@dataclass(frozen=True)
class Asymmetric(Term):
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

    def elements(self, coefficients: Sequence[float], shapes: Sequence[float]) -> tuple[Element, ...]:
        """Sign and speed of the one direction, then of the other."""
        kinds = product((1, -1), (Form.SIGN, Form.SPEED))
        return tuple(
            Element(form, coefficient, direction=direction)
            for (direction, form), coefficient in zip(kinds, coefficients, strict=True)
        )
