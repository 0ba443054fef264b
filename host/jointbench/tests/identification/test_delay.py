"""Delays planted between torque and motion, found again as well as the noise allows."""

import dataclasses
from functools import lru_cache

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.identification import FitSettings, fit, validate
from jointbench.identification.observations import Observations, observe
from jointbench.model import base_parameters, model_columns, model_parameter_names
from jointbench.recording import Run
from jointbench.tests.identification.synthetic import FILTER, arm, excitation, run_of, synthetic_run, truth

ARM = arm(2)
BASE = base_parameters(ARM)
STEP_S = 1e-3
NOISE = 0.03  # N·m: the delay's least deviation is then a twelfth of a sample, so that fractions of one count
SECONDS = 10.0
TIME = STEP_S * np.arange(round(SECONDS / STEP_S))


TRUTH = truth(ARM) * [not name.endswith(".coulomb") for name in model_parameter_names(ARM)]
"""Without Coulomb friction, of which samples tell only to half a sample when it turns over."""


@lru_cache(maxsize=8)
def torque_of(delay: float) -> Array:
    """Torque at times of which the motion is recorded `delay` later, of each sample of TIME."""
    columns, _ = model_columns(ARM, *excitation(ARM, 1).evaluate(TIME + delay))
    return (columns @ TRUTH).reshape(-1, 2)


def delayed_run(delay: float | tuple[float, float], seed: int, noise: float = NOISE) -> Run:
    """An import, of which nothing is known of what delayed it."""
    position = excitation(ARM, 1).evaluate(TIME)[0]
    each = delay if isinstance(delay, tuple) else (delay, delay)
    torque = np.column_stack([torque_of(late)[:, joint] for joint, late in enumerate(each)])
    torque = torque + noise * np.random.default_rng(seed).standard_normal(torque.shape)
    run = run_of(ARM, position, torque, plan=None, repeats=0)
    return dataclasses.replace(run, samples=dataclasses.replace(run.samples, board_filters=None))


def observed(run: Run, settings: FitSettings | None = None) -> Observations:
    return observe(run, ARM, BASE, settings or FitSettings(delay="estimate"))


@pytest.mark.parametrize("samples", [0.0, 3.0, 2.37, -4.6, -20.0, 31.5])
def test_without_noise_the_delay_comes_out(samples: float):
    found = observed(delayed_run(samples * STEP_S, 0, noise=0.0)).delay
    assert found.source == "estimated"
    # Differences and the low-pass lack (2 pi f h)² of what is known here, 1e-5 at the motion's 0.5 Hz.
    assert found.seconds / STEP_S == pytest.approx([samples, samples], abs=1e-3)


@pytest.mark.parametrize("draws", [12, pytest.param(40, marks=pytest.mark.slow)])
def test_spread_is_that_of_cramer_and_rao_and_as_stated(draws: int):
    delay = 2.37 * STEP_S
    found = [observed(delayed_run(delay, seed)).delay for seed in range(draws)]
    errors = np.array([each.seconds[0] for each in found]) - delay
    stated = np.array([each.sigma[0] for each in found])
    bound = cramer_rao(delay)
    # 40 draws tell a deviation to 11 %; the bound lets every sample away from rest count, ends of the record too.
    wider = np.sqrt(40 / draws)
    assert (1.0 - 0.2 * wider) * bound < np.sqrt(np.mean(errors**2)) < (1.0 + 0.35 * wider) * bound
    assert np.sqrt(np.mean((errors / stated) ** 2)) == pytest.approx(1.0, abs=0.3 * wider)
    assert np.abs(np.mean(errors)) < 3.0 * bound / np.sqrt(draws)


def cramer_rao(delay: float) -> float:
    """Least deviation of an unbiased delay, base parameters unknown, from the samples away from rest."""
    motion = excitation(ARM, 1).evaluate(TIME + delay)
    columns, _ = model_columns(ARM, *motion)
    rate = (torque_of(delay + 1e-6) - torque_of(delay - 1e-6)) / 2e-6
    speed = np.abs(motion[1])
    used = (speed > 0.03 * speed.max(axis=0)).ravel()
    jacobian = np.column_stack([BASE.project(columns), rate.ravel()])[used]
    scale = np.linalg.norm(jacobian, axis=0)
    information = (jacobian / scale).T @ (jacobian / scale) / NOISE**2
    return float(np.sqrt(np.linalg.inv(information)[-1, -1]) / scale[-1])


def test_each_joint_can_have_its_own():
    run = delayed_run((1.5 * STEP_S, -3.25 * STEP_S), 3, noise=0.03)
    found = observed(run, FitSettings(delay="estimate_per_joint"))
    error = found.delay.seconds - STEP_S * np.array([1.5, -3.25])
    assert np.all(np.abs(error) < 4.0 * found.delay.sigma)
    assert np.all(found.delay.sigma < 0.4 * STEP_S)
    assert found.settings.delay == tuple(found.delay.seconds)


