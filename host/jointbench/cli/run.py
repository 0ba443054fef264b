"""Play an excitation on a bench of boards and record every frame of it."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from jointbench.checks import Result
from jointbench.cli.console import Console
from jointbench.errors import ExcitationError, StopAsked

if TYPE_CHECKING:
    from jointbench.bench import Progress

VERB = "run"
EXAMPLE = "jointbench run bench.toml --plan excitation.json --repeats 2"
WHEN_STOPPED = "motors are off, what was recorded is kept"
GENTLE = 0.2
_TOO_EARLY = "that was before the first sample: nothing is recorded"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """BENCH, the plan, and where the run goes."""
    parser.add_argument("bench", metavar="BENCH", help="a bench .toml: where each joint's board is")
    parser.add_argument("--plan", metavar="FILE", default="excitation.json", help="from `plan` (%(default)s)")
    parser.add_argument("--repeats", type=int, default=2, metavar="N", help="how often to play it (%(default)s)")
    parser.add_argument(
        "--gentle", type=float, nargs="?", const=GENTLE, metavar="SHARE",
        help=f"for a first motion: this share of the plan's way about home, and of its speed ({GENTLE:g} where no "
        "number follows)",
    )  # fmt: skip
    parser.add_argument("--out", metavar="DIR", help="run directory to create (a new one under runs/)")
    parser.add_argument(
        "--clear", action="store_true", help="acknowledge latched faults first; find out why they came before you do"
    )


def run(options: argparse.Namespace, console: Console) -> Result:
    """Connects, configures, plays, and prints the ledger; exit code 1 when the run is invalid."""
    share = "" if options.gentle is None else f", {options.gentle:.0%} of its way and speed"
    console.say(f"playing {options.plan} on the boards of {options.bench}, {options.repeats} ×{share}")
    directory: str | Path | None = options.out
    try:
        with ExitStack() as opened:
            with console.working("loading"):
                # After the first words: SciPy, for the plan, and Numba, for the wire, take seconds to import.
                from jointbench.bench import open_bench
                from jointbench.cli.console import compiling_told
                from jointbench.excitation import load_excitation
                from jointbench.recording import new_run_path, record

                opened.enter_context(compiling_told(console))
                plan = load_excitation(options.plan)
                if options.gentle is not None:
                    plan = plan.scaled(options.gentle)
            if plan.not_checked:
                console.say(f"{options.plan}: {plan.not_checked}")
            with console.working("connecting"):
                bench = opened.enter_context(open_bench(options.bench))
                bench.connect()
                if options.clear:
                    bench.clear()
                bench.configure()
                if options.gentle is not None:  # boards trip sooner, too
                    slow = [replace(own, velocity_limit=options.gentle * own.velocity_limit) for own in bench.settings]
                    bench.configure(slow)
                try:
                    bench.admit(plan, options.repeats)
                except ExcitationError as error:
                    raise ExcitationError(f"{options.plan} is not played on {options.bench}: {error}") from error
            directory = directory or new_run_path("runs", bench.robot.name, "excitation")
            gentle = {} if options.gentle is None else {"gentle": options.gentle}
            with console.working("moving to the start"):
                progress = progress_line(console, "recording")
                recorded = record(bench, plan, directory, options.repeats, progress, **gentle)
    except (KeyboardInterrupt, SystemExit) as stopped:
        if directory is None or not Path(directory).exists():
            stopped.add_note(f"motors are off; {_TOO_EARLY}")
        raise
    except StopAsked as stopped:
        kept = directory is not None and Path(directory).exists()
        raise StopAsked(f"{stopped}, {'what was recorded is kept' if kept else _TOO_EARLY}") from None
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
