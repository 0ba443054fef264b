"""A log's table: its wanted columns, or its first rows, whatever format it came in."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

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
