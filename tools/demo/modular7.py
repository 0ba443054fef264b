"""System D: an arm of modules, its printed model improved by a residual learnt from one mission.

T'_i(t) = Σ_{j=0..5} C_ij t^j (eq. 26) stands for the torque that Kane's model lacks on one mission. The printed gain
is the correction divided by Kane's torque, |T'| / |T_Kane|: a ratio of sizes, and no share of an error.

Source: Li et al., Hindawi, 2017, eq. 22 to 29, tables 4 and 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hil_tests.virtual_bench.kinds import Variant
from jointbench import Excitation
from jointbench.arrays import Array
from jointbench.checks import Check
from jointbench.cli.residual import gain_fields, gain_table, gains_of
from jointbench.excitation import random_excitation
from jointbench.identification import fit, validate
from jointbench.identification.residual import (
    Mission,
    Residual,
    ResidualGain,
    TimePolynomial,
    mission_of,
    printed_model,
)
from jointbench.identification.state_residual import StateResidual
from jointbench.model import Robot, chain_of, kane_dynamics, load_robot
from jointbench.results import residual_picture
from tools.demo.own_bench import say_judgement, write_files
from tools.demo.playing import BENCHES, Played, play_all
from tools.demo.story import NOT_PRINTED, PaperLine, Stage, Story

PRINTED_GAIN = np.array([33.28, 32.87, 34.14, 33.15, 34.14, 34.15, 33.30])
"""Table 5, by joint [%]."""

PRINTED_AVERAGE = 33.57

_UNIT = 1e-6
"""[N·m] of the printed kg·mm²/s²."""

COEFFICIENTS = _UNIT * np.array(
    [
        [1.4e6, -2.4e7, 2.4e7, 1.0e8, -1.3e8, 3.7e7],
        [4.0e6, -5.7e7, 2.3e8, -3.2e8, 1.3e8, -1.1e7],
        [3.7e5, -1.1e8, 5.1e8, -6.0e8, 2.9e8, -4.9e7],
        [3.4e5, -1.2e7, 4.5e7, -8.2e7, 4.4e7, -7.4e6],
        [6.1e4, -1.1e7, 5.7e7, -7.4e7, 3.4e7, -5.4e6],
        [1.3e6, 2.2e7, -5.7e7, 5.8e7, -2.8e7, 5.3e6],
        [-3.8e4, 9.5e5, -3.9e6, 5.5e6, -3.1e6, 5.9e5],
    ]
)
"""C_ij of eq. 27 [N·m/s^j], two digits, by joint and power."""

TABLE_4 = _UNIT * np.array(
    [
        [-1.8e3, 1.8e4, 2.4e3, -1.8e3, 2.8e2, 3.1e1, 2.1e1],
        [-6.2e5, 2.5e6, -2.8e6, -5.9e5, 2.3e4, 3.8e6, 9.2e3],
        [-1.6e5, 4.2e5, 6.0e6, -1.5e6, 8.2e5, 3.9e6, 1.7e4],
        [2.6e6, -4.1e6, 2.2e7, -3.0e6, 1.6e6, 3.6e6, -5.6e3],
        [9.1e6, -9.1e6, 3.8e7, -6.0e6, 2.4e6, 2.8e6, -4.3e4],
        [1.6e7, -2.2e7, 4.4e7, -1.1e7, 1.7e6, 2.1e6, 7.2e3],
        [9.4e5, -8.1e7, 4.8e7, -2.1e7, -3.3e6, 4.2e5, 1.3e5],
        [-9.4e6, -9.9e7, 5.5e7, -2.4e7, -5.0e6, -3.7e5, 7.1e4],
        [-1.2e7, -1.0e8, 6.2e7, -2.4e7, -6.0e6, -6.4e5, 1.9e4],
        [-5.6e6, -9.1e7, 7.2e7, -2.2e7, -6.7e6, -5.9e5, 1.1e3],
    ]
)
"""Error of Kane's model along the paper's mission [N·m], by row and joint; at what times is not printed."""

ORDER = COEFFICIENTS.shape[1] - 1


def printed_duration() -> float:
    """The mission's duration [s] with which the printed coefficients are nearest to table 4, its rows evenly apart."""
    durations = np.arange(0.5, 10.0, 0.05)
    return float(min(durations, key=lambda duration: np.median(left_by(COEFFICIENTS, duration))))


