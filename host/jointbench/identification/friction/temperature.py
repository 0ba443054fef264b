"""Friction that changes as the lubricant warms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.identification.friction.data import FrictionData
from jointbench.identification.friction.law import TORQUE_PER_KELVIN, VISCOSITY_PER_KELVIN, Parameter, Term, spread

ROOM_K = 298.15


@dataclass(frozen=True)
class Temperature(Term):
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
