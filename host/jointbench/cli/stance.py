"""Tell a biped's masses and where they are from the forces under the foot it stands on."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from jointbench.arrays import Array
from jointbench.checks import Result
from jointbench.cli.console import Console, table
from jointbench.cli.judgement import by_name, finite
from jointbench.errors import FitError, RobotError
from jointbench.identification.zero_moment_point import (
    BalanceTracking,
    FullStanceEstimate,
    ReducedParameters,
    Stance,
    TorqueRows,
    ZmpEstimate,
    averaged,
    contact_of_run,
    fit_stance,
    fit_stance_full,
    joined,
    joint_torque_estimate,
    planned_point,
    projected_newton,
    stance_of_run,
    theoretical_point,
)
from jointbench.identification.zero_moment_point.published_methods import PRINTED_ALPHA
from jointbench.model import Robot, floating_standard_parameters
from jointbench.recording import Run, open_run
from jointbench.results import PressureModel, stance_picture

NOMINAL = "nominal"
HELD = "ours_held"
"""Ours, with the links' rotary inertias taken for known."""

LABELS = {
    NOMINAL: "robot file",
    "torque": "joint torques",
    "paper": "paper's ZMP",
    "ours": "ours",
    HELD: "ours, rotary inertia held",
    "full": "full",
}
PRINTED = {NOMINAL: 33.8e-3, "torque": 12.4e-3, "paper": 4.6e-3}
"""Mean distances on a fresh run that Wu & Gao (2021) print [m]."""

VERB = "stance"
EXAMPLE = "jointbench stance runs/1 runs/2 runs/3 --verify runs/fresh --total-mass 28.1 --method all"
WRITES = ("out",)

METHODS = ("torque", "paper", "ours")
"""In the order in which they are told: that which counts last."""

_PICTURE = "stance.png"


def parameter_table(estimates: Mapping[str, ZmpEstimate]) -> str:
    """Each parameter by the robot's file and each estimate ± σ, and the word on the last one."""
    last = list(estimates.values())[-1]
    nominal = ReducedParameters(last.robot).nominal
    methods = [text for method in estimates for text in (LABELS[method], "± σ")]
    heads = ["parameter", LABELS[NOMINAL], *methods, "verdict"]
    columns = [nominal, *(column for estimate in estimates.values() for column in (estimate.values, estimate.sigma))]
    words = [verdict.word for verdict in last.parameter_verdicts]
    return table(heads, [[*row, word] for row, word in zip(_in_units(last.names, columns), words, strict=True)])


def spread_table(names: Sequence[str], spreads: Mapping[str, Array]) -> str:
    """Return how far estimates of single runs differ (standard deviation), by method."""
    heads = ["spread over runs", *(LABELS[method] for method in spreads)]
    return table(heads, _in_units(names, list(spreads.values())))


def distance_table(corrected: Mapping[str, float], as_calibrated: Mapping[str, float]) -> str:
    """Mean distance of theoretical from measured zero-moment points, beside the paper's.

    Args:
        corrected: by way [m], with the sensors' errors taken out that an estimate found.
        as_calibrated: the same with the sensors as they were calibrated.
    """
    rows = [
        [
            LABELS[way],
            f"{1e3 * distance:.2f}",
            f"{1e3 * as_calibrated[way]:.2f}",
            f"{1e3 * PRINTED[way]:.1f}" if way in PRINTED else "–",
        ]
        for way, distance in corrected.items()
    ]
    heads = ("mean distance [mm] by", "sensors corrected", "as calibrated", "on the paper's robot")
    return table(heads, rows)


def words(estimates: Mapping[str, ZmpEstimate]) -> list[str]:
    """Return what each estimate says of itself: verdict, what is not identified and why, iterations, notes."""
    said: list[str] = []
    for method, estimate in estimates.items():
        end = "converged" if estimate.converged else "did not converge"
        said.append(
            f"{LABELS[method]}: {estimate.verdict.word} ({estimate.verdict.reason}); {estimate.samples} samples, {end} "
            f"at iteration {estimate.iterations}"
        )
        said += [f"  {verdict}" for verdict in estimate.parameter_verdicts if verdict.word != "identified"]
        said += [f"  {note}" for note in estimate.notes]
    return said


