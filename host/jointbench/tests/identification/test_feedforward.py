"""Feed-forward of a model: its torque with friction smoothed, through the drives, without the observer's lag.

One sample at a time: the same torque as the regressor's, for any robot.
"""

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from scipy import signal

from jointbench.arrays import Array
from jointbench.bench import Facts
from jointbench.errors import FitError, ShapeError
from jointbench.excitation import RestToRestFourier
from jointbench.identification import Model, fit
from jointbench.identification.feedforward import (
    feedback_band,
    feedforward_of_model,
    gear_torque,
    motor_reference,
    observer_current,
    planned_torque,
    sensor_offset,
    torque_parts,
)
from jointbench.identification.momentum_observer import predicted_covariance
from jointbench.identification.predictor import DriveTorque, Predictor, leading_parameters
from jointbench.model import base_parameters, inverse_dynamics, model_columns, spring
from jointbench.tests.identification.synthetic import arm, excitation, synthetic_run
from jointbench.tests.results.recordings import ROBOTS, full_model, motion
from jointwire import BY_NAME

ROBOT = arm(2)
MOTION = excitation(ROBOT, 7, RestToRestFourier(5, 9.6))  # 300 knots


@lru_cache(maxsize=1)
def model() -> Model:
    return fit(
        synthetic_run(ROBOT, motion_seed=1, noise_seed=2),
        settings={"cutoff_Hz": 20.0, "delay": 0.0},
        friction="coulomb_viscous",
    )


def facts(**registers: int) -> list[Facts]:
    values = {name: register.default for name, register in BY_NAME.items()}
    return [Facts(values | {name.replace("_", ".", 1): value for name, value in registers.items()})] * 2


def test_only_the_sign_of_friction_is_smoothed_and_the_offset_left_out() -> None:
    time = np.linspace(0.0, MOTION.period, 200)
    q, dq, ddq = MOTION.evaluate(time)
    drives = DriveTorque.of(ROBOT, leading_parameters(model()).drives)
    coulomb = np.diag(drives.coulomb)
    assert np.all(coulomb > 1.0)
    smooth = planned_torque(model(), MOTION, time, friction_width=0.05)
    expected = model().predict(q, dq, ddq) - drives.offset + coulomb * (np.tanh(dq / 0.05) - np.sign(dq))
    np.testing.assert_allclose(smooth, expected, atol=1e-9)
    hard = planned_torque(model(), MOTION, time, friction_width=1e-9, with_offset=True)
    moving = slice(1, -1)  # at both ends the plan rests but for rounding, whose sign predict() takes
    np.testing.assert_allclose(hard[moving], model().predict(q, dq, ddq)[moving], atol=1e-9)
    with pytest.raises(FitError, match=r"friction_width = 0 rad/s must be above 0"):
        planned_torque(model(), MOTION, time, friction_width=0.0)


def test_the_parts_of_a_torque_add_up_and_are_those_of_its_parameters() -> None:
    time = np.linspace(0.1, MOTION.period - 0.1, 50)
    parts = torque_parts(model(), MOTION, time, friction_width=0.02)
    np.testing.assert_allclose(sum(parts), planned_torque(model(), MOTION, time, friction_width=0.02), atol=1e-9)
    _, dq, _ = MOTION.evaluate(time)
    drives = DriveTorque.of(ROBOT, leading_parameters(model()).drives)
    friction = dq @ drives.viscous.T + np.tanh(dq / 0.02) @ drives.coulomb.T
    np.testing.assert_allclose(parts.friction, friction, atol=1e-9)
    rigid_body = model().predict(*MOTION.evaluate(time)) - drives.offset - dq @ drives.viscous.T
    np.testing.assert_allclose(parts.rigid_body, rigid_body - np.sign(dq) @ drives.coulomb.T, atol=1e-9)
    assert not parts.springs.any()  # there are none


