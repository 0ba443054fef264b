import dataclasses
from typing import Any

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.errors import FitError, SignalError
from jointbench.excitation import Basis, PointToPoint, RampedFourier
from jointbench.identification import FitSettings, Model, fit, validate
from jointbench.identification.observations import observe
from jointbench.identification.recorded_signals import recorded_signals
from jointbench.model import Coupling, base_parameters, model_columns, model_parameter_names
from jointbench.recording import Run
from jointbench.tests.identification.synthetic import (
    CURRENT_NOISE_A,
    FILTER,
    FOURIER,
    arm,
    butterworth_filter,
    excitation,
    run_of,
    synthetic_run,
    truth,
)

ARM = arm(3)
FEW_OR_MANY = pytest.mark.parametrize("draws", [8, pytest.param(20, marks=pytest.mark.slow)])


@pytest.fixture(scope="module")
def run() -> Run:
    return synthetic_run(ARM, motion_seed=1, noise_seed=1)


def with_samples(run: Run, **changes: Any) -> Run:
    return dataclasses.replace(run, samples=dataclasses.replace(run.samples, **changes))


def with_gap(run: Run) -> Run:
    """The run without 600 samples of its second joint."""
    valid = run.samples.valid.copy()
    valid[3000:3600, 1] = False
    torque = run.samples.motor_torque
    assert torque is not None
    return with_samples(
        run,
        valid=valid,
        motor_torque=np.where(valid, torque, np.nan),
        motor_position=np.where(valid, run.samples.motor_position, np.nan),
    )


@FEW_OR_MANY
def test_error_bars_hold_the_truth_as_often_as_they_say(draws: int):
    """Noise, encoder steps, the ADC's window and the board's filter: 95 % within 2 σ, over motions and noises."""
    deviations = np.array(
        [fit(synthetic_run(ARM, motion_seed=s, noise_seed=s)).deviations(truth(ARM)) for s in range(draws)]
    )
    within = np.mean(np.abs(deviations) <= 2.0)
    # Of 20 draws 500 deviations, some 5 independent ones per σ of a run: 95.4 % with a standard error of about 2 %.
    wider = np.sqrt(20 / draws)
    assert within == pytest.approx(0.95, abs=0.04 * wider), f"{draws} seeds: {within:.1%} within 2 σ"
    assert np.sqrt(np.mean(deviations**2)) == pytest.approx(1.0, abs=0.12 * wider)


def test_a_whole_arm():
    robot = arm(6)
    model = fit(synthetic_run(robot, motion_seed=3, noise_seed=3))
    deviations = model.deviations(truth(robot))
    # Of 58 parameters 2.6 are expected outside; their errors are correlated, so allow three times that.
    assert np.sum(np.abs(deviations) > 2.0) <= 8
    assert model.error.total_relative < 0.01


@pytest.mark.parametrize("basis", [RampedFourier(5, 10.0, 2.0), RampedFourier(5, 5.0, 1.5, 3), PointToPoint(9, 1.2)])
def test_other_families_of_motion_recover_the_truth(basis: RampedFourier | PointToPoint):
    seeds = range(4)
    deviations = np.array(
        [fit(synthetic_run(ARM, motion_seed=s, noise_seed=s, basis=basis)).deviations(truth(ARM)) for s in seeds]
    )
    # Of 100 deviations, some 20 of them independent, one in twenty is expected outside: four times that is improbable.
    assert np.mean(np.abs(deviations) <= 2.0) >= 0.8
    assert np.abs(deviations).max() < 5.0


def test_periods_between_ramps_are_averaged_like_playings():
    """Four periods of a series in one playing leave half the noise of one, and make one period to fit to."""
    one, four = (
        synthetic_run(ARM, motion_seed=1, noise_seed=1, repeats=2, basis=RampedFourier(5, 5.0, 1.0, periods))
        for periods in (1, 4)
    )
    settings = FitSettings()
    few, many = (recorded_signals(each, ARM, settings) for each in (one, four))

    assert len(few.time) == len(many.time) == 7000
    assert many.valid.all()
    moving = slice(1000, 6000)
    np.testing.assert_allclose(many.position[moving], few.position[moving], atol=2e-5)  # an encoder's step is 1.5e-5
    exact = synthetic_run(
        ARM, motion_seed=1, noise_seed=1, repeats=2, noise=0.0, counts_per_turn=None, basis=RampedFourier(5, 5.0, 1.0)
    )
    truly = recorded_signals(exact, ARM, settings).torque[moving]
    noise = [np.std(each.torque[moving] - truly, axis=0) for each in (few, many)]
    # 5000 samples, filtered to a few hundred independent ones, tell a deviation to 5 %.
    np.testing.assert_allclose(noise[0] / noise[1], 2.0, rtol=0.15)


