"""Contact of a foot with the floor: soft soles, rocking, and whether the foot stands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.bench import LEAST_FOOT_FORCE, SOLE_EDGE, TIPPING_TIME
from jointbench.errors import FitError, FootOffGround, RobotFell, StuckFootSensor
from jointbench.model import CORNERS, Foot, FreeBaseMotion, Robot, floating_inverse_dynamics
from jointbench.signals import Motion, valid_spans

_GIVE = 1e-6
"""[m/N] at which the effect is computed: so small that it is linear, so large that rounding is none of it."""


def rocking_base(robot: Robot, foot: Foot, forces: Motion, give: float) -> FreeBaseMotion:
    """Return the motion of the base when each corner of its level sole sinks by give times its force.

    The sole is the plane nearest to the corners; it turns about its middle, and the base frame with it.

    Args:
        robot: its gravity is along -z.
        foot: part of the base.
        forces: at the corners and their derivatives [N, N/s, N/s²], shape (n, 4) each.
        give: [m/N].
    """
    corners = np.array(foot.corners)[:, :2] - foot.origin[:2]
    plane = np.asarray(np.linalg.pinv(np.column_stack([np.ones(len(corners)), corners])), dtype=np.float64)
    _, tilt = _sunk(plane, give * forces.q)
    _, omega = _sunk(plane, give * forces.dq)
    heave, alpha = _sunk(plane, give * forces.ddq)
    gravity = np.array(robot.gravity)
    felt = np.cross(alpha, -foot.origin) + heave - gravity + np.cross(tilt, gravity)
    return FreeBaseMotion(omega, alpha, felt)


def _sunk(plane: Array, depths: Array) -> tuple[Array, Array]:
    """Heave of a sole's middle and its turn, as vectors, of depths of its corners, shape (n, 3) each."""
    up, forward, left = -plane @ depths.T
    nothing = np.zeros_like(up)
    return np.stack([nothing, nothing, up], axis=1), np.stack([left, -forward, nothing], axis=1)


def wrench_by_give(robot: Robot, foot: Foot, motion: Motion, forces: Motion, parameters: Array) -> Array:
    """Derivative of the wrench on the base by the give of its sole's corners.

    Args:
        robot, foot: as of `rocking_base`.
        motion: of the joints, shape (n, n_joints) each.
        forces: smooth ones; their second derivatives count.
        parameters: of base link and links, shape (10 * (1 + n_links),).

    Returns:
        Force and moment [N, N·m] per [m/N], shape (n, 6).
    """
    rocking, level = (
        floating_inverse_dynamics(
            robot, rocking_base(robot, foot, forces, give), motion.q, motion.dq, motion.ddq, parameters
        )[:, :6]
        for give in (_GIVE, 0.0)
    )
    return np.asarray((rocking - level) / _GIVE, dtype=np.float64)


_TIPPING = 0.25
"""Before a foot lost its load [s]: at the sole's edge then, the robot fell over it."""

_NOTHING = 0.02
"""Of the weight, which sensors whose zeros drift still tell from nothing."""

_TOUCHES = 0.05
"""Of the weight on another foot: beyond what a zero is wrong by or a cable pulls."""

_STUCK = 0.25
"""A reading that stays the same for so long [s] while others change is none: noise alone would move it."""

_AT_END = 5
"""Samples in a row that all read a corner's largest value: it is cut off there."""

_UNLOADED = 1.0
"""A corner below is not pressed [N]."""

Kind = Literal["stuck", "off the ground", "fell"]
_ERRORS: dict[Kind, type[FitError]] = {
    "stuck": StuckFootSensor, "off the ground": FootOffGround, "fell": RobotFell,
}  # fmt: skip


@dataclass(frozen=True)
class ContactFault:
    """Fault of a recording that is not one of a robot that stands on a foot.

    Attributes:
        kind: which of `StuckFootSensor`, `FootOffGround`, `RobotFell` it is.
        time: when it began [s].
        value: what shows it: a force [N], or for a fall the pressure point's distance to the sole's edge [m].
        text: what, where, when, how much, and what to do.
    """

    kind: Kind
    time: float
    value: float
    text: str

    def error(self) -> FitError:
        """Return it as an error to raise."""
        return _ERRORS[self.kind](self.text)


