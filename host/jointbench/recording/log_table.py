"""A log's table: its wanted columns, or its first rows, whatever format it came in; columns' names, values and sets."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.errors import FileError
from jointbench.files import regular_file
from jointbench.recording.mapping import LongLayout

MOST = 1e30
"""Beyond what any unit of position, time, current or torque makes; its square is a number yet."""

LOOKED_AT = 20_000
"""Rows that are looked at: enough to tell units and order."""

FEWEST = 20
"""Rows below which nothing is told."""

_MOSTLY = 0.5
"""Share of numbers from which on a column is one of numbers, with gaps, rather than of words."""


@dataclass(frozen=True, eq=False)
class LogTable:
    """The wanted columns of a log's file.

    Attributes:
        name: of the file.
        columns: names of the columns read.
        values: one row per data row, shape (rows, n_columns); nan or inf where the file says so.
        lines: where in the file each data row is: the line on which it ends, counted from 1, or its own number.
        sha256: of the file as it is.
        counted: what `lines` counts: "line", "row" or "message".
    """

    name: str
    columns: tuple[str, ...]
    values: Array
    lines: NDArray[np.intp]
    sha256: str
    counted: str = "line"

    def __post_init__(self) -> None:
        """Refuse numbers that nobody measures: sums and squares of them are none.

        Raises:
            FileError: names line and column of the first one.
        """
        if len(beyond := np.argwhere(np.isfinite(self.values) & (np.abs(self.values) > MOST))):
            row, column = beyond[0].tolist()
            raise FileError(
                f"{self.name}, {self.counted} {self.lines[row]}, column {self.columns[column]!r}: "
                f"{self.values[row, column]:g} is beyond all that is measured (at most {MOST:g}); mend or remove that "
                f"{self.counted}"
            )

    def column(self, name: str) -> Array:
        """Values of a column that was asked for."""
        return self.values[:, self.columns.index(name)]

    def check_finite(self, cells: NDArray[np.bool_]) -> None:
        """Refuse nan and inf in these cells, a mask of the shape of `values`.

        Raises:
            FileError: names line and column of the first one.
        """
        bad = ~np.isfinite(self.values) & cells
        if bad.any():
            row, column = (int(k[0]) for k in np.nonzero(bad))
            raise FileError(
                f"{self.name}, {self.counted} {self.lines[row]}, column {self.columns[column]!r}: "
                f"{self.values[row, column]} is not a measurement ({int(bad.sum())} such cells); leave data row {row} "
                f"out with first_row, end_row or invalid_rows"
            )


@dataclass(frozen=True, eq=False)
class FirstRows:
    """The first rows of a log's file.

    Attributes:
        path: of the file.
        delimiter: between its cells.
        has_header: whether its first line names the columns.
        names: of the columns; their numbers, counted from 1, where there is no header.
        values: rows without a gap, nan in columns of words, shape (rows, n_columns).
        label: by which a mapping calls it, None where it is the only file.
        topic: of a bag.
        moments: names of columns that hold points in time, in seconds from the first.
        left_out: what else the file holds, and why it is of no use, a sentence each.
        long: layout of a CSV file with one value a line, None of others.
        single: whether it is a file of one value a line, which is one column of a table.
        singles: paths of such files that are this table.
        note: on how it was read, empty where nothing needs saying.
    """

    path: Path
    delimiter: str
    has_header: bool
    names: tuple[str, ...]
    values: Array
    label: str | None = None
    topic: str | None = None
    moments: frozenset[str] = frozenset()
    left_out: tuple[str, ...] = ()
    long: LongLayout | None = None
    single: bool = False
    singles: tuple[Path, ...] = ()
    note: str = ""


def whole_rows(path: Path, values: Array) -> Array:
    """Rows without a gap in those columns that hold mostly numbers."""
    known = np.isfinite(values)
    numeric = known.mean(axis=0) > _MOSTLY
    whole = values[known[:, numeric].all(axis=1)]
    if len(whole) < FEWEST:
        raise FileError(f"{path} has {len(whole)} rows of numbers; {FEWEST} at least are needed to tell anything")
    return whole


def missing_column(file: str, wanted: str, names: Sequence[str], how: str = "") -> FileError:
    """The error that a file has no such column, or several of them; it names those there are."""
    count = list(names).count(wanted)
    problem = f"has no column {wanted!r}" if count == 0 else f"has {count} columns named {wanted!r}"
    shown = ", ".join(names[:40]) + (", …" if len(names) > 40 else "")
    return FileError(f"{file} {problem}; its columns are {shown}{how}; correct the mapping")


def file_sha256(path: Path, *more: Path) -> str:
    """SHA-256 of a file; of a folder's files in the order of their names, and of several files as if they were one."""
    whole = hashlib.sha256()
    for each in (*sorted(path.iterdir()), *more) if path.is_dir() else (path, *more):
        with regular_file(each).open("rb") as file:
            while block := file.read(1 << 20):
                whole.update(block)
    return whole.hexdigest()


