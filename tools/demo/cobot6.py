"""System E: a six-axis arm with harmonic drives, whose joints the paper models in two stages."""

from __future__ import annotations

from typing import Any

import numpy as np

from jointbench import Model, Validation
from jointbench.cli.result import Check
from jointbench.identification import fit, validate
from jointbench.robot import Array, load_robot
from tools.demo.harmonic_lines import harmonic_lines
from tools.demo.judging import say_judgement, write_files
from tools.demo.own_bench import plan
from tools.demo.playing import BENCHES, play_all
from tools.demo.story import Stage, Story
from tools.truth import deviations_from_truth

PAPER = "E · Zhang & Ding, Information and Control 52(3):292, 2023"
ASSUMED = (
    "The paper's two tables are its geometry and a1 … a5; inertias, limits and noise are not in its text: links are of "
    "the size of a UR5's, 5 to 15 % off in the plant.",
    "The plant's friction is Coulomb, viscous and Stribeck at the motor, with a part that grows with the torque of the "
    "gear; the published law lets it grow with that of the motor.",
    "Ours is the friction with memory of docs/friction.md, its columns filtered as the torque was; the published five "
    "numbers are fitted the same way beside it, with the torque that load friction grows with chosen by the residual. "
    "The gain error of each current is fitted, too.",
    "The paper's method: its preparation of the signals, weighted least squares over all rows, load friction signed "
    "and linear in the motor's torque, which on the excitation is the measured one (eq. 20) and on the verification "
    "the simplified model's (eq. 24). Equations are pictures in our copy; a5's column is built from a3 and a4 of the "
    "fit without it. The plant's friction grows with the gear's torque and not with the motor's, so this way gains "
    "less here than on the paper's arm.",
    "Rows are all samples but those in which a filter feels the ends of the recording; (moving) ones are those away "
    "from rest.",
    "An RMS of all joints is the root of the mean square of the joints' own; how the paper joins them it does not say. "
    "Nor does it print the cut-off of its Butterworth filter: 5 Hz.",
)


def tell(stage: Stage) -> Story:
    """The usual model from boards to verdict, then the paper's models of the same recordings."""
    motions = plan(load_robot("cobot6"), stage.seed, stage.console)
    played = play_all(stage, BENCHES / "cobot6.toml", motions)
    fit_run, verification_run = (played.runs[name] for name in motions)
    with stage.console.working("fitting and judging"):
        model = fit(fit_run)
        judged = validate(model, verification_run)
    say_judgement(stage, model, judged)
    fields: dict[str, Any] = {
        **played.fields,
        "planned_condition_number": motions["excitation"][0].condition_number,
        **write_files(stage, model, fit_run, judged, verification_run),
    }
    refused = judged.verdict.word == "refused" or not played.is_valid
    if stage.plant == "ideal":
        deviations = deviations_from_truth(model, played.truth)
        fields["deviations_in_sigma"] = dict(zip(model.names, deviations.tolist(), strict=True))
        checks = (played.lost_check, *truth_checks(model, judged, deviations))
        return Story(PAPER, (), checks, fields, refused, ASSUMED, judged.verdict)
    stage.console.say("identifying links, gears and motors in the paper's two stages")
    with stage.console.working("fitting both stages"):
        lines, more = harmonic_lines(fit_run, verification_run, played.truth)
    return Story(PAPER, lines, (played.lost_check,), fields | more, refused, ASSUMED, judged.verdict)


def truth_checks(model: Model, judged: Validation, deviations: Array) -> tuple[Check, Check]:
    """On the ideal plant, of the model's own form: honest error bars and a small error."""
    # A parameter that is not told has infinite σ and deviates by nothing: it is no proof of honest error bars.
    within = float(np.mean((np.abs(deviations) <= 2.0) & np.isfinite(model.sigma)))
    return (
        Check("parameters_within_2_sigma", within, ">=", 0.9),
        Check("verification_relative_j1_to_j5", float(np.max(judged.relative[:5])), "<=", 0.03),
    )
