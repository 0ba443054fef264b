"""Columns of somebody's log as numbers, whatever the file's format."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.errors import ImportedDataError
from jointbench.foreign import regular_file

MOST = 1e30
"""Beyond what any unit of position, time, current or torque makes; its square is a number yet."""


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
            ImportedDataError: names line and column of the first one.
        """
        if len(beyond := np.argwhere(np.isfinite(self.values) & (np.abs(self.values) > MOST))):
            row, column = beyond[0].tolist()
            raise ImportedDataError(
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
            ImportedDataError: names line and column of the first one.
        """
        bad = ~np.isfinite(self.values) & cells
        if bad.any():
            row, column = (int(k[0]) for k in np.nonzero(bad))
            raise ImportedDataError(
                f"{self.name}, {self.counted} {self.lines[row]}, column {self.columns[column]!r}: "
                f"{self.values[row, column]} is no measurement ({int(bad.sum())} such cells); leave data row {row} out "
                f"with first_row, end_row or invalid_rows"
            )


def missing_column(file: str, wanted: str, names: Sequence[str], how: str = "") -> ImportedDataError:
    """The error that a file has no such column, or several of them; it names those there are."""
    count = list(names).count(wanted)
    problem = f"has no column {wanted!r}" if count == 0 else f"has {count} columns named {wanted!r}"
    shown = ", ".join(names[:40]) + (", …" if len(names) > 40 else "")
    return ImportedDataError(f"{file} {problem}; its columns are {shown}{how}; correct the mapping")


def file_sha256(path: Path) -> str:
    """SHA-256 of a file; of a folder's files in the order of their names."""
    whole = hashlib.sha256()
    for each in sorted(path.iterdir()) if path.is_dir() else [path]:
        with regular_file(each).open("rb") as file:
            while block := file.read(1 << 20):
                whole.update(block)
    return whole.hexdigest()
