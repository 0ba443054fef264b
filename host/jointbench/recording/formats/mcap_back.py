"""A run back from the MCAP that was made of it."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from jointbench.errors import ImportedDataError
from jointbench.extras import need
from jointbench.foreign import regular_file
from jointbench.recording.formats.about import About, read_about
from jointbench.recording.formats.columns import empty_fields
from jointbench.recording.formats.mcap_file import OWN
from jointbench.recording.formats.messages import CORNER_FIELDS, FOOT, JOINT, record_type
from jointbench.recording.samples import Samples

_TOGETHER = 4096
"""Messages of a topic that are put away together."""


def is_own_mcap(path: Path) -> bool:
    """Whether a run of ours was written there.

    Raises:
        MissingExtra: mcap is not installed.
        ImportedDataError: it is no MCAP, or damaged.
    """
    return path.suffix.lower() == ".mcap" and OWN in _attachments(path)


def read_own_mcap(path: Path) -> tuple[About, Samples]:
    """Read what `write_mcap` wrote.

    Raises:
        ImportedDataError: it is damaged, or messages are missing.
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
            raise ImportedDataError(
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
            found = make_reader(file).iter_attachments()
            return {each.name: each.data.decode() for each in found if each.media_type.startswith(("text/", "applic"))}
    except OSError as error:
        raise ImportedDataError(f"{path} cannot be read: {error.strerror}") from error
    except _damages() as error:
        raise _damaged(path, error) from error


def _damages() -> tuple[type[Exception], ...]:
    """What a damaged file makes the reader raise."""
    from mcap.exceptions import McapError
    from zstandard import ZstdError

    return McapError, ZstdError, ValueError, EOFError, struct.error


def _damaged(path: Path, error: Exception) -> ImportedDataError:
    return ImportedDataError(f"{path} is no MCAP, or damaged: {error}; make the file again, or `mcap recover` it")
