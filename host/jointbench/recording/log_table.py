"""Tables of a log in any format that is read: CSV, Parquet, MCAP and ROS bags."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.errors import FileError
from jointbench.extras import need
from jointbench.files import bytes_of, foreign_code, number, regular_file
from jointbench.recording.mapping import LogFile

if TYPE_CHECKING:
    from rosbags.highlevel import AnyReader


MOST = 1e30
"""Beyond what any unit of position, time, current or torque makes; its square is a number yet."""

JOINT_STATE = "sensor_msgs/msg/JointState"
TIMES = ("stamp", "log_time")
"""Columns of every topic: by the message's own header, and by whoever recorded it [s from the first]."""

_OF_JOINTS = ("position", "velocity", "effort")

BAGS = (".mcap", ".db3", ".bag")
PARQUET = (".parquet", ".pq")
_BAG_FOLDER = "metadata.yaml"


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


def missing_column(file: str, wanted: str, names: Sequence[str], how: str = "") -> FileError:
    """The error that a file has no such column, or several of them; it names those there are."""
    count = list(names).count(wanted)
    problem = f"has no column {wanted!r}" if count == 0 else f"has {count} columns named {wanted!r}"
    shown = ", ".join(names[:40]) + (", …" if len(names) > 40 else "")
    return FileError(f"{file} {problem}; its columns are {shown}{how}; correct the mapping")


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


def read_bag_table(path: Path, file: LogFile, wanted: Sequence[str]) -> LogTable:
    """Read some columns of a topic, one row a message; those messages that have any; of times alone, all.

    Raises:
        MissingExtra: rosbags is not installed.
        FileError: it is no bag, or damaged; it lacks the topic, or no message has a column.
    """
    columns = tuple(dict.fromkeys(wanted))
    named = [name for name in columns if name not in TIMES]
    rows: list[list[float]] = []
    places: list[int] = []
    seen: dict[str, None] = {}
    with _opened(path) as reader:
        topic = _topic(reader, file)
        for place, cells in enumerate(_messages(reader, topic)):
            if cells.keys() - seen.keys():
                seen.update(dict.fromkeys(cells))
            if not named or any(name in cells for name in named):
                rows.append([cells.get(name, np.nan) for name in columns])
                places.append(place)
    for name in columns:
        if name not in seen:
            raise missing_column(f"{file.path}, topic {topic}", name, list(seen))
    values = np.array(rows, dtype=np.float64).reshape(len(rows), len(columns))
    for name in set(columns) & set(TIMES):
        values[:, columns.index(name)] -= values[0, columns.index(name)]
    return LogTable(f"{file.path}, topic {topic}", columns, values, np.array(places), file_sha256(path), "message")


def first_messages(path: Path, count: int) -> tuple[str, tuple[str, ...], Array]:
    """Topic, and names and values of its columns, of the first messages of the topic with most joint states."""
    with _opened(path) as reader:
        topic = _topic(reader, LogFile(path.name))
        rows = list(islice(_messages(reader, topic), count))
    names = tuple(dict.fromkeys(name for row in rows for name in row))
    return topic, names, np.array([[row.get(name, np.nan) for name in names] for row in rows])


@contextmanager
def _opened(path: Path) -> Iterator[AnyReader]:
    need("convert", "a bag", "rosbags")
    from rosbags.highlevel import AnyReader
    from rosbags.typesys import Stores, get_typestore

    try:
        # Bags of before ROS 2 Iron do not say what their messages are made of; the usual ones have not changed.
        with (
            foreign_code(FileError, f"{path} is no bag of ROS, or damaged", "record or convert it anew"),
            AnyReader([_with_an_end(path)], default_typestore=get_typestore(Stores.ROS2_HUMBLE)) as reader,
        ):
            yield reader
    except FileNotFoundError as error:
        raise FileError(f"{path} cannot be read: there is no such file or folder") from error


def _with_an_end(path: Path) -> Path:
    """The path of a bag whose files can be opened without waiting for ever."""
    for file in path.iterdir() if path.is_dir() else (path,):
        regular_file(file)
    return path


def _topic(reader: AnyReader, file: LogFile) -> str:
    """The topic that the mapping names, or the only one of joint states."""
    topics = {each.topic: each.msgtype for each in reader.connections}
    shown = ", ".join(f"{name} ({kind})" for name, kind in sorted(topics.items())) or "none"
    if file.topic is not None:
        if file.topic not in topics:
            raise FileError(f"{file.path} has no topic {file.topic!r}; its topics: {shown}")
        return file.topic
    of_joints = [name for name, kind in topics.items() if kind == JOINT_STATE]
    if len(of_joints) != 1:
        raise FileError(
            f'{file.path} has {len(of_joints)} topics of joint states; name one by topic = "…" in [[files]]; its '
            f"topics: {shown}"
        )
    return of_joints[0]


def _messages(reader: AnyReader, topic: str) -> Iterator[dict[str, float]]:
    """Columns of each message, its times in seconds of the first message's day."""
    connections = [each for each in reader.connections if each.topic == topic]
    first: dict[str, int] = {}
    for connection, log_ns, data in reader.messages(connections=connections):
        message: Any = reader.deserialize(data, connection.msgtype)
        stamp = getattr(getattr(message, "header", message), "stamp", None)
        times = {"log_time": log_ns}
        if stamp is not None:
            times["stamp"] = stamp.sec * 1_000_000_000 + stamp.nanosec
        cells = {name: (value - first.setdefault(name, value)) * 1e-9 for name, value in times.items()}
        yield cells | (_of_joints(message) if connection.msgtype == JOINT_STATE else dict(_flat(message, "")))