Quantity = Literal["position", "velocity", "torque", "current", "time", "other", "unknown"]

_QUANTITIES: dict[Quantity, str] = {
    "position": "position positions pos q qpos phi angle angles theta ang encoder enc",
    "velocity": "velocity velocities vel qvel qd dq qdot qdots speed speeds omega velo dtheta",
    "torque": "torque torques tau trq tq effort efforts moment",
    "current": "current currents cur curr iq amps amperes i",
    "time": "time t stamp stamps timestamp timestamps secs seconds",
    "other": (
        "action ff feedforward cmd cmds command commanded cmptd computed des desired ref reference target setpoint set "
        "goal planned plan error err limit max min std ext external acc accel acceleration accelerations qdd ddq qddot "
        "temp temperature temperatures voltage volt tcp pose cartesian cart force wrench gripper status state_machine "
        "mode"
    ),
}
_WORDS: dict[str, Quantity] = {word: quantity for quantity, words in _QUANTITIES.items() for word in words.split()}

_PRECEDENCE: tuple[Quantity, ...] = ("other", "torque", "current", "velocity", "position", "time")

_SENSOR = frozenset(("sensor", "sens", "sm", "ft", "jts", "transducer", "strain"))
_MOTOR = frozenset(("motor", "motors", "mot", "rotor"))
_FILLING = frozenset((
    "joint", "joints", "j", "axis", "ax", "link", "actual", "measured", "meas", "state", "states", "msg", "data",
    "value", "values", "read",
))  # fmt: skip
"""Words that tell no joint from another."""

_UNITS = {
    "rad": "rad", "radian": "rad", "radians": "rad", "deg": "deg", "degree": "deg", "degrees": "deg", "°": "deg",
    "mm": "mm", "counts": "counts", "rad/s": "rad/s", "rad s": "rad/s", "rads": "rad/s", "rad per s": "rad/s",
    "deg s": "deg/s", "deg per s": "deg/s",
    "m s": "m/s", "m per s": "m/s", "mm s": "mm/s", "mm per s": "mm/s", "deg/s": "deg/s",
    "degs": "deg/s", "°/s": "deg/s", "rpm": "rpm", "mm/s": "mm/s", "m/s": "m/s", "nm": "N·m", "n·m": "N·m",
    "n.m": "N·m", "n*m": "N·m", "mnm": "mN·m", "amp": "A", "ma": "mA", "ms": "ms", "us": "us", "µs": "us",
    "usec": "us", "msec": "ms", "ns": "ns", "nsec": "ns", "nsecs": "ns", "sec": "s", "secs": "s", "seconds": "s",
}  # fmt: skip
_BRACKETED = {"m": "m", "a": "A", "s": "s", "n": "N"}
"""Units too short to be told from other words but between brackets."""

LEROBOT_STATE = "observation.state"
"""Feature of a LeRobot dataset that holds the positions of the joints."""

_BRACKETS = re.compile(r"[\[(]([^\])]*)[\])]")
_TOKEN = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|[µ°]\w*")


@dataclass(frozen=True)
class ColumnName:
    """A column's name, read.

    Attributes:
        name: as in the header.
        quantity: that it seems to be; "unknown" where no word says it, "other" where it is of no use here.
        stem: what is left without joint, number and unit: columns of one stem belong together.
        joint: index of the robot's joint that it names, or None.
        number: in it, or None.
        unit: that it states, or None.
        of_motor, of_sensor: whether it says so.
        from_current: whether a torque says that it comes from the current.
    """

    name: str
    quantity: Quantity
    stem: tuple[str, ...]
    joint: int | None
    number: int | None
    unit: str | None
    of_motor: bool
    of_sensor: bool
    from_current: bool


