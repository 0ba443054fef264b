"""Logs in CSV: the wanted columns of a file, and its first rows, be it one column a signal or one value a line.

Of files with one value a line, or one joint a line, columns of names say what each line is of:

t,signal,value          or    t,joint,position,effort
0.00,q1,0.1                   0.00,elbow,0.1,2.5
0.00,q2,0.2                   0.00,wrist,0.2,0.3

Lines of one time become one row. Where each signal has times of its own, as on a bus, the others are interpolated
linearly onto those of the first one that a mapping names.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.errors import FileError
from jointbench.files import bytes_of, number, regular_file
from jointbench.recording.log_table import (
    FEWEST,
    LOOKED_AT,
    FirstRows,
    LogTable,
    file_sha256,
    missing_column,
    whole_rows,
)
from jointbench.recording.mapping import LogFile, LongLayout

_MOST_SIGNALS = 512
"""Names up to which a column of words tells signals rather than remarks."""

_CHANGING = 0.5
"""Share of the lines whose name is not that of the line before: a column of modes changes seldom."""

_TOGETHER = 0.9
"""Share of times that have all signals from which on these were sampled together."""

_GAP = 5.0
"""Times the usual step between values of a signal, from which on nothing is interpolated between them."""

_KEYS = frozenset(("joint", "axis", "motor", "name", "signal", "channel", "topic", "id", "key", "variable", "field"))
"""Words that name a column of names; one of these may hold numbers, too."""

_TIMES = frozenset(("t", "time", "stamp", "timestamp", "timestamps", "seconds", "secs"))


def find_layout(names: Sequence[str], rows: Sequence[Sequence[str]]) -> LongLayout | None:
    """Find out whether a table has one value a line; None where it has one sample a line, as most do.

    Args:
        names: of the columns.
        rows: their cells.
    """
    columns = list(zip(*rows, strict=True))
    times = [k for k, name in enumerate(names) if _words(name) & _TIMES and _all_numbers(columns[k])]
    if not times:
        return None
    time = np.array([number(cell) for cell in columns[times[0]]])
    keys = [k for k in range(len(names)) if k not in times and _is_key(names[k], columns[k], time)]
    values = [k for k in range(len(names)) if k not in (*times, *keys) and _some_numbers(columns[k])]
    if not keys or not values:
        return None
    layout = LongLayout(names[times[0]], tuple(names[k] for k in keys))
    pivoted = pivot(names, rows, layout, "the log")
    complete = np.isfinite(pivoted.values).all(axis=1).mean()
    return layout if complete > _TOGETHER else LongLayout(layout.time, layout.keys, interpolate=True)


def _is_key(name: str, cells: Sequence[str], time: Array) -> bool:
    """Return whether a column tells what the values beside it are of."""
    counts: dict[str, int] = {}
    for cell in cells:
        counts[cell] = counts.get(cell, 0) + 1
    if not 2 <= len(counts) <= _MOST_SIGNALS or min(counts.values()) < FEWEST:
        return False
    numbers = _all_numbers(cells)
    if numbers and not (_words(name) & _KEYS and all(cell.strip().isdigit() for cell in counts)):
        return False
    changes = [k + 1 for k, (before, after) in enumerate(pairwise(cells)) if before != after]
    one_after_the_other = all(time[k] < time[k - 1] for k in changes)  # all of a signal, then all of the next one
    return len(changes) > _CHANGING * len(cells) or one_after_the_other


@dataclass(frozen=True, eq=False)
class Pivoted:
    """Signals of a table with one value a line.

    Attributes:
        names: of the signals, after that of the time.
        values: one row a time, nan where a signal has none there, shape (rows, n).
        lines: of the file from which each row's time is, by index in the rows given.
    """

    names: tuple[str, ...]
    values: Array
    lines: NDArray[np.intp]


def pivot(
    names: Sequence[str],
    rows: Sequence[Sequence[str]],
    layout: LongLayout,
    file: str,
    wanted: Sequence[str] | None = None,
) -> Pivoted:
    """Turn a table with one value a line into one with a column a signal.

    A signal is called by the cells of the key columns, with dots between them; and by the column of its values behind
    that, where there are several such columns.

    Args:
        names: of the columns.
        rows: their cells.
        layout: what they are.
        file: its name, for messages.
        wanted: signals to return, perhaps the time among them; None for all, the time first.

    Returns:
        The signals. Where the layout says so, they are interpolated onto the times of the first one wanted.

    Raises:
        FileError: a column is missing, or a signal that is wanted; or a time is no number.
    """
    for name in (layout.time, *layout.keys):
        if name not in names:
            raise missing_column(file, name, names)
    at, keys = names.index(layout.time), [names.index(name) for name in layout.keys]
    places = [k for k in range(len(names)) if k != at and k not in keys and _some_numbers([row[k] for row in rows])]
    signals: dict[str, dict[float, float]] = {}
    first_line: dict[float, int] = {}
    for line, row in enumerate(rows):
        time = _number(row[at])
        if np.isnan(time):
            raise FileError(f"{file}, data row {line}, column {layout.time!r}: {row[at]!r} is no time; mend that line")
        first_line.setdefault(time, line)
        of = ".".join(row[k].strip() for k in keys)
        for k in places:
            if not np.isnan(value := _number(row[k])):
                signals.setdefault(of if len(places) == 1 else f"{of}.{names[k].strip()}", {})[time] = value
    chosen = tuple(wanted) if wanted is not None else (layout.time, *signals)
    if absent := [name for name in chosen if name != layout.time and name not in signals]:
        raise missing_column(file, absent[0], [layout.time, *signals])
    of_values = [name for name in chosen if name != layout.time]
    if layout.interpolate and of_values:
        base = max(of_values, key=lambda name: len(signals[name])) if wanted is None else of_values[0]
        start, end = max(min(signals[name]) for name in of_values), min(max(signals[name]) for name in of_values)
        times = np.array([time for time in sorted(signals[base]) if start <= time <= end])
        columns = [times if name == layout.time else _interpolated(signals[name], times) for name in chosen]
    else:
        times = np.array(list(first_line))
        if np.any(np.diff(times) < 0.0) and len(of_values) > 1:
            times = np.sort(times)  # signals one after the other
        columns = [times if name == layout.time else _at(signals[name], times) for name in chosen]
    lines = np.array([first_line[time] for time in times.tolist()], dtype=np.intp)
    return Pivoted(chosen, np.column_stack(columns), lines)


def _at(signal: dict[float, float], times: Array) -> Array:
    """Values of a signal at these times, nan where it has none."""
    return np.array([signal.get(time, np.nan) for time in times.tolist()])


def _interpolated(signal: dict[float, float], times: Array) -> Array:
    """Values of a signal at other times, nan in its gaps."""
    own = np.array(sorted(signal))
    values = np.interp(times, own, [signal[time] for time in own.tolist()])
    behind = np.clip(np.searchsorted(own, times), 1, len(own) - 1)
    spacing = own[behind] - own[behind - 1]
    values[(spacing > _GAP * np.median(np.diff(own))) & ~np.isin(times, own)] = np.nan
    return values


def _number(cell: str) -> float:
    try:
        return number(cell)
    except ValueError:
        return np.nan


def _all_numbers(cells: Sequence[str]) -> bool:
    return not any(np.isnan(_number(cell)) for cell in cells)


def _some_numbers(cells: Sequence[str]) -> bool:
    return any(not np.isnan(_number(cell)) for cell in cells)


def _words(name: str) -> set[str]:
    return set("".join(c if c.isalnum() else " " for c in name.lower()).split())


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
