"""`python -m hil_tests.virtual_bench BENCH`: start a virtual bench and keep it until Ctrl-C or SIGTERM."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from hil_tests.virtual_bench.errors import BenchError
from hil_tests.virtual_bench.kinds import EMULATED, PLANT_KINDS, VARIANTS
from hil_tests.virtual_bench.start import Stop
from jointbench.cli.console import Console

if TYPE_CHECKING:
    from hil_tests.virtual_bench.bench import Bench


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; exit code 0 after a requested end, 2 when the bench cannot start."""
    options = _parser().parse_args(arguments)
    with Stop(options.attached) as stop:
        return _serve(options, stop)


def _serve(options: argparse.Namespace, stop: Stop) -> int:
    try:
        with ExitStack() as running:
            with _announced(options):
                # After the first words: MuJoCo alone takes a second to import.
                from hil_tests.virtual_bench.bench import running_bench
                from hil_tests.virtual_bench.bench_file import read_bench_file

                description = read_bench_file(options.bench)
                if options.board:
                    description = description.with_boards_at(options.board)
                if options.modules is not None:
                    description = description.with_modules(options.modules)
                description = description.in_variant(options.variant)
                live, bench, control = running.enter_context(
                    running_bench(
                        description, options.plant, options.seed, options.realtime, options.out, options.noise_seed
                    )
                )
            _tell_ports(live, bench, control is None)
            if control:
                bench.serve_control(control, stop)
            else:
                bench.serve_wall_clock(stop)
    except BenchError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="./run sim", description=__doc__)
    parser.add_argument("bench", type=Path, help="bench file, such as hil_tests/benches/cobot6.toml")
    parser.add_argument("--plant", choices=PLANT_KINDS, default="harmonic", help="physics of the joints")
    parser.add_argument("--seed", type=_seed, default=0, help="draws the boards' imperfections and noise")
    parser.add_argument("--noise-seed", type=_seed, help="draws the noise alone, of the boards that --seed draws")
    parser.add_argument("--variant", choices=VARIANTS, help="another make of the plant")
    parser.add_argument("--board", choices=EMULATED, help="what emulates every board, instead of what the file says")
    parser.add_argument("--modules", metavar="N", help="only the first N joints of the robot, with their boards")
    parser.add_argument("--realtime", action="store_true", help="run by the wall clock, for plain serial programs")
    parser.add_argument("--out", type=Path, default=Path("runs/sim"), help="folder of bench.toml and the boards' files")
    parser.add_argument("--attached", action="store_true", help=argparse.SUPPRESS)
    return parser


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number of at least 0")
    return int(text)


@contextmanager
def _announced(options: argparse.Namespace) -> Generator[None]:
    """Say to a person what is being started, and for how long; the log of a bench inside a program is for errors."""
    if options.attached:
        yield
        return
    console = Console("-")  # standard output begins with the live file's path, which programs read
    console.say(f"starting the boards of {options.bench}")
    with console.working("starting"):
        yield


def _tell_ports(live: Path, bench: Bench, realtime: bool) -> None:
    print(live)
    for entry in bench.description.boards:
        for motor in entry.motors:
            seat = "foot" if entry.on_foot else "joint"
            print(f"  node {motor.node}, {seat} {motor.joint}: {bench.paths[motor.node]}")
    how = (
        "any serial program can open these ports"
        if realtime
        else "time stands still until a client of the bench file moves it; --realtime lets any serial program in"
    )
    print(f"{how}; Ctrl-C ends the bench", flush=True)


if __name__ == "__main__":
    sys.exit(main())
