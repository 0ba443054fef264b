"""Tell harmonic drives from a run with joint torque sensors: friction with its load, inertia, stiffness, gain."""

from __future__ import annotations

import argparse
from typing import Any, get_args

import numpy as np

from jointbench.checks import Result
from jointbench.cli.console import Console, table
from jointbench.cli.judgement import by_name, finite
from jointbench.identification import FitSettings, Verdict
from jointbench.identification.drives import (
    HARMONIC_PARAMETERS,
    DriveSignals,
    HarmonicJoint,
    HarmonicModel,
    RmsError,
    drive_signals,
    fit_harmonic,
    fit_stiffness,
)
from jointbench.identification.drives.prediction import Load
from jointbench.recording import Run, open_run

VERB = "drives"
EXAMPLE = "jointbench drives runs/2026-05-04T101500Z-cobot6-excitation --verify runs/2026-05-04T101700Z-cobot6-other"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """RUN, another to verify on, and the law of load friction."""
    parser.add_argument("run", metavar="RUN", help="a run with motor currents and joint torque sensors")
    parser.add_argument("--verify", metavar="RUN", help="a run of another motion to judge the model on")
    laws = (*get_args(Load), "choose")
    parser.add_argument("--load", choices=laws, default="choose", help="what load friction grows with (%(default)s)")


def run(options: argparse.Namespace, console: Console) -> Result:
    """Fits gears and motors, prints verdicts and errors; exit code 1 when a run is invalid."""
    runs = [_opened(name, console) for name in (options.run, options.verify) if name]
    signals = [_signals(each) for each in runs]
    robot = runs[0].robot
    model = fit_harmonic(robot, signals[0], current_gain=True, load=options.load)
    gears = fit_stiffness(robot, signals[0]) if signals[0].twist is not None else ()
    stiffness = [gear for gear in gears if gear is not None]
    for verdict in model.verdicts:
        console.say(f"  {verdict}")
    console.say(f"load friction grows with the torque of the {model.load}")
    for gear in stiffness:
        told = "" if gear.stiffness is None else f": {gear.stiffness:.4g} N·m/rad"
        console.say(f"stiffness of {gear.name} by the encoders on both sides{told} [{gear.verdict}]")
    errors = {each.path.name: model.rms_errors(of_run) for each, of_run in zip(runs, signals, strict=True)}
    for joint in model.memory:
        if joint is not None:
            console.say(f"friction of {joint.name} turns its sign by {joint.friction.family}")
    console.say(
        "rms error of the motors' torque [N·m], all rows and (away from rest alone): the usual model, the published "
        "parameters, friction with memory:"
    )
    console.say(error_table(model, errors))
    fields: dict[str, Any] = {
        "load": model.load,
        "parameters": parameter_fields(model),
        "stiffness": {
            gear.name: {"value": gear.stiffness, "flexibility": gear.flexibility, "sigma": finite(gear.sigma)}
            | _told(gear.verdict)
            for gear in stiffness
        },
        "friction_with_memory": {
            joint.name: {"family": joint.friction.family, "weights": joint.friction.used}
            for joint in model.memory
            if joint is not None
        },
        "rms": {
            name: {
                way: {"all": by_name(robot.joint_names, rms.all), "moving": by_name(robot.joint_names, rms.moving)}
                for way, rms in ways.items()
            }
            for name, ways in errors.items()
        },
    }
    return Result("drives", fields=fields, refused=not all(each.is_valid for each in runs))


def parameter_fields(model: HarmonicModel) -> dict[str, dict[str, Any]]:
    """a1 … a7 of each joint in JSON; one that is left out is 0, as in predictions, and has no σ."""
    verdicts = {verdict.name: verdict for verdict in model.verdicts}
    return {
        name: {"value": float(joint.parameters[index]), "sigma": _sigma(joint, index)} | _told(verdicts[name])
        for joint in model.joints
        if joint is not None
        for index, name in enumerate(f"{joint.name}.{quantity}" for quantity in HARMONIC_PARAMETERS)
        if name in verdicts
    }


def _sigma(joint: HarmonicJoint, index: int) -> float | None:
    return None if index in joint.left_out else finite(float(np.sqrt(joint.covariance[index, index])))


def error_table(model: HarmonicModel, errors: dict[str, dict[str, RmsError]]) -> str:
    """Error of the motors' torque a joint by three models on each run [N·m], over all rows and over moving ones."""
    ways = {"simplified": "usual", "exact": "published", "memory": "memory"}
    heads = ["joint", *(f"{name}, {word}" for name in errors for word in ways.values())]
    rows = [
        [joint, *(f"{error[way].all[j]:.3f} ({error[way].moving[j]:.3f})" for error in errors.values() for way in ways)]
        for j, joint in enumerate(model.robot.joint_names)
        if model.joints[j] is not None
    ]
    return table(heads, rows)


def _opened(name: str, console: Console) -> Run:
    """A run, with its warnings said."""
    opened = open_run(name)
    for warning in opened.warnings:
        console.say(f"warning: {warning}")
    return opened


def _signals(opened: Run) -> DriveSignals:
    """Return the signals by the link encoders, where there are some: the motors' are ahead by the gears' twist."""
    side = "motor" if opened.samples.link_position is None else "link"
    return drive_signals(opened, opened.robot, FitSettings(position=side))


def _told(verdict: Verdict) -> dict[str, Any]:
    return {"word": verdict.word, "reason": verdict.reason}
