"""Friction that falls as the lubricant's film forms: Stribeck."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jointbench.arrays import Array
from jointbench.identification.friction.data import FrictionData
from jointbench.identification.friction.element import Element, Form
from jointbench.identification.friction.law import SPEED, TORQUE, VISCOSITY, Parameter, Term


@dataclass(frozen=True)
class Stribeck(Term):
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
        """From the slowest row, below which nothing is left of the rise, to the fastest, above which it never ends."""
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

    def elements(self, coefficients: Sequence[float], shapes: Sequence[float]) -> tuple[Element, ...]:
        """sign(v), sign(v) exp(…), v."""
        coulomb, rise, viscous = coefficients
        return Element(Form.SIGN, coulomb), Element(Form.BELL, rise, shapes[0]), Element(Form.SPEED, viscous)

    def _bell(self, data: FrictionData, shapes: Array) -> Array:
        return np.exp(-((data.velocity / shapes) ** 2))
