"""`./run papers`: the demo of every arm of the papers, what each paper prints beside ours, on one page."""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hil_tests.virtual_bench.kinds import EMULATED
from jointbench.checks import Check, Result
from jointbench.cli.console import Console
from jointbench.cli.main import carry_out
from jointbench.cli.run import WHEN_STOPPED
from tools.demo import __main__ as verb
from tools.demo.__main__ import ROBOTS, tell
from tools.demo.story import PAPER_HEADS, Story, merged, paper_rows

ROOT = Path(__file__).resolve().parents[1]
FOLDER = "tools/tests"

_LOST = "test_papers.py::test_a_sample_that_was_lost_is_seen"
_RANK = "test_papers.py::test_base_parameters_see_links_that_turn_together"
_FRICTION = "test_papers.py::test_reductions_of_error_see_friction_of_a_wrong_sign_or_size_or_none"
_RESIDUAL = "test_papers.py::test_gains_see_a_residual_of_a_wrong_sign_or_size_or_none"
_INTERVAL = "test_papers.py::test_an_interval_far_from_the_truth_is_seen_whatever_the_verdict"
_PLANT = "test_papers.py::test_gains_on_unseen_missions_see_another_plant"
_GAIN = "test_papers.py::test_a1_of_the_published_plant_sees_a_gain_that_was_not_fitted"
_STROKES = "test_paper_nursing.py::test_friction_by_a_wrong_sign_is_seen"
_STAIRS = "test_paper_nursing.py::test_the_printed_strokes_tell_the_plants_friction"
_LINKS = "test_paper_nursing.py::test_another_robot_than_the_one_that_was_fitted_is_seen"
_REFUSED = ("WrongTotalMass", "StuckFootSensor", "RobotFell", "FootOffGround")
_NAMED = "test_paper_biped.py::test_a_fault_that_is_called_something_else_is_seen"
_COUNTS = "test_paper_biped.py::test_counts_of_runs_solver_and_faults_can_be_red"

BROKEN_BY: dict[str, dict[str, str]] = {
    "nursing_arm": {
        "samples_lost": _LOST,
        "base_parameters": _RANK,
        "friction_error_rotation": _STROKES,
        "friction_error_pitch": _STROKES,
        "friction_error_played_rotation": _STAIRS,
        "friction_error_played_pitch": _STAIRS,
        **{f"verification_relative_j{j}": _LINKS for j in range(1, 7)},
    },
    "nursing_dual": {
        "samples_lost": _LOST,
        "base_parameters": _RANK,
        "motors": "test_paper_nursing.py::test_an_arm_that_is_not_there_is_seen",
        "start_ticks_apart": "test_paper_nursing.py::test_a_board_that_starts_late_is_seen",
        "mirror_difference": "test_paper_nursing.py::test_an_arm_that_is_no_mirror_image_is_seen",
        "verification_relative": "test_paper_nursing.py::test_the_worst_of_all_joints_counts",
    },
    "gorobot2": {
        "samples_lost": _LOST,
        "boards": "test_paper_biped.py::test_a_board_that_does_not_stream_is_seen",
        "ours_to_paper": "test_paper_biped.py::test_a_wrong_sign_of_a_moment_is_seen",
        "ours_to_sensor_floor": "test_paper_biped.py::test_a_wrong_sign_of_a_moment_is_seen",
        "covered_by_ours": "test_paper_biped.py::test_a_plant_beyond_the_prior_is_seen",
        "spread_smaller": _COUNTS,
        "iterations_to_papers": _COUNTS,
        **{f"named_{what}": _NAMED for what in _REFUSED},
    },
    "rehab_arm": {
        "base_parameters": _RANK,
        "verification_relative_error": "test_papers.py::test_errors_of_the_verification_are_over_all_rows",
        "samples_lost": _LOST,
    },
    "modular7": {
        "samples_lost": _LOST,
        "gain_on_own_mission": "test_papers.py::test_gains_see_friction_that_was_left_out",
        "gain_on_worst_unseen_mission": _RESIDUAL,
        "gain_on_worst_unseen_mission_without_friction": _PLANT,
    },
    "cobot6": {
        "samples_lost": _LOST,
        "rms_reduction_excitation": _FRICTION,
        "rms_reduction_verification": "test_papers.py::test_rows_at_rest_count",
        "rms_reduction_excitation_presliding": _FRICTION,
        "rms_reduction_verification_presliding": _FRICTION,
        "rms_reduction_excitation_unmodelled": _FRICTION,
        "rms_reduction_verification_unmodelled": _FRICTION,
        "a1_of_the_published_plant_off": _GAIN,
        "j5_flexibility_off": _INTERVAL,
        "j6_flexibility_off": _INTERVAL,
    },
}
"""By robot and check: a test in FOLDER."""


