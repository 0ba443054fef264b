"""Identify what was attached to a robot between two recordings: its mass, centre of mass and inertia."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np

from jointbench.checks import Result
from jointbench.cli.console import Console, table
from jointbench.cli.fit_options import add_row_arguments, row_settings
from jointbench.cli.judgement import by_name, finite
from jointbench.identification import Payload, PayloadBody, Verdict, identify_payload
from jointbench.identification.payload_body import QUANTITIES
from jointbench.model import PARAMETER_NAMES, load_robot
from jointbench.recording import Run, open_run

VERB = "payload"
EXAMPLE = "jointbench payload runs/empty runs/loaded --mass 2.05"

_LABELS = ("mass", *(f"centre of mass, {axis}" for axis in "xyz"), *(f"{name} about it" for name in QUANTITIES[4:]))
_UNITS = ("kg", *["mm"] * 3, *["kg·mm²"] * 6)
_FACTORS = np.array([1.0, *[1e3] * 3, *[1e6] * 6])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """BEFORE, AFTER, and what is known."""
    parser.add_argument("before", metavar="BEFORE", help="a run without the payload")
    parser.add_argument("after", metavar="AFTER", help="a run of the same robot with it, of the same motion or another")
    parser.add_argument("--mass", type=float, metavar="KG", help="of the payload where it was weighed (estimated)")
    add_frame_argument(parser)
    add_friction_argument(parser)
    parser.add_argument("--robot", metavar="ROBOT", help="another robot file than the own copy of BEFORE")
    add_row_arguments(parser, "interval")


def add_frame_argument(parser: argparse.ArgumentParser) -> None:
    """The option --on."""
    parser.add_argument(
        "--on", metavar="FRAME", help="link or frame that the payload is fixed to and described in (the last link)"
    )


def add_friction_argument(parser: argparse.ArgumentParser) -> None:
    """The option --same-friction."""
    parser.add_argument(
        "--same-friction", action="store_true",
        help="friction and offsets are the same in both runs, which narrows σ; else they may have changed",
    )  # fmt: skip


def run(options: argparse.Namespace, console: Console) -> Result:
    """Fits both runs together and prints the body; exit code 1 when it is refused or a run is invalid."""
    before, after = (opened(name, console) for name in (options.before, options.after))
    robot = load_robot(options.robot) if options.robot else before.robot
    with console.working(f"fitting {robot.name} without and with the payload"):
        payload = identify_payload(
            before,
            after,
            robot,
            on=options.on,
            mass=options.mass,
            settings=row_settings(options),
            same_friction=options.same_friction,
        )
    console.say(f"payload on {payload.body.frame.name} of {robot.name}, in the axes of this frame and from its origin:")
    say_body(payload.body, console)
    console.say(joint_table(payload))
    for change in payload.friction_changes:
        console.say(f"  {change.name} differs by {change.value:+.3g} ± {change.sigma:.1g} from BEFORE to AFTER")
    assert payload.body.physical is not None  # something of a payload that is identified is free
    physical = payload.body.physical.verdict
    if payload.mass_verdict is not None:
        console.say(f"given mass: {payload.mass_verdict.word} ({payload.mass_verdict.reason})")
    console.say(f"body: {physical.word} ({physical.reason})")
    console.say(f"verdict: {payload.verdict.word}, {payload.condition} ({payload.verdict.reason})")
    refused = payload.verdict.is_refused or not (before.is_valid and after.is_valid)
    return Result("payload", fields=payload_fields(payload), refused=refused)


def opened(name: str, console: Console) -> Run:
    """A run, with its warnings said."""
    run = open_run(name)
    for warning in run.warnings:
        console.say(f"warning: {warning}")
    return run


def say_doubts(verdicts: Sequence[Verdict], console: Console) -> None:
    """Say the reasons of all verdicts but "identified"."""
    for verdict in verdicts:
        if verdict.word != "identified":
            console.say(f"  {verdict}")


def say_body(body: PayloadBody, console: Console) -> None:
    """Print a body, and what is in doubt about it: an inertia that is not seen at all in one line."""
    console.say(body_table(body))
    inertia = [verdict for verdict in body.verdicts if verdict.name.startswith("I")]
    others = [verdict for verdict in body.verdicts if verdict not in inertia]
    if body.mass_is_refused:
        say_doubts(others[:1], console)
        return
    say_doubts(others, console)
    if inertia and all(verdict.is_refused for verdict in inertia if verdict.name in ("Ixx", "Iyy", "Izz")):
        console.say("  inertia: too small to be seen in these motions; the mass and the centre do not depend on it")
    else:
        say_doubts(inertia, console)


def body_table(body: PayloadBody) -> str:
    """Mass, centre of mass and inertia with σ and verdict; the estimate of a mass that is refused, and nothing else."""
    words = {verdict.name: verdict.word for verdict in body.verdicts}
    values = body.estimate if body.mass_is_refused else body.values
    rows: list[list[str]] = []
    for k, (name, label, unit) in enumerate(zip(QUANTITIES, _LABELS, _UNITS, strict=True)):
        value, sigma = _FACTORS[k] * values[k], _FACTORS[k] * body.sigma[k]
        told = name not in words or (np.isfinite(sigma) and not (k and body.mass_is_refused))
        cells = [f"{value:.4g}" if told else "–", f"{sigma:.2g}" if told and name in words else "–"]
        rows.append([label, *cells, unit, words.get(name, "given")])
    return table(("payload", "value", "σ", "unit", "verdict"), rows)


def joint_table(payload: Payload) -> str:
    """Table of each joint's payload torque, and of its residual in both runs."""
    rows = [
        [name, f"{torque:.3g}", _share(before), _share(after)]
        for name, torque, before, after in zip(
            payload.robot.joint_names, payload.torque, payload.before.relative, payload.after.relative, strict=True
        )
    ]
    return table(("joint", "payload's torque, rms [N·m]", "error in BEFORE", "error in AFTER"), rows)


