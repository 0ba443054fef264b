"""Faults that somebody put into a run's lines on purpose (docs/faults.md), as its events tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jointbench.foreign import bytes_of, json_values
from jointbench.recording.run_directory import EVENTS


@dataclass(frozen=True)
class InjectedFaults:
    """What one line of a run suffered.

    Attributes:
        joints: whose boards are on it.
        counts: how often each fault struck, by direction and name, such as "rx.drop".
    """

    joints: tuple[str, ...]
    counts: Mapping[str, int]

    @property
    def text(self) -> str:
        """In words, such as "j3: rx.drop 12 times, tx.lose never"."""
        times = {0: "never", 1: "once"}
        struck = ", ".join(f"{name} {times.get(count, f'{count} times')}" for name, count in self.counts.items())
        return f"{', '.join(self.joints)}: {struck}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"joints": list(self.joints), "counts": dict(self.counts)}


def injected_faults(run: str | Path, joints: Mapping[int, str]) -> tuple[InjectedFaults, ...]:
    """Read the faults of each line that had any; a recorder that was killed has not written them.

    Args:
        run: its directory.
        joints: joint of each node.
    """
    try:
        lines = bytes_of(Path(run) / EVENTS).decode(errors="replace").splitlines()
    except OSError:  # an import has no events; of a recording, doctor says that they are missing
        return ()
    return tuple(faults for line in lines if (faults := _of_event(line, joints)))


def _of_event(line: str, joints: Mapping[int, str]) -> InjectedFaults | None:
    """The faults that an event tells; None where it is another event, or damaged."""
    try:
        event: Any = json_values(line)
        if event["event"] != "faults":
            return None
        nodes: Sequence[int] = event["nodes"]
        counts = {str(name): int(count) for name, count in event["counts"].items()}
        return InjectedFaults(tuple(joints.get(int(node), f"node {node}") for node in nodes), counts)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