def left_by(coefficients: Array, duration: float) -> Array:
    """Share of table 4 that a polynomial leaves, root mean square by joint, shape (7,).

    Args:
        coefficients: as COEFFICIENTS.
        duration: of the mission [s], over which the rows are even.
    """
    time = np.linspace(0.0, duration, len(TABLE_4))
    error = TABLE_4 - time[:, None] ** np.arange(ORDER + 1) @ coefficients.T
    return np.sqrt(np.mean(error**2, axis=0) / np.mean(TABLE_4**2, axis=0))


def refitted(duration: float) -> Array:
    """Coefficients of the printed order, fitted to table 4 by least squares, as COEFFICIENTS."""
    time = np.linspace(0.0, duration, len(TABLE_4))
    return np.linalg.lstsq(time[:, None] ** np.arange(ORDER + 1), TABLE_4)[0].T


def quotient(residual: Residual | None, mission: Mission) -> Array:
    """|T'| / |T_Kane| over all compared rows of a mission, root mean squares by joint, shape (n_joints,).

    Args:
        residual: whose T' is taken; None: the error itself, which T' stands for.
        mission: compared with Kane's model.
    """
    size = mission.error if residual is None else residual.along(mission)
    kane = mission.filtered(mission.model)
    rows = mission.compared
    squares = [np.sum(np.where(rows, values, 0.0) ** 2, axis=0) for values in (size, kane)]
    return np.sqrt(squares[0] / squares[1])


PAPER = "D · Li et al., Hindawi, 2017"

OWN, JUDGED, TASK = "own", "waypoints_slow", "task"
"""The mission that the residuals are fitted to, the one that the identified model is judged on, and a short one that
the paper's polynomial is fitted to by itself."""

LEAST_OWN, LEAST_UNSEEN = 90.0, 60.0
ASSUMED = (
    "The paper shows its mission and the response of its solid model as figures alone. The own mission is a random "
    "Fourier series of 20 s; the unseen ones are two more series, of 9.6 and of 8 s, three through way points, of 12 "
    "to 20 s, and the task: from point to point and back in 4 s. Of the paper's mission the printed coefficients and "
    "table 4 tell the duration, if its rows are even in time.",
    "The solid model is the plant. Without friction it differs from Kane's model as the paper's does, by bodies alone: "
    "masses, mass centres and inertias about 5 to 15 % off the printed ones, other ones for each seed. What the rotors "
    "take, which no model of the paper's has, is taken off with the plant's own inertia, and a mission compares bodies "
    "with bodies. With friction, the same plant has rotors and Coulomb, viscous, Stribeck and load friction, which the "
    "printed Kane model has not; the residual of the state has terms for all but the flexible gears.",
    "The printed gain is T′/T_Kane, the size of the correction over that of Kane's torque: no share of an error. "
    "It stands here beside that same quotient, and says how far Kane's model is off, not how good a correction is: "
    "this plant's bodies are nearer to their drawing than the paper's solid model is to its Kane model. The share of "
    "the error that goes, root mean square over all rows, rest and way points included, the paper does not print.",
    "The paper's bus is CAN (CANopen), which no line between host and boards is here: they are serial, one a board or "
    "shared; a board may have a drive on CAN behind it (docs/boards.md). The emulated ones are serial.",
)


def missions(robot: Robot, seed: int) -> dict[str, Excitation]:
    """The own mission, then six that differ from it in path, in speed, and four of them in kind."""

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
        TASK: way_points(2, 4.0, 6),
    }


@dataclass(frozen=True, eq=False)
class Residuals:
    """Two residuals on the missions of one plant.

    Attributes:
        plant: "no friction" or "friction".
        missions: the own one first.
        state, polynomial: fitted to the own mission; `of_task` the paper's polynomial fitted to the task.
        bound: gains of the plant's own bodies on each mission, by its name; empty where friction is more than bodies.
    """

    plant: str
    missions: tuple[Mission, ...]
    state: StateResidual
    polynomial: TimePolynomial
    of_task: TimePolynomial
    bound: dict[str, float]

    @classmethod
    def of(cls, plant: str, seen: Sequence[Mission], true: Sequence[Mission] = ()) -> Residuals:
        """Fit them; the own mission comes first, the task last."""
        polynomials = [TimePolynomial.fit(mission) for mission in (seen[0], seen[-1])]
        shares = np.mean(1.0 - _left(true) / _left(seen), axis=1) if true else np.empty(0)
        bound = {mission.name: float(100.0 * share) for mission, share in zip(seen, shares, strict=False)}
        return cls(plant, tuple(seen), StateResidual.fit(seen[0]), polynomials[0], polynomials[1], bound)

    @cached_property
    def by_state(self) -> dict[str, ResidualGain]:
        """Gain of the residual of the state on each mission."""
        return gains_of(self.state, self.missions)

    @cached_property
    def by_time(self) -> dict[str, ResidualGain]:
        """Gain of the polynomial of time on each mission."""
        return gains_of(self.polynomial, self.missions)


