"""Six boards for an hour of virtual time: nothing lost, memory flat on host and boards, clocks aligned throughout."""

from __future__ import annotations

import gc
import math
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from hil_tests.virtual_bench import virtual_bench
from jointbench.arrays import Array
from jointbench.bench import Bench, BoardClock, open_bench
from jointbench.checks import Check
from jointbench.cli.console import Console
from jointbench.errors import BoardSilent
from jointbench.recording import open_run
from jointbench.testing.requirements import Requirements
from jointwire import Chunk, Frame, MessageType
from tools.load.lockstep import HIL_TESTS, Processes, Session, Share, play, wave
from tools.truth import Truth, read_truth

_WARM_UP = 0.1  # share of the time in which buffers and caches fill
_SIDES = 0.975  # a 95 % interval, both ends of it


@dataclass(frozen=True)
class Trend:
    """A straight line through values over hours.

    Attributes:
        slope, half_width: per hour, and to both ends of its 95 % interval; NaN where there are too few values.
        least, most: of all values, those of the warm-up included.
        count: of values behind the line.
    """

    slope: float
    half_width: float
    least: float
    most: float
    count: int

    @property
    def growth(self) -> float:
        """The most it may grow per hour: the upper end of the slope's interval."""
        return self.slope + self.half_width

    @property
    def decline(self) -> float:
        """The most it may fall per hour: the lower end of the slope's interval, turned round."""
        return self.half_width - self.slope

    def to_dict(self) -> dict[str, float]:
        """The trend as plain values."""
        return {
            "slope_per_hour": self.slope,
            "half_width": self.half_width,
            "least": self.least,
            "most": self.most,
            "count": self.count,
        }


def trend(hours: Sequence[float], values: Sequence[float]) -> Trend:
    """The line of least squares through all but the first tenth of the time.

    Memory goes up in steps and stays: neighbours are alike, and say less than as many values by themselves. The
    interval is widened by sqrt((1 + r) / (1 - r)), r being how alike the residuals of neighbours are.
    """
    time, value = np.asarray(hours, dtype=float), np.asarray(values, dtype=float)
    least, most = (float(value.min()), float(value.max())) if len(value) else (math.nan, math.nan)
    used = time >= _WARM_UP * time.max(initial=0.0)
    time, value = time[used], value[used]
    count = len(time)
    if count < 4:
        return Trend(math.nan, math.nan, least, most, count)
    centred = time - time.mean()
    spread = float(centred @ centred)
    slope = float(centred @ value) / spread
    left = value - value.mean() - slope * centred
    power = float(left @ left)
    alike = max(0.0, float(left[1:] @ left[:-1]) / power) if power else 0.0
    sigma = math.sqrt(power / (count - 2) / spread * (1.0 + alike) / (1.0 - alike))
    return Trend(slope, float(stats.t.ppf(_SIDES, count - 2)) * sigma, least, most, count)


BENCH = HIL_TESTS / "benches" / "soak6.toml"
REPEATS = 14  # of the wave in a recording: about a minute
_STATUS_US = 1_200_000  # boards at rest send STATUS each second
_WORD = 2.0**32


@dataclass(frozen=True)
class Recorded:
    """A minute of the soak.

    Attributes:
        hours: of the target's time since the soak began, at its end.
        session: what was recorded.
        apart_us: how far the boards' clocks were from agreeing, at the worst.
        heap_free: of each board, as it last counted it at rest [bytes].
        resident: memory of host, bench and boards that is in RAM [bytes].
    """

    hours: float
    session: Session
    apart_us: float
    heap_free: tuple[int, ...]
    resident: Share


@dataclass(frozen=True)
class Soak:
    """All of it; it judges itself."""

    recorded: tuple[Recorded, ...]
    wall_s: float

    @property
    def hours(self) -> float:
        """Length in the target's time [h]."""
        return self.recorded[-1].hours if self.recorded else 0.0

    @property
    def samples_lost(self) -> int:
        """Total of all boards and recordings."""
        return sum(each.session.ledger.samples_lost for each in self.recorded)

    def trends(self) -> dict[str, Trend]:
        """Memory over time [bytes]: of host, bench and all boards, and what is free on the board that loses most."""
        hours = [each.hours for each in self.recorded]
        kinds = {kind: [getattr(each.resident, kind) for each in self.recorded] for kind in ("host", "bench", "boards")}
        resident = {kind: trend(hours, values) for kind, values in kinds.items()}
        free = [trend(hours, board) for board in zip(*[each.heap_free for each in self.recorded], strict=True)]
        return {**resident, "heap_free": max(free, key=lambda each: each.decline)}

    def checks(self, requirements: Requirements, whole: bool) -> list[Check]:
        """Checks against the limits; how long it was is held against the requirement only of a `whole` one."""
        trends = self.trends()
        values: Mapping[str, float] = {
            **({"load.soak_hours": self.hours} if whole else {}),
            "load.soak_lost": self.samples_lost,
            "load.soak_unaccounted": sum(each.session.open_ledgers for each in self.recorded),
            "load.clocks_apart": max(each.apart_us for each in self.recorded),
            "load.host_growth": 1e-6 * trends["host"].growth,
            "load.bench_growth": 1e-6 * trends["bench"].growth,
            "load.heap_decline": trends["heap_free"].decline,
        }
        return [requirements[id].check(value) for id, value in values.items()]

    def to_dict(self) -> dict[str, Any]:
        """The soak as plain values, with what it saw minute by minute."""
        return {
            "hours": self.hours,
            "wall_s": self.wall_s,
            "samples_received": sum(each.session.ledger.samples_received for each in self.recorded),
            "samples_lost": self.samples_lost,
            "clocks_apart_us": max(each.apart_us for each in self.recorded),
            "trends": {name: each.to_dict() for name, each in self.trends().items()},
            "minutes": [
                {
                    "hours": each.hours,
                    "apart_us": each.apart_us,
                    "heap_free": each.heap_free,
                    "resident": each.resident.to_dict(),
                }
                for each in self.recorded
            ],
        }


