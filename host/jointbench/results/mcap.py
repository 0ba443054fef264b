"""A run as MCAP: joint states as ROS 2 has them, every channel of every joint, what happened, and the run's files.

| topic | messages |
| --- | --- |
| /joint_states | sensor_msgs/JointState of joints whose sample is valid: position, logged velocity, motor torque |
| /joints/NAME | all that was measured of a joint, each sample, missing ones too |
| /feet/NAME | forces at a foot's corners |
| /events | what the host did and noticed |
| /robot_description | the robot's URDF, its links as capsules |

Attachments are the files of the run directory; "jointbench.json" is what makes the same run again.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import chunks, map_file
from jointbench.errors import FileError
from jointbench.extras import need
from jointbench.files import json_values, regular_file, replacing, text_of
from jointbench.recording import EVENTS, FRAMES, RecordKind, Run, Samples, read_records, schema_said
from jointbench.recording.samples import QUANTITIES
from jointbench.results.converted_run import About, about_text, empty_fields, read_about, rows_of
from jointwire import FrameError, MessageType, decode_frame

if TYPE_CHECKING:
    from mcap.writer import Writer
    from rosbags.typesys.store import Typestore


JOINT_STATE = "sensor_msgs/msg/JointState"
LOG = "rcl_interfaces/msg/Log"
STRING = "std_msgs/msg/String"
JOINT = "jointbench_msgs/msg/JointSample"
FOOT = "jointbench_msgs/msg/FootForces"

CORNER_FIELDS = ("front_left", "front_right", "rear_right", "rear_left")

_FIELDS: dict[str, dict[str, str]] = {
    JOINT: {"time": "float64", **dict.fromkeys(QUANTITIES, "float64"), "play_tick": "int64", "valid": "bool"},
    FOOT: dict.fromkeys(CORNER_FIELDS, "float64"),
}
_COMMENTS = {
    JOINT: "A sample of one joint, SI; NaN: not measured; valid is false where the sample is missing; play_tick -1: "
    "nothing plays",
    FOOT: "Forces at the corners of a foot [N]; NaN: not measured",
}
_CDR = np.frombuffer(b"\0\1\0\0", "V4")[0]
"""Stands before a message: little-endian."""

_BAD = ("fault", "lost", "silent", "fell", "reset", "refused", "stopped", "failed")

OWN = "jointbench.json"
_SECOND = 1_000_000_000
_LEVELS = {"INFO": 20, "ERROR": 40}

_Pack = tuple[str, str, int, bytes]
"""Topic, kind, size of a message, and the bytes of a message for each row."""

_TOGETHER = 4096
"""Messages of a topic that are put away together."""


@cache
def message_types() -> Typestore:
    """Every type of message that is written, and what makes bytes of them."""
    from rosbags.typesys import Stores, get_types_from_msg, get_typestore

    store = get_typestore(Stores.ROS2_JAZZY)
    for kind, fields in _FIELDS.items():
        lines = [
            f"# {_COMMENTS[kind]}",
            "builtin_interfaces/Time stamp",
            *(f"{of} {name}" for name, of in fields.items()),
        ]
        store.register(get_types_from_msg("\n".join(lines), kind))
    return store


def definition(name: str) -> bytes:
    """The text that tells a reader what such a message holds."""
    return message_types().generate_msgdef(name, ros_version=2)[0].encode()


def packed(kind: str, /, **values: Any) -> bytes:
    """A message as bytes (CDR)."""
    store = message_types()
    return bytes(store.serialize_cdr(store.types[kind](**values), kind))


def records(kind: str, times_ns: NDArray[np.int64]) -> NDArray[np.void]:
    """Messages of one of our own kinds, stamped, their other fields still to be filled in: each one's bytes are CDR.

    All fields have one size and lie where they are aligned, so that an array of them needs no serialiser.
    """
    messages = np.zeros(len(times_ns), record_type(kind))
    messages["cdr"] = _CDR
    messages["sec"], messages["nanosec"] = np.divmod(times_ns, 1_000_000_000)
    return messages


@cache
def record_type(kind: str) -> np.dtype[np.void]:
    """Layout of a message of one of our own kinds."""
    head = [("cdr", "V4"), ("sec", "<i4"), ("nanosec", "<u4")]
    return np.dtype(head + [(name, np.dtype(of).newbyteorder("<")) for name, of in _FIELDS[kind].items()])


def stamp(time_ns: int) -> Any:
    """A moment as ROS 2 writes it."""
    seconds, rest = divmod(time_ns, 1_000_000_000)
    return message_types().types["builtin_interfaces/msg/Time"](sec=seconds, nanosec=rest)


def header(time_ns: int) -> Any:
    """A header with a moment and no frame."""
    return message_types().types["std_msgs/msg/Header"](stamp=stamp(time_ns), frame_id="")


@dataclass(frozen=True)
class Event:
    """Something that happened: when [s, by the time of the samples], on which line of events.jsonl, and what."""

    time: float
    line: int
    text: str

    @property
    def is_bad(self) -> bool:
        """True if its words speak of something that should not be."""
        return any(word in self.text.lower() for word in _BAD)


def timed_events(run: Run) -> list[Event]:
    """The events of a recorded run in the order of time; none of an import.

    The host noted them by its own clock. Sample 0 is placed on it by the first block that came, less the time that
    block took to fill: right to the delay of the line, some milliseconds.
    """
    path = run.path / EVENTS
    zero = _host_time_of_sample_0(run)
    if zero is None or not path.is_file():
        return []
    events: list[Event] = []
    for number, line in enumerate(text_of(path).splitlines(), start=1):
        try:
            values: dict[str, Any] = json_values(line)
            time = (int(values.pop("time_us")) - zero) * 1e-6
        except (ValueError, KeyError, TypeError, AttributeError):
            continue  # the last one, cut off by a crash; it goes as it is with the run's files
        name = str(values.pop("event", ""))
        events.append(Event(time, number, " ".join([name, *(f"{key}={value}" for key, value in values.items())])))
    return sorted(events, key=lambda event: event.time)


def _host_time_of_sample_0(run: Run) -> int | None:
    """[µs]; None where no frames were recorded."""
    path = run.path / FRAMES
    if not path.is_file():
        return None
    schema = schema_said(run.provenance)
    for record in read_records(map_file(path), []):
        if record.kind is not RecordKind.FRAME:
            continue
        try:
            frame = decode_frame(record.payload, schema)
        except FrameError:
            continue
        if frame.type is MessageType.DATA:
            return record.time_us - round((frame.body.count - 1) * run.samples.sample_period * 1e6)
    return None


def write_mcap(run: Run, about: About, path: Path) -> tuple[Path, ...]:
    """Write it.

    Returns:
        Its path.

    Raises:
        MissingExtra: mcap or rosbags is not installed.
    """
    need("convert", "MCAP", "mcap", "rosbags")
    from mcap.writer import Writer

    from jointbench.results.robot_description import moving_urdf  # models need recordings: not the other way round

    events = timed_events(run)
    first = min([0.0, *(event.time for event in events), float(run.samples.time[0])])
    zero = int(-np.floor(first)) * _SECOND  # MCAP knows no times below zero
    with replacing(path) as unfinished, unfinished.open("wb") as file:
        writer = Writer(file)
        writer.start(profile="ros2", library="jointbench")
        channels = _Channels(writer)
        channels.say("/robot_description", STRING, 0, data=moving_urdf(run.robot))
        _write_samples(run, about, channels, zero, events)
        for name, text in {**about.files, OWN: about_text(about.without_files())}.items():
            kind = "application/json" if name.endswith(".json") else "text/plain"
            writer.add_attachment(0, 0, name, kind, text.encode())
        writer.add_metadata("jointbench", _metadata(run, about, zero))
        writer.finish()
    return (path,)


class _Channels:
    """Topics of a file, each made known when its first message comes."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._schemas: dict[str, int] = {}
        self._topics: dict[str, int] = {}

    def say(self, topic: str, kind: str, time_ns: int, /, **values: Any) -> None:
        """Write a message."""
        self.put(topic, kind, time_ns, packed(kind, **values))

    def put(self, topic: str, kind: str, time_ns: int, data: bytes) -> None:
        """Write a message's bytes."""
        if topic not in self._topics:
            if kind not in self._schemas:
                self._schemas[kind] = self._writer.register_schema(kind, "ros2msg", definition(kind))
            self._topics[topic] = self._writer.register_channel(topic, "cdr", self._schemas[kind])
        self._writer.add_message(self._topics[topic], time_ns, data, time_ns)


