import dataclasses

import numpy as np
import pytest

from jointbench.errors import FitError
from jointbench.identification.drives import HarmonicModel, drive_signals, fit_harmonic, identify_gains
from jointbench.model import inverse_dynamics, model_parameter_names
from jointbench.model.variants import with_payload
from jointbench.tests.identification.drives.simulated_joints import ARM, LINK, STIFF, link_torque, recording
from jointbench.tests.identification.synthetic import FILTER, FOURIER, excitation, synthetic_run, truth


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
