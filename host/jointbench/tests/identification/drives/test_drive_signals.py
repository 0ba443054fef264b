"""Ratio and stiffness of a gear by one wide motion: what a simulated gear has is found within its standard error."""

import dataclasses
from dataclasses import replace

import numpy as np
import pytest

from jointbench.errors import FitError
from jointbench.identification.commission_readings import read_gear
from jointbench.identification.drives import HarmonicModel, drive_signals, fit_harmonic, identify_gains
from jointbench.model import inverse_dynamics, model_parameter_names
from jointbench.model.variants import with_payload
from jointbench.recording import Run
from jointbench.tests.identification.drives.simulated_joints import ARM, LINK, STIFF, link_torque, recording
from jointbench.tests.identification.synthetic import FILTER, FOURIER, arm, excitation, synthetic_run, truth


def deviations(model: HarmonicModel):
    """(estimate - truth) / σ of a1 … a4 and a6."""
    kept = [0, 1, 2, 3, 5]
    sigma = np.stack([np.sqrt(np.diag(j.covariance))[kept] for j in model.joints if j is not None], axis=1)
    return (model.parameters[kept] - STIFF[kept]) / sigma


def test_harmonic_joints_are_identified_from_a_run():
    signals = drive_signals(recording(1), ARM, LINK)
    model = fit_harmonic(ARM, signals)
    # 15 values: one beyond 4 σ in 1000 such tests; inertias would be, were the boards' delay left out (below).
    assert np.all(np.abs(deviations(model)) < 4.0)
    assert model.parameters[:4] == pytest.approx(STIFF[:4], rel=0.05)
    assert all(joint is not None and joint.stiffness is None for joint in model.joints)
    assert all(v.word == "refused" for v in model.verdicts if v.name.endswith(".flexibility"))
    errors = model.rms_errors(drive_signals(recording(2, motion_seed=4), ARM, LINK))
    assert errors["exact"].all.max() < 0.5 * errors["simplified"].all.max()


def test_the_boards_filter_counts():
    run = recording(1)
    late = dataclasses.replace(run, samples=dataclasses.replace(run.samples, board_filters=None))
    found = fit_harmonic(ARM, drive_signals(late, ARM, LINK))
    # Late torques take viscous friction times the delay of some 3 ms for inertia that is missing.
    assert np.all(deviations(found)[3, 1:] < -4.0)
    told = fit_harmonic(ARM, drive_signals(late, ARM, dataclasses.replace(LINK, delay=-FILTER.delay)))
    assert np.all(np.abs(deviations(told)) < 4.0)
    with pytest.raises(FitError, match="'estimate' is not estimated here"):
        drive_signals(run, ARM, dataclasses.replace(LINK, delay="estimate"))
    with pytest.raises(FitError, match="delay has 2 values"):
        drive_signals(run, ARM, dataclasses.replace(LINK, delay=(0.0, 0.001)))


def test_torque_constants_are_identified_from_two_runs():
    heavier = with_payload(ARM, "steel", "forearm", 3.0, (0.02, 0.03, 0.1))
    assert ARM.standard_parameters is not None
    assert heavier.standard_parameters is not None
    friction = truth(ARM)[30:]
    first = synthetic_run(ARM, motion_seed=1, noise_seed=1)
    second = synthetic_run(
        ARM, motion_seed=1, noise_seed=2, full_parameters=np.concatenate([heavier.standard_parameters, friction])
    )
    added = heavier.standard_parameters - ARM.standard_parameters
    found = identify_gains(ARM, drive_signals(first, ARM), drive_signals(second, ARM), added)
    assert len(friction) + 30 == len(model_parameter_names(ARM))
    for motor, drive in zip(found.motors, ARM.drives, strict=True):
        assert motor is not None
        assert motor.verdict.word == "identified"
        assert abs(motor.torque_constant - drive.torque_constant) < 4.0 * motor.sigma
    # The first joint stands upright: the payload weighs on the others, and only swings about it.
    first, *others = (motor.sigma / motor.torque_constant for motor in found.motors if motor)
    print("relative", first, others)
    assert first > 3.0 * max(others)