def estimate_fields(estimate: ZmpEstimate) -> dict[str, Any]:
    """Return what an estimate tells in JSON."""
    nuisance = zip(estimate.nuisance_names, estimate.nuisance_values, estimate.nuisance_sigma, strict=True)
    return {
        "parameters": _parameters(estimate),
        "nuisance": {name: {"value": value, "sigma": finite(sigma)} for name, value, sigma in nuisance},
        "verdict": estimate.verdict.word,
        "verdict_reason": estimate.verdict.reason,
        "samples": estimate.samples,
        "iterations": estimate.iterations,
        "converged": estimate.converged,
        "notes": estimate.notes,
    }


def full_table(full: FullStanceEstimate) -> str:
    """The parameters of the links that the forces tell, and how many they do not."""
    items = zip(full.names, full.values.tolist(), full.sigma.tolist(), full.parameter_verdicts, strict=True)
    rows = [
        [name, f"{value:.4g}", f"{sigma:.2g}", verdict.word]
        for name, value, sigma, verdict in items
        if not verdict.is_refused
    ]
    count = f"{len(full.names) - len(rows)} of {len(full.names)}"
    refused = f"  {count} are refused: they may be zero, or only the robot's file tells them"
    return f"{table(('full: parameter', 'value', 'σ', 'verdict'), rows)}\n{refused}"


def full_fields(full: FullStanceEstimate) -> dict[str, Any]:
    """Return what the full estimate tells in JSON."""
    return {
        "parameters": _parameters(full),
        "verdict": full.verdict.word,
        "verdict_reason": full.verdict.reason,
    }


def _in_units(names: Sequence[str], columns: Sequence[Array]) -> list[list[str]]:
    """Rows of a table: the name with its unit, mm of a place and kg of a mass, and each column's number."""
    rows: list[list[str]] = []
    for i, name in enumerate(names):
        scale, unit, decimals = (1e3, "mm", 2) if name.startswith("lc_") else (1.0, "kg", 4)
        rows.append([f"{name} [{unit}]", *(f"{scale * column[i]:.{decimals}f}" for column in columns)])
    return rows


def _parameters(estimate: ZmpEstimate | FullStanceEstimate) -> dict[str, dict[str, Any]]:
    sigmas = estimate.sigma.tolist()
    return {
        name: {"value": value, "sigma": finite(sigma), "verdict": verdict.word, "reason": verdict.reason}
        for name, value, sigma, verdict in zip(
            estimate.names, estimate.values.tolist(), sigmas, estimate.parameter_verdicts, strict=True
        )
    }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """RUNs, a fresh one, the mass, the methods, and where results go."""
    parser.add_argument("run", metavar="RUN", nargs="+", help="runs of a biped that moves on one foot, on one bench")
    parser.add_argument("--verify", metavar="RUN", help="a run of another motion to judge the estimates on")
    parser.add_argument("--total-mass", type=float, required=True, metavar="KG", help="of the robot, as weighed")
    parser.add_argument("--foot", metavar="NAME", help="the foot it stands on (default: the one that is its base)")
    parser.add_argument(
        "--method", choices=("ours", "paper", "torque", "all"), default="ours", help="how to estimate (%(default)s)"
    )
    parser.add_argument("--full", action="store_true", help="also all parameters of the links that the forces tell")
    parser.add_argument("--each", action="store_true", help="also fit each run by itself, and tell how far they differ")
    parser.add_argument(
        "-o", "--out", metavar="FOLDER", help="where the estimates and the picture go (default: the first run's)"
    )


