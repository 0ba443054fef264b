"""Six boards by the wall clock: the highest rate at which nothing is lost, and what gives way beyond it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hil_tests.virtual_bench import virtual_bench
from hil_tests.virtual_bench.bench import BEHIND
from jointbench.bench import Ledger, open_bench
from jointbench.checks import Check
from jointbench.cli.console import Console
from jointbench.cli.run import progress_line
from jointbench.errors import JointbenchError
from jointbench.recording import RESULT
from jointbench.testing.requirements import Requirements
from tools.load.lockstep import PERIOD_S, Processes, Session, lost_by_cause, play, wave, write_variation

TICKS_US = (2000, 1000, 800, 625, 500, 400, 320, 250, 200, 125)
SAMPLE_EVERY = (1, 2, 4, 8, 16)
TRIES = 3
"""Of a rate that does not hold: what else the machine does can only take away."""
_SLIPS = re.compile(rf"^{BEHIND} by ([0-9.]+) s", re.MULTILINE)


@dataclass(frozen=True)
class Attempt:
    """Six boards at one rate.

    Attributes:
        tick_us, sample_every: what was asked for.
        session: what came of it; None where an error ended it.
        ledger: of what was recorded, also until an error; None where nothing was.
        behind_s: by how much the bench fell behind the wall clock in all.
        error: what ended it, empty where nothing did.
        tries: of which this is the last.
    """

    tick_us: int
    sample_every: int
    session: Session | None
    ledger: Ledger | None
    behind_s: float
    error: str = ""
    tries: int = 1

    @property
    def rate(self) -> float:
        """Ticks asked for in a second [Hz]."""
        return 1e6 / self.tick_us

    @property
    def holds(self) -> bool:
        """True if the run came to its end in real time and without a loss."""
        ledger = self.session and self.session.ledger
        return ledger is not None and ledger.closes and not ledger.samples_lost and not self.behind_s

    @property
    def is_silent(self) -> bool:
        """True if the run came to its end, and something is missing that no cause is named for."""
        return self.session is not None and self.session.open_ledgers > 0

    def to_dict(self) -> dict[str, Any]:
        """The attempt as plain values."""
        return {
            "asked_Hz": self.rate,
            "sample_every": self.sample_every,
            "holds": self.holds,
            "tries": self.tries,
            "behind_s": self.behind_s,
            "error": self.error,
            "lost": lost_by_cause(self.ledger) if self.ledger else None,
            **(self.session.to_dict() if self.session else {}),
        }


@dataclass(frozen=True)
class Speeds:
    """Attempts at rising rates, and at the first that did not hold with fewer samples sent."""

    by_rate: tuple[Attempt, ...]
    by_samples: tuple[Attempt, ...]

    @property
    def highest_rate(self) -> float:
        """The highest rate that holds, as all below it do [Hz]; 0 where the lowest does not."""
        return highest_rate(self.by_rate)

    def checks(self, requirements: Requirements) -> list[Check]:
        """That the usual rate holds, and that no loss is without a cause at any rate."""
        silent = sum(each.is_silent for each in (*self.by_rate, *self.by_samples))
        return [
            requirements["load.realtime_rate"].check(self.highest_rate),
            requirements["load.realtime_unaccounted"].check(silent),
        ]

    def to_dict(self) -> dict[str, Any]:
        """All attempts as plain values."""
        return {
            "highest_rate_Hz": self.highest_rate,
            "by_rate": [each.to_dict() for each in self.by_rate],
            "by_samples": [each.to_dict() for each in self.by_samples],
        }


def highest_rate(attempts: Sequence[Attempt]) -> float:
    """The highest rate that holds, as all below it do [Hz]; 0 where the lowest does not."""
    highest = 0.0
    for attempt in sorted(attempts, key=lambda each: each.rate):
        if not attempt.holds:
            break
        highest = attempt.rate
    return highest


def find_speeds(out: Path, seconds: float, seed: int, console: Console) -> Speeds:
    """Try rising rates, then the first that does not hold with every second, fourth … sample.

    Up to that rate, and at it, each gets three tries; the rates above show how it degrades, and get one.
    """

    def attempt(tick_us: int, every: int, tries: int) -> Attempt:
        for number in range(1, tries):
            found = _attempt(out, tick_us, every, number, seconds, seed, console)
            if found.holds:
                return found
        return _attempt(out, tick_us, every, tries, seconds, seed, console)

    by_rate: list[Attempt] = []
    for tick_us in TICKS_US:
        by_rate.append(attempt(tick_us, 1, TRIES if all(each.holds for each in by_rate) else 1))
    first = next((each for each in by_rate if not each.holds), by_rate[-1])
    fewer = [attempt(first.tick_us, every, TRIES) for every in SAMPLE_EVERY[1:]]
    return Speeds(tuple(by_rate), (first, *fewer))


def _attempt(
    out: Path, tick_us: int, sample_every: int, number: int, seconds: float, seed: int, console: Console
) -> Attempt:
    folder = out / f"{tick_us}_us_every_{sample_every}_try_{number}"
    bench_file = write_variation(folder, tick_us=tick_us, sample_every=sample_every)
    what = f"{1e6 / tick_us:.0f} Hz, samples of every {sample_every}"
    session, error = None, ""
    log, run = folder / "sim" / "bench.log", folder / "run"
    with virtual_bench(bench_file, "ideal", seed, realtime=True, out=folder / "sim", board="unix:") as live:
        try:
            with open_bench(live) as bench:
                bench.connect()
                bench.configure()
                processes, repeats = Processes(live), math.ceil(seconds / PERIOD_S)
                session = play(bench, wave(bench), repeats, run, processes, progress_line(console, what))
        except JointbenchError as trouble:
            error = str(trouble)
        behind_s = sum(float(each) for each in _SLIPS.findall(log.read_text(encoding="utf-8")))
    ledger = session.ledger if session else _ledger_of(run / RESULT)
    attempt = Attempt(tick_us, sample_every, session, ledger, behind_s, error, number)
    console.say(f"real time: {what}: {_words(attempt)}")
    return attempt


def _ledger_of(result: Path) -> Ledger | None:
    """What a recording that an error ended says of its losses; None where it had not begun."""
    if not result.exists():
        return None
    return Ledger.from_dict(json.loads(result.read_text(encoding="utf-8"))["ledger"])


def _words(attempt: Attempt) -> str:
    if attempt.session is None:
        return attempt.error
    word = "holds" if attempt.holds else "does not hold"
    return (
        f"{word}: {attempt.session.rate:.1f} ticks/s, {attempt.behind_s:.2f} s behind, {attempt.session.ledger.verdict}"
    )