def _share(value: float) -> str:
    return f"{value:.1%}" if np.isfinite(value) else "–"


def payload_fields(payload: Payload) -> dict[str, Any]:
    """Return what a payload tells in JSON."""
    joints = payload.robot.joint_names
    return {
        "verdict": payload.verdict.word,
        "verdict_reason": payload.verdict.reason,
        "condition": payload.condition,
        "free_mass": None
        if payload.free_mass is None
        else {"value": finite(payload.free_mass[0]), "sigma": finite(payload.free_mass[1])},
        **body_fields(payload.body),
        "payload_torque_rms": by_name(joints, payload.torque),
        "relative_error": {
            "before": by_name(joints, payload.before.relative),
            "after": by_name(joints, payload.after.relative),
        },
        "friction_changes": {
            change.name: {"value": change.value, "sigma": change.sigma} for change in payload.friction_changes
        },
        "rows": {"before": payload.rows[0], "after": payload.rows[1]},
    }


def body_fields(body: PayloadBody) -> dict[str, Any]:
    """Return a body in JSON [kg, m, kg·m²]: what a person knows of it, and its standard parameters."""
    verdicts = {verdict.name: verdict for verdict in body.verdicts}
    return {
        "frame": body.frame.name,
        "body": {
            name: {
                "value": value if name not in verdicts or (np.isfinite(sigma) and not body.mass_is_refused) else None,
                "sigma": finite(sigma),
                "verdict": verdicts[name].word if name in verdicts else "given",
                "reason": verdicts[name].reason if name in verdicts else "known beforehand",
            }
            for name, value, sigma in zip(QUANTITIES, body.values.tolist(), body.sigma.tolist(), strict=True)
        },
        "estimate": dict(zip(PARAMETER_NAMES, body.estimate.tolist(), strict=True)),
        "standard_parameters": dict(zip(PARAMETER_NAMES, body.parameters.tolist(), strict=True)),
        "physical": None
        if body.physical is None
        else {"word": body.physical.verdict.word, "reason": body.physical.verdict.reason},
    }
