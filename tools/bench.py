"""Benchmarks: what wire, firmware, dynamics and plans cost, what the boards' filters do, how accurate fits are."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hil_tests.virtual_bench import BenchError
from jointbench.checks import Check, Result
from jointbench.cli.carry_out import carry_out
from jointbench.cli.console import Console
from jointbench.cli.tables import table
from jointbench.errors import JointbenchError
from tools.accuracy_bench.verb import RECORDINGS, accuracy
from tools.chip_bench import chip
from tools.excitation_bench.verb import excitation
from tools.feed_bench.verb import feed
from tools.filter_bench.verb import filters
from tools.firmware_bench.errors import CountFailed
from tools.firmware_bench.verb import firmware
from tools.friction_bench.verb import friction
from tools.identification_bench.errors import ProcessFailed
from tools.identification_bench.verb import identification
from tools.machine import machine
from tools.monitor_bench.errors import NoPicture
from tools.monitor_bench.verb import monitor
from tools.predictor_bench.verb import predictor
from tools.regressor_bench.errors import PeerMissing, StartFailed
from tools.regressor_bench.verb import regressor
from tools.startup_bench import startup
from tools.wire_bench.decoding import Speed, race
from tools.wire_bench.errors import MachineTooBusy, PlayerFailed
from tools.wire_bench.host_cost import HostCost, measure, played, record_boards

SAMPLES_PER_S = 10e6
TIMES_CONSTRUCT = 100.0
CPU_PERCENT = 3.0
# Boards played slower than this would make the host look cheaper than it is.
RATE_HZ = 995.0


def parser() -> argparse.ArgumentParser:
    """What `./run bench` takes."""
    options = argparse.ArgumentParser(prog="./run bench", description=__doc__)
    options.add_argument("what", choices=VERBS, help="; ".join(VERBS[name][1] for name in VERBS))
    options.add_argument("--recordings", type=positive, default=RECORDINGS, help="of accuracy: how many (%(default)s)")
    options.add_argument("--seconds", type=positive, default=60, help="of chip: how long it moves (%(default)s)")
    options.add_argument("--seed", type=int, default=0, help="of noise and motions (%(default)s)")
    options.add_argument("--json", metavar="FILE|-", help="write the machine-readable result there")
    return options


def positive(text: str) -> int:
    """A whole number of at least one."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number of at least 1")
    return int(text)


def main(arguments: list[str] | None = None) -> int:
    """Measure; 0, 1 when a figure misses its limit, 2 when it could not be done."""
    options = parser().parse_args(arguments)
    return carry_out("bench", options, VERBS[options.what][0], ERRORS)


def bench(options: argparse.Namespace, console: Console) -> Result:
    """Both measurements, one after the other; whatever else the machine does, they suffer from."""
    console.say("decoding what 6 boards send in a minute, in turns with construct")
    speeds = race(options.seed)
    ours, plain, compiled = speeds
    console.say(speed_table(speeds))
    with tempfile.TemporaryDirectory(prefix="jointbench-") as name:
        folder = Path(name)
        console.say("recording 12 emulated boards (MicroPython) in lockstep")
        runs = record_boards(folder, options.seed)
        console.say("playing them in real time from another process, and recording them as a bench")
        with played(runs) as entries:
            cost = measure(entries, folder / "run")
        with played(runs) as entries:
            with_peaks = measure(entries, folder / "run-with-peaks", peaks=True)
    console.say(cost_table(cost, with_peaks))
    checks = make_checks(speeds, cost)
    for check in checks:
        console.say(str(check))
    fields: dict[str, Any] = {
        "decode": {speed.name: speed_fields(speed) for speed in speeds},
        "times_construct": ours.best / plain.best,
        "times_construct_compiled": ours.best / compiled.best,
        "host": {
            "boards": cost.n_boards,
            "boards_are": "recorded in lockstep, played in real time by another process",
            "rate_Hz": cost.rate,
            "seconds": cost.seconds,
            "bytes_per_s": cost.bytes_per_s,
            "cpu_percent": 100.0 * cost.cpu,
            "cpu_percent_in_quarters_of_a_second": 100.0 * cost.cpu_parts,
            "cpu_percent_with_progress_line": 100.0 * with_peaks.cpu,
            "ledger": cost.ledger.to_dict(),
        },
        "machine": machine(),
    }
    return Result("bench wire", options.seed, checks, fields)


