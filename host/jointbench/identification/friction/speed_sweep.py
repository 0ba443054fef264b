"""The sweep of speeds that shows a joint's friction: to and fro at a steady speed, each time a little faster."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from jointbench.arrays import Array
from jointbench.errors import FitError


@dataclass(frozen=True)
class SpeedSweep:
    """To and fro between two positions, once per speed, with pauses; ramps of constant acceleration at the ends.

    Attributes:
        lower, upper: positions between which the joint moves [rad or m].
        first: the lowest speed [rad/s or m/s].
        step: by how much each speed is above the one before.
        n_speeds: how many there are.
        pause: rest after each stroke [s].
        acceleration: of the ramps [rad/s² or m/s²].

    Source: Lu et al., Chinese Journal of Mechanical Engineering 37:74, 2024, whose ±90°, 1 °/s, 0.5 °/s, more than 60
    speeds and 5 s are the defaults; their ramps are not printed, 60 °/s² is assumed.
    """

    lower: float = -0.5 * math.pi
    upper: float = 0.5 * math.pi
    first: float = math.radians(1.0)
    step: float = math.radians(0.5)
    n_speeds: int = 61
    pause: float = 5.0
    acceleration: float = math.radians(60.0)

    def __post_init__(self) -> None:
        """Refuse a sweep that no joint can do.

        Raises:
            FitError: positions, speeds or acceleration leave no stroke of steady speed.
        """
        if not (self.first > 0.0 and self.step >= 0.0 and self.n_speeds >= 1 and self.pause >= 0.0):
            raise FitError(
                f"a speed sweep of {self.n_speeds} speeds from {self.first:g} in steps of {self.step:g} with pauses of "
                f"{self.pause:g} s is impossible; give at least one speed, above 0, and no step or pause below 0"
            )
        fastest = float(self.speeds[-1])
        if not (self.acceleration > 0.0 and fastest**2 / self.acceleration < self.upper - self.lower):
            raise FitError(
                f"a sweep up to {fastest:.3g} between {self.lower:.3g} and {self.upper:.3g} has no room for ramps of "
                f"{self.acceleration:.3g}; use a longer way, fewer speeds or more acceleration"
            )

    @property
    def speeds(self) -> Array:
        """All speeds, shape (n_speeds,)."""
        return self.first + self.step * np.arange(self.n_speeds, dtype=np.float64)

    @property
    def duration(self) -> float:
        """How long it takes [s]."""
        return float(2.0 * np.sum(self._stroke_times + self.pause))

    def position(self, time: Array) -> Array:
        """Position at these times [s], shape (n,); the joint begins and ends at `lower`."""
        lengths = np.repeat(self._stroke_times + self.pause, 2)
        begins = np.concatenate([[0.0], np.cumsum(lengths)[:-1]])
        stroke = np.clip(np.searchsorted(begins, time, side="right") - 1, 0, len(begins) - 1)
        speed, whole = self.speeds[stroke // 2], self._stroke_times[stroke // 2]
        since = np.clip(time - begins[stroke], 0.0, whole)
        ramp = speed / self.acceleration
        # Both ramps have the same shape: what is travelled until now, or what is left to travel.
        near = np.minimum(since, whole - since)
        travelled = np.where(near < ramp, 0.5 * self.acceleration * near**2, speed * (near - 0.5 * ramp))
        travelled = np.where(since <= 0.5 * whole, travelled, self.upper - self.lower - travelled)
        return np.where(stroke % 2 == 0, self.lower + travelled, self.upper - travelled)

    @property
    def _stroke_times(self) -> Array:
        return (self.upper - self.lower) / self.speeds + self.speeds / self.acceleration