@dataclass(frozen=True, eq=False)
class Contact:
    """Contact of a foot with the ground.

    Attributes:
        foot: its name.
        time: of the samples [s], shape (n,).
        share: of the weight that the corners carry together, shape (n,).
        to_edge: of the pressure point [m], negative outside the sole, nan where nothing presses, shape (n,).
        pressed: corners that carry something, shape (n, 4).
        edge: distance from the sole's edge within which a foot tips [m]; as the watch over the motion has it.
        faults: what makes the recording useless, the first one first.
    """

    foot: str
    time: Array
    share: Array
    to_edge: Array
    pressed: NDArray[np.bool_]
    edge: float
    faults: tuple[ContactFault, ...]

    @property
    def good(self) -> NDArray[np.bool_]:
        """Samples of a flat foot that carries the robot, shape (n,)."""
        return (self.share > LEAST_FOOT_FORCE) & (np.nan_to_num(self.to_edge, nan=-1.0) > self.edge)

    def check(self) -> None:
        """Raise the first fault.

        Raises:
            StuckFootSensor, FootOffGround, RobotFell: there is one.
        """
        if self.faults:
            raise self.faults[0].error()

    def __str__(self) -> str:
        """Return a sentence: how much it carried, how near to the edge it came, which corners were off the ground."""
        if not self.share.size:
            return f"{self.foot}: nothing was recorded"
        off = (~self.pressed).mean(axis=0)
        corners = ", ".join(f"{corner} {part:.1%}" for corner, part in zip(CORNERS, off, strict=True) if part > 0.0)
        nearest = 1e3 * float(np.nanmin(self.to_edge)) if np.isfinite(self.to_edge).any() else float("nan")
        return (
            f"{self.foot}: carried {self.share.min():.1%} to {self.share.max():.1%} of the weight, its pressure point "
            f"{nearest:.1f} mm or more inside the sole, {self.good.mean():.1%} of the samples good; corners unloaded: "
            f"{corners or 'none'}"
        )


def judge_contact(
    foot: Foot,
    time: Array,
    forces: Array,
    weight: float,
    *,
    others: Mapping[str, Array] | None = None,
    position: Array | None = None,
) -> Contact:
    """Judge how a robot stood on a foot.

    Args:
        foot: the support foot.
        time: of the samples [s], shape (n,); steps of more than twice the usual one are gaps.
        forces: of its corners [N], shape (n, 4).
        weight: of the robot [N].
        others: corner forces of the other feet by name [N], shape (n, 4) each.
        position: of the joints, shape (n, n_joints): where they move, sensors must too.
    """
    total = forces.sum(axis=1)
    pressure = np.full((len(forces), 2), np.nan)
    carried = total > _NOTHING * weight
    pressure[carried] = foot.pressure_point(forces[carried])
    seen = _Seen(foot, time, forces, total / weight, foot.distance_to_edge(pressure), weight)
    stands = [*seen.fell(), *seen.off_the_ground(), *seen.on_others(others or {})]
    faults = [*seen.stuck(position), *sorted(stands, key=lambda fault: fault.time)]
    return Contact(foot.name, time, seen.share, seen.to_edge, forces > _UNLOADED, seen.edge, tuple(faults))


