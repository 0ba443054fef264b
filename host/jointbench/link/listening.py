"""Hearing what boards measure and how they answer while every motor is off: nothing of theirs is changed by it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from jointbench.errors import BenchLost, BoardError
from jointbench.link.board import Board
from jointbench.link.clock import Clock
from jointbench.link.ledger import BoardLedger
from jointbench.link.sync import Exchange
from jointbench.link.tally import BoardTally
from jointwire import Chunk, Frame, MessageType, stack_samples
from jointwire.bodies import Status

_STATUS_US = 2_500_000  # boards send one each second; two may be lost
_PAUSE_US = 40_000  # between two PINGs to a board: far more often than crystals change


@dataclass(frozen=True, eq=False)
class Heard:
    """What one board said while it was listened to.

    Attributes:
        ledger: what it sent, and what of it came.
        exchanges: answered PINGs.
        stamps: ticks and the board's clock exactly at them.
        columns: raw samples of each channel.
        status: its newest counters, None where no STATUS came.
    """

    ledger: BoardLedger
    exchanges: tuple[Exchange, ...]
    stamps: tuple[tuple[int, int], ...]
    columns: dict[str, NDArray[np.int32]]
    status: Status | None


def listen(boards: Sequence[Board], clock: Clock, seconds: float) -> dict[str, Heard]:
    """Let greeted boards stream for a while; those that share a line one after the other, as it carries one for sure.

    Args:
        boards: with this host's schema, and with no motor that may be driven.
        clock: the target's time.
        seconds: of the target's time, for the boards of a round.

    Returns:
        What each board said, by joint; a board that is lost meanwhile is left out.

    Raises:
        BenchLost: the virtual bench has ended.
    """
    ports = dict.fromkeys(board.port for board in boards)
    lines = ([board for board in boards if board.port is port] for port in ports)
    heard: dict[str, Heard] = {}
    for turn in zip_longest(*lines):
        heard |= _listen_together([board for board in turn if board is not None], clock, seconds)
    return {board.joint: heard[board.joint] for board in boards if board.joint in heard}


class _Ear:
    """Takes what comes from one board."""

    def __init__(self, board: Board) -> None:
        self.board = board
        self.tally = BoardTally()
        self.exchanges: list[Exchange] = []
        self.samples: list[Frame] = []
        self.statuses: list[Frame] = []
        self.was_on = int(board.facts.registers["stream.always"]) if board.facts else 0
        board.listen(self.take)

    def take(self, time_us: int, node: int, chunk: Chunk) -> None:
        frame = chunk.content
        if not isinstance(frame, Frame):
            self.tally.add_noise()
        elif frame.node == self.board.node and self.tally.add(frame):
            if frame.type is MessageType.DATA:
                self.samples.append(frame)
            elif frame.type is MessageType.STATUS:
                self.statuses.append(frame)

    def heard(self) -> Heard:
        return Heard(
            self.tally.ledger(self.board.node, self.board.joint),
            tuple(self.exchanges),
            tuple((frame.body.tick, frame.time_us) for frame in self.statuses),
            stack_samples(self.samples) if self.samples else {},
            self.statuses[-1].body if self.statuses else None,
        )


def _listen_together(boards: Sequence[Board], clock: Clock, seconds: float) -> dict[str, Heard]:
    ears = [_Ear(board) for board in boards]
    try:
        _stream(ears, 0)
        _wait(ears, clock, "opened")
        _stream(ears, 1)
        end_us = clock.now_us() + round(1e6 * seconds)
        while clock.now_us() < end_us:
            for ear in ears:
                with suppress(BoardError):
                    ear.exchanges.append(ear.board.ping())
            pause_us = min(clock.now_us() + _PAUSE_US, end_us)
            while (left := pause_us - clock.now_us()) > 0:
                clock.wait(left)
        _stream(ears, 0)
        _wait(ears, clock, "closed")
    finally:
        for ear in ears:
            ear.board.listen(None)
            with suppress(BoardError, BenchLost):
                ear.board.write_register("stream.always", ear.was_on)
    return {ear.board.joint: ear.heard() for ear in ears if not ear.board.why_lost}


def _stream(ears: Sequence[_Ear], on: int) -> None:
    """Let all boards stream, or none; one that does not do it is heard by its silence."""
    for ear in ears:
        with suppress(BoardError):
            ear.board.write_register("stream.always", on)


def _wait(ears: Sequence[_Ear], clock: Clock, what: str) -> None:
    """Wait for the STATUS of each board that opens or closes its account."""
    deadline = clock.now_us() + _STATUS_US
    while not all(getattr(ear.tally, what) for ear in ears) and (left := deadline - clock.now_us()) > 0:
        clock.wait(left)
