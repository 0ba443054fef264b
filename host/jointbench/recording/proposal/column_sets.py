"""Columns that belong together: one for each joint of the robot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from jointbench.arrays import Array
from jointbench.recording.proposal.column_words import ColumnName, Quantity, quantity_of_file, read_column_name
from jointbench.recording.proposal.csv_columns import CsvColumns


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

    table: CsvColumns
    names: tuple[str, ...]
    said: ColumnName
    values: Array
    order: str

    @property
    def quantity(self) -> Quantity:
        """What it seems to be."""
        return self.said.quantity

    @property
    def varies(self) -> bool:
        """Whether any column of numbers changes."""
        return bool(np.any(self.values.max(axis=0) > self.values.min(axis=0)))

    @property
    def range_of_names(self) -> str:
        """The first name and the last."""
        return " … ".join(dict.fromkeys((self.names[0], self.names[-1])))


def column_sets(table: CsvColumns, joints: Sequence[str]) -> tuple[list[ColumnSet], list[ColumnName]]:
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
        chosen, order = _one_for_each(columns, len(joints))
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


def _one_for_each(columns: list[ColumnName], n: int) -> tuple[list[ColumnName], str]:
    """The columns in the order of the joints, and how that was told; none where they are not one for each joint."""
    named = {column.joint: column for column in columns if column.joint is not None}
    if set(named) == set(range(n)) and len(columns) == n:
        return [named[j] for j in range(n)], "joints by their names"
    numbered = {column.number: column for column in columns if column.number is not None}
    if len(numbered) != len(columns) or not numbered:
        return [], ""
    first = min(numbered)
    wanted = range(first, first + n)
    if first not in (0, 1) or any(number not in numbered for number in wanted):
        return [], ""
    order = f"joints by their numbers, counted from {first}"
    if len(numbered) > n:
        order += f", the first {n} of {len(numbered)}: is this the log of this robot?"
    return [numbered[number] for number in wanted], order


def _by_count(table: CsvColumns, n: int) -> tuple[list[ColumnSet], list[ColumnName]]:
    """Without a header: blocks of one column for each joint, after a column of times where one is left over."""
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


def _set(table: CsvColumns, names: list[str], said: ColumnName, order: str) -> ColumnSet:
    places = [table.names.index(name) for name in names]
    return ColumnSet(table, tuple(names), said, table.values[:, places], order)
