"""Entries of a mapping inferred from a log's columns: positions, velocities, torques, and why."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Literal

import numpy as np

from jointbench.arrays import Array
from jointbench.model import Robot
from jointbench.recording.log_table import LEROBOT_STATE, ColumnSet, FirstRows
from jointbench.recording.mapping import POSITION_UNITS, TO_FILL_IN, VELOCITY_UNITS

State = Literal["read", "guessed", "to fill in"]

_MARGIN = 0.05
"""Share of its range by which a joint may be beyond its limits."""

_USED = 0.05
"""Share of the robot's ranges that a motion must use for a unit to be likely."""

_AGREEING = 0.1
"""How near the factor between velocities and positions' differences must be to that of a unit."""

_LEFT = 0.02
"""Share of a column's power that may be something else where it is the velocity of another one."""

_WIDTH = 9
"""Rows that are averaged before velocities are compared."""

_MOVES = {"revolute": "turns", "prismatic": "slides"}

_ANGLES, _LENGTHS = ("rad", "deg"), ("m", "mm")


def wrapped(text: str, before: str = "# ") -> list[str]:
    """A text as lines of comment."""
    return textwrap.wrap(text, 118, initial_indent=before, subsequent_indent="# " + " " * (len(before) - 2),
                         break_long_words=False, break_on_hyphens=False)  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """One entry of the mapping.

    Attributes:
        table: "" for the top, else "time", "position", "velocity", "torque" or "joint_torque".
        key, value: as they stand in the file; "?" is to be filled in.
        why: a sentence; empty where nothing needs saying.
        state: "read" in the log or told by its figures, "guessed" where something else is possible.
    """

    table: str
    key: str
    value: Any
    why: str = ""
    state: State = "read"

    @property
    def name(self) -> str:
        """Table and key: "torque.side"."""
        return f"{self.table}.{self.key}" if self.table else self.key

    @property
    def line(self) -> str:
        """The entry in TOML."""
        return f"{self.key} = {json.dumps(self.value, ensure_ascii=False)}"

    def __str__(self) -> str:
        value = self.value
        if isinstance(value, list):
            value = " … ".join(dict.fromkeys((str(value[0]), str(value[-1]))))
        mark = {"read": "", "guessed": " (guessed)", "to fill in": " (to fill in)"}[self.state]
        return f"{self.name} = {value}{mark}" + (f": {self.why}" if self.why else "")


@dataclass(frozen=True)
class Proposal:
    """A mapping for a log; `text` is what its file holds.

    Attributes:
        robot: name of the robot.
        about: what was looked at.
        files: tables [[files]], as keys and values.
        entries: all others.
        left_out: columns that are of no use, and why.
        alike: further files of the same columns, which the mapping serves too.
    """

    robot: str
    about: str
    files: tuple[dict[str, Any], ...]
    entries: tuple[Entry, ...]
    left_out: tuple[str, ...]
    alike: tuple[str, ...]

    @property
    def to_fill_in(self) -> tuple[Entry, ...]:
        """Entries that nobody but the log's owner knows."""
        return tuple(entry for entry in self.entries if entry.state == "to fill in")

    @property
    def guesses(self) -> tuple[Entry, ...]:
        """Entries that may be otherwise."""
        return tuple(entry for entry in self.entries if entry.state == "guessed")

    def answered(self, answers: Mapping[str, Any]) -> Proposal:
        """Return the proposal with its entries as they are answered, by names such as "torque.side"."""
        open_answers = dict(answers)
        entries = [
            Entry(entry.table, entry.key, open_answers.pop(entry.name), "as you said")
            if entry.name in answers
            else entry
            for entry in self.entries
        ]
        for name, value in open_answers.items():
            table, _, key = name.rpartition(".")
            entries.append(Entry(table, key, value, "as you said"))
        return replace(self, entries=tuple(entries))

    def lines(self) -> Iterator[str]:
        """For people: what was proposed and why, and what was left out."""
        yield f"proposed for {self.robot} from {self.about}:"
        for entry in self.entries:
            yield f"  {entry}"
        for reason in self.left_out:
            yield f"  left out {reason}"

    @property
    def text(self) -> str:
        """The mapping's file, each entry with the reason for it."""
        lines = wrapped(f"Proposed for {self.robot} from {self.about}. Look through it before you use it.")
        lines += ["version = 1", *self._table("")]
        for file in self.files:
            lines += ["", "[[files]]", *(f"{key} = {json.dumps(value)}" for key, value in file.items())]
        for table in dict.fromkeys(entry.table for entry in self.entries if entry.table):
            lines += ["", f"[{table}]", *self._table(table)]
        if self.left_out:
            lines += ["", "# Left out:"]
            for reason in self.left_out:
                lines += wrapped(reason, "#   ")
        return "\n".join(lines) + "\n"

    def _table(self, name: str) -> list[str]:
        lines: list[str] = []
        for entry in self.entries:
            if entry.table != name:
                continue
            said = {"read": "", "guessed": "GUESSED: ", "to fill in": "FILL IN: "}[entry.state]
            lines += wrapped(said + entry.why) if entry.why else []
            lines.append(entry.line)
        return lines


