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

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from jointbench.extras import need
from jointbench.files import replacing
from jointbench.memory_mapping import chunks
from jointbench.recording.formats.about import About, about_text
from jointbench.recording.formats.columns import QUANTITIES, rows_of
from jointbench.recording.formats.event_times import Event, timed_events
from jointbench.recording.formats.messages import (
    CORNER_FIELDS,
    FOOT,
    JOINT,
    JOINT_STATE,
    LOG,
    STRING,
    definition,
    header,
    packed,
    records,
    stamp,
)
from jointbench.recording.run import Run

if TYPE_CHECKING:
    from mcap.writer import Writer

OWN = "jointbench.json"
_SECOND = 1_000_000_000
_LEVELS = {"INFO": 20, "ERROR": 40}


def write_mcap(run: Run, about: About, path: Path) -> tuple[Path, ...]:
    """Write it.

    Returns:
        Its path.

    Raises:
        MissingExtra: mcap or rosbags is not installed.
    """
    need("convert", "MCAP", "mcap", "rosbags")
    from mcap.writer import Writer

    from jointbench.recording.formats.moving_urdf import moving_urdf  # models need recordings: not the other way round

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


_Pack = tuple[str, str, int, bytes]
"""Topic, kind, size of a message, and the bytes of a message for each row."""


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
    """What a person looks for first, as text."""
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