def _write_samples(run: Run, about: About, channels: _Channels, zero: int, events: list[Event]) -> None:
    """All messages in the order of time."""
    waiting = list(events)
    for part in chunks(about.rows, 4096):
        rows = rows_of(run.samples, about.columns, part)
        times = zero + np.round(rows["time"] * _SECOND).astype(np.int64)
        packs = [*_joints(about, rows, times), *_feet(about, rows, times)]
        for row, now in enumerate(times.tolist()):
            while waiting and _moment(waiting[0], zero) <= now:
                _say_event(channels, waiting.pop(0), zero)
            _say_joint_state(channels, about, {name: values[row] for name, values in rows.items()}, now)
            for topic, kind, size, data in packs:
                channels.put(topic, kind, now, data[row * size : (row + 1) * size])
    for event in waiting:
        _say_event(channels, event, zero)


def _say_joint_state(channels: _Channels, about: About, one: dict[str, Any], now: int) -> None:
    valid = one["valid"]
    if valid.any():
        names = [name for name, known in zip(about.joint_names, valid, strict=True) if known]
        motion = {"position": "motor_position", "velocity": "joint_velocity", "effort": "motor_torque"}
        values = {key: one[name][valid] if name in one else np.empty(0) for key, name in motion.items()}
        channels.say("/joint_states", JOINT_STATE, now, header=header(now), name=names, **values)