def seen_on(played: Played, names: Sequence[str], *, rotors: bool, true: bool = False) -> tuple[Mission, ...]:
    """Missions compared with Kane's model of the printed bodies, or of the plant's own.

    Args:
        played: their runs.
        names: of the runs, in order.
        rotors: whether the plant's own rotors stand in the model, so that bodies are compared with bodies.
        true: whether the plant's own bodies do.
    """
    own = played.runs[names[0]]
    bodies = np.concatenate([played.truth[joint]["standard_parameters"] for joint in own.robot.joint_names])
    kane = (lambda q, dq, ddq: kane_dynamics(own.robot, q, dq, ddq, bodies)) if true else printed_model(own.robot)
    inertia = np.array([played.truth[joint]["rotor_inertia"] if rotors else 0.0 for joint in own.robot.joint_names])

    def model(q: Array, dq: Array, ddq: Array) -> Array:
        return kane(q, dq, ddq) + inertia * ddq

    first = mission_of(own, model=model)
    return (first, *(mission_of(played.runs[name], model=model, settings=first.settings) for name in names[1:]))


def tell(stage: Stage) -> Story:
    """Missions from boards; Kane's model of the printed parameters, and what two residuals gain on each."""
    robot = load_robot("modular7")
    if stage.modules is not None:
        robot = chain_of(robot, stage.modules)
    for warning in robot.warnings:
        stage.console.say(f"warning: {warning}")
    with stage.console.working(f"planning {_COUNT} missions"):
        planned = missions(robot, stage.seed)
    # What is learnt from twice is learnt with less of the sensors' noise.
    motions = {name: (motion, 2 if name == OWN else 1) for name, motion in planned.items()}
    found: list[Residuals] = []
    bench = BENCHES / "modular7.toml"
    if stage.whole:
        variant: Variant = "frictionless"
        bare = play_all(stage, bench, motions, variant=variant, folder=variant)
        with stage.console.working("fitting residuals"):
            pair = [seen_on(bare, list(planned), rotors=True, true=true) for true in (False, True)]
            found.append(Residuals.of("no friction", *pair))
        stage.console.say(gain_table(found[0].by_state, found[0].by_time))
    played = play_all(stage, bench, motions)
    stage.console.say(f"fitting residuals of the printed Kane model to mission {OWN!r} alone")
    with stage.console.working("fitting residuals"):
        found.append(Residuals.of("friction", seen_on(played, list(planned), rotors=False)))
    last = found[-1]
    stage.console.say(gain_table(last.by_state, last.by_time))
    with stage.console.working("fitting and judging"):
        # Of a mission that was not planned to excite it all the file tells the rest.
        model = fit(played.runs[OWN], estimator="physical", options={"weight": 1.0})
        judged = validate(model, played.runs[JUDGED])
    say_judgement(stage, model, judged)
    fields: dict[str, Any] = {
        "modules": robot.n_joints,
        "warnings": robot.warnings,
        "missions": gain_fields(last.missions, last.state, last.by_state, last.by_time),
        "polynomial_coefficients": last.polynomial.coefficients,
        **played.fields,
        **write_files(stage, model, played.runs[OWN], judged, played.runs[JUDGED]),
    }
    with stage.console.working("drawing the residuals"):
        picture = residual_picture(stage.out / "residuals.png", last.missions[:2], last.state, last.polynomial)
    stage.console.say(f"picture: {picture}")
    refused = not played.is_valid or any(gain.verdict.is_refused for each in found for gain in each.by_state.values())
    whole = robot.n_joints == len(PRINTED_GAIN)
    lines = [line for each in found for line in residual_lines(each, whole=whole)]
    lines += printed_lines() if whole else []
    return Story(
        PAPER, tuple(lines), (played.lost_check,), fields, refused, (*ASSUMED, *robot.warnings), judged.verdict
    )


_COUNT = 7


def _seed(seed: int, number: int) -> int:
    """Each mission of each seed has one of its own."""
    return _COUNT * seed + number


