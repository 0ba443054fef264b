"""Columns of a run's table: what each field of its samples is called there, and in which unit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from jointbench.model import CORNERS, Robot
from jointbench.recording.samples import Samples

_REVOLUTE = {
    "motor_position": "rad", "link_position": "rad", "joint_velocity": "rad/s", "motor_current": "A",
    "motor_torque": "N·m", "joint_torque": "N·m", "bus_voltage": "V", "temperature": "K",
}  # fmt: skip
_PRISMATIC = _REVOLUTE | {
    "motor_position": "m", "link_position": "m", "joint_velocity": "m/s", "motor_torque": "N", "joint_torque": "N",
}  # fmt: skip
QUANTITIES = tuple(_REVOLUTE)
"""Fields of `Samples` that have a column for each joint."""


@dataclass(frozen=True)
class Column:
    """One column of a run's table.

    Attributes:
        name: what it holds and its unit, such as "j1.motor_position_rad".
        unit: as written in texts, "" for none.
        field: of `Samples`.
        place: in the rows of that field: none, (joint,) or (foot, corner).
        kind: of its values: "float64", "int64" or "bool".
    """

    name: str
    unit: str
    field: str
    place: tuple[int, ...]
    kind: str

    def of(self, rows: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
        """Its values in some rows of the fields."""
        return rows[self.field][(slice(None), *self.place)]


def columns_of(samples: Samples, robot: Robot) -> tuple[Column, ...]:
    """The columns of a run that have values: time, what is played, then joint by joint, then foot by foot."""
    columns = [_column("time", "s", "time"), Column("play_tick", "", "play_tick", (), "int64")]
    for place, joint in enumerate(samples.joint_names):
        columns.append(Column(f"{joint}.valid", "", "valid", (place,), "bool"))
        columns += [
            _column(f"{joint}.{field}", joint_unit(robot, joint, field), field, place)
            for field in QUANTITIES
            if getattr(samples, field) is not None
        ]
    if samples.foot_force is not None:
        columns += [
            _column(f"{foot}.{name.replace(' ', '_')}_force", "N", "foot_force", place, corner)
            for place, foot in enumerate(samples.foot_names)
            for corner, name in enumerate(CORNERS)
        ]
    return tuple(columns)


def joint_unit(robot: Robot, joint: str, field: str) -> str:
    """Return the unit of one of `QUANTITIES` of a joint."""
    kind = robot.independent_joints[robot.joint_index(joint)].kind
    return (_REVOLUTE if kind == "revolute" else _PRISMATIC)[field]


def _column(name: str, unit: str, field: str, *place: int) -> Column:
    return Column(f"{name}_{''.join(_spelled(unit))}", unit, field, place, "float64")


def _spelled(unit: str) -> Iterator[str]:
    """A unit in letters that any program takes in a column's name."""
    yield from unit.replace("·", "").replace("/", "_")
