"""`./run demo ROBOT`: an arm of the papers on emulated joint boards, from plan to verdict, beside its paper."""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import Any

from hil_tests.virtual_bench import BenchError
from hil_tests.virtual_bench.kinds import EMULATED, PLANT_KINDS, UNIX
from jointbench.checks import Result
from jointbench.cli.console import Console
from jointbench.cli.main import carry_out
from jointbench.cli.run import WHEN_STOPPED
from jointbench.errors import JointbenchError
from tools.demo.story import Stage, Story, paper_text


class UnknownDemo(JointbenchError, KeyError):
    """There is no demo of that robot."""

    def __str__(self) -> str:
        """The sentence, which a KeyError would quote."""
        return str(self.args[0])


class NotModular(JointbenchError, ValueError):
    """Modules of a robot that is not made of modules."""


MODULAR = "modular7"
ROBOTS = ("nursing_arm", "nursing_dual", "rehab_arm", "gorobot2", MODULAR, "cobot6")
"""In the order of their papers; each has a file of its own beside this one."""
CHIPS = ("rp2040",)
"""Kinds of boards that a robot is played on, and compared with what boards without a chip say."""
ON_CHIPS = ("cobot6",)


def tell(robot: str, stage: Stage) -> Story:
    """Go one robot's way from boards to verdict.

    Raises:
        UnknownDemo: there is no such robot here.
    """
    check_robot(robot)
    return _tell(robot, stage)


def tell_own(bench_file: Path, stage: Stage) -> Story:
    """Go the usual way on the boards of a person's own bench file."""
    return _tell("own_bench", stage, bench_file)


def tell_on_chips(robot: str, kind: str, stage: Stage) -> Story:
    """Go one robot's way on chips, and beside it on boards without."""
    assert robot in ON_CHIPS
    return _tell("chips", stage, kind)


def check_robot(robot: str) -> None:
    """Know the robot, or raise UnknownDemo."""
    if robot not in ROBOTS:
        raise UnknownDemo(f"there is no demo of robot {robot!r}; there are {', '.join(ROBOTS)}")


def _tell(name: str, stage: Stage, *of: Path | str) -> Story:
    with ExitStack() as told:
        with stage.console.working("loading"):
            # Seconds of imports, SciPy's and Numba's above all.
            from jointbench.cli.console import compiling_told

            module = import_module(f"tools.demo.{name}")
            told.enter_context(compiling_told(stage.console))
        return module.tell(stage, *of)


ERRORS = (JointbenchError, BenchError)
USUAL = "cobot6"
OWN_ROBOT = {"gorobot2": "your own biped: docs/biped.md"}
"""Where to go on with a robot of one's own, where that is not as for any arm."""


def parser() -> argparse.ArgumentParser:
    """Parser of the options of `./run demo`."""
    options = argparse.ArgumentParser(prog="./run demo", description=__doc__)
    options.add_argument("robot", nargs="?", metavar="ROBOT", help=f"{', '.join(ROBOTS)} ({USUAL})")
    options.add_argument(
        "--bench",
        metavar="FILE",
        help="a bench file of your own, with real boards, of any robot; or, with the robot "
        f"{', '.join(ON_CHIPS)}, {', '.join(CHIPS)}: the same motion on emulated chips and on unix boards, compared",
    )
    options.add_argument(
        "--plant",
        choices=PLANT_KINDS,
        default="harmonic",
        help="the emulated joints: harmonic drives, the same with friction that turns its sign over distance, or rigid "
        "with Coulomb and viscous friction",
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
    story = _story(options, stage)
    say(story, console)
    last_lines = (*story.outcome, f"next: {what_next(options, stage, story)}")
    fields = fields_of(options, story)
    return Result("demo", options.seed, story.all_checks, fields, story.refused, last_lines)


def _story(options: argparse.Namespace, stage: Stage) -> Story:
    if on_chips(options):
        return tell_on_chips(options.robot, options.bench, stage)
    return tell_own(Path(options.bench), stage) if options.bench else tell(options.robot or USUAL, stage)


def on_chips(options: argparse.Namespace) -> bool:
    """True if a robot is to be played on chips, and compared."""
    return bool(options.robot and options.bench)


def check(options: argparse.Namespace) -> None:
    """Tell a slip before anything is said to begin.

    Raises:
        UnknownDemo: there is no such robot here, or not on chips.
        NotModular: modules are asked of a robot that has none.
    """
    robot = options.robot or USUAL
    if on_chips(options):
        check_robot(robot)
        if robot not in ON_CHIPS or options.bench not in CHIPS or options.board != UNIX:
            raise UnknownDemo(
                f"{robot} is not played on --bench {options.bench} --board {options.board}: with a robot there is "
                f"--bench {' or '.join(CHIPS)}, of {', '.join(ON_CHIPS)} and beside --board {UNIX}; a bench file of "
                "your own says itself what robot it is of"
            )
    elif not options.bench:
        check_robot(robot)
    if options.modules is not None and (options.bench or robot != MODULAR):
        raise NotModular(f"--modules cuts {MODULAR}, which is made of modules; leave it out for any other robot")


def first_line(options: argparse.Namespace) -> str:
    """The announcement of the demo, printed before the slow imports."""
    if on_chips(options):
        return (
            f"demo of {options.robot} on {options.bench}: plan, play on emulated chips and on unix boards, identify, "
            "judge on other motion, compare; minutes"
        )
    if options.bench:
        return f"demo on {options.bench}: plan, play on its boards, record, identify, judge on other motion"
    robot = options.robot or USUAL
    return f"demo of {robot}: plan, play on emulated boards, record, identify, judge on other motion"


def what_next(options: argparse.Namespace, stage: Stage, story: Story) -> str:
    """Commands to type and pages to read next."""
    if not story.is_kept:
        return "docs/troubleshooting.md, for what was refused or says NO"
    if options.bench and not on_chips(options):
        return f"./run export {stage.out}/model.json --out robot.urdf"
    robot = options.robot or USUAL
    following = ROBOTS[(ROBOTS.index(robot) + 1) % len(ROBOTS)]
    return f"./run demo {following}, or {OWN_ROBOT.get(robot, 'your own robot: docs/add_robot.md')}"


def stage_of(options: argparse.Namespace, console: Console) -> Stage:
    """Folder and options of the story; importing what finds a free folder takes a second."""
    from jointbench.recording import new_run_path

    names = (options.robot, Path(options.bench).stem) if options.bench else (options.robot or USUAL,)
    name = "_".join(name for name in names if name)
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
    """Fields of a story in JSON, beside its checks."""
    lines = [
        {
            "quantity": line.quantity,
            "paper": line.paper,
            "method": line.theirs,
            "ours": line.ours,
            "truth": line.truth,
            "wanted": line.wanted,
        }
        for line in story.lines
    ]
    played = (
        {"bench": options.bench, "plant": "real", "board": "real"}
        if options.bench and not on_chips(options)
        else {"robot": options.robot or USUAL, "plant": options.plant, "board": EMULATED[options.board]}
    )
    return {**played, "paper": story.paper, "lines": lines, **story.fields}


def command(options: argparse.Namespace) -> str:
    """The command that repeats this demo."""
    if on_chips(options):
        return f"./run demo {options.robot} --bench {options.bench} --plant {options.plant} --seed {options.seed}"
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


if __name__ == "__main__":
    sys.exit(main())
