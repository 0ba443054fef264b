"""Options of `fit`, those of friction laws among them, and what was found of those laws."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from jointbench.cli.console import table
from jointbench.cli.judgement import finite
from jointbench.errors import FitError
from jointbench.identification.estimators.estimator import DEFAULT, ESTIMATORS, FOR_LOGS, estimator_help
from jointbench.identification.friction import ModelFriction
from jointbench.identification.settings import DELAYS, POSITIONS, TORQUES

if TYPE_CHECKING:
    from jointbench.identification import Model
    from jointbench.model import Wrench


def add_friction_argument(group: argparse._ArgumentGroup) -> None:  # pyright: ignore[reportPrivateUsage]
    """The option --friction."""
    group.add_argument(
        "--friction", action="append", default=[], metavar="LAW|JOINT=LAW",
        help="a law for all joints, such as stribeck, makkar or makkar+load, or for one joint, repeatable; "
        "choose: as the data advise; coulomb_viscous: that alone; memory: beside that friction with memory, which "
        "predicts where it errs less on rows held out (memory)",
    )  # fmt: skip


def asked_friction(options: argparse.Namespace) -> str | dict[str, str] | None:
    """Return the laws as `fit` takes them.

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
    """Return what the laws tell in JSON, by joint; empty where there are none."""
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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """RUNs, where the model goes, and all options in groups."""
    parser.add_argument("run", metavar="RUN", nargs="+", help="a run directory; each of several gets its own model")
    parser.add_argument("--together", action="store_true", help="make one model of all RUNs, which are of one robot")
    parser.add_argument("--robot", metavar="ROBOT", help="another robot file than the run's own copy")
    parser.add_argument(
        "--out", metavar="FILE|DIR", help="where the model goes (model.json in the run directory), or a folder for many"
    )
    add_external_argument(parser)
    _add_estimator(parser.add_argument_group("the estimator", estimator_help()))
    add_friction_argument(parser.add_argument_group("friction"))
    _add_tolerance(parser.add_argument_group("the calibration"))
    add_row_arguments(parser)


def _add_estimator(group: argparse._ArgumentGroup) -> None:  # pyright: ignore[reportPrivateUsage]
    group.add_argument(
        "--estimator", choices=ESTIMATORS, metavar="NAME",
        help=f"one of these ({FOR_LOGS} for a log of which nothing but its samples is known, {DEFAULT} for what boards "
        f"recorded, whose filters are known)",
    )  # fmt: skip
    group.add_argument(
        "--option", action="append", default=[], metavar="NAME=VALUE", type=_option,
        help="of the estimator, such as loss=bisquare; repeatable",
    )  # fmt: skip


def _add_tolerance(group: argparse._ArgumentGroup) -> None:  # pyright: ignore[reportPrivateUsage]
    group.add_argument(
        "--tolerance", action="append", default=[], metavar="KEY=NUMBER", type=_tolerance,
        help="how well the calibration is known, a standard deviation, such as zero_deg=0.5 or torque_constant_percent="
        "2; none: exactly; repeatable (of a log by default 0.2 deg, 1 mm and 5 %%; else as the robot's file says)",
    )  # fmt: skip


_ROWS = ("cutoff_Hz", "delay", "torque", "position", "interval")


def add_row_arguments(parser: argparse.ArgumentParser, *without: str) -> None:
    """The options of the rows that are fitted, but for these settings."""
    group = parser.add_argument_group("the rows", "where left out as the run was imported, or from the recording")
    arguments: dict[str, dict[str, Any]] = {
        "cutoff_Hz": {"type": float, "metavar": "HZ", "help": "of the low-pass on torque, motion and regressor"},
        "delay": {
            "type": _delay,
            "metavar": "S",
            "help": f"of the motion behind the torque in seconds, or {' or '.join(DELAYS)}",
        },
        "torque": {"choices": TORQUES, "help": "from motor currents, or from torque sensors at the joints"},
        "position": {"choices": POSITIONS, "help": "the encoder that tells the motion"},
        "interval": {"type": _interval, "metavar": "FROM,TO", "help": "seconds of the recording to use"},
    }
    for name in _ROWS:
        if name not in without:
            group.add_argument(f"--{name.replace('_', '-')}", **arguments[name])


