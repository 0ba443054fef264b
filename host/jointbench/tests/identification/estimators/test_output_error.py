"""Parameters whose simulation has the torques that were measured."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.bench import Facts, default_settings, motor_settings
from jointbench.errors import FitError
from jointbench.identification.estimators.closed_loop import SimulatedPlant
from jointbench.identification.estimators.estimator import Problem
from jointbench.identification.estimators.output_error import Follower, OutputError, Servo, board_servo
from jointbench.identification.estimators.paired_rows import PairedRows
from jointbench.identification.least_squares import least_squares
from jointbench.identification.observations import observe
from jointbench.identification.settings import FitSettings
from jointbench.model import Robot, load_robot, model_columns
from jointbench.recording import Run
from jointbench.tests.bench.wire import DEFAULTS
from jointbench.tests.identification.estimators.exact_problem import (
    BASE,
    BASIS,
    POORLY_FILTERED,
    ROBOT,
    TRUTH,
    cramer_rao,
    noisy_run,
    problem_of_runs,
    with_samples,
    z_of_mean,
)
from jointbench.tests.identification.synthetic import PERIOD_S, arm, excitation, run_of, synthetic_run

BANDWIDTH_HZ = 10.0
TORQUE_NOISE = np.array([2.0, 2.0])
"""[N·m] of each sample."""
SETTINGS = FitSettings(cutoff_Hz=40.0, delay=0.0)


def driven_run(position_noise: float, seed: int, servo: Servo | None = None) -> Run:
    """The arm under a servo that follows the plan some milliradians behind; None: one of second order, unknown."""
    plan = excitation(ROBOT, 1, BASIS)
    time = PERIOD_S * np.arange(round(plan.duration / PERIOD_S))
    reference, velocity, _ = plan.evaluate(time)
    before = 500  # as long as a robot is held before it plays, for it to hang in its servo
    reference = np.vstack([np.repeat(reference[:1], before, axis=0), reference])
    velocity = np.vstack([np.zeros((before, ROBOT.n_joints)), velocity])
    plant = SimulatedPlant(ROBOT, BASE, TRUTH)
    feedforward = plant.gravity(reference) if servo is None else None
    driving = servo or Servo.second_order(plant.inertia(reference[::100]), BANDWIDTH_HZ)
    motion = plant.follow(driving, reference, velocity, PERIOD_S, start=reference[0], feedforward=feedforward)
    q, dq = motion.q[before:], motion.dq[before:]
    columns, _ = model_columns(ROBOT, q, dq, np.gradient(dq, PERIOD_S, axis=0))
    torque = (BASE.project(columns) @ TRUTH).reshape(q.shape)
    rng = np.random.default_rng(seed)
    run = run_of(
        ROBOT, q + position_noise * rng.standard_normal(q.shape), torque + TORQUE_NOISE * rng.standard_normal(q.shape),
        plan=plan, repeats=1,
    )  # fmt: skip
    return with_samples(run, board_filters=None)


def simulated_torque(problem: Problem, parameters: Array) -> Array:
    """Torque rows of a simulation with these parameters."""
    (run,), (seen,) = problem.runs, problem.observations
    follower = Follower.of(run, seen.settings, BANDWIDTH_HZ, plan_needs_servo=True)
    moved = follower.simulate(SimulatedPlant(ROBOT, BASE, parameters))
    return observe(moved, ROBOT, BASE, seen.settings).regressor @ parameters


@pytest.mark.slow
def test_noise_of_positions_does_not_matter_at_all() -> None:
    found, plain = [], []
    for seed in range(30):
        problem = problem_of_runs(driven_run(1e-3, seed), settings=SETTINGS)  # ten times what wls bears
        estimate = OutputError(bandwidth_Hz=BANDWIDTH_HZ)(problem)
        found.append(estimate.parameters)
        plain.append(least_squares(problem.parts).parameters)
    # Of 14 means over their own deviations, of 30 draws, the largest is below 3.9 in 99 % of all cases.
    assert np.abs(z_of_mean(np.array(found), TRUTH)).max() < 3.9
    assert np.abs(z_of_mean(np.array(plain), TRUTH)).max() > 50.0


@pytest.mark.slow
def test_it_reaches_the_cramer_rao_bound_and_its_error_bars_hold() -> None:
    problems = [problem_of_runs(driven_run(0.0, seed), settings=SETTINGS) for seed in range(40)]
    estimates = [OutputError(bandwidth_Hz=BANDWIDTH_HZ)(problem) for problem in problems]
    found = np.array([estimate.parameters for estimate in estimates])
    plain = np.array([least_squares(problem.parts).parameters for problem in problems])
    spread = found.std(axis=0, ddof=1)
    # 40 draws tell a deviation to 11 %, but both have the same noise.
    assert np.median(spread / plain.std(axis=0, ddof=1)) == pytest.approx(1.0, abs=0.1)
    # What the low-pass leaves of white noise is not quite white, which the bound takes it to be.
    bound = cramer_rao(problems[0], np.mean([estimate.joint_sigma for estimate in estimates], axis=0))
    assert np.median(spread / bound) < 1.4
    stated = np.sqrt([np.diag(estimate.covariance) for estimate in estimates])
    within = np.abs(found - TRUTH) < 1.96 * stated
    assert 0.89 < within.mean() < 0.99  # 560 intervals, those of a draw correlated: to about 2 %


def test_it_settles_in_a_few_passes_and_says_so() -> None:
    estimate = OutputError(bandwidth_Hz=BANDWIDTH_HZ)(problem_of_runs(driven_run(1e-4, 0), settings=SETTINGS))
    assert 2 <= estimate.figures["passes"] <= 5
    assert "a servo of 10 Hz, which stands for one that is not known, follows the planned motion" in estimate.notes[0]
    assert np.abs((estimate.parameters - TRUTH) / np.sqrt(np.diag(estimate.covariance))).max() < 4.0


def test_the_boards_own_servo_is_taken_where_it_is_known() -> None:
    boards = recorded(ROBOT)
    run = driven_run(1e-3, 0, board_servo(boards))
    told = dataclasses.replace(run, provenance=boards.provenance)
    estimate = OutputError()(problem_of_runs(told, settings=SETTINGS))
    assert "the boards' servo follows the planned motion" in estimate.notes[0]
    assert np.abs((estimate.parameters - TRUTH) / np.sqrt(np.diag(estimate.covariance))).max() < 4.0
    # Positions without noise show how well its motion is theirs, and how little that of another servo.
    exact = dataclasses.replace(driven_run(0.0, 0, board_servo(boards)), provenance=boards.provenance)
    problem = problem_of_runs(exact, settings=SETTINGS)
    own, other = (OutputError(bandwidth_Hz=each)(problem).figures["regressor_difference"] for each in (None, 5.0))
    assert own < 0.01
    assert other > 10.0 * own


def test_the_regressor_is_nearly_the_torques_derivative() -> None:
    """What the method lives on: the servo keeps the motion as it is, whatever the parameters are."""
    problem = problem_of_runs(driven_run(0.0, 0), settings=SETTINGS)
    (seen,) = problem.observations
    follower = Follower.of(problem.runs[0], seen.settings, BANDWIDTH_HZ, plan_needs_servo=True)
    regressor = observe(follower.simulate(SimulatedPlant(ROBOT, BASE, TRUTH)), ROBOT, BASE, seen.settings).regressor
    base = simulated_torque(problem, TRUTH)
    for k, name in enumerate(BASE.leading_names):
        change = np.zeros(BASE.rank)
        change[k] = 0.01 * max(abs(TRUTH[k]), 1.0)
        slope = (simulated_torque(problem, TRUTH + change) - base) / change[k]
        used = seen.moving
        expected = regressor[..., k][used]
        error = np.linalg.norm(slope[used] - expected) / np.linalg.norm(expected)
        # Motion has frequencies up to 1 Hz, a tenth of the servo's: (1/10)² of it, more where friction turns.
        assert error < 0.15, name


def test_without_plan_or_servo_it_follows_the_measured_motion() -> None:
    run = noisy_run(0.0, 0)
    estimate = OutputError()(problem_of_runs(run))
    assert "a servo of 120 Hz" in estimate.notes[0]
    assert "follows the measured motion" in estimate.notes[0]
    plain = least_squares(problem_of_runs(run).parts)
    apart = (estimate.parameters - plain.parameters) / np.sqrt(np.diag(plain.covariance))
    assert np.abs(apart).max() < 1.0


def test_robots_that_cannot_be_simulated_are_refused() -> None:
    problem = problem_of_runs(noisy_run(0.0, 0))
    passive = dataclasses.replace(ROBOT, joints=(ROBOT.joints[0], dataclasses.replace(ROBOT.joints[1], passive=True)))
    with pytest.raises(FitError, match="joint j2 is passive"):
        OutputError()(dataclasses.replace(problem, robot=passive))


def test_torques_of_two_kinds_are_refused() -> None:
    run = noisy_run(0.0, 0)
    both = with_samples(run, joint_torque=run.samples.motor_torque)
    problem = problem_of_runs(run, both)
    at_sensor = observe(both, ROBOT, BASE, dataclasses.replace(POORLY_FILTERED, torque="joint"))
    mixed = dataclasses.replace(problem, observations=(problem.observations[0], at_sensor))
    with pytest.raises(FitError, match="runs with motor torques beside runs with joint torques"):
        OutputError()(mixed)


def test_logs_that_are_too_long_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jointbench.identification.estimators.output_error._MOST_STEPS", 1000)
    with pytest.raises(FitError, match=r"takes \d+ steps to simulate, more than 1000; fit a part of it by interval"):
        OutputError()(problem_of_runs(noisy_run(0.0, 0)))


def test_options_that_nobody_can_mean() -> None:
    with pytest.raises(FitError, match="passes = 0 must be 1 or more"):
        OutputError(passes=0)
    with pytest.raises(FitError, match="bandwidth_Hz = 0 must be a number above 0"):
        OutputError(bandwidth_Hz=0.0)


def test_the_simulated_rows_are_those_of_the_recording() -> None:
    """Same times, same torques: only the motion is another."""
    problem = problem_of_runs(driven_run(0.0, 0), settings=SETTINGS)
    (run,), (seen,) = problem.runs, problem.observations
    follower = Follower.of(run, seen.settings, BANDWIDTH_HZ, plan_needs_servo=True)
    rows = observe(follower.simulate(SimulatedPlant(ROBOT, BASE, TRUTH)), ROBOT, BASE, seen.settings)
    for pair in PairedRows(problem.parts[0], rows).pairs():
        assert np.array_equal(pair.torque, pair.other_torque)
        # With the truth it is the recording itself, but for the servo: what inertia it is made for is told from other
        # poses than there.
        assert pair.other == pytest.approx(pair.measured, abs=1e-3)


THREE_JOINTS = arm(3)


def recorded(robot: Robot, **changed: float) -> Run:
    """A run that was made with boards whose servo has the bench's settings, some changed."""
    boards: list[dict[str, Any]] = []
    settings = [dataclasses.replace(each, **changed) for each in default_settings(robot)]
    motors = motor_settings(settings, robot.drive_train)
    for node, (motor, drive) in enumerate(zip(motors, robot.drives, strict=True)):
        registers = motor.registers(drive.joint, node, Facts(DEFAULTS))
        boards.append({"node": node, "joint": drive.joint, "registers": dict(DEFAULTS) | dict(registers)})
    run = synthetic_run(THREE_JOINTS, motion_seed=1, noise_seed=1, repeats=1)
    return dataclasses.replace(run, robot=robot, provenance={"board": boards, "clock": "common"})


