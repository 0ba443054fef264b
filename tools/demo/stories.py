"""The robots that have a story, by the name that `./run demo` takes; none is imported before it is told."""

from __future__ import annotations

from contextlib import ExitStack
from importlib import import_module
from pathlib import Path

from tools.demo.errors import UnknownDemo
from tools.demo.story import Stage, Story

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
            from jointbench.cli.compiling import compiling_told

            module = import_module(f"tools.demo.{name}")
            told.enter_context(compiling_told(stage.console))
        return module.tell(stage, *of)
