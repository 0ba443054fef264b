"""The demo of every arm of the papers, one after the other: what each paper prints beside ours, on one page."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from hil_tests.virtual_bench.kinds import EMULATED
from jointbench.checks import Check, Result
from jointbench.cli.carry_out import carry_out
from jointbench.cli.console import Console
from jointbench.cli.run import WHEN_STOPPED
from tools.demo import verb
from tools.demo.page import section, untold_section, write_page
from tools.demo.seeds import merged
from tools.demo.stories import ROBOTS, tell
from tools.demo.story import Story

PAGE = Path(__file__).resolve().parents[1] / "docs" / "papers.md"


def parser() -> argparse.ArgumentParser:
    """What `./run papers` takes."""
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
