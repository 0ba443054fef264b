"""Say what a run directory or a robot holds: who, what, when, what was lost, and which faults were injected."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from jointbench.bench import BoardClock
from jointbench.checks import Result
from jointbench.cli.console import Console, table
from jointbench.model import Link, Robot, base_parameters, load_robot
from jointbench.model.base_words import lengths_of
from jointbench.model.floating_base import floating_base_parameters
from jointbench.recording import Run, injected_faults, open_run

VERB = "info"
EXAMPLE = "jointbench info runs/2026-05-04T101500Z-cobot6-excitation"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """WHAT: a run or a robot."""
    parser.add_argument(
        "what",
        metavar="RUN|ROBOT",
        help="a run directory, a robot of the library or its file; ROBOT:N: its first N joints",
    )
    parser.add_argument(
        "--base-parameters",
        action="store_true",
        help="what the robot's torques can tell: each base parameter as a formula and in words",
    )


def run(options: argparse.Namespace, console: Console) -> Result:
    """Describes a run where there is such a directory, else a robot."""
    if Path(options.what).is_dir():
        run = open_run(options.what)
        return _base_parameters(run.robot, console) if options.base_parameters else _run(run, console)
    robot = load_robot(options.what)
    return _base_parameters(robot, console) if options.base_parameters else _robot(robot, console)


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
        "run": run.path, "sha256": run.sha256, "ledger": ledger, "clocks": clocks,
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
    for joint in robot.joints:
        kind = f"{joint.kind}, passive" if joint.passive else joint.kind
        console.say(f"  {joint.name}: {kind}, link {joint.link.name}, {_mass(joint.link)}")
    for compensation in robot.compensations:
        console.say(
            f"  {compensation.name}: {compensation.kind} at {', '.join(compensation.joints)}, "
            f"with {', '.join(compensation.parameters)}"
        )
    for warning in robot.warnings:
        console.say(f"warning: {warning}")
    return Result("info", fields={"robot": robot.name, "joints": robot.joint_names, "warnings": robot.warnings})


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
