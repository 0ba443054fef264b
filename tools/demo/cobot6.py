"""System E: a six-axis arm with harmonic drives, whose joints the paper models in two stages."""

from __future__ import annotations

from typing import Any

import numpy as np

from jointbench import Model, Validation
from jointbench.arrays import Array
from jointbench.checks import Check
from jointbench.identification import fit, validate
from jointbench.model import load_robot
from tools.demo.harmonic_lines import PLANTS, harmonic_lines
from tools.demo.own_bench import plan, say_judgement, write_files
from tools.demo.playing import BENCHES, play_all
from tools.demo.story import Stage, Story
from tools.truth import deviations_from_truth

PAPER = "E · Zhang & Ding, Information and Control 52(3):292, 2023"
ASSUMED = (
    "The paper's two tables are its geometry and a1 … a5; inertias, limits and noise are not in its text: links are of "
    "the size of a UR5's, 5 to 15 % off in the plants, and other ones for each seed.",
    *(f"Plant {plant.name}: {plant.told}." for plant in PLANTS),
    "Friction of the first three plants: Coulomb, viscous and Stribeck at the motor, with a part that grows with the "
    "torque of the gear. The published law lets it grow with that of the motor, signed: a current's gain by another "
    "name, so that it says little of these plants, whatever it gains on the paper's arm.",
    'On the plant "published" links have 12 % of their masses: at a1 = 0.804 a fifth of joint 2\'s torque arrives, '
    "and the motors of our arm carry no more. Its errors in N·m are of that light arm, and compared with no limit. The "
    "printed a5 as stiffness, 71 to 111 N·m/rad of j1 and j2, would let the arm sag by a radian: its unit is not what "
    "we take it to be, so that stiffness is as on the other plants. Of "
    "seeds 0 to 4 seed 3 misses the limit on a1, by j6: 5.03 % of its torque; the others err by 0.7 to 3.6 %.",
    "Ours is the friction with memory of docs/friction.md, its columns filtered as the torque was; the published five "
    "numbers are fitted the same way beside it, with the torque that load friction grows with chosen by the residual. "
    "The gain error of each current is fitted, too. None is told which plant it is on.",
    "The paper's method: its preparation of the signals, weighted least squares over all rows, load friction signed "
    "and linear in the motor's torque, which on the excitation is the measured one (eq. 20) and on the verification "
    "the simplified model's (eq. 24). Equations are pictures in our copy; a5's column is built from a3 and a4 of the "
    "fit without it.",
    "Rows are all samples but those in which a filter feels the ends of the recording; (moving) ones are those away "
    "from rest.",
    "An RMS of all joints is the root of the mean square of the joints' own; how the paper joins them it does not say. "
    "The cut-off of its Butterworth filter is not in its text: 5 Hz here.",
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
    refused = judged.verdict.is_refused or not played.is_valid
    if stage.plant == "ideal":
        deviations = deviations_from_truth(model, played.truth)
        fields["deviations_in_sigma"] = dict(zip(model.names, deviations.tolist(), strict=True))
        checks = (played.lost_check, *truth_checks(model, judged, deviations))
        return Story(PAPER, (), checks, fields, refused, ASSUMED, judged.verdict)
    stage.console.say("identifying links, gears and motors in the paper's two stages")
    own = PLANTS[0] if stage.plant == "harmonic" else PLANTS[1]
    with stage.console.working("fitting both stages"):
        lines, more = harmonic_lines(fit_run, verification_run, played.truth, own, stage.seed)
    fields |= more
    lost = [played]
    for plant in PLANTS if stage.whole else ():
        if plant is own:
            continue
        other = play_all(
            stage, BENCHES / plant.bench, motions, plant=plant.kind, variant=plant.variant, folder=plant.name
        )
        lost.append(other)
        with stage.console.working("fitting both stages"):
            runs = [other.runs[name] for name in motions]
            others, of_other = harmonic_lines(runs[0], runs[1], other.truth, plant, stage.seed)
        lines += others
        fields[plant.name] = of_other
        refused = refused or not other.is_valid
    checks = (Check("samples_lost", sum(each.samples_lost for each in lost), "<=", 0, "samples"),)
    return Story(PAPER, lines, checks, fields, refused, ASSUMED, judged.verdict)


def truth_checks(model: Model, judged: Validation, deviations: Array) -> tuple[Check, Check]:
    """On the ideal plant, of the model's own form: honest error bars and a small error."""
    # A parameter that is not told has infinite σ and deviates by nothing: it is no proof of honest error bars.
    within = float(np.mean((np.abs(deviations) <= 2.0) & np.isfinite(model.sigma)))
    return (
        Check("parameters_within_2_sigma", within, ">=", 0.9),
        Check("verification_relative_j1_to_j5", float(np.max(judged.relative[:5])), "<=", 0.03),
    )
