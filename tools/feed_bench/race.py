"""The same recording with nobody, one and three that look on, in turns."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.wire_bench.host_cost import measure, played, record_boards

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Recorded:
    """One recording of twelve boards at 1 kHz.

    Attributes:
        readers: how many looked on.
        cpu: what the recording process used, as a fraction of one core.
        lost: samples.
        rates: states that each of them had [1/s].
    """

    readers: int
    cpu: float
    lost: int
    rates: tuple[float, ...]


def race(folder: Path, crowds: Sequence[int], rounds: int, seed: int) -> Iterator[Recorded]:
    """Record the same boards with each number of readers, `rounds` times in turns.

    The boards are real ones' programs, recorded in lockstep once and played again in real time by another process.
    """
    runs = record_boards(folder, seed)
    for turn in range(rounds):
        for crowd in crowds:
            with Readers(crowd) as readers, played(runs) as entries:
                cost = measure(entries, folder / f"run-{turn}-{crowd}", look_on=readers.look_on)
            yield Recorded(crowd, cost.cpu, cost.ledger.samples_lost, readers.rates)


class Readers:
    """So many that look on, in a process of their own that has started when this is entered.

    Attributes:
        rates: states that each of them had [1/s], once they are done.
    """

    def __init__(self, number: int) -> None:
        """None has started."""
        self.rates: tuple[float, ...] = ()
        self._command = [sys.executable, "-P", "-m", "tools.feed_bench.readers", f"{number}"]

    @contextlib.contextmanager
    def look_on(self, socket: Path) -> Iterator[None]:
        """Look at the feed of this socket in the meantime; boards that are played wait for nobody's first look."""
        self._process.stdin.write(f"{socket}\n")
        self._process.stdin.flush()
        yield
        self._process.stdin.close()
        self.rates = tuple(json.loads(self._process.stdout.readline()))

    def __enter__(self) -> Readers:
        """Start the process."""
        self._process: Any = subprocess.Popen(
            self._command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._process.stdout.readline()
        return self

    def __exit__(self, *error: object) -> None:
        """End it."""
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()
