"""All that a model's torque is made of in one row: base parameters, and those of friction laws."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointbench.arrays import Array
from jointbench.identification.model import Model

_FRICTION = ("viscous", "coulomb")
_DRIVES = ("rotor_inertia", "offset")


@dataclass(frozen=True, eq=False)
class AllParameters:
    """Base parameters that no friction law stands for, then the laws' parameters.

    Attributes:
        names: such as "j2.viscous" and "j2.stribeck_speed".
        parts: which of "links", "drives" and "friction" each belongs to.
        values: of them [SI], shape (n,).
        covariance: of them, an infinite variance where not told, shape (n, n).
    """

    names: tuple[str, ...]
    parts: tuple[str, ...]
    values: Array
    covariance: Array

    @classmethod
    def of(cls, model: Model) -> AllParameters:
        """Those of a model."""
        friction = model.friction
        if friction is None:
            return cls(model.names, tuple(map(_part_of, model.names)), model.parameters, model.covariance)
        kept = np.flatnonzero(friction.laws.kept)
        names, with_base = tuple(model.names[k] for k in kept), friction.with_base[kept]
        return cls(
            (*names, *friction.names),
            (*map(_part_of, names), *["friction"] * len(friction.names)),
            np.concatenate([model.parameters[kept], friction.parameters]),
            np.block([[model.covariance[np.ix_(kept, kept)], with_base], [with_base.T, friction.covariance]]),
        )

    @property
    def sigma(self) -> Array:
        """Standard deviation of each, infinite where not told, shape (n,)."""
        return np.sqrt(np.diag(self.covariance))


def _part_of(name: str) -> str:
    """Where a base parameter belongs, by the full parameter that leads it."""
    quantity = name.rpartition(".")[2]
    return "friction" if quantity in _FRICTION else "drives" if quantity in _DRIVES else "links"
