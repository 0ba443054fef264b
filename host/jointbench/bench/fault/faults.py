"""One direction of a faulty line: bytes go in as they come, and come out damaged, in their new order and time."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from jointbench.bench.fault.kinds import (
    BaudGlitch,
    ByteFault,
    Delay,
    Drop,
    Duplicate,
    Flip,
    FrameFault,
    Lose,
    Passage,
    Reorder,
    Reset,
    Schedule,
    Stall,
    Trigger,
    Truncate,
)

# A frame longer than this goes on as one: a stream without delimiters must neither wait for ever nor fill the memory.
LONGEST_FRAME = 4096
DIRECTIONS = ("rx", "tx")


class Direction:
    """Bytes of one direction: first each byte's faults, then each frame's, then the stalls.

    Without a fault of frames bytes pass as they come; with one, frames pass when their delimiter has come.
    """

    def __init__(
        self,
        byte_faults: Sequence[ByteFault] = (),
        frame_faults: Sequence[FrameFault] = (),
        stall: Stall | None = None,
        delimiter: int = 0,
    ) -> None:
        """Faults work in the given order; `delimiter` ends a frame."""
        self._byte_faults, self._frame_faults, self._stall = byte_faults, frame_faults, stall
        self._delimiter = bytes((delimiter,))
        self._unfinished = b""
        self._queue: deque[tuple[int, bytes]] = deque()  # when it is due, and what
        self._waits = False  # whether the last of the queue lets the next frame pass
        self._quiet_until_us = 0

    def put(self, data: bytes, now_us: int) -> None:
        """Take bytes that come at this time."""
        for fault in self._byte_faults:
            data = fault.apply(data, now_us)
        if not self._frame_faults:
            self._append(data, now_us)
            return
        for frame in self._frames(data):
            if now_us < self._quiet_until_us:
                break
            self._put_frame(frame, now_us)
        if now_us < self._quiet_until_us:
            self._unfinished = b""

    def take(self, now_us: int) -> bytes:
        """Return the bytes that are due by this time."""
        due: list[bytes] = []
        while self._queue and self._queue[0][0] <= now_us:
            due.append(self._queue.popleft()[1])
        self._waits = self._waits and bool(self._queue)
        return b"".join(due)

    @property
    def next_due_us(self) -> int | None:
        """Time of the next bytes to take [µs]; None while nothing waits."""
        return self._queue[0][0] if self._queue else None

    def _frames(self, data: bytes) -> list[bytes]:
        *ended, rest = (self._unfinished + data).split(self._delimiter)
        frames = [piece for frame in ended for piece in _pieces(frame + self._delimiter)]
        whole = len(rest) - len(rest) % LONGEST_FRAME
        self._unfinished = rest[whole:]
        return frames + _pieces(rest[:whole])

    def _put_frame(self, frame: bytes, now_us: int) -> None:
        passage = Passage([frame])
        for fault in self._frame_faults if frame != self._delimiter else ():  # a bare delimiter is a pause, no frame
            fault.apply(passage, now_us)
        if passage.quiet_us is not None:
            self._quiet_until_us = now_us + passage.quiet_us
            self._queue = deque(passed for passed in self._queue if passed[0] <= now_us)
            self._waits = False
        for passed in passage.frames:
            self._append(passed, now_us + passage.delay_us)
        if passage.patience_us is not None and any(passage.frames):
            due_us, last = self._queue.pop()
            self._queue.append((self._after_stall(due_us + passage.patience_us), last))
            self._waits = True

    def _append(self, data: bytes, due_us: int) -> None:
        """Queue bytes behind what is there, but before a frame that lets them pass."""
        if not data:
            return
        passed = self._queue.pop()[1] if self._waits else b""
        self._waits = False
        if self._queue:
            due_us = max(due_us, self._queue[-1][0])
        due_us = self._after_stall(due_us)
        self._queue.append((due_us, data))
        if passed:
            self._queue.append((due_us, passed))

    def _after_stall(self, due_us: int) -> int:
        return self._stall.end_us(due_us) if self._stall else due_us


def _pieces(data: bytes) -> list[bytes]:
    return [data[start : start + LONGEST_FRAME] for start in range(0, len(data), LONGEST_FRAME)]


@dataclass(frozen=True)
class FaultSettings:
    """One fault of one direction.

    Attributes:
        direction: "rx", board to host, or "tx", host to board.
        kind: a name in `kinds.KINDS`.
        schedule: when it strikes; of a stall, `every` is in µs.
        for_us: shortest and longest time it lasts.
        burst, ratio: of a baud glitch, bytes and the receiver's baud rate over the sender's.
    """

    direction: str
    kind: str
    schedule: Schedule
    for_us: tuple[int, int] = (0, 0)
    burst: int = 0
    ratio: float = 1.0


class Faults:
    """Faults of a line, and the bytes that pass through it.

    The same seed and the same bytes at the same times give the same bytes, in whatever pieces they come.

    Attributes:
        tx: from host to board.
        rx: from board to host.
    """

    def __init__(self, settings: Sequence[FaultSettings], seed: int = 0, delimiter: int = 0) -> None:
        """Faults work in the order they are given; `delimiter` is the byte that ends a frame."""
        self._struck: dict[str, ByteFault | FrameFault | Stall] = {}
        self.tx: Direction = self._direction("tx", settings, seed, delimiter)
        self.rx: Direction = self._direction("rx", settings, seed, delimiter)

    @property
    def counts(self) -> dict[str, int]:
        """Number of strikes of each fault, by direction and name: {"rx.drop": 3}."""
        return {name: fault.struck for name, fault in self._struck.items()}

    def next_due_us(self) -> int | None:
        """Time of the next bytes to take from either direction [µs]; None while nothing waits."""
        due = [time_us for time_us in (self.tx.next_due_us, self.rx.next_due_us) if time_us is not None]
        return min(due) if due else None

    def _direction(self, name: str, settings: Sequence[FaultSettings], seed: int, delimiter: int) -> Direction:
        of_bytes: list[ByteFault] = []
        of_frames: list[FrameFault] = []
        stall = None
        for setting in settings:
            if setting.direction != name:
                continue
            fault = _fault(setting, seed)
            self._struck[f"{name}.{setting.kind}"] = fault
            if isinstance(fault, ByteFault):
                of_bytes.append(fault)
            elif isinstance(fault, FrameFault):
                of_frames.append(fault)
            else:
                stall = fault
        return Direction(of_bytes, of_frames, stall, delimiter)


def _fault(settings: FaultSettings, seed: int) -> ByteFault | FrameFault | Stall:
    # Each fault has random numbers of its own, apart for when and how: what one does never shifts another.
    name = f"{seed} {settings.direction}.{settings.kind}"
    trigger, random = Trigger(settings.schedule, Random(f"{name} when")), Random(f"{name} how")
    match settings.kind:
        case "drop":
            return Drop(trigger, random)
        case "flip":
            return Flip(trigger, random)
        case "baud":
            return BaudGlitch(trigger, random, settings.burst, settings.ratio)
        case "lose":
            return Lose(trigger, random)
        case "duplicate":
            return Duplicate(trigger, random)
        case "truncate":
            return Truncate(trigger, random)
        case "delay":
            return Delay(trigger, random, *settings.for_us)
        case "reorder":
            return Reorder(trigger, random, settings.for_us[1])
        case "reset":
            return Reset(trigger, random, settings.for_us[1])
        case _:
            return Stall(settings.schedule.at_us, settings.schedule.every or 1, settings.for_us[1])