def columns_entries(
    table: str, file: FirstRows, names: tuple[str, ...], why: str, state: State = "read"
) -> list[Entry]:
    """The columns of a channel, after the file they are in where there are several."""
    entry = Entry(table, "columns", list(names), why, state)
    return [entry] if file.label is None else [Entry(table, "file", file.label), entry]


def guess_position(robot: Robot, positions: ColumnSet) -> tuple[list[Entry], Array | None]:
    """Unit and side of positions, and what they are then [rad or m], shape (rows, n_joints); None where open."""
    table = "position"
    nameless = positions.quantity == "unknown"
    why = positions.order + "; the first ones, taken for positions" * nameless
    entries = columns_entries(table, positions.table, positions.names, why, "guessed" if nameless else "read")
    geared = is_geared(robot)
    low, high = robot.position_limits.T
    used: dict[tuple[tuple[str, ...], str], float] = {}
    for pair in product(_ANGLES, _LENGTHS):
        units = of_kinds(robot, *pair)
        if (positions.said.unit is not None and positions.said.unit not in units) or (units, "joint") in used:
            continue
        for side in ("motor", "joint") if geared else ("joint",):
            q = _in_si(robot, positions.values, units, side)
            margin = _MARGIN * (high - low)
            if np.all((q > low - margin) & (q < high + margin)):
                used[units, side] = _range_used(robot, np.ptp(q, axis=0) / (high - low))
    if not used:
        ends = zip(positions.values.min(axis=0).tolist(), positions.values.max(axis=0).tolist(), strict=True)
        seen = ", ".join(f"{low:.4g} to {high:.4g}" for low, high in ends)
        why = f"none keeps the positions inside the robot's limits (they go {seen}); one of {', '.join(POSITION_UNITS)}"
        return [*entries, ask_unit(robot, table, why), ask_side(table, geared)], None
    likely = [each for each in used if used[each] > _USED]
    by_name = [each for each in likely if each[1] == "motor"] if positions.said.of_motor else []
    best = max(by_name or used, key=lambda each: used[each])
    units, side = best
    states = ", ".join(f"as {_short(each[0])} on the {each[1]}s' side {used[each]:.0%}" for each in used)
    why = f"inside the robot's limits; share of their range that joints use: {states}"
    if positions.said.unit is not None:
        why = f"the names say so; {why}"
    state: State = "read" if len(by_name or likely) == 1 else "guessed"
    if not geared and positions.said.unit is None and "deg" in units:
        state, why = "guessed", f"{why}; or angles of motors before gears that the file lacks: then give a gain"
    if positions.names[0].startswith(LEROBOT_STATE) and "deg" in units:
        state, why = "guessed", f"{why}; LeRobot may also keep -100 to 100 of a joint's range: then write gain and unit"
    entries.append(Entry(table, "unit", short_value(units), why, state))
    entries.append(Entry(table, "side", side, "", state) if geared else ask_side(table, geared))
    return entries, _in_si(robot, positions.values, units, side)


def _range_used(robot: Robot, shares: Array) -> float:
    """Share of their range that joints use at most, of those that turn or those that slide, whichever is less.

    Args:
        robot: the robot.
        shares: of each joint, shape (n_joints,).
    """
    turning = np.array([joint.kind == "revolute" for joint in robot.independent_joints])
    return min(float(shares[kind].max()) for kind in (turning, ~turning) if np.any(shares[kind] > 0.0) or kind.all())


def is_geared(robot: Robot) -> bool:
    """Return whether it matters on which side of the gears something was measured."""
    square = robot.drive_train.n_motors == robot.n_joints
    return square and not np.array_equal(robot.transmission_matrix, np.eye(robot.n_joints))


def of_kinds(robot: Robot, revolute: str, prismatic: str) -> tuple[str, ...]:
    """Units of the joints in their order, by what they do."""
    return tuple(revolute if joint.kind == "revolute" else prismatic for joint in robot.independent_joints)


def ask_side(table: str, geared: bool) -> Entry:
    """Ask for the side of the gears, where there are any."""
    if not geared:
        return Entry(table, "side", "joint", "the robot's file has no gears")
    return Entry(table, "side", TO_FILL_IN, "motor or joint side of the gear", "to fill in")


def ask_unit(robot: Robot, table: str, why: str) -> Entry:
    """Ask for the unit: once, or joint by joint where some turn and some slide."""
    if len({joint.kind for joint in robot.independent_joints}) == 1:
        return Entry(table, "unit", TO_FILL_IN, why, "to fill in")
    names = ", ".join(f"{joint.name} ({_MOVES[joint.kind]})" for joint in robot.independent_joints)
    return Entry(table, "unit", [TO_FILL_IN] * robot.n_joints, f"{why}; one for each of {names}", "to fill in")


