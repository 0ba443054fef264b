"""What is about to be planned, in words, before the search begins."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from jointbench.cli.plan_options import motion_settings
from jointbench.excitation import DEFAULT_CLEARANCE, USABLE_MOTION, USABLE_TORQUE, Workspace, make_basis
from jointbench.robot import Robot


def plan_words(options: argparse.Namespace, robot: Robot, workspace: Workspace) -> Iterator[str]:
    """The motion, what it is for, the limits that count, and what is known beforehand.

    Raises:
        ExcitationError: a setting is impossible for the family.
    """
    settings = motion_settings(options)
    basis = make_basis(**settings)
    kind = "a random motion" if options.random else "an excitation"
    whole = "" if basis.duration == settings["period"] else f"; {basis.duration:g} s in all"
    yield f"planning {kind} for {robot.name}: {basis.description}{whole}"
    if not options.random:
        objective = (options.objective or "condition_number").replace("_", " ")
        yield f"  least {objective} of the base regressor at {options.samples} samples{_noise(options)}"
    jerk = ", jerk" if any(joint.jerk_limit is not None for joint in robot.independent_joints) else ""
    yield f"  within {USABLE_MOTION:.0%} of position, velocity, acceleration{jerk}; {_torque(robot, options.prior)}"
    if room := list(_room(workspace, robot)):
        yield f"  within its workspace: {', '.join(room)}"


def _noise(options: argparse.Namespace) -> str:
    if options.noise is None:
        return ""
    noise = ", ".join(f"{value:g}" for value in options.noise)
    prior = f", parameters as large as in {options.prior}" if options.prior else ""
    return f"; torque noise {noise} N·m{prior}"


def _torque(robot: Robot, prior: str | None) -> str:
    if prior:
        return f"{USABLE_TORQUE:.0%} of torque, as {prior} predicts it"
    if robot.standard_parameters is None:
        return "torque is not limited: its file has no inertias to predict it from"
    return f"{USABLE_TORQUE:.0%} of torque, as the inertias of its file predict it"


def _room(workspace: Workspace, robot: Robot) -> Iterator[str]:
    height = workspace.height(robot)
    if height is not None:
        yield f"table at {height:g} m" if workspace.table_height is not None else "above a floor at its base"
    boxes = len(workspace.points)
    if boxes:
        yield f"{boxes} point{'s' if boxes > 1 else ''} in a box"
    if robot.capsules:
        clearance = DEFAULT_CLEARANCE if workspace.clearance is None else workspace.clearance
        yield f"{len(robot.capsules)} capsules kept {1e3 * clearance:g} mm apart"