def run(options: argparse.Namespace, console: Console) -> Result:
    """Fits, prints and draws; exit code 1 when the estimate is refused."""
    runs = [_opened(name, console) for name in options.run]
    fresh_run = _opened(options.verify, console) if options.verify else None
    robot, mass = runs[0].robot, options.total_mass
    foot = options.foot or support_foot(robot)
    contacts, stances = stances_of([*runs, *([fresh_run] if fresh_run else ())], mass, foot, console.say)
    stances, fresh = (stances[:-1], stances[-1]) if fresh_run else (stances, stances[0])
    held_out = fresh_run is not None and fresh_run.sha256 not in {each.sha256 for each in runs}
    if not held_out:
        console.say("warning: no --verify run of its own: distances are on motion that was fitted, and flatter")
    methods = METHODS if options.method == "all" else (options.method,)
    reduced = ReducedParameters(robot)
    torques = torques_of(runs) if "torque" in methods else ()
    estimates = estimates_of(torques, stances, reduced, mass, methods)
    full = fit_stance_full(joined(stances), mass) if options.full else None
    chosen = estimates[methods[-1]]
    predictions = predictions_of(fresh, estimates) | ({} if full is None else {"full": full.predict(fresh)})
    corrected, as_calibrated = (
        distances_of(predictions, measured) for measured in (chosen.corrected(fresh), fresh.measured)
    )
    console.say(parameter_table(estimates))
    console.say()
    console.say(distance_table(corrected, as_calibrated))
    tracking = balance_of(fresh_run, fresh, chosen, mass, foot) if fresh_run else None
    if tracking is not None:
        console.say(f"balance: {tracking['corrected']}")
    for sentence in words(estimates):
        console.say(sentence)
    spreads = spreads_of(torques, stances, reduced, mass, methods) if options.each and len(runs) > 1 else {}
    if spreads:
        console.say(spread_table(reduced.names, spreads))
    out = Path(options.out or options.run[0])
    out.mkdir(parents=True, exist_ok=True)
    for name in (*map(file_name, estimates), _PICTURE):
        console.keep_earlier(out / name, options.force)
    files = {method: each.save(out / file_name(method)) for method, each in estimates.items()}
    picture = stance_picture(out / _PICTURE, fresh, *drawn(fresh, estimates))
    console.say(f"estimates: {', '.join(map(str, files.values()))}; picture: {picture}")
    fields: dict[str, Any] = {
        "robot": robot.name,
        "foot": foot,
        "total_mass_kg": mass,
        "contact": contacts,
        "samples": sum(stance.n_samples for stance in stances),
        "verified_on_fresh_run": held_out,
        "mean_distance_m": corrected,
        "mean_distance_as_calibrated_m": as_calibrated,
        "balance_m": tracking and {name: asdict(each) for name, each in tracking.items()},
        "methods": {method: estimate_fields(each) | {"file": files[method]} for method, each in estimates.items()},
        "spread_over_runs": {way: by_name(reduced.names, spread) for way, spread in spreads.items()},
        "picture": picture,
        "verdict": chosen.verdict.word,
        "verdict_reason": chosen.verdict.reason,
    }
    if full is not None:
        console.say(full_table(full))
        fields["full"] = full_fields(full)
    return Result("stance", fields=fields, refused=chosen.verdict.is_refused)


def balance_of(
    run: Run, stance: Stance, estimate: ZmpEstimate, total_mass: float, foot: str
) -> dict[str, BalanceTracking] | None:
    """Return how a run kept to its planned zero-moment point; None where it has no plan of a motion on this foot.

    Returns:
        "corrected", by the sensors as the estimate corrects them, and "as_calibrated".
    """
    if run.excitation is None or run.excitation.support is None or run.excitation.support.foot != foot:
        return None
    planned, sole = planned_point(run, total_mass, foot), run.robot.foot(foot)
    measured = {"corrected": estimate.corrected(stance), "as_calibrated": stance.measured}
    return {name: BalanceTracking.of(sole, planned, points) for name, points in measured.items()}


def support_foot(robot: Robot) -> str:
    """The foot that is the robot's base.

    Raises:
        FitError: it has none.
    """
    if robot.base_foot is None:
        raise FitError(f"no foot of robot {robot.name!r} is its base; a stance needs [[feet]] on the base in its file")
    return robot.base_foot.name


def stances_of(
    runs: Sequence[Run], total_mass: float, foot: str, say: Callable[[str], None]
) -> tuple[dict[str, str], list[Stance]]:
    """Return how the foot stood in each run, in words by the run's path, and a stance of each.

    Args:
        runs: of one robot.
        total_mass: as weighed [kg].
        foot: name of the support foot.
        told: gets the words on a run before it may be refused.

    Raises:
        FitError: a run is none of a robot on this foot; the message names the run.
    """
    contacts: dict[str, str] = {}
    stances: list[Stance] = []
    for each in runs:
        try:
            contacts[str(each.path)] = stood = str(contact_of_run(each, total_mass, foot))
            say(f"{each.path.name}: {stood}")
            stances.append(stance_of_run(each, total_mass, foot))
        except FitError as error:
            raise type(error)(f"{each.path}: {error}") from error
    return contacts, stances


def torques_of(runs: Sequence[Run]) -> tuple[TorqueRows, ...]:
    """Joint torques of each run, for as many estimates as are wanted of them."""
    return tuple(TorqueRows.of(run, run.robot) for run in runs)


