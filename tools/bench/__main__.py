"""Benchmarks: what wire, firmware, dynamics and plans cost, what the boards' filters do, how accurate fits are."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from hil_tests.virtual_bench import BenchError
from jointbench.checks import Result
from jointbench.cli.console import Console
from jointbench.cli.main import carry_out
from jointbench.errors import JointbenchError
from tools.bench import (
    accuracy,
    balance,
    calibration,
    chip,
    excitation,
    feed,
    filters,
    firmware,
    friction,
    header,
    hindsight,
    identification,
    laws,
    logs,
    monitor,
    observer,
    predictor,
    public,
    regressor,
    startup,
    stopping,
    wire,
)
from tools.bench.peers import BenchmarkFailed


def parser() -> argparse.ArgumentParser:
    """Parser of the options of `./run bench`."""
    options = argparse.ArgumentParser(prog="./run bench", description=__doc__)
    options.add_argument("what", choices=VERBS, help="; ".join(VERBS[name][1] for name in VERBS))
    options.add_argument("folder", metavar="FOLDER", nargs="?", help="of public, hindsight, laws: where recordings are")
    options.add_argument(
        "--recordings", type=positive, default=accuracy.RECORDINGS, help="of accuracy: how many (%(default)s)"
    )
    options.add_argument(
        "--experiments", type=positive, default=calibration.EXPERIMENTS,
        help="of calibration: how many with faults within the tolerances (%(default)s)",
    )  # fmt: skip
    options.add_argument(
        "--pushes", type=positive, default=observer.PUSHES, help="of observer: how many joints are pushed (%(default)s)"
    )
    options.add_argument(
        "--motions", type=positive, default=observer.MOTIONS,
        help=f"of observer: how many of {observer.SECONDS:g} s without a push (%(default)s, an hour)",
    )  # fmt: skip
    options.add_argument("--seconds", type=positive, default=60, help="of chip: how long it moves (%(default)s)")
    options.add_argument("--seed", type=int, default=0, help="of noise and motions (%(default)s)")
    names = [split.name for split in public.SPLITS]
    options.add_argument(
        "--split", action="append", default=[], choices=names, metavar="NAME",
        help=f"of public: only this one, repeatable: {', '.join(names)}",
    )  # fmt: skip
    options.add_argument(
        "--method", action="append", default=[], metavar="FILE.py:FUNCTION", help="of public: one more, repeatable"
    )
    options.add_argument("--page", metavar="FILE", help="of public: write the results between the marks of this page")
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
    if options.what != "public" and (options.split or options.method or options.page):
        parser().error(f"--split, --method and --page are of public, and {options.what} takes none of them")
    if options.what not in ("public", "hindsight", "laws") and options.folder:
        parser().error(f"FOLDER is of public, hindsight and laws, and {options.what} takes none")
    return carry_out("bench", options, measure, (JointbenchError, BenchError, BenchmarkFailed))


def measure(options: argparse.Namespace, console: Console) -> Result:
    """Measure, and print the checks."""
    result = VERBS[options.what][0](options, console)
    for check in result.checks:
        console.say(str(check))
    return result


VERBS: dict[str, tuple[Callable[[argparse.Namespace, Console], Result], str]] = {
    "wire": (wire.bench, "wire: the frames between host and boards, their decoding and what they cost the host"),
    "firmware": (firmware.bench, "firmware: the boards' tick and framing, in instructions of a Cortex-M3"),
    "chip": (
        chip.bench,
        "chip: a turn of the boards' main loop on an emulated RP2040 that moves, streams and is asked",
    ),
    "filters": (filters.bench, "filters: the boards' filters, bit for bit and against scipy"),
    "regressor": (regressor.bench, "regressor: the dynamics' kernels, beside Pinocchio"),
    "excitation": (excitation.bench, "excitation: planning a motion, beside SLSQP with differences over Pinocchio"),
    "identification": (
        identification.bench,
        "identification: many rows in half a second, an hour's log in constant memory",
    ),
    "predictor": (predictor.bench, "predictor: one torque a call, beside the regressor's way and Pinocchio"),
    "header": (header.bench, "header: an exported C header, time per call beside Pinocchio, and its longest"),
    "feed": (feed.bench, "feed: what those who look on cost a recording, beside the same one with nobody"),
    "friction": (friction.bench, "friction: the Makkar law's fit, beside a global search and a particle swarm"),
    "monitor": (
        monitor.bench,
        "monitor: a page that shows twelve boards, beside the same recording with nobody looking on",
    ),
    "startup": (startup.bench, "startup: how long the command line takes to start, beside mpremote's"),
    "laws": (
        laws.bench,
        "laws: friction laws as this version and an earlier one choose them, with time and errors",
    ),
    "observer": (observer.bench, "observer: pushes on a simulated arm, found by its identified model's momentum"),
    "logs": (logs.bench, "logs: simulated logs with faults, by default beside the best options in hindsight"),
    "calibration": (
        calibration.bench,
        "calibration: simulated arms whose zeros, lengths, axes, torques and clocks are off, by default",
    ),
    "balance": (
        balance.bench,
        "balance: a biped's zero-moment point, planned by its file and by its estimate, and played on a plant",
    ),
    "stopping": (
        stopping.bench,
        "stopping: identifications that end by their own σ, against the truth and the default plan",
    ),
    "public": (public.bench, "public: models of public recordings, on recordings they were not fitted to"),
    "hindsight": (
        hindsight.bench,
        "hindsight: cut-off and strength of the prior by default, beside the best of a grid, on public recordings",
    ),
    "accuracy": (accuracy.bench, "accuracy: fits of simulated recordings, beside the Cramér–Rao bound and the truth"),
}


if __name__ == "__main__":
    sys.exit(main())