def broken_lines(robot: str, checks: Sequence[Check]) -> list[str]:
    """A line for each check of a robot."""
    tests = BROKEN_BY[robot]
    return [f"- {check.name}: {tests.get(check.name, 'none')}" for check in checks]


HEAD = """\
# The robots of the papers

`./run papers` wrote this page: it plays the demo of each robot, from emulated boards to the verdict, and puts what
came of it beside what the robot's paper prints, what the paper's own method makes of the same recordings where that is
another than ours, and what is true of the plant or bounds ours from below. `wanted` is the limit that ours is held to;
NO marks one that is not kept, and `./run papers` then ends with exit code 1. `./run papers --only ROBOT` writes one
robot's section anew. With `--seeds N` a figure is the median over N seeds with [least … largest], each with a plant of
its own, and a limit is kept where the worst of them keeps it. The same seeds give the same page.

What a paper prints is taken from it; the rest is assumed, in the robot's own file and as said below. "–" is what our
copies of the papers' texts do not show, and what has no truth. The plant that stands for the robot is richer than the
models that are fitted. Ours beside the paper's says what a method does on such a robot, not that one robot is better
than the other. Torque errors are over all rows, rest included, unless a line says (moving).
"""


def section(robot: str, command: str, story: Story) -> str:
    """One robot's section, its heading first."""
    rows = [PAPER_HEADS, ("---",) * len(PAPER_HEADS), *paper_rows(story.lines)]
    table = "\n".join("| " + " | ".join(cell.strip() for cell in row) + " |" for row in rows)
    parts = [f"## {robot}", story.paper, not_by_the_docs(), f"    {command}"]
    parts += [table] if story.lines else []
    parts += ["\n".join(f"- {check}" for check in story.checks)] if story.checks else []
    broken = broken_lines(robot, story.all_checks)
    parts += [f"Checks, and the test in `{FOLDER}` that breaks each:", "\n".join(broken)] if broken else []
    parts += ["Assumed:", "\n".join(f"- {sentence}" for sentence in story.assumed)] if story.assumed else []
    return "\n\n".join(parts) + "\n"


def not_by_the_docs() -> str:
    """Say, unseen, that the test of the pages' commands need not run this one."""
    return "<!-- played by tools/tests/test_papers.py: minutes a seed -->"


def untold_section(robot: str, command: str, reason: str) -> str:
    """The section of a robot whose story could not be told: an older one would say what is no longer so."""
    return f"## {robot}\n\n{not_by_the_docs()}\n\n    {command}\n\nNO: {reason}\n"


def write_page(path: Path, sections: Mapping[str, str]) -> None:
    """Write the page with new sections; those of other robots stay as they are there.

    Args:
        path: of the page; there may be none yet.
        sections: by robot.
    """
    known = {**sections_of(path.read_text(encoding="utf-8") if path.exists() else ""), **sections}
    ordered = [known[robot] for robot in ROBOTS if robot in known]
    path.write_text("\n".join([HEAD, *ordered]), encoding="utf-8")


