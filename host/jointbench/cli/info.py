"""Say what a robot, a bench, a run, a model or a plan is: joints, limits, drives, and what was recorded or found."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from jointbench.bench import BenchFile, BoardClock, read_bench_file
from jointbench.checks import Result
from jointbench.cli.console import Console, table
from jointbench.errors import RobotError
from jointbench.excitation import Excitation, load_excitation
from jointbench.files import text_of
from jointbench.identification import Model, load_model
from jointbench.identification.model_file import FORMAT as MODEL_FORMAT
from jointbench.identification.validation import fitted_runs
from jointbench.model import Link, Robot, base_parameters, load_robot
from jointbench.model.base_words import lengths_of
from jointbench.model.floating_base import floating_base_parameters
from jointbench.model.table import read_table
from jointbench.recording import Run, injected_faults, open_run

VERB = "info"
EXAMPLE = "jointbench info runs/2026-05-04T101500Z-cobot6-excitation"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """WHAT: a robot, a bench, a run, a model or a plan."""
    parser.add_argument(
        "what",
        metavar="WHAT",
        help="a robot of the library or its file (ROBOT:N: its first N joints), a bench file, a run directory, a model "
        "or a plan",
    )
    parser.add_argument(
        "--base-parameters",
        action="store_true",
        help="what the robot's torques can tell: each base parameter as a formula and in words",
    )


def run(options: argparse.Namespace, console: Console) -> Result:
    """Describes what it is given, and the robot of that: joints, limits, drives."""
    path = Path(options.what)
    given = _opened(path) or load_robot(options.what)
    robot = _robot_of(given)
    if options.base_parameters:
        if robot is None:
            raise RobotError(f"the robot of plan {path} is none of the library; name the robot's file instead")
        return _base_parameters(robot, console)
    if isinstance(given, Run):
        result = _run(given, console)
    elif isinstance(given, Model):
        result = _model(given, path, console)
    elif isinstance(given, Excitation):
        result = _plan(given, path, console)
    elif isinstance(given, BenchFile):
        result = _bench(given, console)
    else:
        return _robot(given, console)
    if robot is None:
        console.say("its robot is none of the library, so that its joints' limits and drives are not known here")
        return result
    console.say()
    return replace(result, fields={**_robot(robot, console).fields, **result.fields})


def _opened(path: Path) -> Run | Model | Excitation | BenchFile | None:
    """What is at a path; None where that is a robot, or nothing.

    Raises:
        JointbenchError: it is damaged.
    """
    if path.is_dir():
        return open_run(path)
    if not path.is_file():
        return None
    if path.suffix == ".json":
        text = text_of(path)
        return load_model(path) if f'"{MODEL_FORMAT}"' in text[:_HEAD] else load_excitation(path)
    if path.suffix == ".toml" and read_table(path, "robot").is_list("board"):
        return read_bench_file(path)
    return None


_HEAD = 300
"""Characters of a model's file in which its format stands."""


def _robot_of(given: Run | Model | Excitation | BenchFile | Robot) -> Robot | None:
    """The robot of what is described; None of a plan for a robot that has no place in the library."""
    if isinstance(given, Robot):
        return given
    if isinstance(given, BenchFile):
        return load_robot(given.robot)
    if isinstance(given, Excitation):
        try:
            return load_robot(given.robot_name)
        except RobotError:
            return None
    return given.robot


def _model(model: Model, path: Path, console: Console) -> Result:
    runs = [str(run["run"]) for run in fitted_runs(model)]
    words = [verdict.word for verdict in model.parameter_verdicts]
    counts = ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(words))
    errors = ", ".join(f"{n} {e:.1%}" for n, e in zip(model.robot.joint_names, model.fit_relative, strict=True))
    console.say(f"model {path}: robot {model.robot.name}, fitted to {', '.join(runs)} by {model.estimator}")
    console.say(f"{len(words)} base parameters: {counts}")
    console.say(f"torque error of the fit, as a share of the torque: {errors}")
    console.say(f"verdict: {model.verdict.word} ({model.verdict.reason})")
    fields = {"kind": "model", "model": path, "runs": runs, "verdict": model.verdict.word}
    return Result("info", fields=fields)


def _plan(plan: Excitation, path: Path, console: Console) -> Result:
    console.say(f"plan {path}: for robot {plan.robot_name}, {plan.family}, {plan.duration:g} s, seed {plan.seed}")
    console.say(f"condition number of the base regressor: {plan.condition_number:.4g}")
    left = [
        (margins.joint, *(_left(value) for value in (margins.position, margins.velocity, margins.acceleration)),
         _left(margins.torque))
        for margins in plan.margins
    ]  # fmt: skip
    console.say("left to the limits, as a share of each:")
    console.say(table(("joint", "position", "velocity", "acceleration", "torque"), left))
    if plan.not_checked:
        console.say(f"warning: {plan.not_checked}")
    fields = {"kind": "plan", "plan": path, "family": plan.family, "duration_s": plan.duration}
    return Result("info", fields=fields)


def _left(share: float | None) -> str:
    return "–" if share is None else f"{share:.1%}"


def _bench(bench: BenchFile, console: Console) -> Result:
    console.say(f"bench {bench.path}: {bench.name}, robot {bench.robot}, {len(bench.boards)} boards")
    boards = [{"joint": board.joint, "node": board.node, "url": board.url} for board in bench.boards]
    console.say(table(("joint", "node", "address"), [[str(value) for value in board.values()] for board in boards]))
    fields = {"kind": "bench", "bench": bench.path, "boards": boards}
    return Result("info", fields=fields)


