"""Friction that grows with the load on the teeth, as a harmonic drive's does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.identification.friction.data import FrictionData
from jointbench.identification.friction.element import Element, Form
from jointbench.identification.friction.law import SHARE, Parameter, Term, spread


@dataclass(frozen=True)
class Load(Term):
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

    def elements(self, coefficients: Sequence[float], shapes: Sequence[float]) -> tuple[Element, ...]:
        """|load| sign(v)."""
        return (Element(Form.LOAD, coefficients[0]),)
