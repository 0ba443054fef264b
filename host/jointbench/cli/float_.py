"""Let an arm float by its model, so that a hand leads it, and record where it was led."""

from __future__ import annotations

import argparse
import os
import select
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from jointbench.arrays import Array
from jointbench.checks import Result
from jointbench.cli.console import Console, compiling_told, table
from jointbench.errors import MissingExtra, RunError
from jointbench.model import Robot

VERB = "float"
EXAMPLE = "jointbench float bench.toml --model model.json --seconds 60"
WHEN_STOPPED = "motors are off, what was recorded is kept"
RELEASED_S = 0.7
"""Time without a key that is a key let go of [s]: longer than keyboards wait before they repeat a key held down."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """BENCH, the model, for how long, and where the run goes."""
    parser.add_argument("bench", metavar="BENCH", help="a bench .toml: where each joint's board is")
    parser.add_argument("--model", metavar="FILE", required=True, help="a model.json of a run on this bench")
    parser.add_argument(
        "--seconds", type=float, default=60.0, metavar="S",
        help="for how long; the boards then brake and switch off (%(default)g)",
    )  # fmt: skip
    parser.add_argument(
        "--while-key", action="store_true",
        help=f"a dead-man's switch: float only while a key of this terminal is held down, and {RELEASED_S:g} s longer",
    )  # fmt: skip
    parser.add_argument("--out", metavar="DIR", help="run directory to create (a new one under runs/)")
    parser.add_argument(
        "--clear", action="store_true", help="acknowledge latched faults first; find out why they came before you do"
    )


def run(options: argparse.Namespace, console: Console) -> Result:
    """Floats, records, and says where each joint was led; exit code 1 when the run is invalid."""
    with console.working("loading"):
        from jointbench.bench import open_bench
        from jointbench.identification import load_model
        from jointbench.identification.floating import float_arm
        from jointbench.recording import new_run_path
    model = load_model(options.model)
    out = Path(options.out or new_run_path("runs", model.robot.name, "float"))
    if out.exists():
        raise RunError(f"{out} exists; name another directory with --out")
    if options.while_key and not os.isatty(sys.stdin.fileno()):
        raise RunError(
            "--while-key needs a terminal whose keys it reads; leave it out, or call float_arm with a switch"
        )
    with compiling_told(console), open_bench(options.bench) as bench:
        with console.working("connecting"):
            bench.connect()
            if options.clear:
                bench.clear()
            bench.configure()
            where = [bench.positions()]
        console.say(
            f"{bench.robot.name} floats by {options.model} for {options.seconds:g} s; Ctrl-C switches motors off"
        )
        began_us = bench.clock.now_us()

        def show(q: Array) -> None:
            where.append(q)
            elapsed = 1e-6 * (bench.clock.now_us() - began_us)
            if len(where) % 10 == 0:
                console.progress(f"floating {elapsed:5.1f} / {options.seconds:g} s", elapsed / options.seconds)

        with held_key(sys.stdin.fileno() if options.while_key else None) as is_held:
            if options.while_key:
                console.say("hold a key down")
                while not is_held():
                    time.sleep(0.02)
            recorded = float_arm(
                model, bench, out, options.seconds, is_held=is_held, on_update=show, model_file=str(options.model)
            )  # fmt: skip
    places = _places(model.robot, np.array(where))
    rows = [[name, *(f"{value:.2f}" for value in place.values())] for name, place in places.items()]
    console.say(table(("joint", "began [° or mm]", "lowest", "highest", "ended"), rows))
    assert recorded.ledger is not None  # a recording has one
    console.say(recorded.ledger.text())
    console.say(f"run: {recorded.path}")
    fields = {
        "robot": bench.file.robot,
        "run": recorded.path,
        "frames_sha256": recorded.sha256,
        "ledger": recorded.ledger.to_dict(),
        "joints": places,
    }
    return Result("float", fields=fields, refused=not recorded.ledger.is_valid)


@contextmanager
def held_key(terminal: int | None) -> Iterator[Callable[[], bool]]:
    """Give a function that says whether a key of a terminal is held down; without a terminal it says so always.

    A terminal does not tell that a key is let go of: a key that is held down repeats, and one that does not for
    `RELEASED_S` is held no more. Keys pressed before count for nothing.

    Args:
        terminal: file descriptor.

    Raises:
        MissingExtra: this system has no terminals of that kind.
    """
    if terminal is None:
        yield lambda: True
        return
    try:
        import termios
        import tty
    except ImportError:
        raise MissingExtra("--while-key reads terminals of Unix, which this system has not; leave it out") from None
    before = termios.tcgetattr(terminal)
    pressed = -RELEASED_S

    def came() -> bool:
        """Read the keys that were pressed, and return True if there were any."""
        return bool(select.select([terminal], [], [], 0.0)[0] and os.read(terminal, 1024))

    def is_held() -> bool:
        nonlocal pressed
        while came():
            pressed = time.monotonic()
        return time.monotonic() - pressed < RELEASED_S

    try:
        tty.setcbreak(terminal, termios.TCSAFLUSH)
        while came():  # some terminals keep them
            pass
        yield is_held
    finally:
        termios.tcsetattr(terminal, termios.TCSAFLUSH, before)


def _places(robot: Robot, positions: Array) -> dict[str, dict[str, float]]:
    """Where each joint began, its lowest and highest position, and where it ended [° or mm], by its name."""
    scale = [180.0 / np.pi if joint.kind == "revolute" else 1e3 for joint in robot.independent_joints]
    columns = (positions * scale).T
    return {
        name: {
            "began": float(column[0]),
            "lowest": float(column.min()),
            "highest": float(column.max()),
            "ended": float(column[-1]),
        }
        for name, column in zip(robot.joint_names, columns, strict=True)
    }