def _run(run: Run, console: Console) -> Result:
    samples = run.samples
    console.say(f"run {run.path}: robot {run.robot.name}, {len(samples.time)} samples at {samples.sample_period:g} s")
    console.say(f"SHA-256 {run.sha256}")
    if run.ledger is not None:
        console.say(run.ledger.text())
    if run.clocks:
        console.say("clocks of the boards, by the host's:")
        console.say(clock_table(run.clocks))
    joints = {int(board["node"]): str(board["joint"]) for board in run.provenance.get("board", ())}
    faults = injected_faults(run.path, joints)
    for fault in faults:
        console.say(f"faults injected on purpose: {fault.text}")
    for warning in run.warnings:
        console.say(f"warning: {warning}")
    ledger = run.ledger.to_dict() if run.ledger else None
    clocks = {joint: clock.to_dict() for joint, clock in run.clocks.items()}
    fields = {
        "kind": "run", "run": run.path, "sha256": run.sha256, "ledger": ledger, "clocks": clocks,
        "injected_faults": [fault.to_dict() for fault in faults], "warnings": run.warnings,
    }  # fmt: skip
    return Result("info", fields=fields)


def clock_table(clocks: Mapping[str, BoardClock]) -> str:
    """A line for each board that has a clock of its own, by joint."""
    heads = ("joint", "offset s", "drift ppm", "residual µs", "bound µs", "PINGs", "pulses")
    rows = [
        (
            joint, f"{clock.offset_us * 1e-6:.6f}", f"{clock.drift_ppm:+.2f}", f"{clock.residual_us:.1f}",
            f"{clock.bound_us:.1f}", str(clock.exchanges), str(clock.pulses),
        )
        for joint, clock in clocks.items()
    ]  # fmt: skip
    return table(heads, rows)


def _robot(robot: Robot, console: Console) -> Result:
    console.say(f"robot {robot.name}: {robot.description} ({robot.source})")
    if robot.base_link is not None:
        console.say(f"  base, free to move: link {robot.base_link.name}, {_mass(robot.base_link)}")
    console.say(joints_table(robot))
    console.say()
    console.say(drives_table(robot))
    for compensation in robot.compensations:
        console.say(
            f"  {compensation.name}: {compensation.kind} at {', '.join(compensation.joints)}, "
            f"with {', '.join(compensation.parameters)}"
        )
    for warning in robot.warnings:
        console.say(f"warning: {warning}")
    fields = {"kind": "robot", "robot": robot.name, "joints": robot.joint_names, "warnings": robot.warnings}
    return Result("info", fields=fields)


def joints_table(robot: Robot) -> str:
    """Each joint with its link and limits; angles in degrees."""
    rows: list[tuple[str, ...]] = []
    for joint in robot.joints:
        turns = joint.kind == "revolute"
        scale, unit = (np.rad2deg(1.0), "°") if turns else (1e3, " mm")
        low, high = (scale * limit for limit in joint.position_limits)
        kind = f"mimics {robot.joints[joint.mimic.joint].name}" if joint.mimic else joint.kind
        rows.append(
            (
                joint.name, f"{kind}, passive" if joint.passive else kind, f"{low:.4g} … {high:.4g}{unit}",
                f"{scale * joint.velocity_limit:.4g}{unit}/s", f"{scale * joint.acceleration_limit:.4g}{unit}/s²",
                f"{joint.torque_limit:.4g} {'N·m' if turns else 'N'}", joint.link.name, _mass(joint.link),
            )
        )  # fmt: skip
    heads = ("joint", "kind", "position", "velocity", "acceleration", "torque", "link", "mass")
    return table(heads, rows)


def drives_table(robot: Robot) -> str:
    """Each motor with its gear, torque constant, current limit and what it measures."""
    rows = [
        (
            drive.name, drive.joint, drive.kind, *(
                ("–", "–", "–") if drive.kind == "none" else
                (f"{drive.ratio:g}", f"{drive.torque_constant:g} N·m/A", f"{drive.current_limit:g} A")
            ),
            ", ".join(
                word
                for word, there in (
                    ("motor", drive.motor_encoder), ("link", drive.link_encoder), ("torque", drive.torque_sensor),
                )
                if there
            ),
        )
        for drive in robot.drive_train.drives
    ]  # fmt: skip
    return table(("drive", "joint", "kind", "ratio", "constant", "current", "sensors"), rows)


def _mass(link: Link) -> str:
    if link.mass is None:
        return "inertia not given" if link.modelled else "neglected"
    return f"{link.mass:g} kg, assumed" if link.assumed else f"{link.mass:g} kg"


def _base_parameters(robot: Robot, console: Console) -> Result:
    free = robot.base_link is not None
    base = floating_base_parameters(robot) if free else base_parameters(robot)
    console.say(f"robot {robot.name}{' on its free base' if free else ''}: {base.table()}")
    groups = [
        {
            "name": group.name, "formula": group.formula, "words": group.words,
            "coefficients": {base.full_names[k]: row[k] for k in row.nonzero()[0]},
        }
        for group, row in zip(base.groups, base.grouping, strict=True)
    ]  # fmt: skip
    lengths = {length.symbol: length.value for length in lengths_of(base.robot)}
    fields = {
        "robot": robot.name, "rank": base.rank, "gap": base.gap, "base_parameters": groups, "lengths_m": lengths,
    }  # fmt: skip
    return Result("info", fields=fields)
