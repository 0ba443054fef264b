"""Friction laws: sums of terms over speed, load and temperature, with named parameters and bounds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.identification.friction.data import FrictionData


class Form(IntEnum):
    """Dependence of an element on the velocity v; s is its shape. See `FORMS`."""

    SIGN = 0
    SPEED = 1
    BELL = 2
    TANH = 3
    LOAD = 4


FORMS = {
    Form.SIGN: "sign(v)",
    Form.SPEED: "v",
    Form.BELL: "sign(v) exp(-(v/s)^2)",
    Form.TANH: "tanh(s v)",
    Form.LOAD: "sign(v) |load|",
}
"""In words."""


class LawElement(NamedTuple):
    """coefficient * form(v), in both directions or, where direction is 1 or -1, only for v of that sign."""

    form: Form
    coefficient: float
    shape: float = 1.0
    direction: int = 0


class Unit(NamedTuple):
    """A unit's symbol at joints that turn, and at those that slide."""

    revolute: str
    prismatic: str


TORQUE = Unit("N·m", "N")
VISCOSITY = Unit("N·m·s/rad", "N·s/m")
SPEED = Unit("rad/s", "m/s")
PER_SPEED = Unit("s/rad", "s/m")
INERTIA = Unit("kg·m²", "kg")
SHARE = Unit("1", "1")
TORQUE_PER_KELVIN = Unit("N·m/K", "N/K")
VISCOSITY_PER_KELVIN = Unit("N·m·s/rad/K", "N·s/m/K")


@dataclass(frozen=True)
class Parameter:
    """A parameter's name, unit and least value; shapes also have bounds that follow from the data."""

    name: str
    unit: Unit
    lower: float = 0.0


@dataclass(frozen=True)
class LawTerm(ABC):
    """One cause of friction: torque = columns(shapes) @ coefficients. Shapes may be stacked along leading axes."""

    @property
    @abstractmethod
    def coefficients(self) -> tuple[Parameter, ...]:
        """Parameters the torque is linear in."""

    @abstractmethod
    def columns(self, data: FrictionData, shapes: Array) -> Array:
        """Torque per unit of each coefficient, shape (…, n, n_coefficients), for shapes (…, n_shapes)."""

    @property
    def shapes(self) -> tuple[Parameter, ...]:
        """Parameters it is not linear in; all are positive."""
        return ()

    @property
    def bends(self) -> tuple[str, ...]:
        """Coefficient that each shape bends: where that is zero, so is what there is to shape."""
        return ()

    def coefficient_bounds(self, data: FrictionData) -> Array:
        """Least and largest value of each coefficient, shape (n_coefficients, 2)."""
        return np.array([[parameter.lower, np.inf] for parameter in self.coefficients])

    def shape_bounds(self, data: FrictionData) -> Array:
        """Least and largest value of each shape that these speeds can tell, shape (n_shapes, 2)."""
        return np.empty((0, 2))

    def by_shapes(self, data: FrictionData, shapes: Array, coefficients: Array) -> Array:
        """Derivative of the torque by each shape, shape (…, n, n_shapes), for coefficients (…, n_coefficients)."""
        return np.empty((*shapes.shape[:-1], data.n_rows, 0))

    def elements(self, coefficients: Sequence[float], shapes: Sequence[float]) -> tuple[LawElement, ...]:
        """The law's torque as a sum of elements.

        Raises:
            FitError: it is none of velocity and load alone.
        """
        raise FitError(
            f"{', '.join(parameter.name for parameter in self.coefficients)}: no friction that velocity and load tell"
        )


