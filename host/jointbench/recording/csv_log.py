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

from jointbench.errors import FileError
from jointbench.files import bytes_of, number, regular_file
from jointbench.recording.log_table import LOOKED_AT, FirstRows, LogTable, missing_column, whole_rows
from jointbench.recording.mapping import LogFile

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
        raise FileError(f"{path} is not UTF-8 text (byte {error.start}); save it as plain CSV") from error
    first = [line for line in lines[:20] if line.strip()]
    delimiter = max(_DELIMITERS, key=lambda each: min((line.count(each) for line in first), default=0))
    try:
        rows = [row for row in csv.reader(io.StringIO("".join(lines), newline=""), delimiter=delimiter) if row]
    except csv.Error as error:
        raise FileError(f"{path} holds no table ({error}); is there a stray quote in it?") from error
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
    values = np.array([[float(cell) if _is_number(cell) else np.nan for cell in row] for row in body])
    return FirstRows(path, delimiter, has_header, names, whole_rows(path, values))