def test_the_preload_of_a_spring_is_no_offset_of_a_sensor() -> None:
    robot = replace(ROBOT, compensations=(spring("lift", "j2"),))
    base = base_parameters(robot)
    full = dict.fromkeys(base.full_names, 0.0)
    full |= {"lift.stiffness": 7.0, "lift.preload": -2.1, "j2.viscous": 2.0, "j1.offset": 0.4}
    sprung = replace(model(), robot=robot, base=base, parameters=base.group(list(full.values())))
    time = np.linspace(0.1, MOTION.period - 0.1, 50)
    q, dq, _ = MOTION.evaluate(time)
    parts = torque_parts(sprung, MOTION, time)
    np.testing.assert_allclose(parts.springs[:, 1], 7.0 * q[:, 1] - 2.1, atol=1e-9)
    np.testing.assert_allclose(parts.friction[:, 1], 2.0 * dq[:, 1], atol=1e-9)
    np.testing.assert_allclose(planned_torque(sprung, MOTION, time)[:, 0], 0.0, atol=1e-9)
    np.testing.assert_allclose(sensor_offset(sprung), [0.4, 0.0], atol=1e-9)
    # All of it goes through the gear, so that the preload winds it up; the rest of this model is nothing but friction.
    unphysical = replace(sprung, covariance=np.full((base.rank, base.rank), np.nan))
    np.testing.assert_allclose(gear_torque(unphysical, MOTION, time)[:, 1], 7.0 * q[:, 1] - 2.1, atol=1e-9)


def test_gears_carry_what_rotors_and_friction_do_not_take() -> None:
    time = np.linspace(0.1, MOTION.period - 0.1, 50)
    q, dq, ddq = MOTION.evaluate(time)
    drives = DriveTorque.of(ROBOT, leading_parameters(model()).drives)
    before = ddq @ drives.inertia.T + dq @ drives.viscous.T + np.sign(dq) @ drives.coulomb.T + drives.offset
    behind = model().predict(q, dq, ddq) - before
    # Without a physical estimate all inertia that a rotor and links have together is the leading parameter's.
    unphysical = replace(model(), covariance=np.full_like(model().covariance, np.nan))
    with pytest.raises(FitError):
        _ = unphysical.physical
    np.testing.assert_allclose(gear_torque(unphysical, MOTION, time), behind, atol=1e-9)
    # With one it is shared; of j1, whose rotor has half of it, the true torque is what the robot's own links ask for.
    links = ROBOT.standard_parameters
    assert links is not None
    true = inverse_dynamics(ROBOT, q, dq, ddq, links)
    off = [
        np.linalg.norm(torque - true, axis=0) / np.linalg.norm(true, axis=0)
        for torque in (behind, gear_torque(model(), MOTION, time))
    ]
    assert off[0][0] > 0.5
    assert off[1][0] < 0.3 * off[0][0]


def test_motors_lead_by_the_wind_up_of_the_gears_that_are_known() -> None:
    stiffness = 5000.0
    reference = motor_reference(model(), MOTION, 0.032, [stiffness, np.nan])
    knots = np.linspace(0.0, MOTION.period, 301)
    lead = reference.evaluate(knots)[0] - MOTION.evaluate(knots)[0]
    np.testing.assert_allclose(lead[:, 0], gear_torque(model(), MOTION, knots)[:, 0] / stiffness, atol=1e-12)
    assert not lead[:, 1].any()
    zeros = motor_reference(model(), MOTION, 0.032, [stiffness, np.nan], [1e-3, 0.0]).evaluate(knots)
    np.testing.assert_allclose(zeros[0] - reference.evaluate(knots)[0], np.full((301, 2), [1e-3, 0.0]), atol=1e-12)
    np.testing.assert_allclose(zeros[1], reference.evaluate(knots)[1], atol=1e-9)
    # Of position the velocity, of velocity the acceleration: central differences over 0.2 ms, at some rad/s³.
    step, time = 1e-4, np.linspace(0.5, MOTION.period - 0.5, 40)
    (later, faster, _), (earlier, slower, _) = (reference.evaluate(time + sign * step) for sign in (1.0, -1.0))
    _, velocity, acceleration = reference.evaluate(time)
    np.testing.assert_allclose((later - earlier) / (2.0 * step), velocity, atol=1e-5)
    np.testing.assert_allclose((faster - slower) / (2.0 * step), acceleration, atol=1e-3)


