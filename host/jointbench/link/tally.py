"""Counting frames as they come, so that the loss ledger can be drawn up at any moment."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from typing import cast

from jointbench.link.account import Account
from jointbench.link.ledger import DEFAULT_LIMIT, BoardLedger, Ledger
from jointwire import BodyError, Frame, MessageType, State
from jointwire.bodies import Data, Status

# How many frames may overtake another. A number further back is that of a board that started again.
_WINDOW = 128
_STREAMING = (State.ARMED, State.RUNNING)


@dataclass(frozen=True)
class Counts:
    """What was received of a board until now, and what was not, for those who look on; the ledger knows it better.

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
        except BodyError:
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
        """How it stands now; cheaper than a ledger."""
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
        """What the newest frame says of where the run stands, known before its turn in the account."""
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
                noise = sum(self._noise.pop(before, 0) for before in range(self._next - 1, index))
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

    def __init__(self, joints: Mapping[int, str], limit: float = DEFAULT_LIMIT) -> None:
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
        """How it stands now with each board, by node."""
        return {node: board.counts() for node, board in self.boards.items()}

    def ledger(self) -> Ledger:
        """Draw up the ledger of all boards."""
        return Ledger(tuple(self.boards[node].ledger(node, self._joints[node]) for node in self._joints), self._limit)

    def waiting(self, opened: bool) -> list[int]:
        """Nodes whose opening (or else closing) STATUS has not come yet."""
        return [node for node, board in self.boards.items() if not (board.opened if opened else board.closed)]