def test_taken_out_it_spoils_no_parameter():
    run = delayed_run(6.3 * STEP_S, 5, noise=0.03)
    exact = FitSettings(tolerances="none")  # as the simulated arm is
    # The error bars are those of a known delay: a bit too small.
    assert np.abs(fit(run, settings=exact).deviations(TRUTH)).max() < 4.5
    blind = fit(run, settings=dataclasses.replace(exact, delay=0.0))
    assert np.abs(blind.deviations(TRUTH)).max() > 8.0


def test_a_boards_filter_is_a_delay_to_who_does_not_know_it():
    run = synthetic_run(ARM, motion_seed=1, noise_seed=1, noise=0.0, counts_per_turn=None)
    assert observe(run, ARM, BASE, FitSettings()).delay.source == "given"
    assert fit(run).settings.delay == 0.0
    unaware = dataclasses.replace(run, samples=dataclasses.replace(run.samples, board_filters=None))
    found = observe(unaware, ARM, BASE, FitSettings())
    # The torque is the later one. When friction turns over is told to half a sample at each of some ten reversals.
    assert -found.delay.seconds[0] == pytest.approx(FILTER.delay, abs=0.15 * STEP_S)


def test_what_is_given_is_used_and_kept():
    run = delayed_run(4.0 * STEP_S, 2, noise=0.0)
    model = fit(run, settings=FitSettings(delay=4.0 * STEP_S))
    assert model.settings.delay == 4.0 * STEP_S
    assert np.isnan(observed(run, model.settings).delay.sigma).all()
    assert model.error.total_relative < 1e-3
    assert (
        validate(model, run, in_sample=True).total_relative < 1e-3
    )  # judged with the model's delay, not with one of its own
    wrong = validate(model, run, in_sample=True, settings=dataclasses.replace(model.settings, delay=0.0))
    assert wrong.total_relative > 0.005


def test_rows_whose_torque_lies_beyond_an_end_are_left_out():
    run = delayed_run(0.0, 1)
    late, none = (observed(run, FitSettings(delay=seconds, cutoff_Hz=20.0)) for seconds in (0.5, 0.0))
    lost = none.complete.sum() - late.complete.sum()
    assert lost == pytest.approx(0.5 / (STEP_S * 25), abs=1)  # two rows per period of the cut-off
    assert late.time[late.complete][0] >= none.time[none.complete][0] + 0.5 - 1e-9


def test_a_motion_that_tells_nothing():
    still = np.tile(ARM.home, (len(TIME), 1))
    noise = np.random.default_rng(0).standard_normal(still.shape)
    run = run_of(ARM, still, noise, plan=None, repeats=0)
    run = dataclasses.replace(run, samples=dataclasses.replace(run.samples, board_filters=None))
    left_open = observe(run, ARM, BASE, FitSettings())
    assert left_open.delay.source == "not told"
    assert left_open.settings.delay == 0.0
    with pytest.raises(FitError, match=r"run synthetic: 0 rows are too few to tell a delay; give delay in seconds"):
        observed(run)


def test_left_open_only_a_delay_that_explains_much_is_taken_out():
    noisy = delayed_run(2.0 * STEP_S, 1, noise=3.0)  # 2 ms are a small part of this error
    asked, left_open = observed(noisy), observed(noisy, FitSettings())
    assert asked.delay.source == "estimated"
    assert asked.delay.explained < 0.2
    assert left_open.delay.source == "not told"
    assert left_open.settings.delay == 0.0
    assert "of the torque's squared error: friction unlike the model's can do that too" in left_open.delay.reason
    clear = observed(delayed_run(5.0 * STEP_S, 1, noise=0.03), FitSettings()).delay
    assert clear.source == "estimated"
    assert clear.explained > 0.2


def test_left_open_a_long_delay_is_doubted():
    run = delayed_run(0.03, 1, noise=0.03)
    found = observed(run, FitSettings(cutoff_Hz=20.0)).delay
    assert found.source == "not told"
    assert "a quarter of the cut-off's period, 12.5 ms: so long a shift may fit swings by chance" in found.reason
    asked = observed(run, FitSettings(cutoff_Hz=20.0, delay="estimate")).delay
    assert asked.seconds[0] == pytest.approx(0.03, abs=1e-3)


def test_a_delay_beyond_the_range_is_not_made_up():
    run = delayed_run(0.4, 1, noise=0.0)
    with pytest.raises(FitError, match=r"no clear minimum over delays up to ±\d+(\.\d+)? ms"):
        observed(run)


def test_one_for_each_joint_or_one_for_all():
    with pytest.raises(FitError, match=r"delay has 3 values; robot 'cobot6' needs one for all joints, or one for each"):
        observed(delayed_run(0.0, 1), FitSettings(delay=(0.0, 0.0, 0.0)))