def sections_of(text: str) -> dict[str, str]:
    """A page's sections by robot."""
    parts = re.split(r"(?m)^(?=## )", text)[1:]
    return {part.splitlines()[0].removeprefix("## ").strip(): part.strip() + "\n" for part in parts}


PAGE = ROOT / "docs" / "papers.md"


def parser() -> argparse.ArgumentParser:
    """Parser of the options of `./run papers`."""
    options = argparse.ArgumentParser(prog="./run papers", description=__doc__)
    options.add_argument("--only", action="append", choices=ROBOTS, metavar="ROBOT", help="this one; may be repeated")
    options.add_argument("--board", choices=EMULATED, default="unix:", help="what the emulated boards run on")
    options.add_argument("--seed", type=int, default=0, help="same seed, same page (%(default)s)")
    options.add_argument("--seeds", type=_count, default=1, metavar="N", help="as many seeds, each with its own plant")
    options.add_argument("--page", metavar="FILE", default=str(PAGE), help="the page to write (docs/papers.md)")
    options.add_argument("--out", metavar="DIR", help="where the demos put theirs (a new folder under runs/)")
    options.add_argument("--json", metavar="FILE|-", help="write the machine-readable result there")
    return options


def main(arguments: list[str] | None = None) -> int:
    """Run the demos; 0, 1 when a check of any says no or one could not be done, 2 for wrong use."""
    return carry_out("papers", parser().parse_args(arguments), papers, verb.ERRORS, when_stopped=WHEN_STOPPED)


def papers(options: argparse.Namespace, console: Console) -> Result:
    """Every robot's story, then the page. One that cannot be told is said, and the others are told."""
    robots = [name for name in ROBOTS if name in (options.only or ROBOTS)]
    seeds = range(options.seed, options.seed + options.seeds)
    console.say(f"the demos of {', '.join(robots)}, one after the other")
    with console.working("loading"):
        from jointbench.recording import new_run_path

        out = Path(options.out) if options.out else new_run_path("runs", "all", "papers")
    sections: dict[str, str] = {}
    checks: list[Check] = []
    told: dict[str, dict[str, Any]] = {}
    refused = False
    for robot in robots:
        console.say(f"== {robot}")
        began = time.monotonic()
        command = f"./run papers --only {robot} --seed {options.seed} --seeds {options.seeds}"
        stories: list[Story] = []
        fields: dict[str, Any] = {}
        faults: dict[int, str] = {}
        for seed in seeds:
            folder = out / robot if len(seeds) == 1 else out / f"{robot}_{seed}"
            given = ["--board", options.board, "--seed", str(seed), "--out", str(folder)]
            demo = verb.parser().parse_args([robot, *given])
            stage = replace(verb.stage_of(demo, console), whole=True)
            try:
                story = tell(robot, stage)
            except verb.ERRORS as error:
                console.say(f"NO  {robot}, seed {seed}: {error}")
                faults[seed], refused = str(error), True
                continue
            verb.say(story, console)
            for line in story.outcome:
                console.say(line)
            console.say(f"{time.monotonic() - began:.0f} s\n")
            stories.append(story)
            fields[str(seed)] = verb.fields_of(demo, story)
        if not stories:
            reason = "; ".join(faults.values())
            told[robot] = {"error": reason}
            sections[robot] = untold_section(robot, command, reason)
            continue
        whole = merged(stories)
        untold = tuple(f"NO: seed {seed} could not be told: {reason}" for seed, reason in faults.items())
        whole = replace(whole, assumed=(*untold, *whole.assumed))
        sections[robot] = section(robot, command, whole)
        checks += [replace(check, name=f"{robot}: {check.name}") for check in whole.all_checks]
        first = next(iter(fields.values()))
        told[robot] = {"seconds": round(time.monotonic() - began, 3), **first, "seeds": fields}
        refused = refused or whole.refused
    write_page(Path(options.page), sections)
    console.say(f"page: {options.page}")
    return Result("papers", options.seed, tuple(checks), {"page": options.page, "robots": told}, refused)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number of at least 1")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