@FEW_OR_MANY
def test_stated_sigma_is_the_spread_over_noises(draws: int):
    models = [fit(synthetic_run(ARM, motion_seed=1, noise_seed=s)) for s in range(draws)]
    spread = np.std([m.parameters for m in models], axis=0, ddof=1)
    stated = np.sqrt(np.mean([m.sigma**2 for m in models], axis=0))
    # 20 draws tell a deviation to 16 %, so the mean over the 25 (correlated) ratios to about 5 %.
    wider = np.sqrt(20 / draws)
    assert np.mean(stated / spread) == pytest.approx(1.0, abs=0.15 * wider)
    assert np.all(stated / spread < 2.0**wider)
    assert np.all(stated / spread > 0.5**wider)


def test_without_noise_the_truth_comes_out():
    model = fit(synthetic_run(ARM, motion_seed=2, noise_seed=0, noise=0.0, counts_per_turn=None))
    expected = model.base.group(truth(ARM))
    # What is left is friction turning over within a tick, which the sampled sign cannot see.
    assert model.parameters == pytest.approx(expected, abs=2e-3 * np.abs(expected).max() / 10.0)
    assert model.error.total_relative < 1e-3


def test_ignoring_the_boards_lag_would_spoil_the_inertia(run: Run):
    """The window and the filter matter: a fit that neither knows nor estimates them is off by many σ."""
    unaware = fit(with_samples(run, board_filters=None), settings=FitSettings(delay=0.0))
    aware = fit(run)
    assert np.abs(aware.deviations(truth(ARM))).max() < 4.0
    assert np.abs(unaware.deviations(truth(ARM))).max() > 8.0


def test_rows_near_rest_are_left_out_and_reported(run: Run):
    model = fit(run)
    assert np.all(model.error.share < 1.0)
    assert np.all(model.error.share > 0.5)
    assert model.settings.velocity_threshold is not None
    assert model.settings.rest_guard == pytest.approx(0.5 / 20.0)
    assert sum(model.rows) == pytest.approx(model.error.share.sum() * _complete(model), abs=0.5)


def _complete(model: Model) -> float:
    return model.rows[0] / model.error.share[0]


def test_sticking_near_rest_does_not_reach_the_fit(run: Run):
    """Whatever friction does at rest, it does not enter: torque is spoiled wherever a joint is slow."""
    settings = fit(run).settings
    assert settings.velocity_threshold is not None
    velocity = np.gradient(run.samples.motor_position, run.samples.sample_period, axis=0)
    torque = run.samples.motor_torque
    assert torque is not None
    slow = np.abs(velocity) < 0.3 * np.array(settings.velocity_threshold)
    spoiled = with_samples(run, motor_torque=np.where(slow, 0.0, torque))
    masked = fit(spoiled)
    assert np.abs(masked.deviations(truth(ARM))).max() < 5.0
    unmasked = fit(spoiled, settings=FitSettings(velocity_threshold=(0.0, 0.0, 0.0), rest_guard=0.0))
    friction = masked.names.index("j1.coulomb")
    assert abs(unmasked.parameters[friction] - 6.0) > 5.0 * masked.sigma[friction]


def test_periods_are_averaged_and_tell_the_noise(run: Run):
    model = fit(run)
    assert np.isfinite(model.noise_rms).all()
    # White current noise through a 100 Hz biquad, torque per ampere 12.5 and 12.5 and 9.7 N·m, two periods averaged.
    sampled = dataclasses.replace(FILTER, window=0.0)  # the noise is that of the decimated samples
    response = sampled.response(np.linspace(0.0, 500.0, 4096))
    passed = np.sqrt(np.mean(np.abs(response) ** 2))
    per_current = np.array([drive.torque_per_current for drive in ARM.drives])
    assert model.noise_rms == pytest.approx(CURRENT_NOISE_A * per_current * passed / np.sqrt(2.0), rel=0.05)


def test_a_gap_is_left_out_and_filled_by_the_other_period(run: Run):
    model = fit(with_gap(run))
    assert np.abs(model.deviations(truth(ARM))).max() < 5.0
    assert sum(model.rows) == sum(fit(run).rows)


