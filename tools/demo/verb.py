"""An arm of the papers on emulated joint boards: plan, play, record, identify, judge; ours beside its paper."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from hil_tests.virtual_bench import BenchError
from hil_tests.virtual_bench.kinds import EMULATED
from jointbench.cli.carry_out import carry_out
from jointbench.cli.console import Console
from jointbench.cli.result import Result
from jointbench.cli.run import WHEN_STOPPED
from jointbench.errors import JointbenchError
from tools.demo.errors import NotModular
from tools.demo.stories import MODULAR, ROBOTS, check_robot, tell, tell_own
from tools.demo.story import Stage, Story, paper_text

ERRORS = (JointbenchError, BenchError)
USUAL = "cobot6"
OWN_ROBOT = {"gorobot2": "your own biped: docs/biped.md"}
"""Where to go on with a robot of one's own, where that is not as for any arm."""


def parser() -> argparse.ArgumentParser:
    """What `./run demo` takes."""
    options = argparse.ArgumentParser(prog="./run demo", description=__doc__)
    what = options.add_mutually_exclusive_group()
    what.add_argument("robot", nargs="?", metavar="ROBOT", help=f"{', '.join(ROBOTS)} ({USUAL})")
    what.add_argument("--bench", metavar="FILE", help="a bench file of your own, with real boards, of any robot")
    options.add_argument(
        "--plant",
        choices=("harmonic", "ideal"),
        default="harmonic",
        help="the emulated joints: harmonic drives, or rigid with Coulomb and viscous friction",
    )
    options.add_argument(
        "--board",
        choices=EMULATED,
        default="unix:",
        help="what the emulated boards run on: MicroPython's unix port, or a Cortex-M3 inside QEMU",
    )
    options.add_argument("--modules", type=int, metavar="N", help=f"of {MODULAR}: only the first N of its modules")
    options.add_argument("--seed", type=int, default=0, help="same seed, same bytes (%(default)s)")
    options.add_argument("--out", metavar="DIR", help="where everything goes (a new folder under runs/)")
    options.add_argument("--json", metavar="FILE|-", help="write the machine-readable result there")
    return options


def main(arguments: list[str] | None = None) -> int:
    """Run a demo; 0, 1 when a check says no, 2 when it could not be done."""
    return carry_out("demo", parser().parse_args(arguments), demo, ERRORS, when_stopped=WHEN_STOPPED)


def demo(options: argparse.Namespace, console: Console) -> Result:
    """One robot's whole way, each step said as it begins, and what came of it."""
    check(options)
    console.say(first_line(options))
    with console.working("loading"):
        stage = stage_of(options, console)
    story = tell_own(Path(options.bench), stage) if options.bench else tell(options.robot or USUAL, stage)
    say(story, console)
    last_lines = (*story.outcome, f"next: {what_next(options, stage, story)}")
    fields = fields_of(options, story)
    return Result("demo", options.seed, story.all_checks, fields, story.refused, last_lines)


def check(options: argparse.Namespace) -> None:
    """Tell a slip before anything is said to begin.

    Raises:
        UnknownDemo: there is no such robot here.
        NotModular: modules are asked of a robot that has none.
    """
    robot = options.robot or USUAL
    if not options.bench:
        check_robot(robot)
    if options.modules is not None and (options.bench or robot != MODULAR):
        raise NotModular(f"--modules cuts {MODULAR}, which is made of modules; leave it out for any other robot")


def first_line(options: argparse.Namespace) -> str:
    """What is going to happen: said at once, for what it takes is imported only then."""
    if options.bench:
        return f"demo on {options.bench}: plan, play on its boards, record, identify, judge on other motion"
    robot = options.robot or USUAL
    return f"demo of {robot}: plan, play on emulated boards, record, identify, judge on other motion"


def what_next(options: argparse.Namespace, stage: Stage, story: Story) -> str:
    """What to type or read next."""
    if not story.is_kept:
        return "docs/troubleshooting.md, for what was refused or says NO"
    if options.bench:
        return f"./run export {stage.out}/model.json --out robot.urdf"
    robot = options.robot or USUAL
    following = ROBOTS[(ROBOTS.index(robot) + 1) % len(ROBOTS)]
    return f"./run demo {following}, or {OWN_ROBOT.get(robot, 'your own robot: docs/add_robot.md')}"


def stage_of(options: argparse.Namespace, console: Console) -> Stage:
    """Where and how it is played; importing what finds a free folder takes a second."""
    from jointbench.recording import new_run_path

    name = Path(options.bench).stem if options.bench else options.robot or USUAL
    return Stage(
        out=Path(options.out) if options.out else new_run_path("runs", name, "demo"),
        seed=options.seed,
        board=options.board,
        console=console,
        command=command(options),
        plant=options.plant,
        modules=options.modules,
    )


def fields_of(options: argparse.Namespace, story: Story) -> dict[str, Any]:
    """What a story tells in JSON, beside its checks."""
    lines = [
        {"quantity": line.quantity, "paper": line.paper, "ours": line.ours, "wanted": line.wanted}
        for line in story.lines
    ]
    played = (
        {"bench": options.bench, "plant": "real", "board": "real"}
        if options.bench
        else {"robot": options.robot or USUAL, "plant": options.plant, "board": EMULATED[options.board]}
    )
    return {**played, "paper": story.paper, "lines": lines, **story.fields}


def command(options: argparse.Namespace) -> str:
    """What to type to get the same again."""
    if options.bench:
        return f"./run demo --bench {options.bench} --seed {options.seed}"
    cut = "" if options.modules is None else f" --modules {options.modules}"
    robot = options.robot or USUAL
    return f"./run demo {robot}{cut} --plant {options.plant} --board {options.board} --seed {options.seed}"


def say(story: Story, console: Console) -> None:
    """The paper beside ours, and every check."""
    if story.lines:
        console.say()
        console.say(story.paper)
        console.say(paper_text(story.lines))
    for check in story.all_checks:
        console.say(str(check))
