"""What a friction law is fitted to: torque lost at known speeds, and what else was known of them."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.errors import FitError


@dataclass(frozen=True, eq=False)
class FrictionData:
    """Friction of one joint, row by row; all arrays have shape (n,).

    Attributes:
        velocity: [rad/s or m/s].
        torque: that friction takes, positive against positive velocity [N·m or N].
        load: torque that the joint transmits [N·m or N], or None where not known; its sign does not matter.
        temperature: [K], or None where not known.
        acceleration: [rad/s² or m/s²] where the torque holds that of a rotor's unknown inertia too, or None.
        in_time: rows are evenly spaced in time, so that neighbours err alike; False: each is its own measurement.
    """

    velocity: Array
    torque: Array
    load: Array | None = None
    temperature: Array | None = None
    acceleration: Array | None = None
    in_time: bool = False

    def __post_init__(self) -> None:
        """Refuse arrays that differ in shape or hold no numbers.

        Raises:
            FitError: names the array.
        """
        for name, values in self._arrays().items():
            if values.ndim != 1 or values.shape != self.velocity.shape:
                raise FitError(f"friction {name} has shape {values.shape}, must be {self.velocity.shape}, one row each")
            if not np.isfinite(values).all():
                row = int(np.flatnonzero(~np.isfinite(values))[0])
                raise FitError(f"friction {name} of row {row} is {values[row]}; leave such rows out")

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return len(self.velocity)

    @property
    def both_directions(self) -> bool:
        """Whether it has rows of either direction."""
        return bool((self.velocity > 0.0).any() and (self.velocity < 0.0).any())

    def part(self, rows: NDArray[np.bool_]) -> FrictionData:
        """The rows that a mask of shape (n,) picks."""
        return replace(self, **{name: values[rows] for name, values in self._arrays().items()})

    def moving(self, threshold: float = 0.0) -> FrictionData:
        """The rows faster than a speed [rad/s or m/s]: at rest, friction is whatever it must be to hold."""
        return self.part(np.abs(self.velocity) > threshold)

    def _arrays(self) -> dict[str, Array]:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
