"""Tables of a log in any format that is read: CSV, Parquet, MCAP and ROS bags."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jointbench.arrays import Array
from jointbench.errors import ImportedDataError
from jointbench.extras import need
from jointbench.foreign import foreign_code, regular_file
from jointbench.recording.log_table import LogTable, file_sha256, missing_column, read_csv_table
from jointbench.recording.mapping import LogFile

if TYPE_CHECKING:
    from rosbags.highlevel import AnyReader


JOINT_STATE = "sensor_msgs/msg/JointState"
TIMES = ("stamp", "log_time")
"""Columns of every topic: by the message's own header, and by whoever recorded it [s from the first]."""

_OF_JOINTS = ("position", "velocity", "effort")


def read_bag_table(path: Path, file: LogFile, wanted: Sequence[str]) -> LogTable:
    """Read some columns of a topic, one row a message; those messages that have any; of times alone, all.

    Raises:
        MissingExtra: rosbags is not installed.
        ImportedDataError: it is no bag, or damaged; it lacks the topic, or no message has a column.
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
            foreign_code(ImportedDataError, f"{path} is no bag of ROS, or damaged", "record or convert it anew"),
            AnyReader([_with_an_end(path)], default_typestore=get_typestore(Stores.ROS2_HUMBLE)) as reader,
        ):
            yield reader
    except FileNotFoundError as error:
        raise ImportedDataError(f"{path} cannot be read: there is no such file or folder") from error


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
            raise ImportedDataError(f"{file.path} has no topic {file.topic!r}; its topics: {shown}")
        return file.topic
    of_joints = [name for name, kind in topics.items() if kind == JOINT_STATE]
    if len(of_joints) != 1:
        raise ImportedDataError(
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
        ImportedDataError: it cannot be read, or is no Parquet.
    """
    need("convert", "Parquet", "pyarrow")
    from pyarrow import parquet

    try:
        with (
            foreign_code(ImportedDataError, f"{path} is no Parquet file, or damaged", "write it anew"),
            parquet.ParquetFile(regular_file(path)) as file,
        ):
            yield file
    except FileNotFoundError as error:
        raise ImportedDataError(f"{path} cannot be read: there is no such file") from error


def read_parquet_table(path: Path, file: LogFile, wanted: Sequence[str]) -> LogTable:
    """Read some columns of a Parquet file; null is NaN, moments are seconds from the first one.

    Raises:
        MissingExtra: pyarrow is not installed.
        ImportedDataError: it is no Parquet, lacks a column, or a column holds neither numbers nor moments.
    """
    columns = tuple(dict.fromkeys(wanted))
    with open_parquet(path) as opened:
        names = opened.schema_arrow.names
        for name in columns:
            if names.count(name) != 1:
                raise missing_column(file.path, name, names)
        table = opened.read(columns=list(columns))
        values = np.column_stack([_numbers(table.column(name), file.path, name) for name in columns])
    return LogTable(file.path, columns, values, np.arange(len(values)), file_sha256(path), "row")


def first_rows(path: Path, count: int) -> tuple[tuple[str, ...], Array, frozenset[str]]:
    """Names and first values of all columns of numbers and moments, and which of them are moments."""
    with open_parquet(path) as opened:
        batches = list(islice(opened.iter_batches(batch_size=count), 1))
        if not batches:
            raise ImportedDataError(f"{path} has no rows; nothing can be told from it")
        columns = {name: batches[0].column(name) for name in opened.schema_arrow.names}
    numeric = {name: column for name, column in columns.items() if _is_numeric(column) or _is_moments(column)}
    if not numeric:
        raise ImportedDataError(f"{path}: none of its columns holds numbers; they are {', '.join(columns)}")
    values = np.column_stack([_numbers(column, path.name, name) for name, column in numeric.items()])
    return tuple(numeric), values, frozenset(name for name, column in numeric.items() if _is_moments(column))


def _is_numeric(column: Any) -> bool:
    from pyarrow import types

    kind = column.type
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def _is_moments(column: Any) -> bool:
    from pyarrow import types

    return bool(types.is_timestamp(column.type) or types.is_duration(column.type))


def _numbers(column: Any, file: str, name: str) -> Array:
    """Of an Arrow array, whatever its kind of number."""
    if _is_moments(column):
        moments = np.asarray(column)
        first = next(iter(moments[~np.isnat(moments)]), np.timedelta64("NaT"))
        return (moments - first) / np.timedelta64(1, "s")
    if not _is_numeric(column):
        raise ImportedDataError(
            f"{file}, column {name!r} holds {column.type}; only numbers and moments (timestamp, duration) can be "
            f"imported: name another column in the mapping, or write the file again with numbers in this one"
        )
    return np.asarray(column, dtype=np.float64)


BAGS = (".mcap", ".db3", ".bag")
PARQUET = (".parquet", ".pq")
_BAG_FOLDER = "metadata.yaml"


def is_bag(path: Path) -> bool:
    """Whether it is a bag: a file of one, or the folder of a rosbag2."""
    return path.suffix.lower() in BAGS or (path / _BAG_FOLDER).is_file()


def is_log(path: Path) -> bool:
    """Whether it is one log rather than a folder of them."""
    return path.is_file() or is_bag(path)


def read_log(path: Path, file: LogFile, wanted: Sequence[str]) -> LogTable:
    """Read some columns of a log.

    Args:
        path: of the file, or of a rosbag2's folder.
        file: how it is written.
        wanted: names of the columns.

    Raises:
        ImportedDataError: it is missing or damaged, lacks the topic or a column, or a value is no number.
        MissingExtra: its format needs a package that is not installed.
    """
    if is_bag(path):
        return read_bag_table(path, file, wanted)
    read = read_parquet_table if path.suffix.lower() in PARQUET else read_csv_table
    return read(path, file, wanted)
