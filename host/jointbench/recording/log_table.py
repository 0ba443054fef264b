"""Columns of somebody's log as numbers, whatever the file's format."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.errors import ImportedDataError
from jointbench.foreign import bytes_of, number, regular_file
from jointbench.recording.mapping import LogFile

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


def read_csv_table(path: Path, file: LogFile, wanted: Sequence[str]) -> LogTable:
    """Read some columns of a CSV file.

    Args:
        path: of the file.
        file: how it is written.
        wanted: names in the header, or numbers from 1 where there is none.

    Returns:
        Their values.

    Raises:
        ImportedDataError: the file is missing, not text or empty, lacks a column, has a row of another length
            than the first, or a cell that is not a number.
    """
    try:
        raw = bytes_of(path)
        text = raw.decode("utf-8-sig")
    except OSError as error:
        reason = "there is no such file" if isinstance(error, FileNotFoundError) else str(error.strerror)
        raise ImportedDataError(
            f"{file.path} cannot be read in {path.parent}: {reason}; "
            f"give the folder of the log's files (--data DIR, or data= in Python)"
        ) from error
    except UnicodeDecodeError as error:
        raise ImportedDataError(f"{file.path} is not UTF-8 text (byte {error.start}); save it as plain CSV") from error
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=file.delimiter)
    first = next(_rows(reader, file), [])
    if not first:
        raise ImportedDataError(f"{file.path} is empty; nothing can be imported from it")
    names = [cell.strip() for cell in first] if file.header else [str(k + 1) for k in range(len(first))]
    columns = tuple(dict.fromkeys(wanted))
    places = [_place(file, names, name) for name in columns]
    rows: list[list[float]] = [] if file.header else [_numbers(file, first, places, columns, 1)]
    lines = [] if file.header else [1]
    blank = 0
    for cells in _rows(reader, file):
        if not cells:
            blank = blank or reader.line_num
            continue
        if blank or len(cells) != len(names):
            count, line = (0, blank) if blank else (len(cells), reader.line_num)
            raise ImportedDataError(
                f"{file.path}, line {line}: {count} cells where the first line has {len(names)}; "
                f"mend or remove that line, or check delimiter = {file.delimiter!r}"
            )
        rows.append(_numbers(file, cells, places, columns, reader.line_num))
        lines.append(reader.line_num)
    values = np.array(rows, dtype=np.float64).reshape(len(rows), len(columns))
    return LogTable(file.path, columns, values, np.array(lines, dtype=np.intp), hashlib.sha256(raw).hexdigest())


def _rows(reader: Any, file: LogFile) -> Iterator[list[str]]:
    """Rows of cells.

    Raises:
        ImportedDataError: a cell without an end.
    """
    try:
        yield from reader
    except csv.Error as error:
        line = f"{file.path}, line {reader.line_num}"
        raise ImportedDataError(f"{line}: {error}; is there a stray quote before it?") from error


def _place(file: LogFile, names: list[str], wanted: str) -> int:
    count = names.count(wanted)
    if count == 1:
        return names.index(wanted)
    how = f" (cells separated by {file.delimiter!r})"
    raise missing_column(file.path, wanted, names, how if file.header else f", by number{how}")


def _numbers(file: LogFile, cells: list[str], places: list[int], columns: tuple[str, ...], line: int) -> list[float]:
    try:
        return [number(cells[place]) for place in places]
    except ValueError:
        for place, column in zip(places, columns, strict=True):
            if not _is_number(cells[place]):
                hint = "numbers need a decimal point" if "," in cells[place] else "only numbers can be imported"
                if line == 1:
                    hint = "if the first line names the columns, set header = true"
                raise ImportedDataError(
                    f"{file.path}, line {line}, column {column!r}: {cells[place]!r} is not a number; {hint}"
                ) from None
        raise


def _is_number(cell: str) -> bool:
    try:
        number(cell)
    except ValueError:
        return False
    return True
