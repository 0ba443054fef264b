"""Say what a run directory or a robot holds: who, what, when, what was lost, and which faults were injected."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from jointbench.cli.console import Console
from jointbench.cli.result import Result
from jointbench.cli.tables import table
from jointbench.link.sync import BoardClock
from jointbench.recording import Run, open_run
from jointbench.recording.injected_faults import injected_faults
from jointbench.robot import Robot, load_robot

VERB = "info"
EXAMPLE = "jointbench info runs/2026-05-04T101500Z-cobot6-excitation"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """WHAT: a run or a robot."""
    parser.add_argument("what", metavar="RUN|ROBOT", help="a run directory, a robot of the library, or a robot .toml")


def run(options: argparse.Namespace, console: Console) -> Result:
    """Describes a run where there is such a directory, else a robot."""
    if Path(options.what).is_dir():
        return _run(open_run(options.what), console)
    return _robot(load_robot(options.what), console)


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
    for each in faults:
        console.say(f"faults injected on purpose: {each.text}")
    for warning in run.warnings:
        console.say(f"warning: {warning}")
    ledger = run.ledger.to_dict() if run.ledger else None
    clocks = {joint: clock.to_dict() for joint, clock in run.clocks.items()}
    fields = {
        "run": run.path, "sha256": run.sha256, "ledger": ledger, "clocks": clocks,
        "injected_faults": [each.to_dict() for each in faults], "warnings": run.warnings,
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
    for joint in robot.joints:
        link = "inertia not given" if joint.link.mass is None else f"{joint.link.mass:g} kg"
        console.say(f"  {joint.name}: {joint.kind}, link {joint.link.name}, {link}")
    for warning in robot.warnings:
        console.say(f"warning: {warning}")
    return Result("info", fields={"robot": robot.name, "joints": robot.joint_names, "warnings": robot.warnings})
