"""Columns of a CSV file as numbers, refusing whatever is not one."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jointbench.errors import ImportedDataError
from jointbench.recording.mapping import LogFile
from jointbench.robot import Array


@dataclass(frozen=True, eq=False)
class CsvTable:
    """The wanted columns of a file.

    Attributes:
        name: of the file.
        columns: names of the columns read.
        values: one row per data row, shape (rows, n_columns); nan or inf where the file says so.
        lines: line of the file on which each data row ends, counted from 1.
        sha256: of the file as it is.
    """

    name: str
    columns: tuple[str, ...]
    values: Array
    lines: NDArray[np.intp]
    sha256: str

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
                f"{self.name}, line {self.lines[row]}, column {self.columns[column]!r}: {self.values[row, column]} is "
                f"no measurement ({int(bad.sum())} such cells); leave data row {row} out with first_row, end_row or "
                f"invalid_rows"
            )


def read_csv_table(path: Path, file: LogFile, wanted: Sequence[str]) -> CsvTable:
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
        raw = path.read_bytes()
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
    first = next(reader, [])
    if not first:
        raise ImportedDataError(f"{file.path} is empty; nothing can be imported from it")
    names = [cell.strip() for cell in first] if file.header else [str(k + 1) for k in range(len(first))]
    columns = tuple(dict.fromkeys(wanted))
    places = [_place(file, names, name) for name in columns]
    rows: list[list[float]] = [] if file.header else [_numbers(file, first, places, columns, 1)]
    lines = [] if file.header else [1]
    blank = 0
    for cells in reader:
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
    return CsvTable(file.path, columns, values, np.array(lines, dtype=np.intp), hashlib.sha256(raw).hexdigest())


def _place(file: LogFile, names: list[str], wanted: str) -> int:
    count = names.count(wanted)
    if count == 1:
        return names.index(wanted)
    shown = ", ".join(names[:40]) + (", …" if len(names) > 40 else "")
    kind = "columns are" if file.header else "columns are numbered"
    problem = f"has no column {wanted!r}" if count == 0 else f"has {count} columns named {wanted!r}"
    raise ImportedDataError(
        f"{file.path} {problem}; its {kind} {shown} (cells separated by {file.delimiter!r}); correct the mapping"
    )


def _numbers(
    file: LogFile, cells: list[str], places: list[int], columns: tuple[str, ...], line: int
) -> list[float]:
    try:
        return [float(cells[place]) for place in places]
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
        float(cell)
    except ValueError:
        return False
    return True