def _joints(about: About, rows: dict[str, Any], times: NDArray[np.int64]) -> Iterator[_Pack]:
    for place, joint in enumerate(about.joint_names):
        messages = records(JOINT, times)
        messages["time"], messages["play_tick"], messages["valid"] = (
            rows["time"], rows["play_tick"], rows["valid"][:, place],
        )  # fmt: skip
        for name in QUANTITIES:
            messages[name] = rows[name][:, place] if name in rows else np.nan
        yield f"/joints/{joint}", JOINT, messages.itemsize, messages.tobytes()


def _feet(about: About, rows: dict[str, Any], times: NDArray[np.int64]) -> Iterator[_Pack]:
    for place, foot in enumerate(about.foot_names if "foot_force" in rows else ()):
        messages = records(FOOT, times)
        for corner, name in enumerate(CORNER_FIELDS):
            messages[name] = rows["foot_force"][:, place, corner]
        yield f"/feet/{foot}", FOOT, messages.itemsize, messages.tobytes()


def _moment(event: Event, zero: int) -> int:
    return zero + round(event.time * _SECOND)


def _say_event(channels: _Channels, event: Event, zero: int) -> None:
    now = _moment(event, zero)
    level = _LEVELS["ERROR" if event.is_bad else "INFO"]
    where = {"name": "jointbench", "file": "events.jsonl", "function": "", "line": event.line}
    channels.say("/events", LOG, now, stamp=stamp(now), level=level, msg=event.text, **where)


