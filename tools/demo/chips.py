"""One motion on two kinds of boards: the chips that people buy, at their pins, and the interpreter without a chip.

Both benches have the same robot, the same gains and zeros of the sensors, the same crystals and the same motion; noise,
and what the boards themselves do, differ. So must no parameter by more than its error bar.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from hil_tests.virtual_bench.bench_file import read_bench_file
from hil_tests.virtual_bench.kinds import RP2040
from jointbench import Excitation, Model, Run
from jointbench.checks import Check
from jointbench.cli.compare import comparison_fields, parameters_table
from jointbench.cli.console import Console
from jointbench.excitation import plan_excitation, random_excitation
from jointbench.identification import fit, validate
from jointbench.identification.comparison import Comparison, compare
from jointbench.model import Robot
from jointbench.recording import boards_of
from tools.demo.own_bench import say_judgement, write_files
from tools.demo.playing import BENCHES, play_all
from tools.demo.story import Plant, Stage, Story
from tools.truth import deviations_from_truth

KINDS = {"rp2040": RP2040}
"""Of boards that `--bench` names beside a robot, and their URL."""

PERIOD = 9.6  # [s]; each takes a chip some seconds of the wall clock
TWO_SIGMA = 2.0
WITHIN: dict[Plant, float] = {"harmonic": 1.0, "presliding": 1.0, "ideal": 0.9}
"""Share of the parameters that differ by two σ at most, by plant.

On harmonic joints the error bars hold what the model lacks, which is the same on both benches: all of them. Where noise
alone makes them, as on the ideal plant, chance has one of twenty beyond.
"""
BENCH = BENCHES / "cobot6_chips.toml"


def tell(stage: Stage, kind: str) -> Story:
    """Play a motion on chips and on unix boards, fit both recordings, and compare the models.

    Args:
        stage: where and how; its board is that of the bench beside the chips'.
        kind: one of KINDS.
    """
    robot = read_bench_file(BENCH).robot
    motion, other = plan(robot, stage.seed, stage.console)
    chips = replace(stage, board=KINDS[kind], out=stage.out / kind)
    played = play_all(chips, BENCH, {"excitation": (motion, 1)}, noise_seed=stage.seed + 1)
    beside = replace(stage, out=stage.out / stage.board.split(":")[0])
    motions = {"excitation": (motion, 1), "verification": (other, 1)}
    played_beside = play_all(beside, BENCH, motions)
    run, run_beside, verification = played.runs["excitation"], *played_beside.runs.values()
    with stage.console.working("fitting, judging and comparing"):
        model, model_beside = fit(run), fit(run_beside)
        judged = validate(model, verification)
        comparison = compare(with_zeros_of(model_beside, run_beside, run), model)
    say_judgement(stage, model, judged)
    stage.console.say()
    stage.console.say(f"parameters on {stage.board} (A) and on {kind}: (B), σ of B - A is √(σ_A² + σ_B²):")
    stage.console.say(parameters_table(comparison, robot))
    largest = int(np.argmax(np.abs(comparison.in_sigma)))
    stage.console.say(f"largest: {comparison.names[largest]}, {comparison.in_sigma[largest]:+.2f} σ")
    stage.console.say(f"{comparison.answer}: {comparison.reason}")
    fields: dict[str, Any] = {
        **played.fields,
        "comparison": {"a": stage.board, "b": KINDS[kind], **comparison_fields(comparison)},
        "in_sigma": dict(zip(comparison.names, comparison.in_sigma.tolist(), strict=True)),
        "largest_in_sigma": float(np.max(np.abs(comparison.in_sigma))),
        "planned_condition_number": motion.condition_number,
        **write_files(stage, model, run, judged, verification),
    }
    if stage.plant == "ideal":
        deviations = deviations_from_truth(model, played.truth)
        fields["deviations_in_sigma"] = dict(zip(model.names, deviations.tolist(), strict=True))
    refused = judged.verdict.is_refused or not (played.is_valid and played_beside.is_valid)
    checks = (played.lost_check, *comparison_checks(comparison, stage.plant))
    return Story(f"{robot.name} on {kind}: beside {stage.board}", (), checks, fields, refused, verdict=judged.verdict)


def plan(robot: Robot, seed: int, console: Console) -> tuple[Excitation, Excitation]:
    """The motion to compare on, and another to judge the chips' model on."""
    console.say(f"planning an excitation (Fourier series, 5 harmonics, {PERIOD:g} s)")
    with console.working("planning"):
        excitation = plan_excitation(robot, period=PERIOD, seed=seed)
    console.say(f"  condition number {excitation.condition_number:.1f}")
    return excitation, random_excitation(robot, period=PERIOD, seed=seed + 1)


def with_zeros_of(model: Model, run: Run, other: Run) -> Model:
    """Return the model as it were, had its boards taken the other run's zeros off their current.

    A board's torque is K s (count - zero), so that a model's offset plus K s zero is that of the sensor itself. A chip
    measures its zero as it boots; a unix board has the one that it was delivered with.

    Args:
        model: fitted to `run`.
        run, other: recordings of one robot, whose current sensors are the same.
    """
    parameters = model.parameters.copy()
    zeros, others = _zeros(run), _zeros(other)
    for joint, name in enumerate(run.samples.joint_names):
        parameters[model.names.index(f"{name}.offset")] += zeros[joint] - others[joint]
    return replace(model, parameters=parameters)


def _zeros(run: Run) -> list[float]:
    """What each joint's board takes off its current, as torque [N·m]."""
    drives = {joint.name: drive for joint, drive in zip(run.robot.joints, run.robot.drives, strict=True)}
    boards, _ = boards_of(run.path, run.provenance)
    facts = {board.joint: board for board in boards.values()}
    return [
        drives[name].torque_per_current * facts[name].si("current.scale") * facts[name].registers["current.zero"]
        for name in run.samples.joint_names
    ]


def comparison_checks(comparison: Comparison, plant: Plant) -> tuple[Check, Check]:
    """That the parameters which both models tell are apart by no more than their error bars; and that most are told."""
    told = np.isfinite(comparison.sigma)
    within = float(np.mean(np.abs(comparison.in_sigma[told]) <= TWO_SIGMA)) if told.any() else 0.0
    return (
        Check("parameters_told_by_both", int(told.sum()), ">=", len(told) // 2),
        Check("parameters_within_2_sigma", within, ">=", WITHIN[plant]),
    )
