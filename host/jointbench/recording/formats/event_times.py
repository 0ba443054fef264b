"""When things happened during a run, on the time of its samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jointbench.foreign import json_values, text_of
from jointbench.memory_mapping import map_file
from jointbench.recording.record_file import RecordKind, read_records
from jointbench.recording.run import Run
from jointbench.recording.run_directory import EVENTS, FRAMES, schema_said
from jointwire import FrameError, MessageType, decode_frame

_BAD = ("fault", "lost", "silent", "fell", "reset", "refused", "stopped", "failed")


@dataclass(frozen=True)
class Event:
    """Something that happened: when [s, by the time of the samples], on which line of events.jsonl, and what."""

    time: float
    line: int
    text: str

    @property
    def is_bad(self) -> bool:
        """Whether its words speak of something that should not be."""
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
