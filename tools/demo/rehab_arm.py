"""System B: four modelled joints of a rehabilitation arm with springs, and a fifth in torque mode."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from jointbench import Model, Validation
from jointbench.arrays import Array
from jointbench.checks import Check
from jointbench.identification import fit, validate
from jointbench.model import load_robot
from jointbench.recording import Run
from tools.demo.own_bench import plan, rank_check, say_judgement, write_files
from tools.demo.playing import BENCHES, play_all
from tools.demo.story import PaperLine, Stage, Story
from tools.truth import Truth

PAPER = "B · Tong et al., Intelligence & Robotics 4:125, 2024"
ASSUMED = (
    "Geometry, inertias, drives and limits of the arm: our copy is the first of the paper's 21 pages and shows none.",
    "What E is: a balancer at joint 2, which goes by the sine of its position, and springs at joints 3 and 4, which go "
    "by theirs. The fit is told where they are, not how strong.",
    "Friction of the drives: Stribeck's, with a part that goes by the load. The fit is told no law: it is `fit` as it "
    "is without options, friction with memory where that errs less on rows held out. Of flexible gears and of "
    "currents' gain errors it knows nothing. As the paper's method stands Newton-Euler with Coulomb and viscous "
    "friction, as far as the first page goes; whether the paper fits more than that it does not show.",
    "Joint 5 runs in torque mode as the paper's does: its small motor's current is held at zero, and it swings.",
    "The currents' gains, 1 ± 0.01 a board, scale stiffnesses as all torques; the error bars do not know of them.",
)

PLAIN = "coulomb_viscous"
MODELLED, RANK = 4, 22
PASSIVE = "j5"


def tell(stage: Stage) -> Story:
    """Plan, play while the fifth joint swings freely, fit with E and without, judge on another motion."""
    robot = load_robot("rehab_arm")
    motions = plan(robot, stage.seed, stage.console)
    played = play_all(stage, BENCHES / "rehab_arm.toml", motions)
    fit_run, verification_run = (played.runs[name] for name in motions)
    with stage.console.working("fitting and judging"):
        model = fit(fit_run, robot)
        judged = validate(model, verification_run)
    say_judgement(stage, model, judged)
    for note in model.notes:
        stage.console.say(f"note: {note}")
    with stage.console.working("fitting without E, and with plain friction"):
        bare = validate(fit(fit_run, replace(robot, compensations=())), verification_run)
        plain = validate(fit(fit_run, robot, friction=PLAIN), verification_run)
    rank = rank_check(robot, RANK)
    lines = (
        PaperLine("base parameters of four links", "–", f"{rank.value:g}", rank),
        PaperLine(
            "relative error on another motion, all rows, joints 1 … 4",
            "–",
            _errors(judged.error_all.relative),
            error_check(judged),
            theirs=_errors(plain.error_all.relative),
        ),
        PaperLine(
            "the same, rows away from rest (moving)", "–", _errors(judged.relative), theirs=_errors(plain.relative)
        ),
        PaperLine("the same without E, all rows", "–", _errors(bare.error_all.relative)),
        _spring(model, played.truth, "turn_spring", "j3"),
        _spring(model, played.truth, "elbow_spring", "j4"),
        PaperLine("swing of joint 5 in torque mode, fitted and other motion", "–", _swings(fit_run, verification_run)),
        PaperLine("current of its motor then, rms of samples", "–", _currents(fit_run, verification_run), truth="0 mA"),
    )
    fields: dict[str, Any] = {
        **played.fields,
        "relative_without_compensations": bare.error_all.relative[:MODELLED],
        "relative_with_plain_friction": plain.error_all.relative[:MODELLED],
        **write_files(stage, model, fit_run, judged, verification_run, motions["excitation"][0]),
    }
    refused = judged.verdict.is_refused or not played.is_valid
    return Story(PAPER, lines, (played.lost_check,), fields, refused, ASSUMED, judged.verdict)


def error_check(judged: Validation) -> Check:
    """The largest relative error of the modelled joints, over all rows; a joint without one is not kept."""
    worst = 100.0 * float(np.max(judged.error_all.relative[:MODELLED]))
    return Check("verification_relative_error", worst, "<=", 5, "%")


def _errors(relative: Array) -> str:
    return ", ".join(f"{100.0 * each:.2f}" for each in relative[:MODELLED]) + " %"


def _spring(model: Model, truth: Truth, name: str, joint: str) -> PaperLine:
    """A stiffness with its 2 σ, beside the plant's own; the board's current gain, 1 ± 0.01, scales the first."""
    parameter = f"{name}.stiffness"
    value, sigma = model.value(parameter), float(model.sigma[model.names.index(parameter)])
    true = truth[joint]["springs"]["torsion"]
    return PaperLine(parameter, "–", f"{value:.3f} ± {2.0 * sigma:.3f} N·m/rad (2 σ)", truth=f"{true:g} N·m/rad")


def _swings(*runs: Run) -> str:
    """Distance that the passive joint went in each."""
    positions: list[Array] = [run.samples.motor_position[:, run.robot.joint_index(PASSIVE)] for run in runs]
    return ", ".join(f"{np.degrees(np.nanmax(each) - np.nanmin(each)):.0f}" for each in positions) + "° peak to peak"


def _currents(*runs: Run) -> str:
    """Current of the passive joint's motor in each, with the converter's noise."""
    rms: list[float] = []
    for run in runs:
        samples = run.samples
        assert samples.motor_current is not None
        current = samples.motor_current[samples.play_tick >= 0, run.robot.joint_index(PASSIVE)]
        rms.append(1000.0 * float(np.sqrt(np.nanmean(current**2))))
    return ", ".join(f"{current:.0f}" for current in rms) + " mA"