def _of_joints(message: Any) -> dict[str, float]:
    return {
        f"{joint}.{quantity}": float(value)
        for quantity in _OF_JOINTS
        for joint, value in zip(message.name, getattr(message, quantity), strict=False)
    }


def _flat(value: Any, name: str) -> Iterator[tuple[str, float]]:
    """All numbers in a message, by their paths."""
    if is_dataclass(value):
        for field in fields(value):
            if not field.name.startswith("__") and field.name not in ("header", "stamp"):
                yield from _flat(getattr(value, field.name), f"{name}.{field.name}" if name else field.name)
    elif isinstance(value, list | tuple | np.ndarray):
        for place, each in enumerate(value):
            yield from _flat(each, f"{name}[{place}]")
    elif isinstance(value, bool | int | float | np.generic):
        yield name, float(value)


@contextmanager
def open_parquet(path: Path) -> Iterator[Any]:
    """Open it, and close it afterwards.

    Raises:
        MissingExtra: pyarrow is not installed.
        FileError: it cannot be read, or is no Parquet.
    """
    need("convert", "Parquet", "pyarrow")
    from pyarrow import parquet

    try:
        with (
            foreign_code(FileError, f"{path} is no Parquet file, or damaged", "write it anew"),
            parquet.ParquetFile(regular_file(path)) as file,
        ):
            yield file
    except FileNotFoundError as error:
        raise FileError(f"{path} cannot be read: there is no such file") from error


def read_parquet_table(path: Path, file: LogFile, wanted: Sequence[str]) -> LogTable:
    """Read some columns of a Parquet file; null is NaN, moments are seconds from the first one.

    Raises:
        MissingExtra: pyarrow is not installed.
        FileError: it is no Parquet, lacks a column, or a column holds neither numbers nor moments.
    """
    columns = tuple(dict.fromkeys(wanted))
    with open_parquet(path) as opened:
        names = opened.schema_arrow.names
        for name in columns:
            if names.count(name) != 1:
                raise missing_column(file.path, name, names)
        table = opened.read(columns=list(columns))
        values = np.column_stack([_column_numbers(table.column(name), file.path, name) for name in columns])
    return LogTable(file.path, columns, values, np.arange(len(values)), file_sha256(path), "row")


def first_rows(path: Path, count: int) -> tuple[tuple[str, ...], Array, frozenset[str]]:
    """Names and first values of all columns of numbers and moments, and which of them are moments."""
    with open_parquet(path) as opened:
        batches = list(islice(opened.iter_batches(batch_size=count), 1))
        if not batches:
            raise FileError(f"{path} has no rows; nothing can be told from it")
        columns = {name: batches[0].column(name) for name in opened.schema_arrow.names}
    numeric = {name: column for name, column in columns.items() if _is_numeric(column) or _is_moments(column)}
    if not numeric:
        raise FileError(f"{path}: none of its columns holds numbers; they are {', '.join(columns)}")
    values = np.column_stack([_column_numbers(column, path.name, name) for name, column in numeric.items()])
    return tuple(numeric), values, frozenset(name for name, column in numeric.items() if _is_moments(column))


def _is_numeric(column: Any) -> bool:
    from pyarrow import types

    kind = column.type
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def _is_moments(column: Any) -> bool:
    from pyarrow import types

    return bool(types.is_timestamp(column.type) or types.is_duration(column.type))


def _column_numbers(column: Any, file: str, name: str) -> Array:
    """Return the numbers of an Arrow array, whatever their kind."""
    if _is_moments(column):
        moments = np.asarray(column)
        first = next(iter(moments[~np.isnat(moments)]), np.timedelta64("NaT"))
        return (moments - first) / np.timedelta64(1, "s")
    if not _is_numeric(column):
        raise FileError(
            f"{file}, column {name!r} holds {column.type}; only numbers and moments (timestamp, duration) can be "
            f"imported: name another column in the mapping, or write the file again with numbers in this one"
        )
    return np.asarray(column, dtype=np.float64)


def is_bag(path: Path) -> bool:
    """Return whether it is a bag: a file of one, or the folder of a rosbag2."""
    return path.suffix.lower() in BAGS or (path / _BAG_FOLDER).is_file()


def is_log(path: Path) -> bool:
    """Return whether it is one log rather than a folder of them."""
    return path.is_file() or is_bag(path)


def read_log(path: Path, file: LogFile, wanted: Sequence[str]) -> LogTable:
    """Read some columns of a log.

    Args:
        path: of the file, or of a rosbag2's folder.
        file: how it is written.
        wanted: names of the columns.

    Raises:
        FileError: it is missing or damaged, lacks the topic or a column, or a value is no number.
        MissingExtra: its format needs a package that is not installed.
    """
    if is_bag(path):
        return read_bag_table(path, file, wanted)
    read = read_parquet_table if path.suffix.lower() in PARQUET else read_csv_table
    return read(path, file, wanted)
