"""Logs in CSV: the wanted columns of a file, and its first rows."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from jointbench.arrays import Array
from jointbench.errors import FileError
from jointbench.files import bytes_of, number, regular_file
from jointbench.recording.log_table import LOOKED_AT, FirstRows, LogTable, file_sha256, missing_column, whole_rows
from jointbench.recording.long_csv_log import find_layout, pivot
from jointbench.recording.mapping import LogFile, LongLayout

_DELIMITERS = (",", ";", "\t", "|")


def read_csv_table(path: Path, file: LogFile, wanted: Sequence[str]) -> LogTable:
    """Read some columns of a CSV file.

    Args:
        path: of the file.
        file: how it is written.
        wanted: names in the header, or numbers from 1 where there is none.

    Returns:
        Their values.

    Raises:
        FileError: the file is missing, not text or empty, lacks a column, has a row of another length
            than the first, or a cell that is not a number.
    """
    try:
        raw = bytes_of(path)
        text = raw.decode("utf-8-sig")
    except OSError as error:
        reason = "there is no such file" if isinstance(error, FileNotFoundError) else str(error.strerror)
        raise FileError(
            f"{file.path} cannot be read in {path.parent}: {reason}; "
            f"give the folder of the log's files (--data DIR, or data= in Python)"
        ) from error
    except UnicodeDecodeError as error:
        raise FileError(f"{file.path} is not UTF-8 text (byte {error.start}); save it as plain CSV") from error
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=file.delimiter)
    first = next(_rows(reader, file), [])
    if not first:
        raise FileError(f"{file.path} is empty; nothing can be imported from it")
    names = [cell.strip() for cell in first] if file.header else [str(k + 1) for k in range(len(first))]
    columns = tuple(dict.fromkeys(wanted))
    if file.long is not None:
        cells = [row for row in _rows(reader, file) if len(row) == len(names)]
        pivoted = pivot(names, cells, file.long, file.path, columns)
        return LogTable(file.path, columns, pivoted.values, pivoted.lines, hashlib.sha256(raw).hexdigest(), "data row")
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
            raise FileError(
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
        FileError: a cell without an end.
    """
    try:
        yield from reader
    except csv.Error as error:
        line = f"{file.path}, line {reader.line_num}"
        raise FileError(f"{line}: {error}; is there a stray quote before it?") from error


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
                raise FileError(
                    f"{file.path}, line {line}, column {column!r}: {cells[place]!r} is not a number; {hint}"
                ) from None
        raise


def _is_number(cell: str) -> bool:
    try:
        number(cell)
    except ValueError:
        return False
    return True


def read_single_values(folder: Path, file: LogFile, wanted: Sequence[str]) -> LogTable:
    """Read files of one value a line, side by side: each is a column, called by the file's name without its ending.

    Args:
        folder: of the files.
        file: with the files' paths.
        wanted: names of columns.

    Raises:
        FileError: a file is missing, a line of it is no number, or files have different numbers of lines.
    """
    paths = {Path(single).stem: folder / single for single in file.singles}
    columns = tuple(dict.fromkeys(wanted))
    read: dict[str, Array] = {}
    for name in columns:
        if name not in paths:
            raise missing_column(file.path, name, list(paths), ", the files' names without their endings")
        read[name] = _single_values(paths[name])
        if len(read[name]) != len(read[columns[0]]):
            raise FileError(
                f"{paths[columns[0]].name} has {len(read[columns[0]])} values and {paths[name].name} "
                f"{len(read[name])}; values of all files must belong together one by one: export them over one time"
            )
    values = np.column_stack([read[name] for name in columns])
    digest = file_sha256(*(paths[name] for name in columns))
    return LogTable(file.path, columns, values, np.arange(1, len(values) + 1), digest, "value")


def _single_values(path: Path) -> Array:
    """Values of a file with one a line; the first line may be its name."""
    try:
        lines = [line.strip() for line in bytes_of(path).decode("utf-8-sig").split("\n")]
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}; give the folder of the log's files") from error
    except UnicodeDecodeError as error:
        raise FileError(f"{path} is not UTF-8 text (byte {error.start}); save it as plain text") from error
    while lines and not lines[-1]:
        lines.pop()
    start = int(bool(lines) and not _is_number(lines[0]))
    for place, line in enumerate(lines[start:], start + 1):
        if not _is_number(line):
            raise FileError(f"{path.name}, line {place}: {line!r} is not a number; one value a line is expected there")
    return np.array([float(line) for line in lines[start:]])


def look_at_csv(path: Path) -> FirstRows:
    """Look at the first rows of a CSV file.

    Raises:
        FileError: it cannot be read, holds no table, no row is as long as the first one, or its numbers have
            decimal commas.
    """
    try:
        with regular_file(path).open(encoding="utf-8-sig", newline="") as file:
            lines = list(islice(file, LOOKED_AT + 1))
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}; give the path of a CSV file") from error
    except UnicodeDecodeError as error:
        raise FileError(
            f"{path} is not UTF-8 text (byte {error.start}); save it as plain CSV, or as .parquet, .mat or .mcap"
        ) from error
    first = [line for line in lines[:20] if line.strip()]
    delimiter = max(_DELIMITERS, key=lambda each: min((line.count(each) for line in first), default=0))
    try:
        rows = [row for row in csv.reader(io.StringIO("".join(lines), newline=""), delimiter=delimiter) if row]
    except csv.Error as error:
        raise FileError(f"{path} holds no table ({error}); is there a stray quote in it?") from error
    if len(rows) > 1 and all(len(row) == 1 and _is_number(row[0]) for row in rows[1:]):
        values = np.array([[float(row[0])] for row in rows if _is_number(row[0])])
        return FirstRows(path, ",", False, (path.stem,), values, single=True)
    if len(rows) < 2 or len(rows[0]) < 2:
        raise FileError(
            f"{path} holds no table: {len(rows)} lines, {len(rows[0]) if rows else 0} cells in the first one; cells "
            f"must be separated by one of {', '.join(map(repr, _DELIMITERS))}"
        )
    width = len(rows[0])
    has_header = sum(_is_number(cell) for cell in rows[0]) < width / 2.0
    body = [row for row in rows[has_header:] if len(row) == width]
    if not body:
        raise FileError(
            f"{path}: the first line has {width} cells and no other line as many; the second has {len(rows[1])}, with "
            f"{delimiter!r} taken for the separator; correct the first line, or the ends of the others"
        )
    if any("," in cell and _is_number(cell.replace(",", ".")) for cell in body[0]):
        raise FileError(f"{path}: its numbers have decimal commas; save them with decimal points")
    names = tuple(cell.strip() for cell in rows[0]) if has_header else tuple(str(k + 1) for k in range(width))
    if has_header and (layout := find_layout(names, body)) is not None:
        pivoted = pivot(names, body, layout, path.name)
        values = whole_rows(path, pivoted.values)
        return FirstRows(path, delimiter, has_header, pivoted.names, values, long=layout, note=_note(layout))
    values = np.array([[float(cell) if _is_number(cell) else np.nan for cell in row] for row in body])
    return FirstRows(path, delimiter, has_header, names, whole_rows(path, values))


def _note(layout: LongLayout) -> str:
    note = f"{' and '.join(layout.keys)} tells what each line is of"
    return note + ", all signals interpolated onto the times of the first one" * layout.interpolate
