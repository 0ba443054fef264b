"""One direction of a faulty line: bytes go in as they come, and come out damaged, in their new order and time."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from jointbench.link.fault.byte_faults import ByteFault
from jointbench.link.fault.frame_faults import FrameFault, Passage
from jointbench.link.fault.stall import Stall

# A frame longer than this goes on as one: a stream without delimiters must neither wait for ever nor fill the memory.
LONGEST_FRAME = 4096


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
        """What is due by this time."""
        due: list[bytes] = []
        while self._queue and self._queue[0][0] <= now_us:
            due.append(self._queue.popleft()[1])
        self._waits = self._waits and bool(self._queue)
        return b"".join(due)

    @property
    def next_due_us(self) -> int | None:
        """When there is next something to take; None while nothing waits."""
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
            self._queue = deque(each for each in self._queue if each[0] <= now_us)
            self._waits = False
        for each in passage.frames:
            self._append(each, now_us + passage.delay_us)
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