@dataclass(frozen=True, eq=False)
class _Seen:
    """Readings of a foot's sensors."""

    foot: Foot
    time: Array
    forces: Array
    share: Array
    to_edge: Array
    weight: float

    @property
    def edge(self) -> float:
        return SOLE_EDGE * float(np.linalg.norm(np.roll(self.foot.points, -1, axis=0) - self.foot.points, axis=1).min())

    def stuck(self, position: Array | None) -> Iterator[ContactFault]:
        """Corners that stay the same while something else changes, but for feet that nothing rests on."""
        values = self.forces if position is None else np.hstack([self.forces, position])
        changes = np.diff(values, axis=0) != 0.0
        rests = self.share[1:] > _NOTHING
        for corner, name in enumerate(CORNERS):
            reading = self.forces[1:, corner]
            others = np.delete(changes, corner, axis=1).any(axis=1)
            same = ~changes[:, corner] & rests
            for part in self._lasting(same, _STUCK):
                if others[part].mean() > 0.5:
                    yield self._stuck_fault(name, part, float(reading[part.start]), "stays at")
                    break
            else:
                top = reading.max(initial=-np.inf)
                stuck = valid_spans(same & (reading == top), _AT_END - 1)
                at_end = [span for span in stuck if others[span].mean() > 0.5]
                if at_end:
                    yield self._stuck_fault(name, at_end[0], float(top), "is cut off at")

    def _stuck_fault(self, corner: str, part: slice, value: float, does: str) -> ContactFault:
        dead = " as if it were dead" if abs(value) < _NOTHING * self.weight else ""
        start, stop = float(self.time[part.start]), float(self.time[part.stop])
        return ContactFault(
            "stuck", start, value,
            f"{self.foot.name}: its sensor {corner} {does} {value:.1f} N from {start:.2f} to {stop:.2f} s{dead} while "
            f"other readings change; repair or replace it, and record again",
        )  # fmt: skip

    def fell(self) -> Iterator[ContactFault]:
        """The pressure point stays at the sole's edge, or was there when the foot lost its load."""
        edge = (self.to_edge < self.edge) & (self.share > LEAST_FOOT_FORCE)
        for part in self._lasting(edge, TIPPING_TIME):
            yield self._fall(part.start, f"stays there for {self.time[part.stop - 1] - self.time[part.start]:.2f} s")
            return
        for part in self._unloaded():
            if len(before := self._edge_before(part.start)):
                yield self._fall(int(before[0]), f"the foot lost its load at {self.time[part.start]:.2f} s")
            return

    def _fall(self, sample: int, then: str) -> ContactFault:
        distance, start = float(self.to_edge[sample]), float(self.time[sample])
        return ContactFault(
            "fell", start, distance,
            f"the robot fell over the edge of {self.foot.name}: at {start:.2f} s its pressure point was "
            f"{1e3 * distance:.1f} mm inside the sole, less than {1e3 * self.edge:g} mm, and {then}; plan a motion "
            f"with a larger margin, and record again",
        )  # fmt: skip

    def off_the_ground(self) -> Iterator[ContactFault]:
        """The foot does not carry half of the weight, without a fall before."""
        for part in self._unloaded():
            if not len(self._edge_before(part.start)):
                share, start, stop = (
                    float(np.median(self.share[part])),
                    self.time[part.start],
                    self.time[part.stop - 1],
                )
                yield ContactFault(
                    "off the ground", float(start), share * self.weight,
                    f"{self.foot.name} is off the ground: from {start:.2f} to {stop:.2f} s it carries "
                    f"{share * self.weight:.1f} N, {share:.0%} of the robot's weight of {self.weight:.1f} N, and must "
                    f"carry it all; stand the robot on this foot alone, and record again, or correct total_mass",
                )  # fmt: skip
            return

    def on_others(self, others: Mapping[str, Array]) -> Iterator[ContactFault]:
        """Another foot carries a part of the weight."""
        for name, forces in others.items():
            total = forces.sum(axis=1)
            for part in self._lasting(total > _TOUCHES * self.weight, TIPPING_TIME):
                start, most = float(self.time[part.start]), float(total[part].max())
                yield ContactFault(
                    "off the ground", start, most,
                    f"{self.foot.name} does not carry the robot alone: from {start:.2f} s on {name} carries up to "
                    f"{most:.1f} N, more than {_TOUCHES:.0%} of the robot's weight of {self.weight:.1f} N; keep {name} "
                    f"off the ground, and record again",
                )  # fmt: skip
                break

    def _unloaded(self) -> Iterator[slice]:
        return self._lasting(self.share < LEAST_FOOT_FORCE, TIPPING_TIME)

    def _edge_before(self, sample: int) -> NDArray[np.intp]:
        """Samples at the edge shortly before a sample."""
        recent = np.arange(sample)[self.time[:sample] > self.time[sample] - _TIPPING]
        return recent[np.nan_to_num(self.to_edge[recent], nan=np.inf) < self.edge]

    def _lasting(self, mask: NDArray[np.bool_], seconds: float) -> Iterator[slice]:
        """Samples in a row of which it is true, for that long at least."""
        step = float(np.median(np.diff(self.time))) if len(self.time) > 1 else 1.0
        return valid_spans(mask, max(1, round(seconds / step)))
