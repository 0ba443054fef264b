"""System C's checks go red when its method is broken; what each judges is made here, without boards."""

from dataclasses import replace
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.identification.judgement import Verdict
from jointbench.identification.zero_moment_point import ReducedParameters, Stance, ZmpEstimate, fit_stance
from jointbench.tests.identification.zero_moment_point.simulated_stance import (
    TOTAL_MASS,
    TRUTH,
    biped,
    drawn_nuisance,
    parameters,
    simulated_stance,
)
from tools.demo.gorobot2 import (
    CORRECTED,
    KNOWN,
    TRUE,
    UNCORRECTED,
    WHOLE_GRADIENT,
    Refusal,
    boards_line,
    coverage_lines,
    covered,
    distance_lines,
    refusal_lines,
    solver_lines,
    spread_lines,
)
from tools.demo.story import PaperLine

REDUCED = ReducedParameters(biped())
NUISANCE = drawn_nuisance(biped(), biped().foot("r_foot"), 3)


@lru_cache(maxsize=2)
def stance(seed: int) -> Stance:
    """On sensors with errors."""
    return simulated_stance(
        parameters=parameters(REDUCED), motion_seed=seed, nuisance=NUISANCE, noise_seed=seed, duration=30.0
    )


@lru_cache(maxsize=1)
def good() -> ZmpEstimate:
    return fit_stance(stance(0), REDUCED, TOTAL_MASS)


def ok(lines: tuple[PaperLine, ...], name: str) -> bool:
    """Whether the check of this name says yes."""
    (check,) = [line.check for line in lines if line.check is not None and line.check.name == name]
    return check.ok


def judged(predicted: Array) -> tuple[PaperLine, ...]:
    """Distance lines of points that ours predicts on a fresh motion; the paper's method is put 3 mm off the truth."""
    fresh = stance(1)
    wrench = fresh.columns @ parameters(REDUCED)
    true = wrench[:, :2] / wrench[:, 2:]
    ways = {"nominal": true + 0.03, "torque": true, "paper": true + np.array([3e-3, 0.0]), "ours": predicted}
    ways |= {WHOLE_GRADIENT: true + 3e-3, TRUE: true}
    each = {way: float(np.linalg.norm(points - fresh.measured, axis=1).mean()) for way, points in ways.items()}
    return distance_lines({KNOWN: each, UNCORRECTED: each, CORRECTED: each})


def test_the_method_keeps_its_limits() -> None:
    lines = judged(good().predict(stance(1)))
    assert ok(lines, "ours_to_paper")
    assert ok(lines, "ours_to_sensor_floor")
    assert ok(coverage_lines({"ours": good()}, TRUTH), "covered_by_ours")


def test_a_wrong_sign_of_a_moment_is_seen() -> None:
    wrong = replace(stance(0), columns=stance(0).columns * np.array([[-1.0], [1.0], [1.0]]))
    estimate = fit_stance(wrong, REDUCED, TOTAL_MASS)
    lines = judged(estimate.predict(stance(1)))
    assert not ok(lines, "ours_to_paper")
    assert not ok(lines, "ours_to_sensor_floor")


def test_dropped_sensor_errors_are_seen() -> None:
    """Of sensors that are taken for exact their errors go into masses and centres, whose σ knows nothing of it."""
    exact = replace(stance(0), data_sheet=1e-6 * stance(0).data_sheet)
    estimate = fit_stance(exact, REDUCED, TOTAL_MASS)
    assert not ok(coverage_lines({"ours": estimate}, TRUTH), "covered_by_ours")


def test_a_plant_beyond_the_prior_is_seen() -> None:
    """A robot whose rotary inertias are three times the drawing's, where 10 % is believed."""
    true = REDUCED.standard(TRUTH) + 2.0 * REDUCED.rotary_terms.sum(axis=1)
    extra = stance(0).columns @ (true - parameters(REDUCED))
    wrench = stance(0).columns @ parameters(REDUCED)
    moved = extra[:, :2] / wrench[:, 2:]
    shifted = replace(stance(0), measured=stance(0).measured + moved, forces=shifted_forces(stance(0), moved))
    estimate = fit_stance(shifted, REDUCED, TOTAL_MASS)
    assert not ok(coverage_lines({"ours": estimate}, TRUTH), "covered_by_ours")


