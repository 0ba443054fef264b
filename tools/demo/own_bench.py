"""The usual way on any bench: plan, play, fit, judge on other motion; the verdict as table and files."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from jointbench import Excitation, Model, Robot, Run, Validation
from jointbench.bench import read_bench_file
from jointbench.checks import Check
from jointbench.cli.console import Console, table
from jointbench.cli.fit import fit_fields
from jointbench.cli.validate import validation_fields
from jointbench.excitation import plan_excitation, random_excitation
from jointbench.identification import fit, validate
from jointbench.model import base_parameters, load_robot
from jointbench.results import key_picture, write_report
from tools.demo.playing import Played, play_on
from tools.demo.story import Stage, Story


def rank_check(robot: Robot, wanted: int) -> Check:
    """Check of the number of base parameters of a robot's links."""
    return Check("base_parameters", base_parameters(robot, drives=False).rank, "==", wanted)


def say_judgement(stage: Stage, model: Model, judged: Validation) -> None:
    """Prints a line per joint; the verdict on all is among the story's last words."""
    stage.console.say()
    stage.console.say(joint_table(model, judged))


def joint_table(model: Model, judged: Validation) -> str:
    """A line per joint: error of the fit and on the other motion over all rows, then where it moves, and the verdict.

    Of a joint not modelled there are no errors.
    """
    everywhere = judged.error_all
    rows: list[list[str]] = []
    for name, fitted, rms, relative, moving, verdict in zip(
        judged.joint_names,
        model.error_all.rms,
        everywhere.rms,
        everywhere.relative,
        judged.relative,
        judged.joint_verdicts,
        strict=True,
    ):
        figures = [f"{fitted:.3f}", f"{rms:.3f}", f"{relative:.2%}", f"{moving:.2%}"]
        rows.append([name, *(figures if math.isfinite(rms) else len(figures) * ["–"]), verdict.word])
    heads = ("joint", "fit rms [N·m]", "verification", "relative", "moving", "verdict")
    return table(heads, rows)


def write_files(
    stage: Stage,
    model: Model,
    fit_run: Run,
    judged: Validation,
    verification_run: Run,
    excitation: Excitation | None = None,
) -> dict[str, Any]:
    """Write model.json, report.html and torques.png into stage.out.

    Returns:
        What of them belongs into --json: model, errors, verdicts, the report's path.
    """
    model.save(stage.out / "model.json")
    commands = (stage.command,)
    with stage.console.working("drawing the report"):
        report = write_report(
            stage.out / "report.html", model, fit_run, judged, verification_run, excitation, commands=commands
        )
        picture = key_picture(stage.out / "torques.png", model, judged)
    stage.console.say(f"picture: {picture}")
    return {**fit_fields(model), **validation_fields(judged), "report": report}


PERIOD = 20.0
REPEATS = 2


def tell(stage: Stage, bench_file: Path) -> Story:
    """Go the usual way on the boards of a bench file."""
    robot = load_robot(read_bench_file(bench_file).robot)  # a slip in the file is told before the planning
    motions = plan(robot, stage.seed, stage.console)
    played = Played(play_on(stage, bench_file, motions), {})
    fit_run, verification_run = (played.runs[name] for name in motions)
    with stage.console.working("fitting and judging"):
        model = fit(fit_run)
        judged = validate(model, verification_run)
    say_judgement(stage, model, judged)
    fields = {
        **played.fields,
        "planned_condition_number": motions["excitation"][0].condition_number,
        **write_files(stage, model, fit_run, judged, verification_run),
    }
    refused = judged.verdict.is_refused or not played.is_valid
    return Story(f"{robot.name} on {bench_file}", (), (played.lost_check,), fields, refused, verdict=judged.verdict)


def plan(robot: Robot, seed: int, console: Console) -> dict[str, tuple[Excitation, int]]:
    """The best motion to fit on, and another to verify on, each with how often it is played."""
    console.say(f"planning an excitation (Fourier series, 5 harmonics, {PERIOD:g} s)")
    with console.working("planning"):
        excitation = plan_excitation(
            robot,
            period=PERIOD,
            seed=seed,
            progress=lambda start, step, cond: console.progress(
                f"start {start + 1}, step {step}: condition {cond:.1f}"
            ),
        )
    console.say(f"  condition number {excitation.condition_number:.1f}")
    verification = random_excitation(robot, period=PERIOD, seed=seed + 1)
    return {"excitation": (excitation, REPEATS), "verification": (verification, 1)}
