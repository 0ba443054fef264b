"""A model and its verdict on other motion: for a person, as files, and in JSON."""

from __future__ import annotations

import math
from typing import Any

from jointbench import Excitation, Model, Robot, Run, Validation
from jointbench.checks import Check
from jointbench.cli.fit import fit_fields
from jointbench.cli.tables import table
from jointbench.cli.validate import validation_fields
from jointbench.dynamics import base_parameters
from jointbench.report import key_picture, write_report
from tools.demo.story import Stage


def rank_check(robot: Robot, wanted: int) -> Check:
    """How many base parameters the links of a robot have."""
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