def test_a_gap_in_the_only_period_costs_the_rows_around_it():
    run = synthetic_run(ARM, motion_seed=1, noise_seed=1, repeats=1)
    model = fit(with_gap(run))
    assert np.isfinite(model.parameters).all()
    assert np.abs(model.deviations(truth(ARM))).max() < 5.0
    assert sum(model.rows) < sum(fit(run).rows) - 3 * 600 // 25


def spiked(run: Run) -> Run:
    """The run with a torque spike of 200 N·m in its second joint, and an encoder's slip of 0.1 rad in its first."""
    torque, position = run.samples.motor_torque, run.samples.motor_position.copy()
    assert torque is not None
    torque = torque.copy()
    torque[4321, 1] += 200.0
    position[17_000:17_003, 0] += 0.1
    return with_samples(run, motor_torque=torque, motor_position=position)


def test_outliers_in_one_of_three_periods_are_left_out_and_counted():
    run = synthetic_run(ARM, motion_seed=1, noise_seed=1, repeats=3)
    settings = FitSettings()
    outliers = recorded_signals(spiked(run), ARM, settings).outliers
    usual = recorded_signals(run, ARM, settings).outliers
    assert (outliers - usual).tolist() == [3, 0, 0, 0, 1, 0]
    assert usual.sum() <= 2
    assert np.abs(fit(spiked(run)).deviations(truth(ARM))).max() < 4.0
    kept = fit(spiked(run), settings=FitSettings(reject_outliers=False))
    assert kept.error.total_relative > 3.0 * fit(run).error.total_relative


@pytest.mark.parametrize("basis", [FOURIER, RampedFourier(5, 10.0, 1.0)])
def test_motion_from_the_known_series(basis: Basis):
    """With a coarse encoder, differences and filter cost what the series does not."""
    run = synthetic_run(ARM, motion_seed=1, noise_seed=1, basis=basis, counts_per_turn=2000)
    series = fit(run, settings=FitSettings(motion="fourier"))
    assert np.sqrt(np.mean(series.deviations(truth(ARM)) ** 2)) < 1.5
    assert series.settings.motion == "fourier"
    base = base_parameters(ARM)
    found = observe(run, ARM, base, FitSettings(motion="fourier"))
    cutoff = found.filter.low_pass.cutoff_Hz  # of filtered positions it would be chosen by prediction
    filtered = observe(run, ARM, base, FitSettings(motion="filtered", cutoff_Hz=cutoff))
    wanted = excitation(ARM, 1, basis).evaluate(found.time)
    for order, name in ((1, "dq"), (2, "ddq")):
        error, usual = (
            (getattr(each.motion, name) - wanted[order])[found.complete & filtered.complete]
            for each in (found, filtered)
        )
        assert np.std(error) < 0.5 * np.std(usual)


def test_a_series_needs_one_that_was_played(run: Run):
    with pytest.raises(FitError, match=r'gives no averaged periods of a known motion; motion = "fourier" needs'):
        fit(dataclasses.replace(run, excitation=None), settings=FitSettings(motion="fourier"))
    with pytest.raises(FitError, match=r"gives no averaged periods"):
        fit(run, settings=FitSettings(motion="fourier", average_periods=False))
    points = synthetic_run(ARM, motion_seed=1, noise_seed=1, basis=PointToPoint(4, 2.0))
    with pytest.raises(FitError, match=r"played a point.to.point motion, which is no Fourier series"):
        fit(points, settings=FitSettings(motion="fourier"))


def test_validation_on_another_motion(run: Run):
    model = fit(run)
    check = validate(model, synthetic_run(ARM, motion_seed=9, noise_seed=9))
    assert check.verdict.word == "identified"
    assert check.total_relative < 0.01
    assert check.measured.shape == check.predicted.shape == check.moving.shape
    assert np.all(check.error.share <= check.error_all.share)
    assert np.all(check.error_all.share == 1.0)


def test_validation_says_no_to_a_wrong_model(run: Run):
    model = fit(run)
    wrong = dataclasses.replace(model, parameters=1.5 * model.parameters)
    check = validate(wrong, synthetic_run(ARM, motion_seed=9, noise_seed=9))
    assert check.verdict.word == "refused"
    assert check.total_relative == pytest.approx(0.5, abs=0.02)


def test_prediction_is_the_models_torque(run: Run):
    model = fit(run)
    assert run.excitation is not None
    q, dq, ddq = run.excitation.evaluate(np.linspace(0.0, 5.0, 40))
    columns, _ = model_columns(ARM, q, dq, ddq)
    expected = (columns @ truth(ARM)).reshape(-1, 3)
    assert model.predict(q, dq, ddq) == pytest.approx(expected, abs=0.05)


