"""From recorded bytes to each board's samples, still in raw counts on the board's own ticks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jointbench.link.ledger import DEFAULT_LIMIT, Ledger
from jointbench.link.sync import Exchange
from jointbench.link.tally import Tally
from jointbench.recording.record_file import Record, RecordKind, read_records
from jointwire import BodyError, Frame, FrameError, MessageType, decode_frame, decode_samples

# Frames may come late by some blocks; ticks that fall by more than this mean that the board started again.
_LATE_TICKS = 4096


@dataclass
class BoardRecord:
    """What one board sent during a run.

    Attributes:
        blocks: first tick -> its samples, raw.
        played: ticks at which trajectory tick 0 lay, by each block that was played.
        last_play_tick: the last trajectory tick reported, -1 for none.
        exchanges: answered PINGs.
        restarted: whether its ticks started again; what came after that is left out.
    """

    blocks: dict[int, NDArray[np.void]] = field(default_factory=dict[int, "NDArray[np.void]"])
    played: list[int] = field(default_factory=list[int])
    last_play_tick: int = -1
    exchanges: list[Exchange] = field(default_factory=list[Exchange])
    restarted: bool = False
    _newest: int = 0

    def add(self, frame: Frame, time_us: int) -> None:
        """Take what this frame says."""
        if frame.type is MessageType.PONG:
            self.exchanges.append(Exchange.from_pong(frame.body.nonce, frame.body.tick, time_us))
        elif frame.type is MessageType.DATA:
            self._add_block(frame.body, decode_samples(frame))

    def _add_block(self, head: Any, samples: NDArray[np.void]) -> None:
        self.restarted |= head.first_tick < self._newest - _LATE_TICKS
        if self.restarted:
            return
        self._newest = max(self._newest, head.first_tick)
        self.blocks[head.first_tick] = samples
        if head.play_tick >= 0:
            self.played.append(head.first_tick - head.play_tick)
            self.last_play_tick = max(self.last_play_tick, head.play_tick + head.count - 1)


@dataclass(frozen=True)
class Recording:
    """frames.bin, decoded: boards by node in joint order, their ledger and what could not be read."""

    boards: dict[int, BoardRecord]
    ledger: Ledger
    n_records: int
    warnings: tuple[str, ...]


def decode_recording(path: Path, joints: Mapping[int, str], limit: float = DEFAULT_LIMIT) -> Recording:
    """Decode a frames.bin; damage is named in `warnings` and counted as loss, never repaired.

    Args:
        path: of the frames.bin.
        joints: joint of each node, in joint order.
        limit: largest fraction of samples that may be lost in a valid run.
    """
    warnings: list[str] = []
    boards = {node: BoardRecord() for node in joints}
    tally = Tally(joints, limit)
    strangers: set[int] = set()
    n_records = 0
    for record in read_records(path.read_bytes(), warnings):
        n_records += 1
        frame = _frame(record, warnings)
        if frame is None:
            tally.add_noise(record.node)
        elif frame.node not in boards:
            strangers.add(frame.node)
        elif tally.add(frame):
            try:
                boards[frame.node].add(frame, record.time_us)
            except BodyError as error:
                warnings.append(f"{joints[frame.node]}: {error}; the frame is left out")
    if strangers:
        warnings.append(f"frames of nodes {sorted(strangers)}, which are no boards of this run, are left out")
    warnings += [f"{joints[node]}: the board started again during the run" for node in boards if boards[node].restarted]
    return Recording(boards, tally.ledger(), n_records, tuple(warnings))


def _frame(record: Record, warnings: list[str]) -> Frame | None:
    if record.kind is not RecordKind.FRAME:
        return None
    try:
        return decode_frame(record.payload)
    except FrameError as error:
        if not any(str(error) in warning for warning in warnings):
            warnings.append(f"recorded frames of node {record.node} cannot be decoded by this release: {error}")
        return None
