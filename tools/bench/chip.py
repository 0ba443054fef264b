"""`./run bench chip`: what a turn of the main loop takes on the emulated RP2040 while it moves, streams and is asked.

KNOTS, ARM and START come over the line, all channels stream, and the host asks as it does in any recording. Times are
the chip's own and exact: the same seed gives the same figures on any machine. docs/hil.md says what the emulator leaves
out.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hil_tests.link_helpers import Wave
from hil_tests.pendulum import COBOT6_PLANT
from hil_tests.virtual_bench import virtual_bench
from jointbench.arrays import map_file
from jointbench.bench import open_bench
from jointbench.checks import Check, Result
from jointbench.cli.console import Console, table
from jointbench.recording import Recorder, RecordKind, open_run, read_records
from jointwire import Frame, FrameError, MessageType, State, decode_frame

PERIOD, WAY = 1.024, 0.03  # of the wave that is played over and over [s], [rad]
LIMITS_US = {1: (120, 300), 2: (250, 500)}  # of a turn by joints on the board: on average, at most
PINGS_PER_S = 8
LEAST_FREE = 16384  # bytes: 8192 that a board keeps for a trip, and 32 requests and answers while it is armed
_MOTORS = {1: 'node = 1\njoint = "j1"', 2: 'nodes = [1, 2]\njoints = ["j1", "j2"]'}


@dataclass(frozen=True)
class Turns:
    """Counts while the motor ran.

    Attributes:
        joints: on the board.
        tick_us: from tick to tick.
        seconds: RUNNING.
        mean_us, longest_us: from a tick's instant to the end of its turn.
        missed: ticks.
        late: samples that were taken more than 20 µs after their tick.
        lost: samples of those that were played, late ones included.
        lost_in_all: samples of the recording without one, by its ledger; HELLO, ARM and START are in it.
        late_in_all: samples of the recording that were taken more than 20 µs after their tick.
        pings: that were answered, by each node.
        bytes_per_s: of DATA bodies, of all nodes.
        collected: memory was, meanwhile.
        heap_free: bytes, when memory was last collected.
    """

    joints: int
    tick_us: int
    seconds: float
    mean_us: float
    longest_us: int
    missed: int
    late: int
    lost: int
    lost_in_all: int
    late_in_all: int
    pings: int
    bytes_per_s: float
    collected: bool
    heap_free: int

    @property
    def lost_before(self) -> int:
        """Samples lost at ARM and START; the ledger counts none that is only late."""
        return self.lost_in_all - (self.lost - self.late)


def bench(options: argparse.Namespace, console: Console) -> Result:
    """At 1 kHz as long as is asked for, with one joint and with two; at 2 kHz for a sixth of that, 4 s at least.

    Raises:
        BenchError: the chip's parts are missing, or it does not start.
    """
    found: list[Turns] = []
    short = max(options.seconds / 6.0, 4.0)
    for joints, tick_us, seconds in ((1, 1000, options.seconds), (1, 500, short), (2, 1000, options.seconds)):
        console.say(
            f"{seconds:g} s on the emulated RP2040, joints {joints}, a tick every {tick_us} µs (some seconds for each)"
        )
        with tempfile.TemporaryDirectory(prefix="jointbench-") as folder:
            found.append(run(Path(folder), tick_us, seconds, options.seed, joints))
    console.say(turns_table(found))
    checks = make_checks(found)
    return Result("bench chip", options.seed, checks, {"turns": [vars(each) for each in found]})


def run(
    folder: Path, tick_us: int, seconds: float, seed: int, joints: int = 1, wiring: Mapping[str, Any] | None = None
) -> Turns:
    """Record a motion of one chip, and look at what it said meanwhile.

    Args:
        folder: for the bench's files.
        tick_us: from tick to tick.
        seconds: RUNNING.
        seed: of the bench.
        joints: on the board.
        wiring: entries of its config.json in place of the example's.
    """
    bench_file, entry = folder / "chip.toml", ""
    if wiring:
        (folder / "wiring.json").write_text(json.dumps(wiring), encoding="utf-8")
        entry = 'wiring = "wiring.json"\n'
    bench_file.write_text(
        f'version = 1\nname = "chip"\nrobot = "cobot6:{joints}"\nplant = "{COBOT6_PLANT}"\ntick_us = {tick_us}\n'
        f'[[board]]\n{_MOTORS[joints]}\nurl = "rp2040:"\n{entry}',
        encoding="utf-8",
    )
    repeats = max(round(seconds / PERIOD), 1)
    with virtual_bench(bench_file, seed=seed, out=folder / "sim") as live, open_bench(live) as bench:
        bench.connect()
        bench.configure()
        for board in bench.boards:
            assert board.facts is not None
            board.write_register("stream.channels", board.facts.registers["board.channels"])
        motion = Wave(bench.positions(), np.full(joints, WAY), PERIOD)
        bench.play(motion, repeats, Recorder(folder / "run", bench.provenance(repeats=repeats)))
        bench.clock.wait(1_500_000)  # a STATUS more, of rest
    return judge(folder / "run", tick_us, joints)


def judge(path: Path, tick_us: int, joints: int) -> Turns:
    """Judge the frames between the board's first and last sample of RUNNING."""
    recorded = open_run(path)
    frames = list(_frames(path))
    data = [frame for frame in frames if frame.type is MessageType.DATA and frame.body.play_tick >= 0]
    first = min(frame.body.first_tick for frame in data)
    last = max(frame.body.first_tick + frame.body.count for frame in data)
    # A STATUS tells of the second before it: those that tell of RUNNING alone.
    running = [
        frame
        for frame in frames
        if frame.type is MessageType.STATUS
        and frame.body.state == State.RUNNING
        and frame.body.tick - first >= 1e6 / tick_us
    ]
    assert recorded.ledger is not None
    seconds = 1e-6 * tick_us * (last - first)
    late = sum(frame.body.count for frame in data if frame.body.late_us)  # the host leaves them out
    return Turns(
        joints=joints,
        tick_us=tick_us,
        seconds=seconds,
        mean_us=float(np.mean([frame.body.mean_tick_us for frame in running])),
        longest_us=max(frame.body.longest_tick_us for frame in running),
        missed=sum(frame.body.missed for frame in data if frame.body.first_tick > first),
        late=late,
        lost=joints * (last - first) - sum(frame.body.count for frame in data) + late,
        lost_in_all=recorded.ledger.samples_lost,
        late_in_all=sum(frame.body.count for frame in frames if frame.type is MessageType.DATA and frame.body.late_us),
        pings=sum(frame.type is MessageType.PONG for frame in frames) // joints,
        bytes_per_s=sum(len(frame.payload) for frame in data) / seconds,
        collected=len({(frame.node, frame.body.heap_free, frame.body.longest_gc_us) for frame in running}) > joints,
        heap_free=min(frame.body.heap_free for frame in running),
    )