def estimates_of(
    torques: Sequence[TorqueRows],
    stances: Sequence[Stance],
    reduced: ReducedParameters,
    total_mass: float,
    methods: Sequence[str] = METHODS,
) -> dict[str, ZmpEstimate]:
    """The estimate of each method, by its name, from the same recordings; torques only for that which needs them."""
    stance = joined(stances)
    ways: dict[str, Callable[[], ZmpEstimate]] = {
        "torque": lambda: joint_torque_estimate(torques, reduced, total_mass),
        "paper": lambda: paper_estimate(stances, reduced.robot, total_mass),
        "ours": lambda: fit_stance(stance, reduced, total_mass),
        HELD: lambda: fit_stance(stance, reduced, total_mass, rotary_sigma=0.0),
    }
    return {method: ways[method]() for method in methods}


def paper_estimate(
    stances: Sequence[Stance], robot: Robot, total_mass: float, alpha: float = PRINTED_ALPHA
) -> ZmpEstimate:
    """The paper's method: each run by itself with one constant alpha, links without rotary inertia, then their mean."""
    points = ReducedParameters(robot, rotary="none")
    return averaged([projected_newton(stance, points, total_mass, alpha=alpha) for stance in stances], points)


def spreads_of(
    torques: Sequence[TorqueRows],
    stances: Sequence[Stance],
    reduced: ReducedParameters,
    total_mass: float,
    methods: Sequence[str] = METHODS,
) -> dict[str, Array]:
    """Standard deviation of each parameter between estimates of single runs, two at least, by the method.

    Ours comes twice, as it is and with the links' rotary inertias held at the robot's file, where the others hold them.
    """
    ways = [*methods, *([HELD] if "ours" in methods else ())]
    single = [estimates_of(torques[i : i + 1], [stance], reduced, total_mass, ways) for i, stance in enumerate(stances)]
    return {way: np.std([distances[way].values for distances in single], axis=0, ddof=1) for way in ways}


def predictions_of(stance: Stance, estimates: Mapping[str, ZmpEstimate]) -> dict[str, Array]:
    """Zero-moment points of a stance by the robot's file and by each estimate [m], shape (n, 2) each."""
    file = {NOMINAL: theoretical_point(stance, file_parameters(stance.robot))}
    return file | {method: estimate.predict(stance) for method, estimate in estimates.items()}


def distances_of(predictions: Mapping[str, Array], measured: Array) -> dict[str, float]:
    """Mean distance of zero-moment points from the measured ones [m]."""
    return {way: float(np.linalg.norm(points - measured, axis=1).mean()) for way, points in predictions.items()}


def file_parameters(robot: Robot) -> Array:
    """Standard parameters of the base's link and each link as the robot's file has them, shape (10 * (1 + n_links),).

    Raises:
        RobotError: it does not tell them all.
    """
    parameters = floating_standard_parameters(robot)
    if parameters is None:
        raise RobotError(f"the file of robot {robot.name!r} does not tell the inertia of all links; give it there")
    return parameters


def drawn(
    stance: Stance, estimates: Mapping[str, ZmpEstimate], truth: Mapping[str, float] | None = None
) -> tuple[Array, tuple[PressureModel, ...], PressureModel]:
    """Return what a picture of a stance shows: measured points, models, and that beside which parameters are drawn.

    Args:
        stance: what the models are held against, its sensors corrected as the last estimate tells.
        estimates: by method, that which counts last.
        truth: the true parameters by name; None: the robot's file takes their place.
    """
    reduced = ReducedParameters(stance.robot)
    values = {NOMINAL: reduced.nominal} | {method: estimate.values for method, estimate in estimates.items()}
    sigmas = {
        method: dict(zip(estimate.names, estimate.sigma.tolist(), strict=True))
        for method, estimate in estimates.items()
    }
    measured = list(estimates.values())[-1].corrected(stance)
    predictions = predictions_of(stance, estimates)
    distances, as_calibrated = (distances_of(predictions, points) for points in (measured, stance.measured))
    models = tuple(
        PressureModel(
            LABELS[way],
            points,
            distances[way],
            as_calibrated[way] if as_calibrated != distances else None,
            PRINTED.get(way),
            dict(zip(reduced.names, values[way].tolist(), strict=True)),
            sigmas.get(way, {}),
        )
        for way, points in predictions.items()
    )
    reference = models[0] if truth is None else PressureModel("truth", measured, 0.0, parameters=truth)
    return measured, models, reference


def file_name(method: str) -> str:
    """Return the file name of a method's estimate."""
    return "estimate.json" if method == "ours" else f"estimate_{method}.json"


def _opened(name: str, console: Console) -> Run:
    """A run, with its warnings said."""
    opened = open_run(name)
    for warning in opened.warnings:
        console.say(f"warning: {warning}")
    return opened