def make_checks(speeds: tuple[Speed, ...], cost: HostCost) -> tuple[Check, ...]:
    """What must hold; construct counts as it parses without being compiled, as it is used."""
    ours, plain, _ = speeds
    return (
        Check("decoded samples", ours.best, ">=", SAMPLES_PER_S, "/s"),
        Check("times as fast as construct", ours.best / plain.best, ">=", TIMES_CONSTRUCT),
        Check("boards", cost.n_boards, ">=", 12),
        Check("samples of each board", cost.rate, ">=", RATE_HZ, "/s"),
        Check("measured for", cost.seconds, ">=", 10.0, "s"),
        Check("one core used by the host", 100.0 * cost.cpu, "<=", CPU_PERCENT, "%"),
        Check("ledgers that do not close", sum(not board.closes for board in cost.ledger.boards), "==", 0),
        Check("samples lost", cost.ledger.samples_lost, "==", 0),
    )


def speed_table(speeds: tuple[Speed, ...]) -> str:
    """A line per decoder: its best round, the spread of the rounds, and how often the slowest goes into it."""
    slowest = min(speed.best for speed in speeds)
    rows = [
        [
            speed.name, f"{speed.best / 1e6:.3f}", f"{speed.best * speed.values_per_sample / 1e6:.3f}",
            f"{speed.best * speed.bytes_per_sample / 1e6:.1f}", f"{speed.spread:.1%}", f"{speed.best / slowest:.1f}",
        ]
        for speed in speeds
    ]  # fmt: skip
    return table(("decoder", "M samples/s", "M values/s", "MB/s", "spread", "times construct"), rows)


def cost_table(cost: HostCost, with_peaks: HostCost) -> str:
    """What came, and what it took."""
    parts = 100.0 * cost.cpu_parts
    rows = [
        ["boards", f"{cost.n_boards}"],
        ["samples of each board [/s]", f"{cost.rate:.1f}"],
        ["received [kB/s]", f"{cost.bytes_per_s / 1e3:.1f}"],
        ["measured [s]", f"{cost.seconds:.1f}"],
        ["host, of one core [%]", f"{100.0 * cost.cpu:.2f}"],
        ["  in quarters of a second", f"{parts.min():.2f} … {parts.max():.2f}"],
        ["  with a progress line's peaks", f"{100.0 * with_peaks.cpu:.2f}"],
    ]
    return table(("12 boards at 1 kHz", ""), rows) + f"\nledger: {cost.ledger.verdict}"


def speed_fields(speed: Speed) -> dict[str, Any]:
    """A decoder's figures, each round of it."""
    return {
        "samples_per_s": speed.best,
        "values_per_s": speed.best * speed.values_per_sample,
        "bytes_per_s": speed.best * speed.bytes_per_sample,
        "spread": speed.spread,
        "rounds": speed.rounds,
    }


ERRORS = (
    JointbenchError,
    BenchError,
    PlayerFailed,
    MachineTooBusy,
    CountFailed,
    PeerMissing,
    StartFailed,
    ProcessFailed,
    NoPicture,
)
VERBS: dict[str, tuple[Callable[[argparse.Namespace, Console], Result], str]] = {
    "wire": (bench, "wire: the frames between host and boards, their decoding and what they cost the host"),
    "firmware": (firmware, "firmware: the boards' tick and framing, in instructions of a Cortex-M3"),
    "chip": (chip, "chip: a turn of the boards' main loop on an emulated RP2040 that moves, streams and is asked"),
    "filters": (filters, "filters: the boards' filters, bit for bit and against scipy"),
    "regressor": (regressor, "regressor: the dynamics' kernels, beside Pinocchio and beside filling an array"),
    "excitation": (excitation, "excitation: planning a motion, beside SLSQP with differences over Pinocchio"),
    "identification": (identification, "identification: many rows in half a second, an hour's log in constant memory"),
    "predictor": (predictor, "predictor: one torque a call, beside the regressor's way and Pinocchio"),
    "feed": (feed, "feed: what those who look on cost a recording, beside the same one with nobody"),
    "friction": (friction, "friction: the Makkar law's fit, beside a global search and a particle swarm"),
    "monitor": (monitor, "monitor: a page that shows twelve boards, beside the same recording with nobody looking on"),
    "startup": (startup, "startup: how long the command line takes to start, beside mpremote's"),
    "accuracy": (accuracy, "accuracy: fits of simulated recordings, beside the Cramér–Rao bound and the truth"),
}


if __name__ == "__main__":
    sys.exit(main())
