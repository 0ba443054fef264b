"""Boards that say again what recorded boards said: each on a pseudo-terminal, at its own pace, and in answer to PINGs.

`python -m tools.wire_bench.player RUN...` prints a JSON line with the port of each node (the nodes of a second run are
those after the first's), plays from the first byte that comes, and ends when its standard input does. Samples and
states are as recorded; sequence numbers and counts of frames are this session's, so that a ledger can be kept of it.
"""

from __future__ import annotations

import contextlib
import json
import os
import pty
import select
import sys
import time
import tty
from collections import deque
from collections.abc import Iterable
from pathlib import Path

from jointbench.recording.record_file import Record, RecordKind, scan_records
from jointbench.recording.run_directory import FRAMES
from jointwire import BODIES, Frame, FrameReader, MessageType, decode_frame, encode_frame

TICK_S = 0.001
LINE = 512  # bytes the line takes in a tick, as that of an emulated board
_ANSWERS = 0x40  # types from here on answer requests that nobody sends this time

Told = tuple[int, Frame]
"""When a board said something [µs], and what."""


class PlayedBoard:
    """One board on a pseudo-terminal; `late_us` later than it was recorded."""

    def __init__(self, node: int, told: Iterable[Told], late_us: int) -> None:
        """Open its port."""
        self._node = node
        self._script = deque((time_us + late_us, frame) for time_us, frame in told)
        self._sent = self._received = self._damaged = 0
        self._queue = bytearray()
        self._reader = FrameReader()
        self._line, self._client = pty.openpty()
        tty.setraw(self._client)
        os.set_blocking(self._line, False)
        self.path = os.ttyname(self._client)

    def fileno(self) -> int:
        """Descriptor that is readable when the host has written."""
        return self._line

    def hear(self, now_us: int) -> None:
        """Take what the host has sent, and answer its PINGs."""
        for chunk in self._reader.feed(os.read(self._line, 4096)):
            request = chunk.content
            if not isinstance(request, Frame):
                self._damaged += 1
                continue
            self._received += 1
            if request.type is MessageType.PING:
                pong = {"nonce": request.body.nonce, "tick": now_us // 1000}
                self._say(MessageType.PONG, now_us, BODIES[MessageType.PONG].build(pong))

    def speak(self, now_us: int) -> None:
        """Say what is due, as much of it as the line takes in a tick."""
        while self._script and self._script[0][0] <= now_us:
            time_us, frame = self._script.popleft()
            self._say(frame.type, time_us, self._status(frame) if frame.type is MessageType.STATUS else frame.payload)
        if self._queue:
            with contextlib.suppress(BlockingIOError):  # the host is slow: the bytes wait
                del self._queue[: os.write(self._line, self._queue[:LINE])]

    def _status(self, frame: Frame) -> bytes:
        body = BODIES[MessageType.STATUS].parse(frame.payload)
        body.frames_sent, body.frames_received, body.bad_frames = self._sent, self._received, self._damaged
        return BODIES[MessageType.STATUS].build(body)

    def _say(self, kind: MessageType, time_us: int, body: bytes) -> None:
        self._queue += encode_frame(kind, self._node, self._sent, time_us, payload=body)
        self._sent += 1


def read_script(run: Path) -> dict[int, list[Told]]:
    """What each board of a recorded run said by itself, from the run's first record on."""
    script: dict[int, list[Told]] = {}
    began: int | None = None
    for record in scan_records((run / FRAMES).read_bytes()):
        if not isinstance(record, Record) or record.kind is not RecordKind.FRAME:
            continue
        began = record.time_us if began is None else began
        frame = decode_frame(record.payload)
        if frame.type < _ANSWERS:
            script.setdefault(frame.node, []).append((record.time_us - began, frame))
    return script


def play(boards: list[PlayedBoard]) -> None:
    """Wait for the host's first byte, and play until standard input ends."""
    sources = [sys.stdin, *boards]
    select.select(sources, [], [])
    began = due = time.monotonic()
    while True:
        ready = select.select(sources, [], [], max(0.0, due - time.monotonic()))[0]
        if sys.stdin in ready:
            return
        now_us = round(1e6 * (time.monotonic() - began))
        for board in boards:
            if board in ready:
                board.hear(now_us)
        if time.monotonic() >= due:
            for board in boards:
                board.speak(now_us)
            due += TICK_S


def main(runs: list[Path]) -> None:
    """Play runs."""
    told = [board for run in runs for _, board in sorted(read_script(run).items())]
    # No two blocks end together: the host is woken for each.
    late_us = [64_000 * index // len(told) for index in range(len(told))]
    boards = [PlayedBoard(node, *each) for node, each in enumerate(zip(told, late_us, strict=True), start=1)]
    print(json.dumps({node: board.path for node, board in enumerate(boards, start=1)}), flush=True)
    play(boards)


if __name__ == "__main__":
    main([Path(run) for run in sys.argv[1:]])
