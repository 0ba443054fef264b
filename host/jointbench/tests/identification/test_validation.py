"""Models judged at one cut-off, against filtered and unfiltered torque."""

import dataclasses
from functools import lru_cache

import numpy as np
import pytest

from jointbench.errors import FitError
from jointbench.identification import Model, fit, validate, validate_models
from jointbench.identification.settings import FitSettings
from jointbench.identification.validation import common_cutoff, judging_settings
from jointbench.recording import Run
from jointbench.signals import BoardFilter
from jointbench.tests.identification.synthetic import FILTER, arm, run_of, synthetic_run

ARM = arm(3)
NOISE_A = 0.1
LOW_HZ, HIGH_HZ = 10.0, 50.0


@lru_cache(maxsize=4)
def recorded(seed: int, board_filter: BoardFilter = FILTER) -> Run:
    """One period of a motion, much noisier than boards are, not averaged."""
    made = synthetic_run(
        ARM,
        motion_seed=seed,
        noise_seed=seed,
        repeats=1,
        noise=NOISE_A,
        counts_per_turn=None,
        board_filter=board_filter,
    ).samples
    assert made.motor_torque is not None
    return run_of(ARM, made.motor_position, made.motor_torque, plan=None, repeats=0, board_filter=board_filter)


@lru_cache(maxsize=2)
def model(cutoff_Hz: float) -> Model:
    return fit(recorded(1), settings={"cutoff_Hz": cutoff_Hz}, friction="coulomb_viscous")


def test_models_of_other_cut_offs_are_judged_at_the_lowest_over_the_same_rows():
    own = [validate(each, recorded(2)) for each in (model(LOW_HZ), model(HIGH_HZ))]
    low, high = validate_models((model(LOW_HZ), model(HIGH_HZ)), recorded(2))
    # White noise leaves the square root of the bandwidth: √5 times as much at five times the cut-off.
    assert own[1].error.rms.mean() > 1.8 * own[0].error.rms.mean()
    assert low.cutoff_Hz == high.cutoff_Hz == LOW_HZ == common_cutoff((model(LOW_HZ), model(HIGH_HZ)))
    np.testing.assert_array_equal(low.moving, high.moving)
    np.testing.assert_array_equal(low.measured, high.measured)
    # Both know the arm to a few percent of the noise: judged alike, they are alike.
    np.testing.assert_allclose(low.error.rms, high.error.rms, rtol=0.1)


def test_a_model_alone_is_judged_at_its_own_cut_off_and_speeds():
    (alone,) = validate_models((model(HIGH_HZ),), recorded(2))
    own = validate(model(HIGH_HZ), recorded(2))
    assert alone.cutoff_Hz == HIGH_HZ
    np.testing.assert_array_equal(alone.predicted, own.predicted)
    assert judging_settings(model(HIGH_HZ)) == dataclasses.replace(model(HIGH_HZ).settings, interval=None)
    asked = judging_settings(model(HIGH_HZ), LOW_HZ)
    assert (asked.cutoff_Hz, asked.velocity_threshold, asked.rest_guard) == (LOW_HZ, None, None)
    assert asked.delay == model(HIGH_HZ).settings.delay


def test_unfiltered_errors_hold_the_noise_that_the_low_pass_takes():
    check = validate(model(LOW_HZ), recorded(2))
    torque = np.array([drive.torque_per_current for drive in ARM.drives]) * NOISE_A
    # The board's second-order filter of 100 Hz passes π/2 · 100/√2 of 500 Hz of white noise: a third of its deviation².
    passed = FILTER.apply(np.random.default_rng(0).standard_normal((20000, 1))).std()
    np.testing.assert_allclose(check.as_measured.all.rms, passed * torque, rtol=0.1)
    assert (check.as_measured.moving.rms > 2.0 * check.error.rms).all()
    assert (check.as_measured.all.share == 1.0).all()


def test_unfiltered_errors_do_not_depend_on_the_cut_off_of_the_judge():
    low, high = (validate(model(LOW_HZ), recorded(2), cutoff_Hz=cutoff) for cutoff in (20.0, HIGH_HZ))
    assert high.error.rms.mean() > 1.3 * low.error.rms.mean()
    # The same thousand rows but for the ends, and motions to 1 % of the torque: its noise is most of what is left.
    np.testing.assert_allclose(low.as_measured.all.rms, high.as_measured.all.rms, rtol=0.08)


def test_an_interval_leaves_the_rest_of_the_run_out():
    check = validate(model(LOW_HZ), recorded(2), interval=(2.0, 6.0))
    time = check.time[check.complete]
    # The low-pass is left a period and a half of its cut-off at either end, up to a row.
    assert 2.0 < time[0] < 2.3
    assert 5.7 < time[-1] < 6.0


def test_what_cannot_be_judged_alike_is_refused():
    other = dataclasses.replace(model(LOW_HZ), settings=dataclasses.replace(model(LOW_HZ).settings, torque="joint"))
    with pytest.raises(FitError, match=r"of different sides \(motor, joint\)"):
        validate_models((model(LOW_HZ), other), recorded(2))
    with pytest.raises(FitError, match="give these two in the settings"):
        validate(model(LOW_HZ), recorded(2), settings=FitSettings(), cutoff_Hz=5.0)
