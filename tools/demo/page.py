"""docs/papers.md: a section for each robot's story, written from what was measured."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from tools.demo.broken_checks import FOLDER, broken_lines
from tools.demo.stories import ROBOTS
from tools.demo.story import PAPER_HEADS, Story, paper_rows

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
