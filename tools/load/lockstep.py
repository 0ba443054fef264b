"""Many boards, and fast ticks, in virtual time: nothing may be lost, however long the machine takes for it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hil_tests.link_helpers import Wave
from hil_tests.virtual_bench import virtual_bench
from jointbench.checks import Check
from jointbench.cli.console import Console
from jointbench.cli.run import progress_line
from jointbench.link import Bench, open_bench
from jointbench.testing.requirements import Requirements
from tools.load.arms import write_arms
from tools.load.session import Processes, Session, play
from tools.load.variation import write_variation

PERIOD_S = 4.096
WAY_RAD = 0.2


@dataclass(frozen=True)
class Load:
    """A load that is to be carried: `boards` at `rate` [Hz], on the bench that `write` writes into a folder."""

    name: str
    boards: int
    rate: float
    write: Callable[[Path], Path]


LOADS = (
    Load("24 boards at 1 kHz", 24, 1000.0, lambda folder: write_arms(folder, 4)),
    Load("6 boards at 4 kHz", 6, 4000.0, lambda folder: write_variation(folder, tick_us=250)),
)


@dataclass(frozen=True)
class Carried:
    """A load and how it was carried: how many boards there were, and their session."""

    load: Load
    boards: int
    session: Session

    def to_dict(self) -> dict[str, Any]:
        """What was carried as plain values."""
        return {"name": self.load.name, "boards": self.boards, **self.session.to_dict()}


def carry_loads(out: Path, seconds: float, seed: int, console: Console) -> list[Carried]:
    """Play a motion of at least so many seconds of virtual time under each load."""
    return [_carry(load, out / f"{load.boards}_boards", seconds, seed, console) for load in LOADS]


def _carry(load: Load, out: Path, seconds: float, seed: int, console: Console) -> Carried:
    console.say(f"lockstep: {load.name}")
    live_bench = virtual_bench(load.write(out), "ideal", seed, out=out / "sim", board="unix:")
    with live_bench as live, open_bench(live) as bench:
        bench.connect()
        bench.configure()
        repeats = math.ceil(seconds / PERIOD_S)
        session = play(bench, wave(bench), repeats, out / "run", Processes(live), progress_line(console, load.name))
        carried = Carried(load, len(bench.boards), session)
    console.say(
        f"  {session.rate:.1f} ticks/s for {session.target_s:.1f} s in {session.wall_s:.1f} s, {session.ledger.verdict}"
    )
    return carried


def wave(bench: Bench) -> Wave:
    """There and back with every joint, from home, in about PERIOD_S: in a whole number of the boards' knot steps."""
    step = bench.facts[0].tick_period * bench.facts[0].knot_ticks
    period = step * round(PERIOD_S / step)
    return Wave(np.array(bench.robot.home), np.full(bench.robot.n_joints, WAY_RAD), period)


def checks(carried: list[Carried], requirements: Requirements) -> list[Check]:
    """That both loads were there, and nothing of them was lost."""
    by_name = {each.load.name: each for each in carried}
    many, fast = (by_name[load.name] for load in LOADS)
    return [
        requirements["load.many_boards"].check(many.boards),
        requirements["load.many_rate"].check(many.session.rate),
        requirements["load.fast_boards"].check(fast.boards),
        requirements["load.fast_rate"].check(fast.session.rate),
        requirements["load.lost"].check(sum(each.session.ledger.samples_lost for each in carried)),
        requirements["load.unaccounted"].check(sum(each.session.open_ledgers for each in carried)),
    ]