def test_its_gains_at_the_joints_are_those_that_were_set() -> None:
    servo = board_servo(recorded(THREE_JOINTS, integral=500.0, friction_torque=4.0, friction_band=0.05))
    assert servo is not None
    for joint, settings in enumerate(default_settings(THREE_JOINTS)):
        ratio = servo.matrix[joint, joint]
        # Registers hold whole numbers: the gains keep three digits, those of integral and friction fewer.
        assert servo.stiffness[joint] * ratio**2 == pytest.approx(settings.stiffness, rel=1e-3)
        assert servo.damping[joint] * ratio**2 == pytest.approx(settings.damping, rel=5e-3)
        assert servo.integral[joint] * ratio**2 == pytest.approx(500.0, rel=0.1)
        assert servo.friction[joint] * ratio == pytest.approx(4.0, rel=0.02)
        assert servo.friction_band[joint] / ratio == pytest.approx(0.05, rel=0.02)
        drive = THREE_JOINTS.drives[joint]
        assert servo.limit[joint] == pytest.approx(drive.torque_constant * settings.current_limit, rel=1e-3)


def test_coupled_motors_keep_their_matrix() -> None:
    robot = load_robot("nursing_arm")
    servo = board_servo(recorded(robot, following_limit=0.02))
    assert servo is not None
    assert servo.matrix.tolist() == robot.transmission_matrix.tolist()
    assert np.count_nonzero(servo.matrix) > robot.n_joints


def test_a_run_without_boards_has_none() -> None:
    assert board_servo(synthetic_run(THREE_JOINTS, motion_seed=1, noise_seed=1, repeats=1)) is None


def test_damaged_registers_are_said_to_be() -> None:
    run = recorded(THREE_JOINTS)
    del run.provenance["board"][1]["registers"]["servo.kp"]
    with pytest.raises(FitError, match=r"servo cannot be read.*servo\.kp"):
        board_servo(run)
