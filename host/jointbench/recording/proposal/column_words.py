"""What the name of a column says: a quantity, a joint, a unit."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Quantity = Literal["position", "velocity", "torque", "current", "time", "other", "unknown"]

_QUANTITIES: dict[Quantity, str] = {
    "position": "position positions pos q angle angles theta ang encoder enc",
    "velocity": "velocity velocities vel qd dq qdot qdots speed speeds omega velo dtheta",
    "torque": "torque torques tau trq tq effort efforts moment",
    "current": "current currents cur curr iq amps amperes i",
    "time": "time t stamp stamps timestamp timestamps secs seconds",
    "other": (
        "cmd cmds command commanded cmptd computed des desired ref reference target setpoint set goal planned plan "
        "error err limit max min std ext external acc accel acceleration accelerations qdd ddq qddot temp temperature "
        "temperatures voltage volt tcp pose cartesian cart force wrench gripper status state_machine mode"
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
    "mm": "mm", "counts": "counts", "rad/s": "rad/s", "rad s": "rad/s", "rads": "rad/s", "deg/s": "deg/s",
    "degs": "deg/s", "°/s": "deg/s", "rpm": "rpm", "mm/s": "mm/s", "m/s": "m/s", "nm": "N·m", "n·m": "N·m",
    "n.m": "N·m", "n*m": "N·m", "mnm": "mN·m", "amp": "A", "ma": "mA", "ms": "ms", "us": "us", "µs": "us",
    "usec": "us", "msec": "ms", "ns": "ns", "nsec": "ns", "nsecs": "ns", "sec": "s", "secs": "s", "seconds": "s",
}  # fmt: skip
_BRACKETED = {"m": "m", "a": "A", "s": "s", "n": "N"}
"""Units too short to be told from other words but between brackets."""

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
    if unit is None and len(words) > 1 and words[-1] in _UNITS:
        unit = _UNITS[words.pop()]
    found: list[Quantity] = [_WORDS[word] for word in words if word in _WORDS]
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
    """What tells a joint's name from others: without "joint" and the like."""
    return [token for token in tokens(joint) if token not in _FILLING]


def _named_joint(words: list[str], joints: Sequence[str]) -> int | None:
    """The joint whose name is among the words; names that are but numbers are not."""
    best: tuple[int, int] | None = None
    for index, joint in enumerate(joints):
        name = _name_tokens(joint)
        if name and not all(token.isdigit() for token in name) and _place(words, name) is not None:
            best = max(best or (0, 0), (len(name), -index))
    return None if best is None else -best[1]


def _place(words: list[str], name: list[str]) -> int | None:
    return next((k for k in range(len(words) - len(name) + 1) if words[k : k + len(name)] == name), None)


def _without(words: list[str], name: list[str]) -> list[str]:
    place = _place(words, name)
    assert place is not None
    return words[:place] + words[place + len(name) :]