def _metadata(run: Run, about: About, zero: int) -> dict[str, str]:
    """Return what a person looks for first, as text."""
    return {
        "run": about.run,
        "robot": run.robot.name,
        "joints": ", ".join(about.joint_names),
        "samples": str(about.rows),
        "sample_period_s": repr(about.sample_period),
        "sha256": about.sha256,
        "ledger": "imported" if run.ledger is None else run.ledger.verdict,
        "warnings": "; ".join(about.warnings),
        "log_time_of_run_time_0_ns": str(zero),
    }


def is_own_mcap(path: Path) -> bool:
    """Return whether a run of ours was written there.

    Raises:
        MissingExtra: mcap is not installed.
        FileError: it is no MCAP, or damaged.
    """
    return path.suffix.lower() == ".mcap" and OWN in _attachments(path)


def read_own_mcap(path: Path) -> tuple[About, Samples]:
    """Read what `write_mcap` wrote.

    Raises:
        FileError: it is damaged, or messages are missing.
    """
    attached = _attachments(path)
    about = replace(read_about(attached.pop(OWN), path.name), files=attached)
    fields = empty_fields(about.columns, about.rows)
    joints = {f"/joints/{name}": place for place, name in enumerate(about.joint_names)}
    feet = {f"/feet/{name}": place for place, name in enumerate(about.foot_names)}
    done: Counter[str] = Counter()
    waiting: dict[str, list[bytes]] = {topic: [] for topic in (*joints, *feet)}
    for topic, data in _messages(path, [*joints, *feet]):
        waiting[topic].append(data)
        if len(waiting[topic]) == _TOGETHER:
            done[topic] += _keep(fields, done[topic], joints.get(topic), feet.get(topic), waiting[topic])
    for topic, rest in waiting.items():
        done[topic] += _keep(fields, done[topic], joints.get(topic), feet.get(topic), rest)
        if done[topic] != about.rows:
            raise FileError(
                f"{path}: topic {topic} has {done[topic]} messages of the {about.rows} of its run; convert again"
            )
    return about, about.samples(fields)


def _keep(fields: dict[str, Any], row: int, joint: int | None, foot: int | None, waiting: list[bytes]) -> int:
    """Put away what came of a joint or of a foot, from this row on; how much it was."""
    kind = FOOT if joint is None else JOINT
    part = slice(row, row + len(waiting))
    messages = np.frombuffer(b"".join(waiting), record_type(kind))
    waiting.clear()
    if part.stop > len(fields["time"]):
        return len(messages)
    if joint is None:
        fields["foot_force"][part, foot] = np.column_stack([messages[name] for name in CORNER_FIELDS])
        return len(messages)
    for name, values in fields.items():
        if name in ("time", "play_tick"):
            values[part] = messages[name]
        elif name != "foot_force":
            values[part, joint] = messages[name]
    return len(messages)


def _messages(path: Path, topics: list[str]) -> Iterator[tuple[str, bytes]]:
    from mcap.reader import make_reader

    try:
        with regular_file(path).open("rb") as file:
            for _, channel, message in make_reader(file).iter_messages(topics=topics, log_time_order=False):
                yield channel.topic, message.data
    except _damages() as error:
        raise _damaged(path, error) from error


def _attachments(path: Path) -> dict[str, str]:
    need("convert", "MCAP", "mcap", "rosbags")
    from mcap.reader import make_reader

    try:
        with regular_file(path).open("rb") as file:
            attachments = make_reader(file).iter_attachments()
            return {
                attachment.name: attachment.data.decode()
                for attachment in attachments
                if attachment.media_type.startswith(("text/", "applic"))
            }
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}") from error
    except _damages() as error:
        raise _damaged(path, error) from error


def _damages() -> tuple[type[Exception], ...]:
    """Return the errors that a damaged file makes the reader raise."""
    from mcap.exceptions import McapError
    from zstandard import ZstdError

    return McapError, ZstdError, ValueError, EOFError, struct.error


def _damaged(path: Path, error: Exception) -> FileError:
    return FileError(f"{path} is no MCAP, or damaged: {error}; make the file again, or `mcap recover` it")