def guess_velocity(robot: Robot, velocities: ColumnSet, side: str, own: Array | None) -> list[Entry]:
    """Unit of velocities.

    Args:
        robot: the robot.
        velocities: the columns.
        side: of the gear where the positions are.
        own: differences of the positions [rad/s or m/s], None where they are not known, shape (rows, n_joints).
    """
    table = "velocity"
    why = f"{velocities.order}; only checks use it"
    entries = columns_entries(table, velocities.table, velocities.names, why)
    revolute = np.array([joint.kind == "revolute" for joint in robot.independent_joints])
    units: dict[bool, str] = {}
    reasons: list[str] = []
    for turning in dict.fromkeys(revolute.tolist()):
        candidates = [unit for unit in VELOCITY_UNITS if ("m/s" in unit) != turning]
        picked = revolute == turning
        if own is not None:
            measured = own if side == "joint" else own @ robot.transmission_matrix.T
            factor = _factor(velocities.values[:, picked], measured[:, picked])
            unit = min(candidates, key=lambda each: abs(np.log(abs(factor) * VELOCITY_UNITS[each])))
            if abs(abs(factor) * VELOCITY_UNITS[unit] - 1.0) < _AGREEING:
                units[turning] = unit
                reasons.append(f"{abs(factor) * VELOCITY_UNITS[unit]:.3f} times the positions' differences")
                continue
        if velocities.said.unit in candidates:
            units[turning] = str(velocities.said.unit)
            reasons.append("the names say so")
            continue
        why = f"the positions do not tell; one of {', '.join(VELOCITY_UNITS)}, or leave this table out"
        return [*entries, ask_unit(robot, table, why), Entry(table, "side", side)]
    unit = short_value([units[turning] for turning in revolute.tolist()])
    return [*entries, Entry(table, "unit", unit, ", ".join(dict.fromkeys(reasons))), Entry(table, "side", side)]


def velocity_among(position: ColumnSet, unknown: Sequence[ColumnSet]) -> ColumnSet | None:
    """Find columns that follow the differences of positions among those that no name explains."""
    moving = np.ptp(position.values, axis=0) > 0.0
    if not moving.any():
        return None
    own = np.gradient(_smooth(position.values[:, moving]), axis=0)
    for each in unknown:
        if len(each.values) != len(position.values) or not np.all(np.ptp(each.values[:, moving], axis=0) > 0.0):
            continue
        other = _smooth(each.values[:, moving])
        power = np.sum(own**2, axis=0)
        factors = np.sum(own * other, axis=0) / power
        left = np.sum((other - factors * own) ** 2, axis=0) / np.maximum(factors**2 * power, 1e-300)
        alike = np.abs(factors / np.median(factors) - 1.0)
        if (
            np.median(left) < _LEFT and np.median(alike) < _AGREEING
        ):  # friction follows velocity too, each joint's its own
            return each
    return None


def period_by_motion(position: Array, velocity: Array) -> float | None:
    """Sample period [s] at which positions [rad] change as velocities [rad/s] say; None where they do not."""
    change, speed = np.gradient(_smooth(position), axis=0), _smooth(velocity)
    moving = np.any(speed != 0.0, axis=0)
    if not moving.any():
        return None
    periods = _ratios(change[:, moving], speed[:, moving])
    period = float(np.median(periods))
    return period if period > 0.0 and np.median(np.abs(periods / period - 1.0)) < _AGREEING else None


def _factor(velocity: Array, own: Array) -> float:
    """Factor from positions' differences to velocities, as the median over the joints that move."""
    speed, own = _smooth(velocity), _smooth(own)
    power = np.sum(own**2, axis=0)
    moving = power > 1e-12 * power.max()
    return float(np.median(np.abs(_ratios(speed[:, moving], own[:, moving]))))


def _ratios(values: Array, others: Array) -> Array:
    """Ratio of each column to another, as the median over the rows, weighted by the square of the other.

    Where a log has a gap, or one episode follows another, positions jump; such rows must not count by their size.

    Args:
        values, others: shape (rows, n).

    Returns:
        Shape (n,).
    """
    ratios = np.divide(values, others, out=np.zeros_like(values), where=others != 0.0)
    order = np.argsort(ratios, axis=0)
    weights = np.cumsum(np.take_along_axis(others**2, order, axis=0), axis=0)
    middle = np.argmax(weights >= weights[-1] / 2.0, axis=0)
    return np.take_along_axis(np.take_along_axis(ratios, order, axis=0), middle[None, :], axis=0)[0]


def _smooth(values: Array) -> Array:
    """Mean over a few rows, which takes the steps of encoders away; as many fewer rows."""
    sums = np.cumsum(np.vstack([np.zeros(values.shape[1]), values]), axis=0)
    return (sums[_WIDTH:] - sums[:-_WIDTH]) / _WIDTH


def _in_si(robot: Robot, values: Array, units: Sequence[str], side: str) -> Array:
    q = values * np.array([POSITION_UNITS[unit] for unit in units])
    return q @ np.linalg.inv(robot.transmission_matrix).T if side == "motor" else q


def _short(units: Sequence[str]) -> str:
    return " or ".join(dict.fromkeys(units))


def short_value(units: Sequence[str]) -> str | list[str]:
    """Return the unit of all joints, or the list of them where they differ."""
    return units[0] if len(set(units)) == 1 else list(units)
