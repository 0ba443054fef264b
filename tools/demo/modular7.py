"""System D: an arm of modules, whose printed model is improved by a residual learnt from one mission."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from jointbench import Excitation
from jointbench.cli.residual import gain_fields, gain_table, gains_of, missions_of
from jointbench.cli.result import Check
from jointbench.excitation import random_excitation
from jointbench.identification import fit, validate
from jointbench.identification.residual import ResidualGain, StateResidual, TimePolynomial
from jointbench.report import residual_picture
from jointbench.robot import Robot, chain_of, load_robot
from tools.demo.judging import say_judgement, write_files
from tools.demo.playing import BENCHES, play_all
from tools.demo.story import PaperLine, Stage, Story

PAPER = "D · Li et al., Hindawi, 2017"
PRINTED_AVERAGE = 33.57
PRINTED = (33.28, 32.87, 34.14, 33.15, 34.14, 34.15, 33.30)
"""Gain of the improved model by joint [%], on the mission that it was fitted to."""

OWN, JUDGED = "own", "waypoints_slow"
"""The mission that the residuals are fitted to, and the one that the identified model is judged on."""

LEAST_OWN, LEAST_UNSEEN = 90.0, 60.0
ASSUMED = (
    "The paper shows its mission and the response of its solid model as figures alone. The own mission is a random "
    "Fourier series of 20 s; the unseen ones are two more series, of 9.6 and of 8 s, and three through way points, of"
    " 12 to 20 s.",
    "The solid model is the plant: links 5 to 15 % off the printed ones, link 4 a body that can be, flexible gears, "
    "rotors, and Coulomb, viscous, Stribeck and load friction, none of which the printed Kane model has. The residual"
    " of the state has terms for all but the flexible gears, and learns from the own mission how large they are.",
    "A gain is the share of the root mean square error that is gone, over all of a mission, rest at its ends and way "
    "points included: taken to be what the paper's word means.",
)


def missions(robot: Robot, seed: int) -> dict[str, Excitation]:
    """The own mission, then five that differ from it in path, in speed, and three of them in kind."""

    def way_points(points: int, period: float, number: int) -> Excitation:
        return random_excitation(robot, family="point_to_point", points=points, period=period, seed=_seed(seed, number))

    return {
        OWN: random_excitation(robot, period=20.0, seed=_seed(seed, 0)),
        JUDGED: way_points(5, 20.0, 1),
        "waypoints_fast": way_points(9, 12.0, 2),
        "waypoints_long": way_points(8, 20.0, 3),
        "series_fast": random_excitation(robot, period=9.6, seed=_seed(seed, 4)),
        "series_ramped": random_excitation(
            robot, family="ramped_fourier", harmonics=3, period=8.0, seed=_seed(seed, 5)
        ),
    }


def tell(stage: Stage) -> Story:
    """Six missions from boards; Kane's model of the printed parameters, and what two residuals gain on each."""
    robot = load_robot("modular7")
    if stage.modules is not None:
        robot = chain_of(robot, stage.modules)
    for warning in robot.warnings:
        stage.console.say(f"warning: {warning}")
    with stage.console.working("planning six missions"):
        planned = missions(robot, stage.seed)
    played = play_all(stage, BENCHES / "modular7.toml", {name: (motion, 1) for name, motion in planned.items()})
    stage.console.say(f"fitting residuals of the printed Kane model to mission {OWN!r} alone")
    with stage.console.working("fitting residuals"):
        seen = missions_of([played.runs[name] for name in planned])
        state, polynomial = StateResidual.fit(seen[0]), TimePolynomial.fit(seen[0])
        by_state, by_time = (gains_of(residual, seen) for residual in (state, polynomial))
    stage.console.say(gain_table(by_state, by_time))
    with stage.console.working("fitting and judging"):
        # Of a mission that was not planned to excite it all the file tells the rest.
        model = fit(played.runs[OWN], estimator="physical", options={"weight": 1.0})
        judged = validate(model, played.runs[JUDGED])
    say_judgement(stage, model, judged)
    fields: dict[str, Any] = {
        "modules": robot.n_joints,
        "warnings": robot.warnings,
        "missions": gain_fields(seen, state, by_state, by_time),
        "polynomial_coefficients": polynomial.coefficients,
        **played.fields,
        **write_files(stage, model, played.runs[OWN], judged, played.runs[JUDGED]),
    }
    with stage.console.working("drawing the residuals"):
        picture = residual_picture(stage.out / "residuals.png", seen[:2], state, polynomial)
    stage.console.say(f"picture: {picture}")
    refused = not played.is_valid or any(gain.verdict.word == "refused" for gain in by_state.values())
    lines = _lines(robot, robot.n_joints == len(PRINTED), by_state, by_time)
    return Story(PAPER, lines, (played.lost_check,), fields, refused, (*ASSUMED, *robot.warnings), judged.verdict)


def _seed(seed: int, number: int) -> int:
    """Each mission of each seed has one of its own."""
    return 6 * seed + number


def _lines(
    robot: Robot, whole: bool, by_state: Mapping[str, ResidualGain], by_time: Mapping[str, ResidualGain]
) -> tuple[PaperLine, ...]:
    """What is printed beside ours; the paper prints nothing of shorter chains."""
    state, time = by_state[OWN], by_time[OWN]
    unseen = [name for name in by_state if name != OWN]
    averages = {name: 100.0 * by_state[name].average for name in unseen}
    least = min(averages.values())

    def both(ours: float, polynomial: float) -> str:
        return f"{100.0 * ours:.1f} %; polynomial of time {100.0 * polynomial:.1f} %"

    return (
        PaperLine(
            "gain on its own mission, average",
            f"{PRINTED_AVERAGE} %" if whole else "–",
            both(state.average, time.average),
            Check("gain_on_own_mission", 100.0 * state.average, ">=", LEAST_OWN, "%"),
        ),
        *(
            PaperLine(
                f"gain on its own mission, joint {joint + 1}",
                f"{PRINTED[joint]:.2f} %" if whole else "–",
                both(float(state.gain[joint]), float(time.gain[joint])),
            )
            for joint in range(robot.n_joints)
        ),
        PaperLine(
            "gain on five unseen missions, average",
            "–",
            both(*(float(np.mean([gains[name].average for name in unseen])) for gains in (by_state, by_time))),
        ),
        PaperLine(
            "gain on the worst of them, average",
            "–",
            f"{least:.1f} %",
            Check("gain_on_worst_unseen_mission", least, ">=", LEAST_UNSEEN, "%"),
        ),
    )
