"""System A: one arm of a nursing robot, three coupled-drive joints with two motors each."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from hil_tests.link_helpers import inject
from jointbench import Excitation, Robot, Run, Validation, Wrench, without_external
from jointbench.arrays import Array
from jointbench.checks import Check
from jointbench.cli.judgement import by_name
from jointbench.excitation import Workspace, WorkspacePoint, plan_excitation
from jointbench.identification import fit, validate
from jointbench.model import load_robot
from tools.demo.friction_experiment import (
    friction_fields,
    friction_lines,
    friction_of_joints,
    friction_table,
    plan_sweeps,
    refined,
    true_friction,
)
from tools.demo.own_bench import rank_check, say_judgement, write_files
from tools.demo.playing import BENCHES, play_all
from tools.demo.printed_nursing import Law, as_law, fit_printed, plants_own_rms, printed_rows
from tools.demo.story import PaperLine, Stage, Story
from tools.truth import Truth

PAPER = "A · Lu et al., Chinese Journal of Mechanical Engineering 37:74, 2024"
ASSUMED = (
    "The paper's text has three lengths, the differential and the gears; all inertias, the other lengths, limits and "
    "noise are chosen. The plant's links and rotors differ from what the model is told, and each seed draws them about "
    "that. Its friction is Makkar's, as the paper's law is, and more that no fitted law has: grease that drags by the "
    "speed to the power of 2/3, teeth by which friction swells by 4 % and, twice a tooth, 2.5 %, gears that lose 2 % "
    "of their load and 5 % of their friction as they warm up; sources in the plant's file.",
    "The friction experiment is the paper's on the plant's own laws, without boards: 61 speeds from 1 °/s in steps of "
    "0.5 °/s, strokes of ±90° both ways, pauses of 5 s. It takes 55 minutes of the robot's time an axis, and boards "
    "and plant pass that in about as long. The swell of the teeth is such that R² over all points of the strokes is "
    "about the paper's 0.93; over the means of whole strokes it is mostly above 0.99, and the paper does not say which "
    "it has.",
    "What is played are stairs: the printed speeds, and then those halfway between them, held 0.13 s each one after "
    "the other and back the same way; rotations together, then pitches, while the others stay where gravity turns "
    "nothing. A speed passes a part of a tooth only. The shoulder's own pitch carries gravity, and its friction is "
    "told apart from what grows with the load. The paper's method takes its friction from the stairs; ours from these "
    "and, once more, from what the links leave of the excitation.",
    "Our copy lacks the cells of the paper's tables: of its motion limits, excitation, friction and identified "
    "parameters, and of a joint's components. The palm stays inside a box of 0.9 × 1.0 × 0.76 m in front of the "
    "shoulder.",
    "The paper's method: the low-pass of 15 Hz, zero-phase and of order 4, whose pass-band ripple of 4 dB is not made; "
    "periods averaged; the swarm's friction and the joints' own dynamics taken off, those of the drawing's rotors; "
    "columns and torque standardized, 70 % of all rows drawn at random to train, and the ridge, whose strength is not "
    "printed, that predicts the other 30 % best.",
    "Errors are over all rows, rest included; over moving rows in brackets. The bound is what the plant's own bodies, "
    "rotors and mean friction leave of the same torque: teeth, warmth, the gears' losses and their bending.",
    "The paper's method has ten periods of one path. Ours has those and two periods of each of four other paths: on "
    "one path the teeth's swell is the same each time, and bodies take it for inertia. Fitted on one path alone, the "
    "three that were tried, the worst of j3, j5 and j6 erred by 5.2, 7.2 and 8.1 %.",
    "What pulls at the hand is in the model (the paper's τ_ext: `jb.external_torques`, -Jᵀ f) and in the plant (the "
    "fault `pull`). In the paper's experiments, and in all recordings that are fitted here, nobody touches the arm; "
    "the verification is played once more with a weight at the hand.",
)
PRINTED_RMSE = {"j1": "14.372 N·m", "j6": "3.152 N·m"}
PRINTED_PARAMETERS = 36
LARGEST_ERROR_PERCENT = 5.0

EXCITATION, REPEATS = ((2, 4, 6), 20.0), 5
"""N = 3 of 0.2π rad/s, ten periods: two of them in a playing, as 10 s is no whole number of the boards' knots."""

WEIGHT_N = 30.0
"""Hung on the hand when the verification is played once more."""

OTHER_PATHS = 4
"""Each played once, as long as a playing of the first: on one path alone the teeth's swell is the same each time."""

VERIFICATION = ((1, 2, 3), 10.016)
"""One period of other coefficients, a whole number of knots long."""

WORKSPACE = Workspace(points=(WorkspacePoint("palm", (0.0, 0.12, 0.0), (-0.45, -0.3, -0.66), (0.45, 0.7, 0.1)),))


