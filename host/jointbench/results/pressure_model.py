"""What a model says of a stance, as a picture shows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from jointbench.arrays import Array


@dataclass(frozen=True, eq=False)
class PressureModel:
    """A model's zero-moment points along a stance, and the parameters that it has.

    Attributes:
        label: what the model is called.
        points: its zero-moment points [m], shape (n, 2), x and y in the base frame.
        distance: mean distance of those from the measured ones [m].
        uncorrected: mean distance from those that the sensors tell as they were calibrated [m], where that is another.
        printed: that distance as a paper prints it [m], where one does.
        parameters: its values by name [SI].
        sigmas: standard deviations of those that were estimated, by name.
    """

    label: str
    points: Array
    distance: float
    uncorrected: float | None = None
    printed: float | None = None
    parameters: Mapping[str, float] = field(default_factory=dict[str, float])
    sigmas: Mapping[str, float] = field(default_factory=dict[str, float])
