"""Follow a robot's friction over the dates and temperatures of its recordings, and say where it has grown."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from jointbench.checks import Result
from jointbench.cli.compare import model_file, own_run
from jointbench.cli.console import Console, table
from jointbench.cli.judgement import finite
from jointbench.identification import load_model
from jointbench.identification.history import SPEED, Change, History, Session, history
from jointbench.model.model_columns import torque_units
from jointbench.recording import open_run

VERB = "history"
EXAMPLE = "jointbench history runs/january runs/february runs/march"

_ZERO_CELSIUS = 273.15
_ADVICE = "look at grease, bearings and the belt's or the brake's drag, and record once more, warmed up as before"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """RUN… and the speed at which friction is compared."""
    parser.add_argument(
        "runs", metavar="RUN", nargs="+",
        help="a run with its model.json, a model file, or a folder of such runs; in order of time where files say none",
    )  # fmt: skip
    speed = "share of each joint's velocity limit at which friction is compared (%(default)g)"
    parser.add_argument("--speed", type=float, default=SPEED, metavar="SHARE", help=speed)


def run(options: argparse.Namespace, console: Console) -> Result:
    """Compares and prints; exit code 1 when a joint's friction has grown."""
    places = [place for given in options.runs for place in _models(Path(given))]
    past = history([_session(place) for place in places], options.speed)
    console.say(sessions_table(past))
    console.say()
    console.say(changes_table(past))
    for name, change in zip(past.joint_names, past.changes, strict=True):
        if np.isfinite(change.per_kelvin):
            slope = f"{change.per_kelvin:+.2g} ± {change.per_kelvin_sigma:.1g}"
            console.say(f"  {name}: friction changes by {slope} a kelvin, which is taken into account")
    console.say(answer(past))
    return Result("history", fields=history_fields(past), refused=bool(past.grown))


def _models(given: Path) -> list[Path]:
    """Return a model's file, that of a run, or those of the runs in a folder, by name."""
    inside = sorted(given.glob("*/model.json")) if given.is_dir() and not (given / "model.json").is_file() else []
    return inside or [model_file(given)]


def _session(place: Path) -> Session:
    model = load_model(place)
    folder = own_run(place, model)
    name = place.parent.name if place.name == "model.json" else place.name
    return Session(name, model, None if folder is None else open_run(folder))


def sessions_table(past: History) -> str:
    """Return a table of friction at one speed: a line for each recording."""
    rows: list[list[str]] = []
    for session, friction, warm in zip(past.sessions, past.friction, past.temperature, strict=True):
        known = warm[np.isfinite(warm)] - _ZERO_CELSIUS
        cells = [f"{value:.3g}" if np.isfinite(value) else "–" for value in friction]
        degrees = f"{known.mean():.1f}" if len(known) else "–"
        rows.append([session.name, session.date[:16].replace("T", " ") or "–", degrees, *cells])
    return table((f"friction [{torque_units(past.sessions[0].model.robot)}]", "UTC", "°C", *past.joint_names), rows)


def changes_table(past: History) -> str:
    """Return a table of what became of each joint's friction up to the last recording."""
    robot = past.sessions[0].model.robot
    rows = [
        [
            name,
            f"{speed:.3g} {'rad/s' if joint.kind == 'revolute' else 'm/s'}",
            _with_sigma(change.expected, change.expected_sigma),
            _with_sigma(change.friction, change.sigma),
            f"{change.friction / change.expected - 1.0:+.1%}" if np.isfinite(change.expected) else "–",
            change.word,
        ]
        for name, joint, speed, change in zip(
            past.joint_names, robot.independent_joints, past.speeds, past.changes, strict=True
        )
    ]
    return table(("joint", "at", "expected", f"in {past.sessions[-1].name}", "change", ""), rows)


def _with_sigma(value: float, sigma: float) -> str:
    return f"{value:.4g} ± {sigma:.1g}" if np.isfinite(value) and np.isfinite(sigma) else "–"


def answer(past: History) -> str:
    """Return the verdict in a sentence, with what to do."""
    words = {name: change.word for name, change in zip(past.joint_names, past.changes, strict=True)}
    if past.grown:
        return f"friction has grown: {', '.join(past.grown)}; {_ADVICE}"
    fallen = [name for name, word in words.items() if word == "fallen"]
    if fallen:
        return (
            f"no friction has grown; that of {', '.join(fallen)} has fallen, as by running in, warmth or a loose belt"
        )
    if all(word == "not known" for word in words.values()):
        return "nothing to compare with yet: fit another recording of this robot, and give both"
    unknown = [name for name, word in words.items() if word == "not known"]
    return "no friction has grown" + (f"; of {', '.join(unknown)} it is not known" if unknown else "")


def history_fields(past: History) -> dict[str, object]:
    """Return a history in JSON [SI]."""
    return {
        "grown": list(past.grown),
        "sessions": [
            {
                "name": session.name,
                "recorded": session.date or None,
                "joints": {
                    name: {"friction": finite(value), "sigma": finite(sigma), "temperature_K": finite(warm)}
                    for name, value, sigma, warm in zip(past.joint_names, friction, sigmas, temperature, strict=True)
                },
            }
            for session, friction, sigmas, temperature in zip(
                past.sessions, past.friction.tolist(), past.sigma.tolist(), past.temperature.tolist(), strict=True
            )
        ],
        "joints": {
            name: {"speed": speed, **_change_fields(change)}
            for name, speed, change in zip(past.joint_names, past.speeds.tolist(), past.changes, strict=True)
        },
    }


def _change_fields(change: Change) -> dict[str, object]:
    return {key: finite(value) if isinstance(value, float) else value for key, value in change._asdict().items()}