def tell(stage: Stage) -> Story:
    """Friction experiment, excitation and verification on the boards; the paper's way and ours through all of it."""
    robot = load_robot("nursing_arm")
    motions = {**plan_sweeps(robot), **plan_motions(robot, stage, OTHER_PATHS)}
    motions["loaded"] = motions["verification"]
    load = partial(inject, fault="pull", node=robot.n_joints, force_N=-WEIGHT_N)
    played = play_all(stage, BENCHES / "nursing_arm.toml", motions, before={"loaded": load})
    with stage.console.working("fitting friction by our way and by the paper's swarm"):
        friction = friction_of_joints(played.runs, played.truth, stage.seed)
    stage.console.say()
    stage.console.say(friction_table(friction))
    fit_run, verification_run = played.runs["excitation"], played.runs["verification"]
    with stage.console.working("fitting by our way and by the paper's, and judging"):
        excitations = [run for name, run in played.runs.items() if name.startswith("excitation")]
        model = fit(excitations, friction={name: each.ours for name, each in friction.items()})
        model = fit(excitations, friction=refined(friction, played.runs, excitations, model))
        judged = validate(model, verification_run)
        swarm = {name: as_law(each.swarm) for name, each in friction.items()}
        rows = [printed_rows(run, swarm) for run in (fit_run, verification_run)]
        printed = fit_printed(robot, rows[0], stage.seed)
        bound = bound_of(verification_run, played.truth)
        loaded = played.runs["loaded"]
        unaware = validate(model, loaded)
        aware = validate(model, without_external(loaded, Wrench("hand", [0.0, 0.0, -WEIGHT_N])))
    say_judgement(stage, model, judged)
    rank = rank_check(robot, PRINTED_PARAMETERS)
    lines = (
        *friction_lines(friction),
        PaperLine(
            "base parameters of the links",
            f"{PRINTED_PARAMETERS}",
            f"{rank.value:g}",
            rank,
        ),
        *verification_lines(judged, printed.rms(robot, rows[1]), rows[1].size, bound),
        PaperLine(
            f"RMSE with {WEIGHT_N:g} N at the hand, all rows, pitching joints j2, j4, j6, τ_ext left out of the model",
            "–",
            _pitching(unaware),
        ),
        PaperLine("the same, τ_ext in the model", "–", _pitching(aware)),
    )
    fields: dict[str, Any] = {
        "samples_lost": played.samples_lost,
        "samples_received": played.samples_received,
        "planned_condition_number": motions["excitation"][0].condition_number,
        "frames_sha256": [run.sha256 for run in played.runs.values()],
        "friction_experiment": friction_fields(friction),
        "papers_method": {
            "strength": printed.strength,
            "held_out_relative_error": printed.tested,
            "verification_rms": by_name(judged.joint_names, printed.rms(robot, rows[1])[0]),
        },
        "verification_bound": by_name(judged.joint_names, bound),
        **write_files(stage, model, fit_run, judged, verification_run),
    }
    refused = judged.verdict.is_refused or not played.is_valid
    return Story(PAPER, lines, (played.lost_check,), fields, refused, ASSUMED, judged.verdict)


def plan_motions(robot: Robot, stage: Stage, other_paths: int = 0) -> dict[str, tuple[Excitation, int]]:
    """Motions to fit on, and one with other coefficients to verify on, each with how often it is played.

    Args:
        robot: the arm.
        stage: where and how.
        other_paths: excitations beside the first, from other seeds, each played once.
    """
    stage.console.say("planning excitations (Fourier series, 3 harmonics, 10 s, the palm inside its workspace)")

    def planned(of: tuple[tuple[int, ...], float], seed: int) -> Excitation:
        harmonics, period = of
        return plan_excitation(
            robot,
            harmonics=harmonics,
            period=period,
            seed=seed,
            workspace=WORKSPACE,
            progress=lambda start, step, cond: stage.console.progress(f"step {step}: condition {cond:.1f}"),
        )

    with stage.console.working("planning"):
        best, verification = planned(EXCITATION, stage.seed), planned(VERIFICATION, stage.seed + 1)
        others = [planned(EXCITATION, stage.seed + 100 + k) for k in range(other_paths)]
    stage.console.say(f"  condition number {best.condition_number:.1f}")
    return {
        "excitation": (best, REPEATS),
        **{f"excitation_{k}": (other, 1) for k, other in enumerate(others, start=2)},
        "verification": (verification, 1),
    }


def _pitching(judged: Validation) -> str:
    """RMSE of the joints that carry a weight at the hand, over all rows."""
    rms = judged.error_all.rms[[judged.joint_names.index(name) for name in ("j2", "j4", "j6")]]
    return ", ".join(f"{error:.2f}" for error in rms) + " N·m"


def bound_of(run: Run, truth: Truth) -> Array:
    """Error of the plant's own parameters and mean friction as shares of a run's torque, shape (n_joints,)."""
    robot = run.robot
    known = [truth[name] for name in robot.joint_names]
    friction: dict[str, Law] = {
        name: partial(true_friction, each["friction"]) for name, each in zip(robot.joint_names, known, strict=True)
    }
    ratios = np.abs(robot.transmission_matrix).max(axis=1)
    rotors = [each["rotor_inertia"] / ratio**2 for each, ratio in zip(known, ratios.tolist(), strict=True)]
    parameters = np.concatenate([each["standard_parameters"] for each in known])
    return plants_own_rms(run, friction, rotors, parameters)


def verification_lines(
    ours: Validation, printed: tuple[Array, Array], size: Array, bound: Array
) -> tuple[PaperLine, ...]:
    """Two lines per joint, the paper's method and ours: RMSE and error as a share of the torque, over all rows."""
    lines: list[PaperLine] = []
    everywhere = ours.error_all
    for j, name in enumerate(ours.joint_names):
        theirs, theirs_moving = (each[j] for each in printed)
        lines += [
            PaperLine(
                f"verification RMSE, all rows (moving), {name}, paper's method",
                PRINTED_RMSE.get(name, "–"),
                f"{theirs:.3f} N·m, {theirs / size[j]:.2%} of the torque ({theirs_moving:.3f} N·m)",
            ),
            PaperLine(
                f"the same, {name}, ours",
                "–",
                f"{everywhere.rms[j]:.3f} N·m, {everywhere.relative[j]:.2%} ({ours.rms[j]:.3f} N·m, "
                f"{ours.relative[j]:.2%}); bound {bound[j]:.2%}",
                Check(
                    f"verification_relative_{name}",
                    100.0 * float(everywhere.relative[j]),
                    "<=",
                    LARGEST_ERROR_PERCENT,
                    "%",
                ),
            ),
        ]
    return tuple(lines)