def test_confidence_interval_and_words(run: Run):
    model = fit(run)
    low, high = model.confidence_interval("j1.coulomb", 0.9999)
    assert low < 6.0 < high
    assert model.is_identified("j1.coulomb")
    assert model.value("j1.viscous") == pytest.approx(9.0, rel=0.01)
    with pytest.raises(FitError, match=r"no base parameter is led by 'j1.rotor_inertia'; it is part of 'j1.Izz"):
        model.value("j1.rotor_inertia")
    with pytest.raises(FitError, match=r"no base parameter is led by 'elbow.coulomb'; the leaders are j1.Izz"):
        model.value("elbow.coulomb")


def test_a_joint_that_rests_is_refused_not_invented():
    run = synthetic_run(ARM, motion_seed=1, noise_seed=1, repeats=1)
    position = run.samples.motor_position.copy()
    position[:, 2] = position[0, 2]
    model = fit(with_samples(run, motor_position=position), settings=FitSettings(velocity_threshold=(0.02,) * 3))
    assert model.rows[2] == 0
    words = dict(zip(model.names, (v.word for v in model.parameter_verdicts), strict=True))
    assert words["j3.viscous"] == words["j3.coulomb"] == words["j3.offset"] == "not observable"
    assert np.isinf(model.sigma[model.names.index("j3.viscous")])
    assert model.joint_verdicts[2].word == "refused"
    assert "never moves" in model.joint_verdicts[2].reason
    assert model.verdict.word == "refused"


def test_interval_holds_the_rest_out():
    plain = synthetic_run(ARM, motion_seed=1, noise_seed=1, repeats=1)
    run = dataclasses.replace(plain, excitation=None)
    first = fit(run, settings=FitSettings(interval=(0.0, 6.0)))
    assert sum(first.rows) < 0.65 * sum(fit(run).rows)
    rest = validate(first, run, settings=dataclasses.replace(first.settings, interval=(6.0, 10.0)))
    assert rest.total_relative < 0.01


def test_settings_of_an_import_are_used_unless_others_are_given(run: Run):
    imported = dataclasses.replace(run, provenance={"fit": {"cutoff_Hz": 33, "velocity_threshold": [0.1, 0.1, 0.2]}})
    assert fit(imported).settings.cutoff_Hz == 33
    assert fit(imported).settings.velocity_threshold == (0.1, 0.1, 0.2)
    assert fit(imported, settings=FitSettings(cutoff_Hz=25.0)).settings.cutoff_Hz == 25.0


def sensor_truth() -> Array:
    """What a torque sensor at the joints feels: rotors turn before it."""
    rotors = [name.endswith(".rotor_inertia") for name in model_parameter_names(ARM)]
    return np.where(rotors, 0.0, truth(ARM))


@pytest.fixture(scope="module")
def sensed() -> Run:
    run = synthetic_run(ARM, motion_seed=1, noise_seed=1, full_parameters=sensor_truth())
    return with_samples(run, joint_torque=run.samples.motor_torque, motor_torque=None)


def test_torque_sensors_pass_the_same_filter(sensed: Run):
    model = fit(sensed, settings=FitSettings(torque="joint"))
    assert np.abs(model.deviations(sensor_truth())).max() < 4.0
    unaware = fit(with_samples(sensed, board_filters=None), settings=FitSettings(torque="joint", delay=0.0))
    assert np.abs(unaware.deviations(sensor_truth())).max() > 8.0


def test_torque_sensors_do_not_feel_rotors(sensed: Run):
    model = fit(sensed, settings=FitSettings(torque="joint"))
    verdict = model.parameter_verdicts[model.names.index("j3.rotor_inertia")]
    assert verdict.word == "not observable"
    assert "before the joint's torque sensor" in verdict.reason


def test_two_sections_behind_a_triangular_decimator():
    """All that a board can do: each part of it left out spoils the fit, all of it known gives the truth."""
    board_filter = butterworth_filter(4, 60.0, cic_order=2)
    # Half a tick of delay, what the decimator's order makes, is small: less noise than usual tells it apart.
    run = synthetic_run(ARM, motion_seed=1, noise_seed=1, noise=0.3 * CURRENT_NOISE_A, board_filter=board_filter)
    assert np.abs(fit(run).deviations(truth(ARM))).max() < 4.0
    for part in ({"cic_order": 1}, {"sections": board_filter.sections[:1]}, {"sections": board_filter.sections[1:]}):
        wrong = (dataclasses.replace(board_filter, **part),) * 3
        assert np.abs(fit(with_samples(run, board_filters=wrong)).deviations(truth(ARM))).max() > 8.0, part


