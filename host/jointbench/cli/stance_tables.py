"""What people and scripts are told of a biped's stance: parameters ± σ, distances, and the words on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jointbench.arrays import Array
from jointbench.cli.judgement import finite
from jointbench.cli.tables import table
from jointbench.identification.zero_moment_point import FullStanceEstimate, ReducedParameters, ZmpEstimate

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


def parameter_table(estimates: Mapping[str, ZmpEstimate]) -> str:
    """Each parameter by the robot's file and each estimate ± σ, and the word on the last one."""
    last = list(estimates.values())[-1]
    nominal = ReducedParameters(last.robot).nominal
    each = [text for method in estimates for text in (LABELS[method], "± σ")]
    heads = ["parameter", LABELS[NOMINAL], *each, "verdict"]
    columns = [nominal, *(column for each in estimates.values() for column in (each.values, each.sigma))]
    words = [verdict.word for verdict in last.parameter_verdicts]
    return table(heads, [[*row, word] for row, word in zip(_in_units(last.names, columns), words, strict=True)])


def spread_table(names: Sequence[str], spreads: Mapping[str, Array]) -> str:
    """How far estimates of single runs differ (standard deviation), by method."""
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
    """What each estimate says of itself: verdict, what is refused or weak and why, iterations, notes."""
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
    """What an estimate tells in JSON."""
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
    told = zip(full.names, full.values.tolist(), full.sigma.tolist(), full.parameter_verdicts, strict=True)
    rows = [
        [name, f"{value:.4g}", f"{sigma:.2g}", verdict.word]
        for name, value, sigma, verdict in told
        if verdict.word != "refused"
    ]
    refused = (
        f"  {len(full.names) - len(rows)} of {len(full.names)} are refused: not told from zero, or by the robot's file"
    )
    return f"{table(('full: parameter', 'value', 'σ', 'verdict'), rows)}\n{refused}"


def full_fields(full: FullStanceEstimate) -> dict[str, Any]:
    """What the full estimate tells in JSON."""
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