def shifted_forces(of: Stance, moved: Array) -> Array:
    """Readings whose point is moved by so much, their sum unchanged."""
    corners = np.array(of.robot.foot(of.foot).corners)[:, :2]
    about = corners - corners.mean(axis=0)
    return of.forces + of.forces.sum(axis=1, keepdims=True) * (moved @ np.linalg.pinv(about))


@pytest.mark.parametrize("broken", ["refused", "without an end", "far off"])
def test_what_is_not_told_covers_nothing(broken: str) -> None:
    """A refused parameter, and one whose σ is infinite, count as uncovered, never as 0 σ off."""
    p = len(TRUTH)
    exact = replace(good(), values=TRUTH.copy(), covariance=np.eye(p))
    assert covered(exact, TRUTH).all()
    if broken == "refused":
        words = tuple(Verdict(name, "refused", "its bound holds it") for name in exact.names[:2])
        exact = replace(exact, parameter_verdicts=(*words, *exact.parameter_verdicts[2:]))
    elif broken == "without an end":
        exact = replace(exact, covariance=np.diag([np.inf, np.inf, *np.ones(p - 2)]))
    else:
        exact = replace(exact, values=TRUTH + np.array([2.1, -2.1, *np.zeros(p - 2)]))
    assert covered(exact, TRUTH).sum() == p - 2
    assert not ok(coverage_lines({"ours": exact}, TRUTH), "covered_by_ours")


def test_counts_of_runs_solver_and_faults_can_be_red() -> None:
    some = {way: np.ones(8) for way in ("torque", "paper", "ours")}
    assert ok(spread_lines(REDUCED, {**some, "ours_held": np.full(8, 0.5)}), "spread_smaller")
    assert not ok(spread_lines(REDUCED, {**some, "ours_held": np.array([0.5] * 6 + [2.0] * 2)}), "spread_smaller")
    slow = replace(good(), iterations=30, trace=((1e-5, 1.0, 0.02),))
    paper = replace(slow, iterations=121)
    assert not ok(solver_lines(paper, paper, slow), "iterations_to_papers")
    assert ok(solver_lines(paper, paper, replace(slow, iterations=24)), "iterations_to_papers")


@pytest.mark.parametrize("wanted", ["WrongTotalMass", "StuckFootSensor", "RobotFell", "FootOffGround"])
def test_a_fault_that_is_called_something_else_is_seen(wanted: str) -> None:
    assert ok(refusal_lines([Refusal("a fault", wanted, wanted, "…")]), f"named_{wanted}")
    for named in ("nothing", "RunError"):
        assert not ok(refusal_lines([Refusal("a fault", named, wanted, "…")]), f"named_{wanted}")


def test_a_board_that_does_not_stream_is_seen() -> None:
    all_of_them: Any = SimpleNamespace(ledger=SimpleNamespace(boards=dict.fromkeys(range(14))))
    imported: Any = SimpleNamespace(ledger=None)
    one_less: Any = SimpleNamespace(ledger=SimpleNamespace(boards=dict.fromkeys(range(13))))
    assert ok((boards_line(all_of_them),), "boards")
    assert not ok((boards_line(one_less),), "boards")
    assert not ok((boards_line(imported),), "boards")


def test_the_direction_is_said_as_it_came_out() -> None:
    each = {"nominal": 35e-3, "torque": 1e-3, "paper": 2e-3, "ours": 0.1e-3, WHOLE_GRADIENT: 4e-3, TRUE: 0.1e-3}
    told = [line.quantity for line in distance_lines({KNOWN: each, UNCORRECTED: each, CORRECTED: each})]
    assert any("the other way round than in the paper" in quantity for quantity in told)
    each["torque"] = 3e-3
    told = [line.quantity for line in distance_lines({KNOWN: each, UNCORRECTED: each, CORRECTED: each})]
    assert any(quantity.endswith(": as in the paper") for quantity in told)