def _frames(path: Path) -> list[Frame]:
    found: list[Frame] = []
    for record in read_records(map_file(path / "frames.bin"), []):
        if record.kind is RecordKind.FRAME:
            try:
                found.append(decode_frame(record.payload))
            except FrameError:
                continue
    return found


def make_checks(found: list[Turns]) -> tuple[Check, ...]:
    """Checks against the limits."""
    checks: list[Check] = []
    for each in found:
        at = f"at {1000.0 / each.tick_us:g} kHz" + (", two joints" if each.joints > 1 else "")
        mean_us, longest_us = LIMITS_US[each.joints]
        checks += [
            Check(f"{at}: ticks missed while RUNNING", each.missed, "==", 0),
            Check(f"{at}: a turn on average", each.mean_us, "<=", mean_us, "µs"),
            Check(f"{at}: longest turn", each.longest_us, "<=", longest_us, "µs"),
            Check(f"{at}: samples lost while RUNNING", each.lost, "==", 0),
            Check(f"{at}: samples lost at ARM and START", each.lost_before, "==", 0),
            Check(f"{at}: memory collected while RUNNING", int(each.collected), "==", 0),
            Check(f"{at}: heap free", each.heap_free, ">=", LEAST_FREE, "bytes"),
            Check(f"{at}: PINGs answered", each.pings / each.seconds, ">=", PINGS_PER_S, "/s"),
        ]
    return tuple(checks)


def turns_table(found: list[Turns]) -> str:
    """A column a rate."""
    rows: list[list[str]] = [
        ["RUNNING [s]", *(f"{each.seconds:.1f}" for each in found)],
        ["turn, mean [µs]", *(f"{each.mean_us:.0f}" for each in found)],
        ["turn, longest [µs]", *(str(each.longest_us) for each in found)],
        ["ticks missed", *(str(each.missed) for each in found)],
        ["samples late, and told", *(str(each.late) for each in found)],
        ["samples lost while RUNNING", *(str(each.lost) for each in found)],
        ["samples lost at ARM and START", *(str(each.lost_before) for each in found)],
        ["samples late at ARM and START", *(str(each.late_in_all - each.late) for each in found)],
        ["heap free [bytes]", *(str(each.heap_free) for each in found)],
        ["PINGs answered [/s]", *(f"{each.pings / each.seconds:.1f}" for each in found)],
        ["DATA sent [bytes/s]", *(f"{each.bytes_per_s:.0f}" for each in found)],
    ]
    of = {1: "one joint", 2: "two joints"}
    heads: Any = ("", *(f"{of[each.joints]}, {1000.0 / each.tick_us:g} kHz" for each in found))
    return table(heads, rows)