def test_a_robot_of_stiff_gears_needs_no_lead() -> None:
    with pytest.raises(FitError, match=r"no gear of 'cobot6' has a stiffness"):
        motor_reference(model(), MOTION, 0.032)
    with pytest.raises(FitError, match=r"must be 2 numbers above 0 N·m/rad, one for each joint of 'cobot6'"):
        motor_reference(model(), MOTION, 0.032, [5000.0])
    with pytest.raises(FitError, match=r"must be 2 numbers above 0"):
        motor_reference(model(), MOTION, 0.032, [5000.0, -1.0])


def test_the_observers_lag_is_three_and_a_half_ticks_of_damping() -> None:
    """A tracking observer with the default gains is 3.5 ticks behind a velocity that grows steadily."""
    alpha, beta, velocity, position, estimate, innovation = 0.5, 0.125, 0.0, 0.0, 0.0, 0.0
    for _ in range(400):  # as tick.py does it, in real numbers
        before, velocity = velocity, velocity + 0.01
        moved = 0.5 * (before + velocity)
        position += moved
        error = innovation + moved - estimate
        estimate += beta * error
        innovation = error - alpha * error
    lag = (velocity - estimate) / 0.01
    assert lag == pytest.approx(3.5, abs=1e-6)
    ddq = np.array([[2.0, -1.0]])
    kd = 320
    counts = ROBOT.transmission_matrix.diagonal() * 4096 / (2 * np.pi)
    expected = kd * BY_NAME["servo.kd"].scale * 3.5 * counts * 1e-6 * ddq
    np.testing.assert_allclose(observer_current(ROBOT, facts(servo_kd=kd), ddq), expected, rtol=1e-12)
    assert np.all(observer_current(ROBOT, facts(servo_kd=kd, velocity_source=1), ddq) == 0.0)


def test_currents_at_the_knots_are_the_torques_half_a_tick_later() -> None:
    fed = feedforward_of_model(model(), MOTION, facts(servo_kd=0), current_lag=0.002)
    knots = round(MOTION.period / 0.032) + 1
    assert fed.motor_current_A.shape == (knots, 2)
    time = np.minimum(0.032 * np.arange(knots) + 0.0005 + 0.002, MOTION.period)
    torque = planned_torque(model(), MOTION, time)
    per_current = [drive.torque_per_current for drive in ROBOT.drives]
    np.testing.assert_allclose(fed.motor_current_A, torque / per_current, atol=1e-9)
    damped = feedforward_of_model(model(), MOTION, facts(servo_kd=320), current_lag=0.002)
    lag = observer_current(ROBOT, facts(servo_kd=320), MOTION.evaluate(time)[2])
    np.testing.assert_allclose(damped.motor_current_A, fed.motor_current_A - lag, atol=1e-12)


def test_a_model_of_another_robot_is_refused() -> None:
    with pytest.raises(FitError, match=r"with 2 motors, the bench has 1"):
        feedforward_of_model(model(), MOTION, facts()[:1])


def rest(seed: int, seconds: float) -> Array:
    """What a good model leaves to the servos [A]: noise below 10 Hz, of 20 and 50 mA."""
    noise = np.random.default_rng(seed).normal(size=(round(1000 * seconds), 2))
    smooth = signal.sosfilt(signal.butter(2, 10.0, fs=1000.0, output="sos"), noise, axis=0)
    return np.asarray(smooth / smooth.std(axis=0) * np.array([0.02, 0.05]))


def test_a_band_is_passed_as_seldom_as_it_says_and_by_a_push_that_is_worth_it() -> None:
    band = feedback_band(model(), rest(1, 30.0), MOTION, 0.001, false_alarms_per_hour=0.1)
    # As the boards' low-pass has it; five minutes more of the same, in which 0.008 false alarms are to be expected.
    smooth = np.abs(signal.lfilter([1 / 8], [1.0, -7 / 8], rest(2, 300.0), axis=0))
    assert np.all(smooth.max(axis=0) < band)
    # Ten sizes of the rest would see little: Gumbel's tail over a few seconds' maximum, and two σ of the model.
    assert np.all(band < 10.0 * np.array([0.02, 0.05]))
    often = feedback_band(model(), rest(1, 30.0), MOTION, 0.001, false_alarms_per_hour=3600.0)
    assert np.all(often < band)
    assert np.all(smooth.max(axis=0) > often)  # an alarm a second


