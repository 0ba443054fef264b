"""Instrumental variables of whole recordings with noisy positions."""

import dataclasses

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.identification.estimators.estimator import Problem
from jointbench.identification.estimators.instrumental import InstrumentalVariables
from jointbench.identification.least_squares import Estimate, least_squares
from jointbench.recording import Run
from jointbench.tests.identification.estimators.errors_in_variables import (
    BASE,
    TRUTH,
    cramer_rao,
    noisy_run,
    problem_of,
    z_of_mean,
)

NOISE = 6e-5
"""Of positions [rad]: its second derivative after the low-pass is as large as the motion's own."""


def imported(run: Run) -> Run:
    """The run as somebody's log: nothing is known of what was planned."""
    still = np.full_like(run.samples.play_tick, -1)
    return dataclasses.replace(
        run, excitation=None, repeats=0, samples=dataclasses.replace(run.samples, play_tick=still)
    )


def errors(estimate: Estimate) -> Array:
    return (estimate.parameters - TRUTH) / np.sqrt(np.diag(estimate.covariance))


@pytest.fixture(scope="module")
def problems() -> list[Problem]:
    return [problem_of(noisy_run(NOISE, seed)) for seed in range(40)]


@pytest.mark.slow
@pytest.mark.parametrize("instruments", ["simulated", "planned", "periods"])
def test_noise_of_positions_biases_least_squares_and_not_this(problems: list[Problem], instruments: str) -> None:
    estimates = [InstrumentalVariables(instruments)(problem) for problem in problems]
    found = np.array([estimate.parameters for estimate in estimates])
    plain = np.array([least_squares(problem.parts).parameters for problem in problems])
    # Of 14 means in units of their own deviation, of 40 draws, the largest is below 3.7 in 99 % of all cases.
    assert np.abs(z_of_mean(found, TRUTH)).max() < 3.7
    assert np.abs(z_of_mean(plain, TRUTH)).max() > 15.0
    # The bound knows nothing of the noise of positions; half as much again is its price, and that of coloured noise.
    bound = cramer_rao(problems[0], estimates[0].joint_sigma)
    assert np.median(found.std(axis=0, ddof=1) / bound) < 1.5
    # 560 intervals, those of a draw correlated: a share of 95 % is told to about 2 %.
    within = np.abs([errors(estimate) for estimate in estimates]) < 1.96
    assert 0.89 < within.mean() < 0.99


def test_it_says_what_it_did() -> None:
    problem = problem_of(noisy_run(NOISE, 0))
    estimate = InstrumentalVariables()(problem)
    assert estimate.figures["instruments"] == "simulated"
    assert 2 <= estimate.figures["passes"] <= 6
    assert "follows the planned motion" in estimate.notes[0]
    assert "passes until the parameters settled" in estimate.notes[0]
    assert 0.5 < estimate.figures["canonical_correlation"] < 1.0
    assert estimate.figures["largest_difference_from_wls_sigma"] > 2.0
    assert "largest difference from wls" in estimate.notes[2]
    halves = InstrumentalVariables("periods")(problem)
    assert "the other half's rows" in halves.notes[0]
    assert halves.joint_sigma.shape == (2,)


def test_the_same_motion_without_noise_needs_no_instruments() -> None:
    problem = problem_of(noisy_run(0.0, 0))
    plain = least_squares(problem.parts)
    for instruments in ("simulated", "planned", "periods"):
        found = InstrumentalVariables(instruments)(problem)
        apart = (found.parameters - plain.parameters) / np.sqrt(np.diag(plain.covariance))
        # "simulated" weighs rows by another motion, and halves leave a row out that wls has: as much as noise at most.
        assert np.abs(apart).max() < 1.0
        assert found.figures["canonical_correlation"] > 0.9


def test_without_a_plan_the_measured_motion_is_followed() -> None:
    run = imported(noisy_run(0.0, 0))
    estimate = InstrumentalVariables()(problem_of(run))
    assert "follows the measured motion" in estimate.notes[0]
    assert np.abs(errors(estimate)).max() < 4.0
    with pytest.raises(FitError, match=r'does not tell which motion was planned.*take instruments = "simulated"'):
        InstrumentalVariables("planned")(problem_of(run))
    with pytest.raises(FitError, match="no periods of a played motion"):
        InstrumentalVariables("periods")(problem_of(run))


def test_halves_need_repeats() -> None:
    with pytest.raises(FitError, match="plays its motion once; its periods can be halved from two on"):
        InstrumentalVariables("periods")(problem_of(noisy_run(0.0, 0, repeats=1)))


def test_two_recordings_make_one_estimate() -> None:
    one, two = noisy_run(NOISE, 0), noisy_run(NOISE, 1)
    alone = InstrumentalVariables("planned")(problem_of(one))
    both = InstrumentalVariables("planned")(problem_of(one, two))
    shrunk = np.sqrt(np.diag(both.covariance) / np.diag(alone.covariance))
    assert np.median(shrunk) == pytest.approx(np.sqrt(0.5), rel=0.2)  # σ itself is told to 10 % or so
    assert both.parameters.shape == (BASE.rank,)


def test_instruments_that_know_next_to_nothing_are_said_to_be_weak() -> None:
    estimate = InstrumentalVariables("periods")(problem_of(noisy_run(3e-4, 0)))
    assert estimate.figures["canonical_correlation"] < 0.5
    assert any("the instruments are weak" in note for note in estimate.notes)


def test_parameters_that_do_not_settle_are_no_result() -> None:
    with pytest.raises(FitError, match=r"iv: after 1 passes .* still changes by"):
        InstrumentalVariables(passes=1)(problem_of(noisy_run(NOISE, 0)))


def test_options_that_nobody_can_mean() -> None:
    with pytest.raises(FitError, match="instruments = 'lagged' must be one of 'simulated', 'planned', 'periods'"):
        InstrumentalVariables("lagged")
    with pytest.raises(FitError, match="passes = 0 must be 1 or more"):
        InstrumentalVariables(passes=0)
    with pytest.raises(FitError, match="bandwidth_Hz = -1 must be a number above 0"):
        InstrumentalVariables(bandwidth_Hz=-1.0)


def test_passive_joints_need_instruments_that_are_not_simulated() -> None:
    run = noisy_run(NOISE, 0)
    robot = run.robot
    passive = dataclasses.replace(robot, joints=(robot.joints[0], dataclasses.replace(robot.joints[1], passive=True)))
    problem = problem_of(dataclasses.replace(run, robot=passive), robot=passive)
    with pytest.raises(FitError, match=r"joint j2 is passive.*\"planned\" or \"periods\""):
        InstrumentalVariables()(problem)
    for instruments in ("planned", "periods"):
        estimate = InstrumentalVariables(instruments)(problem)
        assert np.isfinite(np.diag(estimate.covariance)).any()
        assert np.isnan(estimate.joint_sigma[1])