def read_column_name(name: str, joints: Sequence[str]) -> ColumnName:
    """Read a column's name.

    Args:
        name: as in the header.
        joints: the robot's joint names.

    >>> column = read_column_name("TorqueSm3 [Nm]", ["joint_1", "joint_2", "joint_3"])
    >>> column.quantity, column.number, column.unit, column.of_sensor
    ('torque', 3, 'N·m', True)
    """
    unit, plain = None, name
    for match in _BRACKETS.finditer(name):
        inside = match.group(1).strip().lower()
        if not inside.isdigit():
            unit = _UNITS.get(inside) or _BRACKETED.get(inside) or unit
            plain = plain.replace(match.group(0), " ")
    words = tokens(plain)
    joint = _named_joint(words, joints)
    if joint is not None:
        words = _without(words, _name_tokens(joints[joint]))
    number: int | None = None
    if joint is None:
        numbers = [k for k, word in enumerate(words) if word.isdigit()]
        if numbers:
            number = int(words.pop(numbers[-1]))
    for count in (3, 2, 1):
        if unit is None and len(words) > count and (last := " ".join(words[-count:])) in _UNITS:
            unit, words = _UNITS[last], words[:-count]
    found: list[Quantity] = [_WORDS[word] for word in words if word in _WORDS]
    if not found and name.startswith(LEROBOT_STATE):
        found.append("position")  # by LeRobot's convention
    return ColumnName(
        name=name,
        quantity=_quantity(found),
        stem=tuple(words),
        joint=joint,
        number=number,
        unit=unit,
        of_motor=any(word in _MOTOR for word in words),
        of_sensor=any(word in _SENSOR for word in words),
        from_current="torque" in found and "current" in found,
    )


def quantity_of_file(name: str) -> Quantity:
    """Quantity that the name of a file says all of its columns are, "unknown" where it says none.

    >>> quantity_of_file("pos_read_data.csv")
    'position'
    """
    found: set[Quantity] = {
        _WORDS[word] for word in tokens(name.rpartition(".")[0]) if word in _WORDS and len(word) > 2
    }
    return found.pop() if len(found) == 1 else "unknown"


def tokens(name: str) -> list[str]:
    """Words and numbers of a name, in small letters."""
    return [token.lower() for token in _TOKEN.findall(name)]


def _quantity(found: list[Quantity]) -> Quantity:
    """The one that says most: torque by the current is torque, and a commanded position none."""
    for quantity in _PRECEDENCE:
        if quantity in found:
            return quantity
    return "unknown"


def _name_tokens(joint: str) -> list[str]:
    """Return the words that tell a joint's name from others: without "joint" and the like."""
    return [token for token in tokens(joint) if token not in _FILLING]


def _named_joint(words: list[str], joints: Sequence[str]) -> int | None:
    """The joint whose name is among the words; names that are but numbers are not."""
    best: tuple[int, int] | None = None
    for index, joint in enumerate(joints):
        name = _name_tokens(joint)
        if name and not all(token.isdigit() for token in name) and _place(words, name) is not None:
            best = max(best or (0, 0), (len(name), -index))
    return None if best is None else -best[1]


def joint_in_full(name: str, joints: Sequence[str]) -> int | None:
    """Return the joint whose whole name is in a column's, also where only a number tells it: "joint_2" of "joint_2.q".

    Args:
        name: of the column.
        joints: the robot's joint names.
    """
    words = tokens(name)
    found = [(len(tokens(joint)), -k) for k, joint in enumerate(joints) if len(tokens(joint)) > 1]
    found = [each for each in found if _place(words, tokens(joints[-each[1]])) is not None]
    return -max(found)[1] if found else None


def _place(words: list[str], name: list[str]) -> int | None:
    return next((k for k in range(len(words) - len(name) + 1) if words[k : k + len(name)] == name), None)


def _without(words: list[str], name: list[str]) -> list[str]:
    place = _place(words, name)
    assert place is not None
    return words[:place] + words[place + len(name) :]