def test_a_band_is_two_standard_deviations_of_the_models_current_wider() -> None:
    sure = replace(model(), covariance=0.0 * model().covariance)
    wider = feedback_band(model(), rest(1, 10.0), MOTION, 0.001) - feedback_band(sure, rest(1, 10.0), MOTION, 0.001)
    q, dq, ddq = MOTION.evaluate(np.linspace(0.0, MOTION.period, 500))
    covariance = predicted_covariance(model(), q, dq, ddq)
    sigma = np.sqrt(np.einsum("kjj->kj", covariance).max(axis=0))
    per_current = np.array([drive.torque_per_current for drive in ROBOT.drives])
    np.testing.assert_allclose(wider, 2.0 * sigma / per_current, rtol=1e-6)
    assert np.all(wider > 0.0)


def test_a_band_needs_enough_currents_of_its_motors() -> None:
    with pytest.raises(FitError, match=r"lasts 2 s; thresholds need at least 5 s"):
        feedback_band(model(), rest(1, 2.0), MOTION, 0.001)
    with pytest.raises(FitError, match=r"feedback has shape \(10000, 1\); robot .* of shape \(n, 2\)"):
        feedback_band(model(), rest(1, 10.0)[:, :1], MOTION, 0.001)
    with pytest.raises(FitError, match=r"false_alarms_per_hour = 0 must be above 0"):
        feedback_band(model(), rest(1, 10.0), MOTION, 0.001, false_alarms_per_hour=0.0)


@pytest.mark.parametrize("name", ROBOTS)
def test_torque_is_that_of_the_regressor(name: str) -> None:
    full = full_model(name)
    moves = motion(full.robot, samples=30)
    columns, _ = model_columns(full.robot, *moves)
    expected = (columns @ full.full_parameters).reshape(moves[0].shape)
    predict = Predictor(full.robot, full.standard_parameters, full.drive_parameters, full.compensation_parameters)
    found = np.array([predict(*each) for each in zip(*moves, strict=True)])
    # Sums of some hundred products in double precision.
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13 * float(np.abs(expected).max()))


def test_nothing_rubs_at_rest() -> None:
    full = full_model("cobot6")
    rest = np.zeros(6)
    without = np.where([name == 2 for name in np.arange(24) % 4], 0.0, full.drive_parameters)
    still = Predictor(full.robot, full.standard_parameters, full.drive_parameters)(rest, rest, rest)
    smooth = Predictor(full.robot, full.standard_parameters, without)(rest, rest, rest)
    np.testing.assert_array_equal(still, smooth)


def test_each_call_has_an_array_of_its_own() -> None:
    full = full_model("cobot6")
    predict = Predictor(full.robot, full.standard_parameters, full.drive_parameters)
    first = predict([0.1] * 6, [0.2] * 6, [0.3] * 6)
    kept = first.copy()
    predict(np.ones(6), np.ones(6), np.ones(6))
    np.testing.assert_array_equal(first, kept)


def test_other_shapes_are_refused() -> None:
    full = full_model("cobot6")
    predict = Predictor(full.robot, full.standard_parameters, full.drive_parameters)
    with pytest.raises(ShapeError, match=r"dq has shape \(5,\); one sample of 'cobot6' is \(6,\)"):
        predict(np.zeros(6), np.zeros(5), np.zeros(6))
    with pytest.raises(ShapeError, match=r"standard_parameters has shape \(59,\)"):
        Predictor(full.robot, full.standard_parameters[1:], full.drive_parameters)
    with pytest.raises(ShapeError, match=r"drive_parameters has shape \(23,\); robot 'cobot6' needs \(24,\)"):
        Predictor(full.robot, full.standard_parameters, full.drive_parameters[1:])