def soak(out: Path, hours: float, seed: int, console: Console) -> Soak:
    """Have six boards play and stream, recorded minute by minute; a recording stays where something was lost."""
    began = time.monotonic()
    recorded: list[Recorded] = []
    with virtual_bench(BENCH, "ideal", seed, out=out / "sim", board="unix:") as live:
        truth, processes = read_truth(live), Processes(live)
        with open_bench(live) as bench:
            bench.connect()
            bench.configure()
            start_us = bench.clock.now_us()
            while not recorded or recorded[-1].hours < hours:
                recorded.append(_minute(bench, out / f"run-{len(recorded)}", processes, truth, start_us))
                _say(recorded, hours, began, console)
    return Soak(tuple(recorded), time.monotonic() - began)


def _minute(bench: Bench, directory: Path, processes: Processes, truth: Truth, start_us: int) -> Recorded:
    from_us = bench.clock.now_us()
    session = play(bench, wave(bench), REPEATS, directory, processes, keep=True)
    between = np.linspace(from_us, bench.clock.now_us(), 50)
    run = open_run(directory)
    apart_us = clocks_apart_us(run.clocks, truth, between)
    if not run.ledger or not run.ledger.samples_lost:
        shutil.rmtree(directory)
    heap_free = _heap_free(bench)
    del run
    gc.collect()
    hours = (bench.clock.now_us() - start_us) / 3.6e9
    return Recorded(hours, session, apart_us, heap_free, processes.resident_bytes())


def clocks_apart_us(clocks: Mapping[str, BoardClock], truth: Truth, times_us: Array) -> float:
    """The most that two boards' clocks are apart at any of these host times, by how they really run [µs].

    Args:
        clocks: as they were found, by joint.
        truth: of the bench; its time is the host's.
        times_us: of the host, shape (n,).
    """
    errors: list[Array] = []
    for joint, clock in clocks.items():
        known = truth[joint]["clock"]
        really = known["offset_us"] + np.multiply(times_us, 1.0 + 1e-6 * known["ppm"])
        # A board says 32 bits of its clock: which of them it began with is not told, and does not matter.
        errors.append((clock.board_us(times_us) - really + _WORD / 2.0) % _WORD - _WORD / 2.0)
    return float(np.ptp(errors, axis=0).max())


def _heap_free(bench: Bench) -> tuple[int, ...]:
    """What each board says is free of its memory, in its next STATUS [bytes]."""
    heard: dict[int, int] = {}

    def note(node: int, _time_us: int, _node: int, chunk: Chunk) -> None:
        if isinstance(chunk.content, Frame) and chunk.content.type is MessageType.STATUS:
            heard[node] = chunk.content.body.heap_free

    for board in bench.all_boards:
        board.listen(partial(note, board.node))
    deadline = bench.clock.now_us() + _STATUS_US
    while (left := deadline - bench.clock.now_us()) > 0:
        bench.clock.wait(left)
    for board in bench.all_boards:
        board.listen(None)
    for board in bench.all_boards:
        if board.node not in heard:
            raise BoardSilent(board.joint, board.node, f"sent no STATUS within {_STATUS_US / 1e6:g} s while at rest")
    return tuple(heard[board.node] for board in bench.all_boards)


def _say(recorded: Sequence[Recorded], hours: float, began: float, console: Console) -> None:
    last, lost = recorded[-1], sum(each.session.ledger.samples_lost for each in recorded)
    console.say(
        f"soak: {60.0 * last.hours:.1f} of {60.0 * hours:.1f} min in {time.monotonic() - began:.0f} s, {lost} samples "
        f"lost, clocks {last.apart_us:.1f} µs apart, host {1e-6 * last.resident.host:.1f} MB, least free on a board "
        f"{min(last.heap_free)} bytes"
    )
