"""Identify torque constants from two recordings, without and with a payload of known mass."""

from __future__ import annotations

import argparse
import math
from dataclasses import replace
from typing import Any

import numpy as np

from jointbench.arrays import Matrix3, Vector3
from jointbench.checks import Result
from jointbench.cli.console import Console, table
from jointbench.cli.fit_options import add_row_arguments, row_settings
from jointbench.cli.judgement import finite
from jointbench.cli.payload import (
    add_frame_argument,
    add_friction_argument,
    body_fields,
    opened,
    say_body,
    say_doubts,
)
from jointbench.errors import FitError
from jointbench.identification import FitSettings, KnownPayload
from jointbench.identification.drives import DriveGains, DriveSignals, MotorGain, drive_signals, identify_gains
from jointbench.identification.fit import run_settings
from jointbench.model import Robot, load_robot
from jointbench.recording import Run

VERB = "gains"
EXAMPLE = "jointbench gains runs/empty runs/loaded --mass 2.05"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """EMPTY, LOADED, and what is known of the payload."""
    parser.add_argument("empty", metavar="EMPTY", help="a run without the payload")
    parser.add_argument("loaded", metavar="LOADED", help="a run with it, of the same motion or another")
    parser.add_argument("--mass", type=float, metavar="KG", required=True, help="of the payload, weighed")
    parser.add_argument(
        "--center-mm", type=_center, metavar="X,Y,Z", help="its centre of mass in the frame (estimated)"
    )
    parser.add_argument(
        "--inertia-kg-mm2", type=_inertia, metavar="XX,YY,ZZ[,XY,XZ,YZ]",
        help="about its centre of mass, which is then given, too (estimated)",
    )  # fmt: skip
    add_frame_argument(parser)
    add_friction_argument(parser)
    parser.add_argument(
        "--directions", action="store_true", help="tell the gears' efficiency from the torque constants, too"
    )
    parser.add_argument("--robot", metavar="ROBOT", help="another robot file than the own copy of EMPTY")
    add_row_arguments(parser, "torque", "interval")


def run(options: argparse.Namespace, console: Console) -> Result:
    """Fits both runs together and prints the constants; exit code 1 when one is not told, or a run is invalid."""
    known = KnownPayload.of(options.mass, options.center_mm, options.inertia_kg_mm2)
    runs = [opened(name, console) for name in (options.empty, options.loaded)]
    if runs[0].sha256 == runs[1].sha256:
        raise FitError(f"both recordings are {runs[0].path}; give one without the payload, and one with it")
    robot = load_robot(options.robot) if options.robot else runs[0].robot
    with console.working(f"fitting the drives of {robot.name}"):
        empty, loaded = (_signals(each, robot, row_settings(options)) for each in runs)
        gains = identify_gains(
            robot,
            empty,
            loaded,
            known,
            on=options.on,
            same_friction=options.same_friction,
            directions=options.directions,
        )
    console.say(gains_table(gains))
    say_doubts(gains.verdicts, console)
    if gains.payload is not None:
        console.say(f"the payload on {gains.payload.frame.name}, as it came out beside them:")
        say_body(gains.payload, console)
    motors = [motor for motor in gains.motors if motor is not None]
    known = sum(not motor.verdict.is_refused for motor in motors)
    console.say(f"verdict: {known} of {len(motors)} torque constants are known, {gains.condition}")
    refused = known < len(motors)
    return Result("gains", fields=gains_fields(gains), refused=refused or not all(each.is_valid for each in runs))


def _signals(opened: Run, robot: Robot, given: dict[str, Any]) -> DriveSignals:
    """Return the signals by the link encoders, where there are some: the motors' are ahead by the gears' twist."""
    settings = run_settings(opened)
    if opened.samples.link_position is not None:
        settings = replace(settings, position="link")
    return drive_signals(opened, robot, FitSettings.from_dict(settings.to_dict() | given))


def gains_table(gains: DriveGains) -> str:
    """Every motor's torque constant beside that of the robot's file, and what the payload asked of it."""
    rows: list[list[str]] = []
    for motor in gains.motors:
        if motor is not None:
            told = np.isfinite(motor.torque_constant)
            values = [f"{motor.torque_constant:.4g}", f"{motor.sigma:.2g}"] if told else ["–", "–"]
            ratio = f"{motor.torque_constant / motor.nominal - 1.0:+.1%}" if told else "–"
            row = [motor.name, *values, f"{motor.nominal:.4g}", ratio, f"{motor.payload_torque:.2g}"]
            rows.append([*row, *_efficiency(motor), motor.verdict.word])
    heads = ["motor", "constant [N·m/A]", "σ", "in the file", "differs by", "payload's torque at it, rms [N·m]"]
    if any(motor is not None and motor.efficiency_verdict is not None for motor in gains.motors):
        return table([*heads, "efficiency", "verdict"], [_filled(row, len(heads) + 2) for row in rows])
    return table([*heads, "verdict"], rows)


def _efficiency(motor: MotorGain) -> list[str]:
    """A cell for the gear's efficiency, where it was asked for."""
    if motor.efficiency_verdict is None:
        return []
    return ["–" if motor.efficiency is None else f"{motor.efficiency:.3f} ± {motor.efficiency_sigma:.2g}"]


def _filled(row: list[str], width: int) -> list[str]:
    """The row with an empty cell before its verdict where it has none for the efficiency."""
    return row if len(row) == width else [*row[:-1], "–", row[-1]]


def gains_fields(gains: DriveGains) -> dict[str, Any]:
    """Return what two recordings tell of the drives in JSON [SI]."""
    return {
        "motors": {
            motor.name: {
                "torque_constant": finite(motor.torque_constant),
                "sigma": finite(motor.sigma),
                "nominal": motor.nominal,
                "payload_torque_rms": motor.payload_torque,
                "verdict": motor.verdict.word,
                "reason": motor.verdict.reason,
                "efficiency": motor.efficiency,
                "efficiency_sigma": motor.efficiency_sigma,
                "efficiency_verdict": None if motor.efficiency_verdict is None else motor.efficiency_verdict.word,
            }
            for motor in gains.motors
            if motor is not None
        },
        "condition": gains.condition,
        "payload": None if gains.payload is None else body_fields(gains.payload),
    }


def _numbers(text: str, counts: tuple[int, ...], example: str) -> list[float]:
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        values = [math.nan]
    if len(values) not in counts or not math.isfinite(sum(values)):
        raise argparse.ArgumentTypeError(f"{text!r} must be {' or '.join(map(str, counts))} numbers, such as {example}")
    return values


def _center(text: str) -> Vector3:
    x, y, z = (1e-3 * value for value in _numbers(text, (3,), "0,0,45.5"))
    return x, y, z


def _inertia(text: str) -> Matrix3:
    values = [1e-6 * value for value in _numbers(text, (3, 6), "5200,5200,3100")]
    xx, yy, zz, xy, xz, yz = [*values, 0.0, 0.0, 0.0][:6]
    return ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))
