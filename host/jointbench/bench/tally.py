"""Frames of each board counted as they come: its account, from which the loss ledger is drawn up at any moment.

Two witnesses are held against each other. The board says in each STATUS how many frames it had sent, and how many
samples it had taken and dropped; it closes its block first, so that all of these were sent before the STATUS. The host
counts the frames and samples it received, the sequence numbers it misses, and the ticks between neighbouring blocks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import cast

from jointbench.bench.ledger import DEFAULT_LOSS_LIMIT, BoardLedger, Ledger
from jointwire import Frame, FrameError, MessageType, State
from jointwire.bodies import Data, Status

LARGEST_BLOCK = 64  # samples a frame holds at most: the upper bound of register stream.block
_STREAMING = (State.ARMED, State.RUNNING)
_SEQUENCES = 1 << 16
_HALF = 1 << 31
# How many frames may overtake another. A number further back is that of a board that started again.
_WINDOW = 128


@dataclass(frozen=True)
class _Gap:
    """Missing frames in a row, how many of them left something behind, and how many samples they held at most."""

    frames: int
    damaged: int
    samples: int


class Account:
    """Running sums over a board's frames in the order of their sequence numbers; every STATUS closes a segment.

    Attributes:
        received, damaged, vanished: frames since the opening STATUS.
        samples: received.
        stray: byte strings that were no frame, where none is missing.
        restarted: whether the board started again in between.
    """

    def __init__(self) -> None:
        """Nothing yet."""
        self.received: int = 0
        self.damaged: int = 0
        self.vanished: int = 0
        self.samples: int = 0
        self.stray: int = 0
        self.restarted: bool = False
        self._opening: Status | None = None
        self._newest: Status | None = None
        self._before_newest = (0, 0, 0)  # received, damaged, vanished
        self._ended = False  # the newest STATUS says that nothing streams, and no block came after it
        self._crc_lost = self._link_lost = self._unexplained = 0  # samples, of the segments closed
        self._end: int | None = None  # tick after the newest block; None before the first one and after a pause
        self._lost_at_end = 0  # frames missing until then
        self._holes = 0  # ticks missing between neighbouring blocks
        # Of the open segment:
        self._segment_samples = 0
        self._run = (0, 0)  # frames missing in a row, and damaged among them, since the last block or STATUS
        self._inside: tuple[_Gap, ...] = ()  # between two blocks
        self._edge: tuple[_Gap, ...] = ()  # before the first block or after the last

    def miss(self, frames: int, noise: int) -> None:
        """Frames are missing here, and `noise` byte strings that were no frame stand in their place."""
        damaged = min(frames, noise)
        self.damaged += damaged
        self.vanished += frames - damaged
        self.stray += noise - damaged
        self._run = (self._run[0] + frames, self._run[1] + damaged)

    def block(self, first_tick: int, count: int) -> None:
        """A DATA frame with these ticks was received."""
        hole = None if self._end is None else _since(first_tick, self._end)
        if hole is not None and hole < 0:
            self.restarted, hole = True, None
        if hole:
            missing = self.damaged + self.vanished - self._lost_at_end
            if not missing or hole <= missing * LARGEST_BLOCK:  # else it is a pause whose STATUS is missing
                self._holes += hole
        self._end_gap(hole if self._segment_samples else None)
        self._end = first_tick + count
        self._lost_at_end = self.damaged + self.vanished
        self.samples += count
        self._segment_samples += count
        self.received += 1
        self._ended = False

    def status(self, status: Status) -> None:
        """A STATUS frame was received."""
        self._end_gap(None)
        if self._opening is None and not self.samples:
            self._opening = status
            self.received = self.damaged = self.vanished = 0
        elif self._opening and self._newest:
            self._close_segment(self._opening, self._newest, status)
        self._segment_samples, self._inside, self._edge = 0, (), ()
        self._newest, self._before_newest = status, (self.received, self.damaged, self.vanished)
        self._ended = status.state not in _STREAMING
        if self._ended:
            self._end = None
        self.received += 1

    def other(self) -> None:
        """A frame of any other kind was received."""
        self.received += 1

    @property
    def samples_missing(self) -> int:
        """Ticks missing so far between blocks that were received, whatever lost them."""
        return self._holes

    def ledger(self, node: int, joint: str, duplicates: int) -> BoardLedger:
        """The ledger up to here."""
        opening, newest = self._opening, self._newest
        fault = self._incomplete()
        crc_lost, link_lost, unexplained = self._crc_lost, self._link_lost, self._unexplained
        received, damaged, vanished = self._before_newest
        dropped = missed = bad = unexplained_frames = 0
        sent: int | None = None
        taken: int | None = None
        if opening and newest:
            dropped = _since(newest.samples_dropped, opening.samples_dropped)
            missed = _since(newest.ticks_missed, opening.ticks_missed)
            bad = _since(newest.bad_frames, opening.bad_frames)
        if opening and newest and not fault:
            sent = _since(newest.frames_sent, opening.frames_sent)
            taken = _since(newest.samples_taken, opening.samples_taken)
            unexplained_frames = sent - received - damaged - vanished
            unexplained += min(crc_lost + link_lost + dropped + missed - self._holes, 0)
            fault = _contradiction(sent, unexplained_frames, taken, unexplained)
        else:
            received, damaged, vanished = self.received, self.damaged, self.vanished
            crc, link = _shares(sum(gap.samples for gap in self._inside), self._inside)
            crc_lost, link_lost = crc_lost + crc, link_lost + link
        return BoardLedger(
            node=node, joint=joint, fault=fault,
            frames_sent=sent, frames_received=received, frames_damaged=damaged, frames_vanished=vanished,
            samples_taken=taken, samples_received=self.samples, crc_lost=crc_lost, link_lost=link_lost,
            board_dropped=dropped, ticks_missed=missed, unexplained_frames=unexplained_frames, unexplained=unexplained,
            duplicates=duplicates, stray=self.stray, requests_damaged=bad,
        )  # fmt: skip

    def _end_gap(self, hole: int | None) -> None:
        """The frames missing in a row end here; `hole` ticks are missing between the blocks around them."""
        (frames, damaged), self._run = self._run, (0, 0)
        if frames and hole is not None:
            self._inside += (_Gap(frames, damaged, min(hole, frames * LARGEST_BLOCK)),)
        elif frames:
            self._edge += (_Gap(frames, damaged, frames * LARGEST_BLOCK),)

    def _close_segment(self, opening: Status, last: Status, status: Status) -> None:
        """Hold what the board says of the time since its last STATUS against what was received in it."""
        self.restarted |= _since(status.frames_sent, last.frames_sent) < 0
        n_found = self.received + self.damaged + self.vanished
        hidden = _since(status.frames_sent, opening.frames_sent) - n_found
        if hidden > 0 and hidden % _SEQUENCES == 0:  # a gap longer than 16 bits can tell
            self.miss(hidden, 0)
            self._end_gap(None)
        taken = _since(status.samples_taken, last.samples_taken)
        lost = taken - _since(status.samples_dropped, last.samples_dropped) - self._segment_samples
        inside = min(max(lost, 0), sum(gap.samples for gap in self._inside))
        edge = min(max(lost, 0) - inside, sum(gap.samples for gap in self._edge))
        self._unexplained += lost - inside - edge
        for share, gaps in ((inside, self._inside), (edge, self._edge)):
            crc_lost, link_lost = _shares(share, gaps)
            self._crc_lost += crc_lost
            self._link_lost += link_lost

    def _incomplete(self) -> str:
        if self.restarted:
            return "the board started again during the run"
        if self._opening is None:
            return "no STATUS before the first sample" if self.received else "nothing was received"
        if not self._ended:
            return "no STATUS after the last sample"
        return ""


def _shares(lost: int, gaps: Sequence[_Gap]) -> tuple[int, int]:
    """Samples lost in damaged and in vanished frames: in proportion, where a gap holds both."""
    most = sum(gap.samples for gap in gaps)
    damaged = round(lost * sum(gap.samples * gap.damaged / gap.frames for gap in gaps) / most) if most else 0
    return damaged, lost - damaged


def _contradiction(sent: int, unexplained_frames: int, taken: int, unexplained: int) -> str:
    faults: list[str] = []
    if unexplained_frames:
        faults.append(f"{sent} frames sent, but received and missing make {sent - unexplained_frames}")
    if unexplained:
        faults.append(f"{taken} samples taken, but received and lost make {taken - unexplained}")
    return "; ".join(faults)


def _since(counter: int, before: int) -> int:
    """Difference of two 32-bit counters, negative for one that fell."""
    return (counter - before + _HALF & 0xFFFFFFFF) - _HALF


@dataclass(frozen=True)
class Counts:
    """Samples received and lost of a board until now, for those who look on; the ledger knows it better.

    Attributes:
        samples: received.
        samples_lost: ticks missing between blocks that were received.
        frames_bad: byte strings that were no frame.
    """

    samples: int
    samples_lost: int
    frames_bad: int


class BoardTally:
    """Puts a board's frames in the order they were sent, leaves duplicates out, and keeps the board's account.

    Frames wait for their turn only while one before them is missing, so that counting costs nothing extra on a line
    that loses nothing, and drawing up the ledger costs at most `_WINDOW` frames.
    """

    def __init__(self) -> None:
        """Nothing received yet."""
        self.opened: bool = False
        """Whether a STATUS came before the first sample."""
        self.closed: bool = False
        """Whether a STATUS says that streaming has ended, and no sample came after it."""
        self._account = Account()
        self._duplicates = 0
        self._sequence = 0  # of the newest frame, as it stood in its header
        self._newest = -1  # the same, counted on past 16 bits from 0 for the first frame
        self._next = 0  # whose turn it is in the account
        self._waiting: dict[int, Data | Status | None] = {}  # frames that came before their turn
        self._noise: dict[int, int] = {}  # byte strings that were no frame, by the newest frame when they came
        self._stamps = [-1 << 63] * _WINDOW  # index and time of the newest frames: what comes again has both
        self._streamed = False

    def add(self, frame: Frame) -> bool:
        """Count a frame; False when it came before, came too late or is damaged, and must be left out."""
        content: Data | Status | None = None
        try:
            if frame.type is MessageType.DATA:
                content = cast(Data, frame.body)
            elif frame.type is MessageType.STATUS:
                content = cast(Status, frame.body)
        except FrameError:
            self.add_noise()
            return False
        index = self._place(frame)
        if index is None:
            self._duplicates += 1
            return False
        if index == self._newest:
            self._note(content)
        self._waiting[index] = content
        self._settle(everything=False)
        return True

    def add_noise(self) -> None:
        """Count bytes that were no frame."""
        self._noise[self._newest] = self._noise.get(self._newest, 0) + 1

    def ledger(self, node: int, joint: str) -> BoardLedger:
        """Draw up the ledger of everything counted so far."""
        now = copy(self)
        now._account, now._waiting, now._noise = copy(self._account), dict(self._waiting), dict(self._noise)
        now._settle(everything=True)
        now._account.stray += sum(now._noise.values())
        return now._account.ledger(node, joint, self._duplicates)

    @property
    def frames_lost(self) -> int:
        """Frames missing so far, for those who only want to show it."""
        waiting = self._newest + 1 - self._next - len(self._waiting)
        return self._account.damaged + self._account.vanished + waiting

    def counts(self) -> Counts:
        """Counts until now; cheaper than a ledger."""
        account = self._account
        bad = account.damaged + account.stray + sum(self._noise.values())
        return Counts(account.samples, account.samples_missing, bad)

    def _place(self, frame: Frame) -> int | None:
        """Index of a frame in the order of sending; None for one that was there already or was given up."""
        step = (frame.seq - self._sequence + 0x8000 & 0xFFFF) - 0x8000 if self._newest >= 0 else 1
        index = self._newest + step
        slot = self._stamps[index % _WINDOW]
        if step <= -_WINDOW or (step <= 0 and slot >> 32 == index and slot & 0xFFFFFFFF != frame.time_us):
            self._settle(everything=True)
            self._account.restarted = True
            step, index = 1, self._newest + 1
        elif step <= 0 and (slot >> 32 == index or index < self._next):
            return None
        if step > 0:
            self._sequence, self._newest = frame.seq, index
        self._stamps[index % _WINDOW] = index << 32 | frame.time_us
        return index

    def _note(self, content: Data | Status | None) -> None:
        """Take from the newest frame where the run stands, before its turn in the account."""
        if isinstance(content, Status):
            self.opened |= not self._streamed
            self.closed = content.state not in _STREAMING
        elif content is not None:
            self._streamed, self.closed = True, False

    def _settle(self, everything: bool) -> None:
        """Enter the frames whose turn it is, and give up those that were missing for too long."""
        while self._waiting:
            index = self._next
            if index not in self._waiting:
                if not everything and self._newest - index < _WINDOW:
                    return
                index = min(self._waiting)
            if self._noise or index > self._next:
                noise = sum(self._noise.pop(index_before, 0) for index_before in range(self._next - 1, index))
                self._account.miss(index - self._next, noise)
            content = self._waiting.pop(index)
            if content is None:
                self._account.other()
            elif isinstance(content, Status):
                self._account.status(content)
            else:
                self._account.block(content.first_tick, content.count)
            self._next = index + 1


class Tally:
    """The boards' tallies of one recording, by node."""

    def __init__(self, joints: Mapping[int, str], limit: float = DEFAULT_LOSS_LIMIT) -> None:
        """`joints`: the joint of each node, in joint order."""
        self._joints = dict(joints)
        self._limit = limit
        self.boards: dict[int, BoardTally] = {node: BoardTally() for node in joints}

    def add(self, frame: Frame) -> bool:
        """Count a frame; False when it is a duplicate, damaged or from no board of this recording."""
        board = self.boards.get(frame.node)
        return board.add(frame) if board else False

    def add_noise(self, node: int) -> None:
        """Count bytes that were no frame, on this node's port or in its turn on a shared line."""
        if node in self.boards:
            self.boards[node].add_noise()

    @property
    def frames_lost(self) -> int:
        """Frames of all boards missing so far; cheaper than a ledger."""
        return sum(board.frames_lost for board in self.boards.values())

    def counts(self) -> dict[int, Counts]:
        """Counts of each board until now, by node."""
        return {node: board.counts() for node, board in self.boards.items()}

    def ledger(self) -> Ledger:
        """Draw up the ledger of all boards."""
        return Ledger(tuple(self.boards[node].ledger(node, self._joints[node]) for node in self._joints), self._limit)

    def waiting(self, opened: bool) -> list[int]:
        """Nodes whose opening (or else closing) STATUS has not come yet."""
        return [node for node, board in self.boards.items() if not (board.opened if opened else board.closed)]
