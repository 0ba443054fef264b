"""How far trunk and swing foot go, and the random courses that they take there."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from math import radians

import numpy as np

from jointbench.arrays import Array
from jointbench.errors import ExcitationError
from jointbench.excitation.families.splines import UniformSpline

Range = tuple[float, float]
"""Least and largest way from home; 0 is between them."""


@dataclass(frozen=True)
class SupportRanges:
    """What is free while a robot stands on one foot, but the trunk's place above it, which balance decides.

    The defaults suit a biped of 0.6 m long legs from a crouch; what is out and in is to the swing foot's side.

    Attributes:
        trunk_up: height of the trunk [m]: how deep it crouches.
        trunk_roll, trunk_pitch, trunk_yaw: turns of the trunk about the axes of the foot on the ground [rad].
        foot_forward, foot_out, foot_up: the swing foot [m], which stays parallel to the ground.
        foot_turn: its turn about the upright, toes out [rad].

    Raises:
        ExcitationError: a range does not have home, 0, in it; one from 0 to 0 leaves its quantity as it is at home.
    """

    trunk_up: Range = (-0.05, 0.05)
    trunk_roll: Range = (-radians(12.0), radians(12.0))
    trunk_pitch: Range = (-radians(18.0), radians(22.0))
    trunk_yaw: Range = (-radians(15.0), radians(15.0))
    foot_forward: Range = (-0.14, 0.16)
    foot_out: Range = (-0.005, 0.09)
    foot_up: Range = (-0.015, 0.08)
    foot_turn: Range = (-radians(10.0), radians(22.0))

    def __post_init__(self) -> None:
        """Refuse what is no range about home."""
        for name, (low, high) in zip(self.names, self.ends.tolist(), strict=True):
            if not low <= 0.0 <= high:
                raise ExcitationError(f"{name} from {low:g} to {high:g}: the range must have home, 0, in it")

    @property
    def names(self) -> tuple[str, ...]:
        """Of the ranges, in their order."""
        return tuple(field.name for field in fields(self))

    @property
    def ends(self) -> Array:
        """Least and largest, shape (8, 2)."""
        return np.array([getattr(self, name) for name in self.names], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Courses:
    """Random courses of several quantities that rest at 0, then go anywhere in their ranges, and come to rest at 0.

    Splines whose control points are drawn evenly from the ranges: they stay within them, and are smooth to the fourth
    derivative.

    Attributes:
        spline: from the end of the rest at the beginning to the beginning of that at the end.
        weights: control points, shape (n_courses, spline.size).
        rest: at either end [s].
    """

    spline: UniformSpline
    weights: Array
    rest: float

    @staticmethod
    def drawn(rng: np.random.Generator, ends: Array, duration: float, rest: float, pace: float) -> Courses:
        """Draw them.

        Args:
            rng: what is random.
            ends: of the ranges, shape (n_courses, 2).
            duration: of all, rests included [s].
            rest: at either end [s].
            pace: from control point to control point [s].

        Raises:
            ExcitationError: the duration leaves no room for a motion.
        """
        moving = duration - 2.0 * rest
        if moving < 6.0 * pace:
            raise ExcitationError(
                f"duration = {duration:g} s with {rest:g} s of rest at either end leaves {moving:g} s; a motion at a "
                f"pace of {pace:g} s needs {6.0 * pace:g} s at least"
            )
        spline = UniformSpline(int(moving / pace), moving)
        low, high = ends.T[..., None]
        return Courses(spline, rng.uniform(low, high, (len(ends), spline.size)), rest)

    def shrunk(self, share: float) -> Courses:
        """The same with all ways from 0 multiplied by a share."""
        return replace(self, weights=share * self.weights)

    def at(self, time: Array) -> Array:
        """Their values at times [s], shape (n_times, n_courses)."""
        since = np.clip(np.asarray(time) - self.rest, 0.0, self.spline.duration)
        return self.spline.displacement(self.weights, since, 0)[0]
