"""A stair of steady speeds there, and the same way back: what shows the friction of joints."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jointbench.arrays import Array
from jointbench.errors import ExcitationError
from jointbench.excitation.families.basis import (
    MAX_ORDER,
    Repetition,
    check_duration,
    check_order,
    grid_between,
    times_between,
)
from jointbench.excitation.families.splines import coefficients_at_start, septic_bounds, septic_values

_MAX_SLOPE = 15.0 / 8.0
"""Largest slope of 10x³ - 15x⁴ + 6x⁵, by which one speed becomes another while acceleration and jerk begin and end at
zero; to the turning point it covers 11/32 of what the first speed would."""

_TURNING_SHARE = 11.0 / 32.0


@dataclass(frozen=True)
class SpeedStairs:
    """Speeds first, first + step, … held one after the other, then held again in reverse on the same way back.

    q(t) = home + phi(t) w, with phi' = ± (first + k step) while a speed is held: a joint of weight 1 goes up, of -1
    down, of 0 stands still. Each position is passed twice at the same speed, once in either direction, so that half the
    difference of the torques is friction, whatever gravity does there. Where the reach is too short for all speeds, the
    joint comes home and goes out again for those that are left: with a short reach one speed at a time.

    All durations are whole multiples of `change`; with 32 ms they suit the boards' knots.

    Attributes:
        first: the lowest speed [rad/s].
        step: by how much each is above the one before [rad/s].
        n_speeds: how many there are.
        hold: how long each is held [s].
        change: the shortest time from one to the next [s].
        reach: how far from home it may go [rad].
        acceleration: that changes of speed may take [rad/s²]; slower ones are `change` long.

    Raises:
        ExcitationError: speeds, durations or acceleration are not above zero, `hold` is no whole multiple of `change`,
            or a speed finds no room in the reach.

    Source: the speeds of Lu et al., Chinese Journal of Mechanical Engineering 37:74, 2024, are the defaults; there each
    has a way of its own, with a pause behind it.
    """

    first: float = math.radians(1.0)
    step: float = math.radians(0.5)
    n_speeds: int = 61
    hold: float = 0.192
    change: float = 0.032
    reach: float = math.radians(160.0)
    acceleration: float = math.radians(55.0)

    def __post_init__(self) -> None:
        """Refuse what is no stair."""
        if not 1 <= self.n_speeds <= MAX_ORDER:
            raise ExcitationError(f"n_speeds = {self.n_speeds}: at least 1 speed is needed, and at most {MAX_ORDER}")
        for name in ("first", "step", "reach", "acceleration"):
            if not getattr(self, name) > 0.0:
                raise ExcitationError(f"{name} = {getattr(self, name):g} must be above 0")
        check_duration("hold", self.hold, "0.2 s is usual")
        check_duration("change", self.change, "a knot step of the boards, 0.032 s, is usual")
        if abs(self.hold / self.change - round(self.hold / self.change)) > 1e-6:
            raise ExcitationError(f"hold = {self.hold:g} s is no whole multiple of change = {self.change:g} s")
        _ = self.ways

    @property
    def speeds(self) -> Array:
        """All speeds [rad/s], shape (n_speeds,)."""
        return self.first + self.step * np.arange(self.n_speeds, dtype=np.float64)

    @cached_property
    def ways(self) -> tuple[tuple[float, ...], ...]:
        """The speeds of each way there and back: as many as its reach has room for."""
        ways: list[tuple[float, ...]] = []
        way: tuple[float, ...] = ()
        for speed in self.speeds.tolist():
            if way and self._way_length((*way, speed)) > self.reach:
                ways.append(way)
                way = ()
            way = (*way, speed)
            if self._way_length(way) > self.reach:
                raise ExcitationError(
                    f"a speed of {speed:.4g} needs {self._way_length(way):.4g} there, and the reach is "
                    f"{self.reach:.4g}; give more reach or acceleration, or hold it shorter than {self.hold:g} s"
                )
        return (*ways, way)

    @property
    def size(self) -> int:
        """One weight per joint."""
        return 1

    @property
    def duration(self) -> float:
        """Duration of all ways [s]."""
        return float(self._breaks[-1])

    @property
    def fastest_cycle(self) -> float:
        """Time from one speed to the next [s]."""
        return self.hold + self.change

    @property
    def repetition(self) -> Repetition:
        """The whole motion, once."""
        return Repetition(0.0, self.duration, 1)

    @property
    def description(self) -> str:
        """The family and its settings in words."""
        ways = "one way" if len(self.ways) == 1 else f"{len(self.ways)} ways"
        return (
            f"{self.n_speeds} steady speeds from {self.speeds[0]:.3g} to {self.speeds[-1]:.3g} in both directions, "
            f"{self.hold:g} s each, on {ways} there and back"
        )

    @cached_property
    def holds(self) -> tuple[tuple[float, float, float], ...]:
        """Holds of each speed: start on the way out, start on the way back [s], and the speed [rad/s]."""
        starts: dict[float, list[float]] = {}
        for start, (begin, end) in zip(self._breaks[:-1].tolist(), self._velocities, strict=True):
            if begin == end:
                starts.setdefault(abs(begin), []).append(start)
        return tuple((outward, return_start, speed) for speed, (outward, return_start) in starts.items())

    def evaluate(self, time: Array, order: int = 2) -> tuple[Array, ...]:
        """Values of phi and its first `order` derivatives at times [s], shape (n_times, 1) each."""
        check_order(order)
        time = np.asarray(time, dtype=np.float64) % self.duration
        piece = np.clip(np.searchsorted(self._breaks, time, side="right") - 1, 0, len(self._lengths) - 1)
        length = self._lengths[piece]
        shapes = septic_values((time - self._breaks[piece]) / length, 1.0, order)
        coefficients = self._coefficients[piece]
        return tuple(
            (np.einsum("nb,nb->n", shape, coefficients) / length**k)[:, None] for k, shape in enumerate(shapes)
        )

    def grid(self, step: float) -> Array:
        """Times [s] from 0 to the duration, at most `step` apart, every change of speed among them."""
        return grid_between(self._breaks.tolist(), step)

    def bounds(self, weights: Array) -> Array:
        """Bounds of the derivatives 0 to 5 of q - home, shape (6, n_joints)."""
        return self._bounds[:, None] * np.abs(weights[:, 0])

    def sample_times(self, samples: int) -> Array:
        """Times [s] spread over the speeds that are held, those there and those back."""
        start_times = np.sort([start for outward, return_start, _ in self.holds for start in (outward, return_start)])
        hold_starts = (
            start_times[np.linspace(0, len(start_times) - 1, samples).round().astype(np.intp)]
            if samples
            else start_times[:0]
        )
        # Several in one hold lie apart.
        offsets = times_between((0.0, self.hold), samples)
        return hold_starts + offsets

    def _way_length(self, speeds: tuple[float, ...]) -> float:
        """Way from home to where a way with these speeds turns [rad]."""
        way = sum(self.hold * speed for speed in speeds)
        way += sum(0.5 * (a + b) * self._change_duration(b - a) for a, b in zip((0.0, *speeds), speeds, strict=False))
        return way + _TURNING_SHARE * speeds[-1] * self._change_duration(2.0 * speeds[-1])

    def _change_duration(self, difference: float) -> float:
        """Duration of a change of speed [s]."""
        min_changes = _MAX_SLOPE * abs(difference) / (self.acceleration * self.change)
        return self.change * max(math.ceil(min_changes - 1e-9), 1)

    @cached_property
    def _velocities(self) -> tuple[tuple[float, float], ...]:
        """Velocities at the start and end of each piece, which holds a speed or changes it [rad/s]."""
        return tuple(piece for way in self.ways for piece in _out_and_back(way))

    @cached_property
    def _lengths(self) -> Array:
        """Duration of each piece [s]."""
        return np.array([self.hold if a == b else self._change_duration(b - a) for a, b in self._velocities])

    @cached_property
    def _breaks(self) -> Array:
        """Times between pieces, with both ends [s]; whole multiples of `change`."""
        steps = np.rint(self._lengths / self.change)
        return self.change * np.concatenate([[0.0], np.cumsum(steps)])

    @cached_property
    def _coefficients(self) -> Array:
        """Bernstein coefficients of each piece, shape (n_pieces, 8): acceleration and jerk are zero at its ends."""
        ends = np.array(self._velocities)
        position = np.concatenate([[0.0], np.cumsum(ends.mean(axis=1) * self._lengths)])
        coefficients = np.empty((len(ends), 8))
        for k, (length, (begin, end)) in enumerate(zip(self._lengths.tolist(), ends.tolist(), strict=True)):
            coefficients[k, :4] = coefficients_at_start(length)[:, :2] @ [position[k], begin]
            coefficients[k, 4:] = (coefficients_at_start(-length)[:, :2] @ [position[k + 1], end])[::-1]
        return coefficients

    @cached_property
    def _bounds(self) -> Array:
        """Bounds of the derivatives 0 to 5 of phi, shape (6,)."""
        pieces: Iterable[Array] = (
            septic_bounds(coefficients[:, None], length)[:, 0]
            for coefficients, length in zip(self._coefficients, self._lengths.tolist(), strict=True)
        )
        return np.max(list(pieces), axis=0)


def _out_and_back(speeds: tuple[float, ...]) -> list[tuple[float, float]]:
    """Velocities at the ends of the pieces of one way: from rest at home up the stair, and back the same way."""
    outward = [(0.0, speeds[0])]
    for slower, faster in zip(speeds, (*speeds[1:], None), strict=True):
        outward.append((slower, slower))
        if faster is not None:
            outward.append((slower, faster))
    return [*outward, (speeds[-1], -speeds[-1]), *((-b, -a) for a, b in reversed(outward))]
