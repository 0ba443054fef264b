"""Logs in bags: MCAP, rosbag2 and ROS 1, one row a message of a topic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jointbench.arrays import Array
from jointbench.errors import FileError
from jointbench.extras import need
from jointbench.files import foreign_code, regular_file
from jointbench.recording.log_table import LogTable, file_sha256, missing_column
from jointbench.recording.mapping import LogFile

if TYPE_CHECKING:
    from rosbags.highlevel import AnyReader

JOINT_STATE = "sensor_msgs/msg/JointState"
TIMES = ("stamp", "log_time")
"""Columns of every topic: by the message's own header, and by whoever recorded it [s from the first]."""

_OF_JOINTS = ("position", "velocity", "effort")

BAGS = (".mcap", ".db3", ".bag")
_BAG_FOLDER = "metadata.yaml"


def is_bag(path: Path) -> bool:
    """Return whether it is a bag: a file of one, or the folder of a rosbag2."""
    return path.suffix.lower() in BAGS or (path / _BAG_FOLDER).is_file()


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
