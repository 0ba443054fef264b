"""Receivers of a bench's events: a recorder, callbacks for progress, and subscribers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from jointbench.bench.ledger import Ledger
from jointbench.bench.tally import Tally
from jointwire import Chunk


class Subscriber(Protocol):
    """Takes a bench's events as they happen, such as a live feed, and may have a motion stopped."""

    def on_event(self, event: str, **fields: Any) -> None:
        """Take an event.

        Args:
            event, fields: "connecting"; "motion" with `run`, the recording's directory or None; "scheduled" with
                `start_us` and `duration_us`, by the bench's clock; "received" with the recorder's `tally`, some times a
                second; "rest" when the motion is over; "stopped" with `unconfirmed`, joints whose boards did not
                confirm; "closed".
        """
        ...

    def check_stop(self) -> None:
        """Let a stop that the subscriber was asked for take effect.

        Raises:
            StopAsked: it was; says by whom.
        """
        ...


class Sink(Protocol):
    """Takes chunks and events as they come, and counts what was lost."""

    holds: bool
    """Whether what comes waits for `flush`; set by who calls it after each wait."""

    @property
    def path(self) -> Path:
        """Place of the recording."""
        ...

    @property
    def tally(self) -> Tally:
        """Counts of what was taken."""
        ...

    def chunk(self, time_us: int, node: int, chunk: Chunk) -> None:
        """Take what came from this node's port, or in its turn on a shared line, at this time of the clock."""
        ...

    def flush(self) -> None:
        """Write what was held back."""
        ...

    def rest(self, time_us: int, node: int, data: bytes) -> None:
        """Take the bytes after the last delimiter: what was still coming in when listening ended."""
        ...

    def event(self, time_us: int, event: str, **fields: Any) -> None:
        """Take note of something that happened."""
        ...

    def close(self, outcome: str = "finished") -> Ledger:
        """Finish, and say what was lost."""
        ...


@dataclass(frozen=True)
class Progress:
    """Progress of a motion.

    Attributes:
        elapsed, duration: of the target's time [s].
        samples: received since the start, of all boards.
        rate: samples received a second of the target's time.
        frames_lost: sequence numbers missing so far, None without a recorder.
        peak_torque: largest torque of the motors at each joint since the last report, by joint [N·m].
        sole_margin: of a robot whose foot is watched how near to its sole's edge the pressure point was since the last
            report [m]; None of any other, and where nothing came.
    """

    elapsed: float
    duration: float
    samples: int
    rate: float
    frames_lost: int | None
    peak_torque: dict[str, float]
    sole_margin: float | None = None


ProgressCallback = Callable[[Progress], None]