def residual_lines(found: Residuals, *, whole: bool) -> tuple[PaperLine, ...]:
    """Lines on the paper's numbers beside both residuals of one plant; shorter chains are not the paper's."""
    by_state, by_time, own, task = found.by_state, found.by_time, found.missions[0], found.missions[-1]
    of_task = gains_of(found.of_task, (task,))[task.name]
    state, time = by_state[own.name], by_time[own.name]
    unseen = [name for name in by_state if name != own.name]
    least = min(100.0 * by_state[name].average for name in unseen)
    bare = found.plant == "no friction"
    suffix = "_without_friction" if bare else ""
    sizes = [quotient(residual, own) for residual in (found.polynomial, found.state, None)]
    of_short = [quotient(residual, task) for residual in (found.of_task, found.state, None)]
    names = (own.name, f"{task.name}, which the polynomial is fitted to")
    printed = (f"{PRINTED_AVERAGE} %", _percents(PRINTED_GAIN / 100.0, 2)) if whole else (NOT_PRINTED, NOT_PRINTED)
    on_own = f"mission {own.name}, joints 1 … {len(sizes[0])}"
    gone = f"{found.plant}: share of the error gone on"
    # With friction a joint whose bodies ask for next to nothing, the last one, would be all of an average.
    lines = [
        PaperLine(
            f"{found.plant}: quotient T′/T_Kane on mission {name}, average", printed[0],
            f"{100.0 * of[1].mean():.2f} %", theirs=f"{100.0 * of[0].mean():.2f} %",
            truth=f"{100.0 * of[2].mean():.2f} % (all that Kane's model lacks)",
        )
        for name, of in zip(names, (sizes, of_short), strict=True)
        if bare
    ]  # fmt: skip
    lines += [
        PaperLine(
            f"{found.plant}: quotient T′/T_Kane on {on_own}", printed[1],
            _percents(sizes[1], 2), theirs=_percents(sizes[0], 2), truth=_percents(sizes[2], 2),
        ),
        PaperLine(
            f"{gone} mission {own.name}, average", NOT_PRINTED,
            f"{100.0 * state.average:.1f} %",
            None if bare else Check("gain_on_own_mission", 100.0 * state.average, ">=", LEAST_OWN, "%"),
            theirs=f"{100.0 * time.average:.1f} %", truth=_bound(found, [own.name]),
        ),
        PaperLine(
            f"{gone} {on_own}", NOT_PRINTED, _percents(state.gain, 1),
            theirs=_percents(time.gain, 1),
        ),
        PaperLine(
            f"{gone} mission {task.name}, to which the polynomial is fitted", NOT_PRINTED,
            f"{100.0 * by_state[task.name].average:.1f} %", theirs=f"{100.0 * of_task.average:.1f} %",
        ),
        PaperLine(
            f"{gone} {len(unseen)} unseen missions, average", NOT_PRINTED,
            f"{100.0 * float(np.mean([by_state[name].average for name in unseen])):.1f} %",
            theirs=f"{100.0 * float(np.mean([by_time[name].average for name in unseen])):.1f} %",
        ),
        PaperLine(
            f"{gone} the worst of them, average", NOT_PRINTED, f"{least:.1f} %",
            Check(f"gain_on_worst_unseen_mission{suffix}", least, ">=", LEAST_UNSEEN, "%"),
            theirs=f"{min(100.0 * by_time[name].average for name in unseen):.1f} %", truth=_bound(found, unseen),
        ),
    ]  # fmt: skip
    return tuple(lines)


def printed_lines() -> list[PaperLine]:
    """The paper's own coefficients against its own table 4."""
    duration = printed_duration()
    return [
        PaperLine(
            "share of the paper's table 4 that its coefficients C leave, joints 1 … 7", NOT_PRINTED,
            f"{_percents(left_by(refitted(duration), duration), 0)} (order 5 fitted to table 4 anew)",
            theirs=f"{_percents(left_by(COEFFICIENTS, duration), 0)} (C as printed, {duration:.2f} s, its best)",
        )
    ]  # fmt: skip


def _bound(found: Residuals, names: Sequence[str]) -> str:
    """What the plant's own bodies gain on the worst of some missions: no residual of bodies gains more."""
    return f"{min(found.bound[name] for name in names):.1f} % (the plant's bodies)" if found.bound else NOT_PRINTED


def _left(missions: Sequence[Mission]) -> Array:
    """What is left of each mission's error, root mean square by joint, shape (n_missions, n_joints)."""
    return np.stack([np.sqrt(np.mean(mission.error[mission.complete] ** 2, axis=0)) for mission in missions])


def _percents(shares: Array, digits: int) -> str:
    return " ".join(f"{100.0 * share:.{digits}f}" for share in shares) + " %"
