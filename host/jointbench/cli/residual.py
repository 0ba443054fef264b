"""Learn what a model lacks along one run, and judge that residual on others."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jointbench.checks import Result
from jointbench.cli.console import Console, table
from jointbench.cli.judgement import by_name, finite, verdict_fields
from jointbench.errors import FitError
from jointbench.identification import load_model
from jointbench.identification.residual import Mission, Residual, ResidualGain, TimePolynomial, gain_of, mission_of
from jointbench.identification.state_residual import StateResidual
from jointbench.recording import Run, open_run
from jointbench.results import residual_picture

VERB = "residual"
EXAMPLE = "jointbench residual runs/demo/own runs/demo/waypoints_slow --picture residuals.png"
WRITES = ("picture",)
_SHOWN = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """OWN, other runs, a model."""
    parser.add_argument("own", metavar="RUN", help="the run to learn from")
    parser.add_argument("others", metavar="OTHER", nargs="*", help="runs of other motions, to judge it on")
    parser.add_argument(
        "--model", metavar="FILE", help="a model.json (Kane's equations with the robot file's inertias)"
    )
    parser.add_argument("--picture", metavar="FILE.png", help="the torque that the model lacks, of the first two runs")


def run(options: argparse.Namespace, console: Console) -> Result:
    """Compares a residual of the state with one of time; exit code 1 when that of the state is refused on a run."""
    runs = [open_run(path) for path in (options.own, *options.others)]
    for warning in dict.fromkeys(warning for each in runs for warning in (*each.robot.warnings, *each.warnings)):
        console.say(f"warning: {warning}")
    missions = missions_of(runs, options.model)
    state, polynomial = StateResidual.fit(missions[0]), TimePolynomial.fit(missions[0])
    by_state, by_time = (gains_of(residual, missions) for residual in (state, polynomial))
    console.say(gain_table(by_state, by_time))
    for gain in by_state.values():
        console.say(f"{gain.mission}: {gain.verdict.word} ({gain.verdict.reason})")
    fields: dict[str, Any] = {
        "learnt_from": missions[0].name,
        "missions": gain_fields(missions, state, by_state, by_time),
    }
    if options.picture:
        shown = missions[:_SHOWN]
        fields["picture"] = residual_picture(options.picture, shown, state, polynomial)
        console.say(f"picture: {fields['picture']}")
    refused = any(gain.verdict.is_refused for gain in by_state.values()) or not all(r.is_valid for r in runs)
    return Result("residual", fields=fields, refused=refused)


def missions_of(runs: Sequence[Run], model: str | Path | None = None) -> tuple[Mission, ...]:
    """Compare runs with a model, all as the first one.

    Args:
        runs: that to learn from first.
        model: path of a model.json; None: what the robot's file says of the links.

    Raises:
        FitError: two runs have one name, so that they could not be told apart.
    """
    names = [run.path.name for run in runs]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise FitError(f"two runs are named {twice!r}; give runs whose directories have names of their own")
    predict = None if model is None else load_model(model).predict
    own = mission_of(runs[0], model=predict)
    return (own, *(mission_of(run, model=predict, settings=own.settings) for run in runs[1:]))


def gains_of(residual: Residual, missions: Sequence[Mission]) -> dict[str, ResidualGain]:
    """Return what a residual gains on each mission, by its name."""
    return {mission.name: gain_of(residual, mission) for mission in missions}


def gain_table(by_state: Mapping[str, ResidualGain], by_time: Mapping[str, ResidualGain]) -> str:
    """A line per mission: average gain of both residuals, and the word on them."""
    rows = [
        [name, *(text for gains in (by_state, by_time) for text in _average_and_word(gains[name]))] for name in by_state
    ]
    return table(("mission", "gain by state", "verdict", "gain by time", "verdict"), rows)


def gain_fields(
    missions: Sequence[Mission],
    state: StateResidual,
    by_state: Mapping[str, ResidualGain],
    by_time: Mapping[str, ResidualGain],
) -> dict[str, Any]:
    """Return what is told of each mission in JSON."""
    fields: dict[str, Any] = {}
    for mission in missions:
        gain, names = by_state[mission.name], mission.robot.joint_names
        motion = mission.observations.motion
        within = np.abs(mission.error - state.along(mission)) <= 2.0 * state.sigma(motion.q, motion.dq, motion.ddq)
        moving = mission.moving
        fields[mission.name] = {
            "error_of_model": by_name(names, gain.without),
            "state": _judged(gain),
            "polynomial": _judged(by_time[mission.name]),
            "within_2_sigma": float(within[moving].mean()) if moving.any() else None,
            "beyond_what_was_fitted": by_name(names, gain.outside),
        }
    return fields


def _average_and_word(gain: ResidualGain) -> tuple[str, str]:
    return f"{gain.average:.1%}", gain.verdict.word


def _judged(gain: ResidualGain) -> dict[str, Any]:
    return {
        "gain": by_name(gain.joint_names, gain.gain),
        "average_gain": finite(gain.average),
        **verdict_fields(gain.verdict, gain.joint_verdicts),
    }
