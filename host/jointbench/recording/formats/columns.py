"""Samples as the columns of a table: one for each quantity of each joint and foot, with its unit in its name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jointbench.memory_mapping import read_rows, scratch_array
from jointbench.recording.samples import Samples
from jointbench.robot import CORNERS, Robot

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
        kind = robot.independent_joints[robot.joint_index(joint)].kind
        units = _REVOLUTE if kind == "revolute" else _PRISMATIC
        columns.append(Column(f"{joint}.valid", "", "valid", (place,), "bool"))
        columns += [
            _column(f"{joint}.{field}", units[field], field, place)
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


def rows_of(samples: Samples, columns: tuple[Column, ...], part: slice) -> dict[str, NDArray[Any]]:
    """The fields that these columns are of, in some rows."""
    return {name: read_rows(getattr(samples, name), part) for name in {column.field for column in columns}}


def empty_fields(columns: tuple[Column, ...], rows: int) -> dict[str, NDArray[Any]]:
    """Arrays for the values of all columns, by field; a long run's lie in files."""
    shapes: dict[str, tuple[int, ...]] = {}
    for column in columns:
        own = tuple(k + 1 for k in column.place)
        shapes[column.field] = tuple(np.maximum(shapes.get(column.field, own), own).tolist())
    kinds = {column.field: column.kind for column in columns}
    return {name: scratch_array((rows, *shape), np.dtype(kinds[name])) for name, shape in shapes.items()}


def _column(name: str, unit: str, field: str, *place: int) -> Column:
    return Column(f"{name}_{''.join(_spelled(unit))}", unit, field, place, "float64")


def _spelled(unit: str) -> Iterator[str]:
    """A unit in letters that any program takes in a column's name."""
    yield from unit.replace("·", "").replace("/", "_")
