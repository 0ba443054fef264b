"""Friction laws of a model on the command line: which are asked for, and what was found of them."""

from __future__ import annotations

import argparse
from typing import Any

from jointbench.cli.judgement import finite
from jointbench.cli.tables import table
from jointbench.errors import FitError
from jointbench.identification.friction import ModelFriction


def add_friction_argument(group: argparse._ArgumentGroup) -> None:  # pyright: ignore[reportPrivateUsage]
    """The option --friction."""
    group.add_argument(
        "--friction", action="append", default=[], metavar="LAW|JOINT=LAW",
        help="a law for all joints, such as stribeck, makkar or makkar+load, or for one joint, repeatable; "
        "choose: as the data advise; coulomb_viscous: that alone; memory: beside that friction with memory, which "
        "predicts where it errs less on rows held out (memory)",
    )  # fmt: skip


def asked_friction(options: argparse.Namespace) -> str | dict[str, str] | None:
    """As `fit` takes it.

    Raises:
        FitError: laws for all joints and for single ones, or several for all.
    """
    given: list[str] = options.friction
    if len(given) == 1 and "=" not in given[0]:
        return given[0]
    if not all("=" in text for text in given):
        raise FitError(f"--friction {' --friction '.join(given)}: give one law for all joints, or JOINT=LAW for each")
    return dict((joint, law) for joint, _, law in (text.partition("=") for text in given)) or None


def friction_table(friction: ModelFriction) -> str:
    """Every parameter of the laws, and the word on each law."""
    rows = [
        [name, unit, f"{value:.4g}", f"{sigma:.2g}", verdict.word]
        for name, unit, value, sigma, verdict in zip(
            friction.names,
            friction.units,
            friction.parameters,
            friction.sigma,
            friction.parameter_verdicts,
            strict=True,
        )
    ]
    lines = [f"  friction of {verdict}" for verdict in friction.law_verdicts]
    return "\n".join([table(("friction", "unit", "value", "σ", "verdict"), rows), *lines])


def friction_fields(friction: ModelFriction | None) -> dict[str, Any]:
    """What the laws tell in JSON, by joint; empty where there are none."""
    if friction is None:
        return {}
    return {
        joint: {
            "law": law.name,
            "verdict": verdict.word,
            "reason": verdict.reason,
            "parameters": _parameter_fields(friction, joint),
        }
        for verdict, (joint, law) in zip(friction.law_verdicts, friction.laws.laws.items(), strict=True)
    }


def _parameter_fields(friction: ModelFriction, joint: str) -> dict[str, Any]:
    names, part = friction.laws.laws[joint].names, friction.laws.parts[joint]
    values, sigmas = friction.parameters[part].tolist(), friction.sigma[part].tolist()
    items = zip(names, values, sigmas, friction.units[part], friction.of_joint(joint), strict=True)
    return {
        name: {"value": value, "sigma": finite(sigma), "unit": unit, "verdict": verdict.word, "reason": verdict.reason}
        for name, value, sigma, unit, verdict in items
    }