def test_rows_keep_away_from_gaps_and_moving_ones_from_rest():
    run, settings = recording(1, repeats=1), dataclasses.replace(LINK, cutoff_Hz=8.0)
    valid = run.samples.valid.copy()
    valid[4000] = False
    motor, sensed = run.samples.motor_torque, run.samples.joint_torque
    assert motor is not None
    assert sensed is not None
    motor[4000], sensed[4000] = np.nan, np.nan
    torn = dataclasses.replace(run, samples=dataclasses.replace(run.samples, valid=valid))
    signals = drive_signals(torn, ARM, settings)
    assert signals.gear_torque is not None
    assert np.isfinite(signals.motor_torque).all()
    assert np.isfinite(signals.gear_torque.acceleration).all()
    assert signals.used.sum() < drive_signals(recording(1, repeats=1), ARM, settings).used.sum()
    assert np.all(signals.used[signals.moving_rows])
    assert signals.filter is not None
    stride = signals.filter.low_pass.stride
    # Two stretches of the run's samples: rows are thinned in each by itself.
    speed = np.concatenate([np.abs(signals.dq[part])[::stride] for part in signals.filter.stretches])
    slow = np.abs(speed) <= 0.029 * np.abs(signals.dq).max(axis=0)
    assert np.any(signals.used & slow)
    assert not np.any(signals.moving_rows & slow)


def test_columns_are_filtered_as_the_torque_was():
    run = recording(1, repeats=1)
    signals = drive_signals(run, ARM, dataclasses.replace(LINK, cutoff_Hz=8.0))
    unfiltered = drive_signals(run, ARM, dataclasses.replace(LINK, cutoff_Hz=8.0), motion_cutoff_Hz=None)
    assert unfiltered.filter is None
    # A sign turns within a row; filtered as the torque was, it takes the time that the low-pass does.
    sign = signals.rows(np.sign(signals.dq))
    assert np.any(np.abs(sign[signals.used]) < 0.5)
    # What is linear in the motion is the same in either way, but for what the smoother of positions takes.
    for ours, theirs in ((signals.rows(signals.q), unfiltered.q), (signals.rows(signals.dq), unfiltered.dq)):
        assert ours[signals.used] == pytest.approx(theirs[signals.used], abs=2e-3 * np.abs(theirs).max())


def test_a_run_that_is_too_short_is_refused():
    run = recording(1, repeats=1)
    with pytest.raises(FitError, match="no stretch of"):
        drive_signals(run, ARM, dataclasses.replace(LINK, cutoff_Hz=1.0, interval=(0.0, 0.5)))
    with pytest.raises(FitError, match="no link_position"):
        drive_signals(synthetic_run(ARM, motion_seed=1, noise_seed=1), ARM, LINK)


def test_the_simulated_link_torque_is_that_of_the_dynamics():
    q, dq, ddq = excitation(ARM, 3, FOURIER).evaluate(np.array([1.0, 2.0]))
    assert ARM.standard_parameters is not None
    assert link_torque(ARM, q, 0.0 * dq, ddq) == pytest.approx(
        inverse_dynamics(ARM, q, 0.0 * dq, ddq, ARM.standard_parameters)
    )


STIFFNESS, RATIO = 24000.0, 101.3
COUNT = 2.0 * np.pi / 524288  # of a link encoder


@pytest.fixture(scope="module")
def wide() -> Run:
    """Motors' positions are by the file's ratio, 101; the gears have another, and twist by the torque behind them."""
    run = synthetic_run(arm(2), motion_seed=1, noise_seed=1, repeats=1)
    samples, rng = run.samples, np.random.default_rng(0)
    assert samples.motor_torque is not None
    torque = samples.motor_torque
    link = samples.motor_position * 101.0 / RATIO - torque / STIFFNESS
    link = COUNT * np.round(link / COUNT)
    return replace(
        run, samples=replace(samples, link_position=link, joint_torque=torque + 0.05 * rng.standard_normal(link.shape))
    )


def test_ratio_and_stiffness_are_found_where_the_torque_is_sensed(wide: Run) -> None:
    for joint in ("j1", "j2"):
        gear = read_gear(wide, joint)
        assert gear is not None
        (ratio, ratio_sigma), (stiffness, stiffness_sigma) = gear
        # 3.5 σ: noise alone gets there once in 2000 draws, and these are four.
        assert abs(ratio - RATIO) < 3.5 * ratio_sigma
        assert abs(stiffness - STIFFNESS) < 3.5 * stiffness_sigma
        assert ratio_sigma < 1e-4 * RATIO  # a wave of some degrees leaves 2e-3
        assert stiffness_sigma < 0.03 * STIFFNESS


def test_without_sensors_or_motion_nothing_is_said(wide: Run) -> None:
    assert read_gear(replace(wide, samples=replace(wide.samples, joint_torque=None)), "j1") is None
    assert read_gear(replace(wide, samples=replace(wide.samples, link_position=None)), "j1") is None
    assert wide.samples.link_position is not None
    still = np.zeros_like(wide.samples.link_position)
    assert read_gear(replace(wide, samples=replace(wide.samples, link_position=still)), "j1") is None