def row_settings(options: argparse.Namespace) -> dict[str, Any]:
    """Return the settings of rows that were asked for."""
    return {name: getattr(options, name) for name in _ROWS if getattr(options, name, None) is not None}


def add_external_argument(parser: argparse.ArgumentParser) -> None:
    """--external, of verbs that take runs."""
    parser.add_argument(
        "--external", type=_wrench, metavar="FRAME=FX,FY,FZ",
        help="a constant force on the robot at this frame or link [N], in the axes of its base: a weight of 3 kg at "
        "the hand is hand=0,0,-29.4",
    )  # fmt: skip


def add_judging_arguments(parser: argparse.ArgumentParser) -> None:
    """--cutoff-Hz and --interval, of verbs that judge models on a run."""
    parser.add_argument(
        "--cutoff-Hz", type=float, metavar="HZ",
        help="of the low-pass on positions and torques, the same for all models (the lowest that any was fitted with)",
    )  # fmt: skip
    parser.add_argument("--interval", type=_interval, metavar="FROM,TO", help="seconds of the run to judge on")


def cutoff_sentence(cutoff_Hz: float, models: Sequence[tuple[str, Model]], *, asked: bool) -> str:
    """Return at which cut-off models were judged, and why at that one.

    Args:
        cutoff_Hz: of the low-pass.
        models: by what they are called.
        asked: whether somebody asked for it.
    """
    own = ", ".join(f"{name} {model.settings.cutoff_Hz:.4g}" for name, model in models)
    reason = "as asked" if asked else "the lowest of the models' cut-offs" if len(models) > 1 else "the model's own"
    fitted = "" if len(models) == 1 and not asked else f"; fitted at {own} Hz"
    return f"judged at a cut-off of {cutoff_Hz:.4g} Hz, {reason}{fitted}"


class FitOptions(NamedTuple):
    """Options as `fit` takes them; plain, so that they go to other processes."""

    estimator: str | None
    options: dict[str, Any]
    settings: dict[str, Any]
    friction: str | dict[str, str] | None


def fit_options(options: argparse.Namespace) -> FitOptions:
    """Return the options that were asked for."""
    settings = row_settings(options)
    if options.tolerance:
        exact = any(key == "none" for key, _ in options.tolerance)
        settings["tolerances"] = "none" if exact else dict(options.tolerance)
    return FitOptions(options.estimator, dict(options.option), settings, asked_friction(options))


def plain_value(text: str) -> Any:
    """A number, yes or no, or none where the text is one, else the text.

    >>> [plain_value(text) for text in ("3", "1e-6", "true", "none", "bisquare")]
    [3, 1e-06, True, None, 'bisquare']
    """
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _tolerance(text: str) -> tuple[str, float]:
    """A key of a table of tolerances and its number, or none."""
    key, _, value = text.partition("=")
    if text == "none":
        return "none", 0.0
    try:
        return key, float(value)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} must be KEY=NUMBER, such as zero_deg=0.5, or none") from None


def _option(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"{text!r} must be NAME=VALUE, such as loss=bisquare")
    return name, plain_value(value)


def _delay(text: str) -> float | str:
    if text in DELAYS:
        return text
    value = plain_value(text)
    if isinstance(value, (int, float)) and math.isfinite(value):
        return float(value)
    raise argparse.ArgumentTypeError(f"{text!r} must be seconds, such as 0.002, or {' or '.join(DELAYS)}")


def _wrench(text: str) -> Wrench:
    frame, _, force = text.partition("=")
    try:
        x, y, z = (float(value) for value in force.split(","))
    except ValueError:
        x = math.nan
        y = z = x
    if not frame or not math.isfinite(x + y + z):
        raise argparse.ArgumentTypeError(f"{text!r} must be FRAME=FX,FY,FZ in N, such as hand=0,0,-29.4")
    from jointbench.model import Wrench  # brings what computes, which --help does not need

    return Wrench(frame, (x, y, z))


def _interval(text: str) -> tuple[float, float]:
    try:
        first, last = map(float, text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} must be FROM,TO in seconds, such as 0,5.2") from None
    if not first < last:
        raise argparse.ArgumentTypeError(f"{text!r} must have FROM below TO")
    return first, last
