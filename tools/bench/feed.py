"""`./run bench feed`: what readers of a bench's live feed cost the program that records it.

`python -m tools.bench.feed N` is the N readers, in a process of their own, until its input ends: it prints a line once
it has started, reads one, the path of the socket, and prints at the end how many states a second each has had, as JSON.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from jointbench.bench import FeedClient
from jointbench.checks import Check, Result
from jointbench.cli.console import Console, table
from tools.bench.wire import measure, played, record_boards
from tools.machine import machine


@dataclass
class Reader:
    """One that looks on, and counts.

    Attributes:
        states: how many it has had, the first not counted.
        began_s, newest_s: when it had the first and the newest.
    """

    client: FeedClient
    states: int = -1
    began_s: float = 0.0
    newest_s: float = 0.0

    @property
    def rate(self) -> float:
        """States a second; 0 where it had one at most."""
        return self.states / (self.newest_s - self.began_s) if self.states > 0 else 0.0

    def read(self) -> None:
        """Count states until the feed ends or is hung up."""
        for line in self.client.lines():
            if line["kind"] == "state":
                self.states += 1
                self.newest_s = time.monotonic()
                if not self.states:
                    self.began_s = self.newest_s


def main() -> None:
    """Look on until standard input ends."""
    print("started", flush=True)
    path = Path(sys.stdin.readline().strip())
    readers = [Reader(FeedClient(path)) for _ in range(int(sys.argv[1]))]
    threads = [threading.Thread(target=reader.read) for reader in readers]
    for thread in threads:
        thread.start()
    sys.stdin.read()
    for reader, thread in zip(readers, threads, strict=True):
        reader.client.close()
        thread.join()
    print(json.dumps([reader.rate for reader in readers]))


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
        self._command = [sys.executable, "-P", "-m", "tools.bench.feed", f"{number}"]

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


CROWDS, ROUNDS = (0, 1, 3), 2
CPU_PERCENT = 15.0
RATE_HZ = 20.0


def bench(options: argparse.Namespace, console: Console) -> Result:
    """Record twelve boards in real time with nobody, one and three that look on, in turns."""
    console.say(f"12 boards (MicroPython), recorded {ROUNDS} times each with nobody, one and three that look on")
    recorded: list[Recorded] = []
    with tempfile.TemporaryDirectory(prefix="jointbench-") as name:
        for each in race(Path(name), CROWDS, ROUNDS, options.seed):
            recorded.append(each)
            console.progress(f"recording {len(recorded)} of {ROUNDS * len(CROWDS)}")
    console.say(feed_table(recorded))
    checks = make_checks(recorded)
    fields = {
        "recordings": [
            {"readers": each.readers, "cpu_percent": 100.0 * each.cpu, "lost": each.lost, "states_Hz": each.rates}
            for each in recorded
        ],
        "machine": machine(),
    }
    return Result("bench feed", options.seed, checks, fields)


def make_checks(recorded: Sequence[Recorded]) -> tuple[Check, ...]:
    """Checks against the limits; the peer is the same recording with nobody."""
    alone, crowd = (_cpu(recorded, readers) for readers in (min(CROWDS), max(CROWDS)))
    return (
        Check("samples lost", sum(each.lost for each in recorded), "==", 0),
        Check(f"one core used more with {max(CROWDS)} that look on", 100.0 * (crowd - alone), "<=", CPU_PERCENT, "%"),
        Check("states of each", min(rate for each in recorded for rate in each.rates), ">=", RATE_HZ, "/s"),
    )


def feed_table(recorded: Sequence[Recorded]) -> str:
    """A line for each number of readers: the median of the recordings, and all of them."""
    rows = [
        [
            f"{readers}",
            f"{100.0 * _cpu(recorded, readers):.2f}",
            " ".join(f"{100.0 * each.cpu:.2f}" for each in recorded if each.readers == readers),
            " ".join(f"{rate:.1f}" for each in recorded if each.readers == readers for rate in each.rates) or "–",
            f"{sum(each.lost for each in recorded if each.readers == readers)}",
        ]
        for readers in CROWDS
    ]
    return table(("look on", "of one core [%]", "each recording", "states of each [/s]", "samples lost"), rows)


def _cpu(recorded: Sequence[Recorded], readers: int) -> float:
    return median(each.cpu for each in recorded if each.readers == readers)


if __name__ == "__main__":
    main()