def test_bad_wishes_are_named(run: Run):
    with pytest.raises(FitError, match=r"estimator 'magic' is not known; the estimators are wls, map, ols, irls"):
        fit(run, estimator="magic")
    with pytest.raises(FitError, match=r"estimator 'wls' has no option 'weight'; it has none"):
        fit(run, options={"weight": 1})
    with pytest.raises(FitError, match=r"2 settings are given for 1 runs; give one for all, or one for each"):
        fit(run, settings=[None, None])
    with pytest.raises(FitError, match=r"no run is given to fit"):
        fit([])
    with pytest.raises(FitError, match=r"run synthetic has joints j1, j2, j3, but robot 'cobot6' has j1, j2$"[:-1]):
        fit(run, arm(2))
    with pytest.raises(FitError, match=r"has no link_position; record that channel, or fit with position"):
        fit(run, settings=FitSettings(position="link"))
    with pytest.raises(FitError, match=r"has no joint_torque; record that channel"):
        fit(run, settings=FitSettings(torque="joint"))
    with pytest.raises(FitError, match=r"velocity_threshold has 2 values; robot 'cobot6' needs one for each of its 3"):
        fit(run, settings=FitSettings(velocity_threshold=(0.1, 0.1)))
    with pytest.raises(FitError, match=r"0 rows away from rest \(j1 0, j2 0, j3 0\) for 25 parameters"):
        fit(run, settings=FitSettings(velocity_threshold=(99.0,) * 3))
    with pytest.raises(FitError, match=r"no complete sample from 90 to 99 s; it covers 0 to 19.999 s"):
        fit(run, settings=FitSettings(interval=(90.0, 99.0)))
    with pytest.raises(SignalError, match=r"cut-off 900 Hz must be above 0 and below"):
        fit(run, settings=FitSettings(cutoff_Hz=900.0))
    with pytest.raises(FitError, match="no joint moves faster than its threshold"):
        validate(fit(run), run, in_sample=True, settings=FitSettings(velocity_threshold=(99.0,) * 3))


def test_a_sample_without_torque_is_missing(run: Run):
    """Boards may send a channel less often than they sample; `valid` tells of the samples."""
    torque = run.samples.motor_torque
    assert torque is not None
    holes = torque.copy()
    holes[9000, 1] = np.nan
    valid = run.samples.valid.copy()
    valid[9000, 1] = False
    np.testing.assert_array_equal(
        fit(with_samples(run, motor_torque=holes)).parameters, fit(with_samples(run, valid=valid)).parameters
    )
    # At 20 Hz half a period is 25 samples: longer gaps split the recording, and here nothing is left between them.
    holes[np.arange(len(holes)) % 40 < 30] = np.nan
    with pytest.raises(
        FitError, match=r"a gap has 10 samples.* record longer, with position and torque in each sample"
    ):
        fit(with_samples(run, motor_torque=holes), settings={"average_periods": False, "cutoff_Hz": 20.0})


def test_a_short_recording_is_refused_with_what_it_needs():
    n = 150
    run = run_of(ARM, np.zeros((n, 3)), np.zeros((n, 3)), plan=None, repeats=0)
    with pytest.raises(FitError, match=r"longest stretch without a gap has 150 samples, and a low-pass at 20 Hz needs"):
        fit(run, settings=FitSettings(cutoff_Hz=20.0))


def test_a_robot_at_rest_is_refused():
    run = run_of(ARM, np.zeros((5000, 3)), np.ones((5000, 3)), plan=None, repeats=0)
    with pytest.raises(FitError, match=r"gives 0 rows away from rest .* record more motion"):
        fit(run)


def test_strict_numpy(run: Run):
    with np.errstate(all="raise", under="ignore"):
        validate(fit(run), run, in_sample=True)


def test_boards_of_a_coupling_must_filter_alike():
    wrist = dataclasses.replace(ARM, couplings=(Coupling("wrist", ("j2", "j3"), ((101.0, 0.0), (101.0, 101.0))),))
    run = dataclasses.replace(synthetic_run(ARM, motion_seed=1, noise_seed=1), robot=wrist)
    other = butterworth_filter(2, 99.0)
    filters = run.samples.board_filters
    assert filters is not None
    with pytest.raises(FitError, match=r"boards of the coupled joints j2, j3 filtered their currents differently"):
        fit(with_samples(run, board_filters=(filters[0], filters[1], other)))