@dataclass(frozen=True, eq=False)
class ColumnSet:
    """One column for each joint.

    Attributes:
        table: the file they are in.
        names: of the columns, in the order of the robot's joints.
        said: what the name of the first one says; its quantity may be that of the file's name.
        values: shape (rows, n_joints).
        order: how the columns were told to belong to the joints.
    """

    table: FirstRows
    names: tuple[str, ...]
    said: ColumnName
    values: Array
    order: str

    @property
    def quantity(self) -> Quantity:
        """Quantity that it seems to be."""
        return self.said.quantity

    @property
    def n_moving(self) -> int:
        """Number of columns that change."""
        return int(np.sum(self.values.max(axis=0) > self.values.min(axis=0)))

    @property
    def varies(self) -> bool:
        """True if any column of numbers changes."""
        return self.n_moving > 0

    def kinship(self, other: ColumnSet) -> int:
        """Number of words that the names have in common with those of another set of the same file."""
        return len(set(self.said.stem) & set(other.said.stem)) if self.table is other.table else 0

    @property
    def range_of_names(self) -> str:
        """The first name and the last."""
        return " … ".join(dict.fromkeys((self.names[0], self.names[-1])))


def column_sets(table: FirstRows, joints: Sequence[str]) -> tuple[list[ColumnSet], list[ColumnName]]:
    """Columns of a file that come one for each joint, and all others.

    Args:
        table: the file.
        joints: names of the robot's joints.
    """
    if not table.has_header:
        return _by_count(table, len(joints))
    by_stem: dict[tuple[tuple[str, ...], bool], list[ColumnName]] = {}
    read = [read_column_name(name, joints) for name in table.names]
    for column in read:
        by_stem.setdefault((column.stem, column.joint is not None), []).append(column)
    sets: list[ColumnSet] = []
    others: list[ColumnName] = []
    of_file = quantity_of_file(table.path.name)
    for columns in by_stem.values():
        chosen, order = _one_for_each(columns, joints)
        if not chosen:
            others += columns
            continue
        said = chosen[0]
        if said.quantity == "unknown":
            said = replace(said, quantity=of_file)
            order += f", quantity by the file's name, {table.path.name}" if of_file != "unknown" else ""
        sets.append(_set(table, [column.name for column in chosen], said, order))
        others += [column for column in columns if column not in chosen]
    return sets, others


def _one_for_each(columns: list[ColumnName], joints: Sequence[str]) -> tuple[list[ColumnName], str]:
    """The columns in the order of the joints, and how that was told; none where they are not one for each joint."""
    n = len(joints)
    named = {column.joint: column for column in columns if column.joint is not None}
    if set(named) == set(range(n)) and len(columns) == n:
        return [named[j] for j in range(n)], "joints by their names"
    numbered = {column.number: column for column in columns if column.number is not None}
    if len(numbered) != len(columns) or not numbered:
        return [], ""
    first = min(numbered)
    wanted = range(first, first + n)
    in_full = {joint_in_full(column.name, joints): column for column in columns}
    if first not in (0, 1) and len(columns) == n and set(in_full) == set(range(n)):
        return [in_full[j] for j in range(n)], "joints by their names"
    if first not in (0, 1) or any(number not in numbered for number in wanted):
        return [], ""
    order = f"joints by their numbers, counted from {first}"
    if len(numbered) > n:
        order += f", the first {n} of {len(numbered)}: is this the log of this robot?"
    return [numbered[number] for number in wanted], order


def _by_count(table: FirstRows, n: int) -> tuple[list[ColumnSet], list[ColumnName]]:
    """Assign columns without a header: blocks of one column a joint, after a column of times where one is left over."""
    width = len(table.names)
    nothing = ColumnName("", "unknown", (), None, None, None, False, False, False)
    first = width % n
    quantity = quantity_of_file(table.path.name)
    if first > 1:
        return [], [replace(nothing, name=name) for name in table.names]
    others = [replace(nothing, name="1", quantity="time")] if first else []
    starts = range(first, width, n)
    said = replace(nothing, quantity=quantity if len(starts) == 1 else "unknown")
    order = f"no header: {len(starts)} blocks of {n} columns" + " after one of times" * first
    return [
        _set(table, list(table.names[k : k + n]), replace(said, name=table.names[k]), order) for k in starts
    ], others


def _set(table: FirstRows, names: list[str], said: ColumnName, order: str) -> ColumnSet:
    places = [table.names.index(name) for name in names]
    return ColumnSet(table, tuple(names), said, table.values[:, places], order)
