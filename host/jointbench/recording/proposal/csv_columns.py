"""A first look at a log of which nothing is known: of a CSV file what separates its cells, its header, its numbers."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from jointbench.arrays import Array
from jointbench.errors import ImportedDataError
from jointbench.foreign import regular_file
from jointbench.recording.formats.bag_table import first_messages
from jointbench.recording.formats.parquet_table import first_rows
from jointbench.recording.formats.read_log import PARQUET, is_bag

LOOKED_AT = 20_000
"""Rows that are looked at: enough to tell units and order."""

_FEWEST = 20
"""Rows below which nothing is told."""

_MOSTLY = 0.5
"""Share of numbers from which on a column is one of numbers, with gaps, rather than of words."""

_DELIMITERS = (",", ";", "\t", "|")


@dataclass(frozen=True, eq=False)
class CsvColumns:
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
    """

    path: Path
    delimiter: str
    has_header: bool
    names: tuple[str, ...]
    values: Array
    label: str | None = None
    topic: str | None = None
    moments: frozenset[str] = frozenset()


def look_at_csv(path: Path) -> CsvColumns:
    """Look at the first rows of a CSV file.

    Raises:
        ImportedDataError: it cannot be read, holds no table, no row is as long as the first one, or its numbers have
            decimal commas.
    """
    try:
        with regular_file(path).open(encoding="utf-8-sig", newline="") as file:
            lines = list(islice(file, LOOKED_AT + 1))
    except OSError as error:
        raise ImportedDataError(f"{path} cannot be read: {error.strerror}; give the path of a CSV file") from error
    except UnicodeDecodeError as error:
        raise ImportedDataError(f"{path} is not UTF-8 text (byte {error.start}); save it as plain CSV") from error
    first = [line for line in lines[:20] if line.strip()]
    delimiter = max(_DELIMITERS, key=lambda each: min((line.count(each) for line in first), default=0))
    try:
        rows = [row for row in csv.reader(io.StringIO("".join(lines), newline=""), delimiter=delimiter) if row]
    except csv.Error as error:
        raise ImportedDataError(f"{path} holds no table ({error}); is there a stray quote in it?") from error
    if len(rows) < 2 or len(rows[0]) < 2:
        raise ImportedDataError(
            f"{path} holds no table: {len(rows)} lines, {len(rows[0]) if rows else 0} cells in the first one; cells "
            f"must be separated by one of {', '.join(map(repr, _DELIMITERS))}"
        )
    width = len(rows[0])
    has_header = sum(_is_number(cell) for cell in rows[0]) < width / 2.0
    body = [row for row in rows[has_header:] if len(row) == width]
    if not body:
        raise ImportedDataError(
            f"{path}: no row has {width} cells as the first one, the second one has {len(rows[1])}; cells are taken to "
            f"be separated by {delimiter!r}: mend the first line, or the rows' ends"
        )
    if any("," in cell and _is_number(cell.replace(",", ".")) for cell in body[0]):
        raise ImportedDataError(f"{path}: its numbers have decimal commas; save them with decimal points")
    names = tuple(cell.strip() for cell in rows[0]) if has_header else tuple(str(k + 1) for k in range(width))
    values = np.array([[float(cell) if _is_number(cell) else np.nan for cell in row] for row in body])
    return CsvColumns(path, delimiter, has_header, names, _whole_rows(path, values))


def look_at_log(path: Path) -> CsvColumns:
    """Look at the first rows of a log, whatever its format.

    Raises:
        ImportedDataError: as `look_at_csv`, `first_rows` and `first_messages` raise it.
        MissingExtra: its format needs a package that is not installed.
    """
    if is_bag(path):
        topic, names, values = first_messages(path, LOOKED_AT)
        return CsvColumns(path, ",", True, names, _whole_rows(path, values), topic=topic)
    if path.suffix.lower() in PARQUET:
        names, values, moments = first_rows(path, LOOKED_AT)
        return CsvColumns(path, ",", True, names, _whole_rows(path, values), moments=moments)
    return look_at_csv(path)


def _whole_rows(path: Path, values: Array) -> Array:
    """Rows without a gap in those columns that hold mostly numbers."""
    known = np.isfinite(values)
    numeric = known.mean(axis=0) > _MOSTLY
    whole = values[known[:, numeric].all(axis=1)]
    if len(whole) < _FEWEST:
        raise ImportedDataError(
            f"{path} has {len(whole)} rows of numbers; {_FEWEST} at least are needed to tell anything"
        )
    return whole


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