@dataclass(frozen=True)
class Law:
    """A named sum of terms.

    Attributes:
        name: such as "stribeck+load".
        terms: at most one of them has shapes that are searched on a grid.
    """

    name: str
    terms: tuple[LawTerm, ...]

    @cached_property
    def coefficients(self) -> tuple[Parameter, ...]:
        """Parameters the torque is linear in."""
        return tuple(parameter for term in self.terms for parameter in term.coefficients)

    @cached_property
    def shapes(self) -> tuple[Parameter, ...]:
        """Parameters it is not linear in."""
        return tuple(parameter for term in self.terms for parameter in term.shapes)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """All parameters: first the coefficients, then the shapes."""
        return self.coefficients + self.shapes

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all parameters."""
        return tuple(parameter.name for parameter in self.parameters)

    @cached_property
    def bends(self) -> dict[str, str]:
        """Coefficient that each shape bends, by name."""
        return {shape.name: name for term in self.terms for shape, name in zip(term.shapes, term.bends, strict=True)}

    def columns(self, data: FrictionData, shapes: Array) -> Array:
        """Torque per unit of each coefficient, shape (…, n, n_coefficients), for shapes (…, n_shapes)."""
        return np.concatenate([term.columns(data, shapes[..., part]) for term, _, part in self._parts], axis=-1)

    def by_shapes(self, data: FrictionData, shapes: Array, coefficients: Array) -> Array:
        """Derivative of the torque by each shape, shape (…, n, n_shapes)."""
        return np.concatenate(
            [
                term.by_shapes(data, shapes[..., of_shapes], coefficients[..., of_coefficients])
                for term, of_coefficients, of_shapes in self._parts
            ],
            axis=-1,
        )

    def coefficient_bounds(self, data: FrictionData) -> Array:
        """Least and largest value of each coefficient, shape (n_coefficients, 2)."""
        return np.concatenate([term.coefficient_bounds(data) for term in self.terms])

    def shape_bounds(self, data: FrictionData) -> Array:
        """Least and largest value of each shape, shape (n_shapes, 2)."""
        return np.concatenate([term.shape_bounds(data) for term in self.terms])

    def torque(self, data: FrictionData, parameters: Array) -> Array:
        """Friction at the data's velocities, loads and temperatures [N·m or N], shape (…, n).

        Args:
            data: its `torque` does not matter.
            parameters: in the order of `names`, shape (…, n_parameters).

        Raises:
            FitError: another number of parameters than the law has.
        """
        coefficients, shapes = self.split(parameters)
        return (self.columns(data, shapes) @ coefficients[..., None])[..., 0]

    def jacobian(self, data: FrictionData, parameters: Array) -> Array:
        """Derivative of the torque by each parameter, shape (…, n, n_parameters)."""
        coefficients, shapes = self.split(parameters)
        return np.concatenate([self.columns(data, shapes), self.by_shapes(data, shapes, coefficients)], axis=-1)

    def elements(self, parameters: Array) -> tuple[LawElement, ...]:
        """The law's torque as a sum of elements.

        Raises:
            FitError: it depends on more than velocity and load, or there are not as many parameters.
        """
        coefficients, shapes = (values.tolist() for values in self.split(parameters))
        return tuple(
            element
            for term, linear, bent in self._parts
            for element in term.elements(coefficients[linear], shapes[bent])
        )

    def split(self, parameters: Array) -> tuple[Array, Array]:
        """Coefficients and shapes out of all parameters.

        Raises:
            FitError: another number of parameters than the law has.
        """
        if parameters.shape[-1] != len(self.names):
            raise FitError(
                f"friction law {self.name!r} has {len(self.names)} parameters ({', '.join(self.names)}), "
                f"not {parameters.shape[-1]}"
            )
        return parameters[..., : len(self.coefficients)], parameters[..., len(self.coefficients) :]

    @cached_property
    def _parts(self) -> tuple[tuple[LawTerm, slice, slice], ...]:
        """Each term with its places among the coefficients and among the shapes."""
        linear = [0, *accumulate(len(term.coefficients) for term in self.terms)]
        bent = [0, *accumulate(len(term.shapes) for term in self.terms)]
        return tuple(
            (term, slice(linear[k], linear[k + 1]), slice(bent[k], bent[k + 1])) for k, term in enumerate(self.terms)
        )


def spread(columns: Array, shapes: Array) -> Array:
    """Columns that no shape bends, (n, k), as many times as there are stacked shapes, without copying."""
    return np.broadcast_to(columns, (*shapes.shape[:-1], *columns.shape))
