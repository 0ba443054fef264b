"""One motion of all boards of an emulated bench: what was recorded of it, how fast it went, and what it took."""

from __future__ import annotations

import os
import shutil
import time
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jointbench.link import Bench
from jointbench.link.ledger import Ledger
from jointbench.link.playback import ProgressCallback
from jointbench.link.sync import Exchange
from jointbench.link.trajectory import Trajectory
from jointbench.recording import Recorder
from tools.machine import parent_of, processor_seconds, resident_bytes

_WORD = 1 << 32


@dataclass(frozen=True)
class Share:
    """Something of host, bench and boards each: cores that they kept busy, or bytes that they hold."""

    host: float
    bench: float
    boards: float

    def to_dict(self) -> dict[str, float]:
        """The shares by who has them."""
        return {"host": self.host, "bench": self.bench, "boards": self.boards}


class Processes:
    """The processes of an emulated bench: this one is the host, the bench's started those of the boards."""

    def __init__(self, live: Path) -> None:
        """Find them by the live bench file."""
        entries = tomllib.loads(live.read_text(encoding="utf-8"))["board"]
        self._boards = [int(entry["pid"]) for entry in entries]
        self._bench = parent_of(self._boards[0])

    def processor_seconds(self) -> Share:
        """Processor time used so far [s]."""
        boards = sum(processor_seconds(pid) for pid in self._boards)
        return Share(processor_seconds(os.getpid()), processor_seconds(self._bench), boards)

    def resident_bytes(self) -> Share:
        """Memory that is in RAM."""
        boards = sum(resident_bytes(pid) for pid in self._boards)
        return Share(resident_bytes(os.getpid()), resident_bytes(self._bench), boards)


@dataclass(frozen=True)
class Session:
    """A motion that was played and recorded.

    Attributes:
        rate: ticks of the slowest board in a second of the target's time [1/s].
        target_s, wall_s: how long it took, by the target's time and by the wall clock.
        ledger: of the recording.
        cores: that host, bench and boards kept busy.
    """

    rate: float
    target_s: float
    wall_s: float
    ledger: Ledger
    cores: Share

    @property
    def open_ledgers(self) -> int:
        """Boards whose ledgers do not close."""
        return sum(not board.closes for board in self.ledger.boards)

    def to_dict(self) -> dict[str, Any]:
        """The session as plain values."""
        return {
            "rate_Hz": self.rate,
            "target_s": self.target_s,
            "wall_s": self.wall_s,
            "samples_received": self.ledger.samples_received,
            "lost": lost_by_cause(self.ledger),
            "open_ledgers": self.open_ledgers,
            "cores": self.cores.to_dict(),
        }


def play(
    bench: Bench,
    motion: Trajectory,
    repeats: int,
    directory: Path,
    processes: Processes,
    progress: ProgressCallback | None = None,
    *,
    keep: bool = False,
) -> Session:
    """Play and record a motion on a configured bench; the recording stays where something was lost, or told to `keep`.

    Raises:
        JointbenchError: as `Bench.play`.
    """
    bench.move_to(motion.evaluate(np.zeros(1))[0][0])
    pings, spent, began = _ping(bench), processes.processor_seconds(), time.monotonic()
    start_us = bench.clock.now_us()
    ledger = bench.play(motion, repeats, Recorder(directory, bench.provenance(repeats=repeats)), progress)
    assert ledger is not None  # a recording has one
    wall_s, used = time.monotonic() - began, processes.processor_seconds()
    target_s = 1e-6 * (bench.clock.now_us() - start_us)
    rates = [_rate(before, after) for before, after in zip(pings, _ping(bench), strict=True)]
    cores = Share(*[(after - before) / wall_s for before, after in zip(_parts(spent), _parts(used), strict=True)])
    session = Session(min(rates), target_s, wall_s, ledger, cores)
    if not keep and ledger.closes and not ledger.samples_lost:
        shutil.rmtree(directory)
    return session


def lost_by_cause(ledger: Ledger) -> dict[str, int]:
    """Samples that all boards lost: damaged or gone on the line, dropped by the board, of ticks it missed, unknown."""
    boards = ledger.boards
    return {
        "damaged": sum(board.crc_lost for board in boards),
        "vanished": sum(board.link_lost for board in boards),
        "dropped": sum(board.board_dropped for board in boards),
        "ticks_missed": sum(board.ticks_missed for board in boards),
        "unexplained": sum(abs(board.unexplained) for board in boards),
    }


def _ping(bench: Bench) -> list[Exchange]:
    return [board.ping() for board in bench.all_boards]


def _rate(before: Exchange, after: Exchange) -> float:
    """Ticks a second between two exchanges; where in its tick a board answers is the same for both."""
    return ((after.tick - before.tick) % _WORD) / (1e-6 * (after.received_us - before.received_us))


def _parts(share: Share) -> Sequence[float]:
    return share.host, share.bench, share.boards
