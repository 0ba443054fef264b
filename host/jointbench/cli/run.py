"""Play an excitation on a bench of boards and record every frame of it."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from jointbench.cli.console import Console
from jointbench.cli.plan_file import read_plan
from jointbench.cli.result import Result
from jointbench.link import Progress, open_bench
from jointbench.recording import new_run_path, record

VERB = "run"
EXAMPLE = "jointbench run bench.toml --plan excitation.json --repeats 2"
WHEN_STOPPED = "motors are off, what was recorded is kept"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """BENCH, the plan, and where the run goes."""
    parser.add_argument("bench", metavar="BENCH", help="a bench .toml: where each joint's board is")
    parser.add_argument("--plan", metavar="FILE", default="excitation.json", help="from `plan` (%(default)s)")
    parser.add_argument("--repeats", type=int, default=2, metavar="N", help="how often to play it (%(default)s)")
    parser.add_argument("--out", metavar="DIR", help="run directory to create (a new one under runs/)")
    parser.add_argument(
        "--clear", action="store_true", help="acknowledge latched faults first; find out why they came before you do"
    )


def run(options: argparse.Namespace, console: Console) -> Result:
    """Connects, configures, plays, and prints the ledger; exit code 1 when the run is invalid."""
    plan = read_plan(options.plan)
    with open_bench(options.bench) as bench:
        bench.connect()
        if options.clear:
            bench.clear()
        bench.configure()
        directory = options.out or new_run_path("runs", bench.robot.name, "excitation")
        recorded = record(bench, plan, directory, options.repeats, progress_line(console, "recording"))
    for warning in recorded.warnings:
        console.say(f"warning: {warning}")
    assert recorded.ledger is not None  # a recording has one
    console.say(recorded.ledger.text())
    console.say(f"run: {recorded.path}")
    fields = {"run": recorded.path, "frames_sha256": recorded.sha256, "ledger": recorded.ledger.to_dict()}
    return Result("run", plan.seed, fields=fields, refused=not recorded.ledger.is_valid)


def progress_line(console: Console, what: str) -> Callable[[Progress], None]:
    """Progress of a playback as one line: time left, rate, loss, peak torque, and how far from falling it is."""

    def show(progress: Progress) -> None:
        peak = max(progress.peak_torque.items(), key=lambda item: item[1], default=("–", 0.0))
        lost = "" if progress.frames_lost is None else f", {progress.frames_lost} frames lost"
        margin = progress.sole_margin
        foot = "" if margin is None else f", pressure {1e3 * margin:.0f} mm inside the sole"
        console.progress(
            f"{what} {progress.elapsed:5.1f} / {progress.duration:.1f} s, {progress.rate:.0f} samples/s{lost}, "
            f"peak {peak[0]} {peak[1]:.1f} N·m{foot}",
            progress.elapsed / progress.duration if progress.duration else None,
        )

    return show
