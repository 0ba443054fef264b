"""Counting frames as they come, so that the loss ledger can be drawn up at any moment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

from jointbench.link.ledger import DEFAULT_LIMIT, BoardLedger, Ledger
from jointwire import BodyError, Frame, MessageType, State

_STREAMING = (State.ARMED, State.RUNNING)


# How far a frame may come late; sequence numbers that fall by more are those of a board that started again.
_LATE_FRAMES = 1024


class BoardTally:
    """Counts of one board. Evidence of loss comes from two independent sides: what the board says it took (STATUS),
    and what is missing from its tick indices and sequence numbers here.
    """

    def __init__(self) -> None:
        """Nothing received yet."""
        self.frames = 0
        self.duplicates = 0
        self.bad_frames = 0
        self.samples_received = 0
        self.restarts = 0
        self._sequence: int | None = None  # of the newest frame, unwrapped past 16 bits
        self._missing: set[int] = set()
        self._blocks: dict[int, tuple[int, int]] = {}  # first tick -> (count, sequence)
        self._pauses: list[int] = []  # sequences of STATUS frames that say that nothing streams
        self._opening: Any = None
        self._closing: Any = None

    def add(self, frame: Frame) -> bool:
        """Count a frame; False when it came before and must be left out."""
        sequence = self._unwrap(frame.seq)
        if sequence is None:
            self.duplicates += 1
            return False
        try:
            if frame.type is MessageType.DATA:
                self._add_block(frame.body.first_tick, frame.body.count, sequence)
            elif frame.type is MessageType.STATUS:
                self._add_status(frame.body, sequence)
        except BodyError:
            self.bad_frames += 1
            return False
        self.frames += 1
        return True

    def ledger(self, node: int, joint: str) -> BoardLedger:
        """Draw up the ledger of everything counted so far."""
        opening, closing = self._opening, self._closing
        gap, first, last = self._gaps()
        dropped = closing.samples_dropped - opening.samples_dropped if opening and closing else 0
        missed = closing.ticks_missed - opening.ticks_missed if opening and closing else 0
        interior = gap - missed  # samples taken between the first and the last received, and not received
        taken: int | None = None
        link_lost, unexplained, fault = max(interior - dropped, 0), 0, self._incomplete()
        if opening and closing and not fault:
            taken = int(closing.samples_taken - opening.samples_taken)
            missing = taken - self.samples_received
            edge = missing - interior  # before the first sample received or after the last
            edge_frames = sum(1 for sequence in self._missing if sequence < first or sequence > last)
            if edge == 0 or (edge > 0 and (edge_frames or edge <= dropped)):
                link_lost = missing - dropped
            else:
                unexplained = edge
                fault = f"{taken} samples taken, but received and lost make {taken - edge}"
            if link_lost < 0 or (link_lost > 0 and not self._missing):
                unexplained, link_lost = link_lost, 0
                fault = f"{unexplained} samples neither received nor dropped, and no frame is missing"
        return BoardLedger(
            node=node,
            joint=joint,
            frames=self.frames,
            frames_lost=len(self._missing),
            duplicates=self.duplicates,
            bad_frames=self.bad_frames,
            samples_taken=taken,
            samples_received=self.samples_received,
            link_lost=link_lost,
            board_dropped=dropped,
            ticks_missed=missed,
            unexplained=unexplained,
            fault=fault,
        )

    @property
    def opened(self) -> bool:
        """Whether a STATUS came before the first sample."""
        return self._opening is not None

    @property
    def closed(self) -> bool:
        """Whether a STATUS says that streaming has ended, and no sample came after it."""
        return self._closing is not None

    def _unwrap(self, seq: int) -> int | None:
        """Sequence number past 16 bits, or None for one that was there already."""
        if self._sequence is None:
            self._sequence = seq
            return seq
        step = (seq - self._sequence + 0x8000 & 0xFFFF) - 0x8000
        sequence = self._sequence + step
        if step < -_LATE_FRAMES:
            self.restarts += 1
            self._sequence = sequence = self._sequence + 1
        elif step > 0:
            self._missing.update(range(self._sequence + 1, sequence))
            self._sequence = sequence
        elif sequence in self._missing:  # late, not lost
            self._missing.remove(sequence)
        else:
            return None
        return sequence

    def _add_block(self, first_tick: int, count: int, sequence: int) -> None:
        self._blocks[first_tick] = (count, sequence)
        self.samples_received += count
        if self._closing is not None and sequence == self._sequence:
            self._closing = None

    def _add_status(self, status: Any, sequence: int) -> None:
        if status.state in _STREAMING:
            return
        self._pauses.append(sequence)
        if not self._blocks:
            self._opening = status
        if sequence == self._sequence:  # a late one says nothing about the end
            self._closing = status

    def _incomplete(self) -> str:
        if not self.frames:
            return "nothing was received"
        if self.restarts:
            return "the board started again during the run"
        if self._opening is None:
            return "no STATUS before the first sample"
        if self._closing is None:
            return "no STATUS after the last sample"
        return ""

    def _gaps(self) -> tuple[int, int, int]:
        """Ticks missing between the blocks, and the sequence numbers of the first and the last block."""
        blocks = sorted((first, count, sequence) for first, (count, sequence) in self._blocks.items())
        if not blocks:
            return 0, 0, -1
        gap = 0
        for (first, count, before), (following, _, after) in pairwise(blocks):
            if not any(before < pause < after for pause in self._pauses):  # not streaming in between is no loss
                gap += following - first - count
        return gap, blocks[0][2], blocks[-1][2]


class Tally:
    """The boards' tallies of one recording, by node."""

    def __init__(self, joints: Mapping[int, str], limit: float = DEFAULT_LIMIT) -> None:
        """`joints`: the joint of each node, in joint order."""
        self._joints = dict(joints)
        self._limit = limit
        self.boards = {node: BoardTally() for node in joints}

    def add(self, frame: Frame) -> bool:
        """Count a frame; False when it is a duplicate, damaged or from no board of this recording."""
        board = self.boards.get(frame.node)
        return board.add(frame) if board else False

    def add_noise(self, node: int) -> None:
        """Count bytes on this node's port that were no frame."""
        if node in self.boards:
            self.boards[node].bad_frames += 1

    def ledger(self) -> Ledger:
        """Draw up the ledger of all boards."""
        return Ledger(tuple(self.boards[node].ledger(node, self._joints[node]) for node in self._joints), self._limit)

    def waiting(self, opened: bool) -> Iterable[int]:
        """Nodes whose opening (or else closing) STATUS has not come yet."""
        return [node for node, board in self.boards.items() if not (board.opened if opened else board.closed)]
