"""What a motor's rotor takes to speed up: no friction, but in its way when torque was measured at the motor."""

from __future__ import annotations

from dataclasses import dataclass

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.identification.friction.data import FrictionData
from jointbench.identification.friction.law import INERTIA, Parameter, Term, spread


@dataclass(frozen=True)
class RotorInertia(Term):
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
