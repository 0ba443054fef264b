"""Friction told by experiments: sweeps of speed, steps up and down, one motion by another."""

import dataclasses
import os
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.excitation import Excitation, SpeedStairs, plan_speed_sweep
from jointbench.identification import fit
from jointbench.identification.friction import (
    FrictionData,
    SpeedSweep,
    Stroke,
    combine_directions,
    compare_laws,
    fit_friction,
    friction_law,
    friction_of_run,
)
from jointbench.identification.judgement import POOR_RELATIVE_ERROR
from jointbench.model import drive_columns, inverse_dynamics, load_robot
from jointbench.recording import Run
from jointbench.signals import LowPass, moving_mask, rest_threshold
from jointbench.tests.identification.synthetic import PERIOD_S, arm, excitation, run_of, synthetic_run

SWEEP = SpeedSweep(lower=-0.3, upper=0.3, first=0.1, step=0.1, n_speeds=8, pause=0.2, acceleration=6.0)
MAKKAR = np.array([6.0, 12.0, 8.0, 40.0, 4.0, 20.0])


def swept_nursing_arm(noise=0.05):
    """The shoulder's pitch sweeps; its torque is friction, gravity, inertia and an offset."""
    robot = load_robot("nursing_arm")
    assert robot.standard_parameters is not None
    time = PERIOD_S * np.arange(round(SWEEP.duration / PERIOD_S), dtype=np.float64)
    q = np.zeros((len(time), robot.n_joints))
    q[:, 1] = SWEEP.position(time)
    dq = np.asarray(np.gradient(q, PERIOD_S, axis=0))
    ddq = np.asarray(np.gradient(dq, PERIOD_S, axis=0))
    torque = inverse_dynamics(robot, q, dq, ddq, robot.standard_parameters) + 3.0
    pitch = FrictionData(dq[:, 1], dq[:, 1])
    torque[:, 1] += friction_law("makkar", pitch).torque(pitch, MAKKAR)
    torque += noise * np.random.default_rng(0).standard_normal(torque.shape)
    return robot, run_of(robot, q, torque, plan=None, repeats=0)


def test_a_sweep_cancels_gravity_and_offset():
    _, run = swept_nursing_arm()

    found = friction_of_run(run)

    assert found.way == "sweep"
    assert list(found.joints) == ["j2"]
    assert "0 speeds steady in both directions" in found.left_out["j1"]
    data = found.joints["j2"]
    assert data.velocity == pytest.approx(SWEEP.speeds, rel=1e-3)
    true = friction_law("makkar", data).torque(data, MAKKAR)
    # Noise of 0.05 averaged over hundreds of samples; the speeds' own error times the law's slope is as small.
    assert data.torque == pytest.approx(true, abs=0.02)


def test_directions_of_a_coupled_joint_combine_as_printed():
    rng = np.random.default_rng(0)
    t1, t2 = rng.uniform(-30.0, 30.0, (2, 2))  # forward and backward of the two motors, at the joint
    position = np.linspace(0.0, 1.0, 50)
    for joint, sign in ((t1 - t2, -1.0), (t1 + t2, 1.0)):
        strokes = [
            Stroke(0.2, position, np.full(50, joint[0])), Stroke(-0.2, position, np.full(50, joint[1])),
        ]  # fmt: skip
        printed = (t1[0] + sign * t2[0] - t1[1] - sign * t2[1]) / 2.0
        assert combine_directions(strokes).torque == pytest.approx([printed])
        assert combine_directions(strokes[::-1]).torque == pytest.approx([printed])


def test_what_depends_on_position_cancels_over_common_positions_only():
    forward, backward = np.linspace(0.0, 1.0, 101), np.linspace(1.0, 0.5, 51)
    strokes = [Stroke(0.2, forward, 5.0 + 40.0 * forward), Stroke(-0.2, backward, -5.0 + 40.0 * backward)]
    assert combine_directions(strokes).torque == pytest.approx([5.0])
    # Elsewhere, at another speed or in the same direction, nothing can be combined.
    for other in (Stroke(-0.2, forward + 2.0, forward), Stroke(-0.3, forward, forward), Stroke(0.2, forward, forward)):
        assert combine_directions([strokes[0], other]).n_rows == 0


def test_nominal_inertias_leave_friction():
    robot = arm()
    run = synthetic_run(robot, motion_seed=1, noise_seed=1)

    found = friction_of_run(run)

    assert found.way == "model"
    for j, (name, data) in enumerate(found.joints.items()):
        assert data.in_time
        law = friction_law("coulomb_viscous+offset" + ("+inertia" if data.acceleration is not None else ""), data)
        result = fit_friction(data, law)
        expected = {"coulomb": 6.0, "viscous": 9.0, "offset": 0.4}
        for parameter, value in expected.items():
            sigma = result.sigma[law.names.index(parameter)]
            # Four standard deviations, and a percent for what the boards' own filter does to the step of friction.
            tolerance = 4.0 * sigma + 0.01 * value
            assert result.value(parameter) == pytest.approx(value / (1.0 + 0.4 * j), abs=tolerance), name


def test_a_fitted_model_leaves_the_same_friction():
    robot = arm()
    run = synthetic_run(robot, motion_seed=1, noise_seed=1)
    other = synthetic_run(robot, motion_seed=2, noise_seed=2)
    found = friction_of_run(other, way="model", model=fit(run))
    assert list(found.joints) == list(robot.joint_names)
    for j, data in enumerate(found.joints.values()):
        law = friction_law("coulomb_viscous", data)
        # The model knows the rest of the torque to about a percent of the friction.
        assert fit_friction(data, law).parameters == pytest.approx(np.array([6.0, 9.0]) / (1.0 + 0.4 * j), rel=0.03)


@pytest.mark.parametrize("joints", [("j2",), pytest.param(("j1", "j2", "j3"), marks=pytest.mark.slow)])
def test_a_torque_sensor_tells_friction_that_depends_on_load(joints: tuple[str, ...]):
    robot = arm()
    plan = excitation(robot, 1)
    ticks = round(plan.duration / PERIOD_S)
    q, dq, ddq = plan.evaluate(PERIOD_S * np.arange(ticks))
    assert robot.standard_parameters is not None
    sensor = inverse_dynamics(robot, q, dq, ddq, robot.standard_parameters)
    columns, names = drive_columns(robot, dq, ddq)
    rotor = [1.3 if name.endswith("rotor_inertia") else 0.0 for name in names]
    friction = np.sign(dq) * (6.0 + 0.2 * np.abs(sensor)) + 9.0 * dq
    motor = sensor + friction + (columns @ np.array(rotor)).reshape(dq.shape)
    run = run_of(robot, q, motor, plan=plan, repeats=1)
    samples = dataclasses.replace(run.samples, joint_torque=sensor)

    found = friction_of_run(dataclasses.replace(run, samples=samples))

    assert found.way == "sensor"
    for name in joints:
        data = found.joints[name]
        compared = compare_laws(data)
        assert "load" in compared.best_fit.law.name
        assert compared.best_fit.value("load_share") == pytest.approx(0.2, rel=0.05)
        if data.acceleration is not None:
            assert compared.best_fit.value("rotor_inertia") == pytest.approx(1.3, rel=0.05)


def test_errors_name_what_is_missing():
    robot = arm()
    run = synthetic_run(robot, motion_seed=1, noise_seed=1, repeats=1)
    with pytest.raises(FitError, match="the ways are sweep, sensor, model"):
        friction_of_run(run, way="guess")  # pyright: ignore[reportArgumentType]
    with pytest.raises(FitError, match=r"shows no joint's friction by sweep \(j1: 0 speeds"):
        friction_of_run(run, way="sweep")
    with pytest.raises(FitError, match="has no joint_torque; take friction from a model, or from a sweep"):
        friction_of_run(run, way="sensor")
    currentless = dataclasses.replace(run.samples, motor_torque=None)
    with pytest.raises(FitError, match="has no motor_torque"):
        friction_of_run(dataclasses.replace(run, samples=currentless))
    link = dataclasses.replace(robot.joints[0].link, mass=None)
    unknown = dataclasses.replace(robot, joints=(dataclasses.replace(robot.joints[0], link=link), *robot.joints[1:]))
    with pytest.raises(FitError, match="has no nominal inertias"):
        friction_of_run(dataclasses.replace(run, robot=unknown), way="model")


GAMMAS = np.array([3.0, 8.0, 6.0, 30.0, 5.0, 20.0])
SHARE = 0.03
NOISE = 0.3  # [N·m]


def swept(noise: float = NOISE, repeats: int = 1) -> tuple[Run, Excitation]:
    """The pitches of a nursing arm go up and down the stair; gravity loads them, and friction grows with the load."""
    robot = load_robot("nursing_arm")
    assert robot.standard_parameters is not None
    plan = plan_speed_sweep(robot, ("j2", "j4", "j6"), hold=0.16)
    time = PERIOD_S * np.arange(round(plan.duration / PERIOD_S) * repeats, dtype=np.float64)
    q, dq, ddq = plan.evaluate(time % plan.duration)
    load = inverse_dynamics(robot, q, dq, ddq, robot.standard_parameters)
    columns, names = drive_columns(robot, dq, ddq)
    rotors = np.array([15.0 if name.count(".") == 1 and name.endswith("rotor_inertia") else 0.0 for name in names])
    load += (columns @ rotors).reshape(load.shape)
    torque = load + 0.5
    for j in (1, 3, 5):
        data = FrictionData(dq[:, j], dq[:, j], load[:, j])
        torque[:, j] += friction_law("makkar+load", data).torque(
            data, np.concatenate([GAMMAS[:3], [SHARE], GAMMAS[3:]])
        )
    torque += noise * np.random.default_rng(0).standard_normal(torque.shape)
    return run_of(robot, q, torque, plan=plan, repeats=repeats), plan


def test_friction_of_a_loaded_pitch_is_told_from_its_load() -> None:
    found = friction_of_run(swept()[0])
    assert found.way == "sweep"
    assert list(found.joints) == ["j2", "j4", "j6"]
    assert found.left_out["j1"] == "it stands still"
    for name, data in found.joints.items():
        assert data.velocity == pytest.approx(np.radians(1.0 + 0.5 * np.arange(61)), rel=1e-4)
        # The palm weighs too little to load the last pitch by a quarter of its friction.
        assert (data.load is None) == (name == "j6")
        fit = fit_friction(data, friction_law("makkar" if data.load is None else "makkar+load", data))
        # 80 samples of 0.3 N·m noise either way leave 0.024 N·m a row, and the offset of 0.5 N·m counts as load: 0.015.
        assert fit.rms < 0.04, name
        unloaded = FrictionData(data.velocity, data.torque)
        true = friction_law("makkar", unloaded).torque(unloaded, GAMMAS)
        parameters = fit.parameters[[fit.law.names.index(each) for each in friction_law("makkar").names]]
        error = friction_law("makkar", unloaded).torque(unloaded, parameters) - true
        assert np.sqrt(np.mean(error**2)) <= 0.02 * np.ptp(true), name


def test_a_row_for_each_speed_and_playing_and_none_with_a_gap() -> None:
    run, plan = swept(repeats=2)
    assert isinstance(plan.basis, SpeedStairs)
    assert friction_of_run(run).joints["j4"].n_rows == 2 * 61
    valid = run.samples.valid.copy()
    there, back, _ = plan.basis.holds[30]
    valid[round((there + 0.08) / PERIOD_S), 0] = False
    valid[round((back + 0.08) / PERIOD_S), 5] = False
    holed = replace(run, samples=replace(run.samples, valid=valid))
    assert friction_of_run(holed).joints["j4"].n_rows == 2 * 61 - 1


def test_a_joint_that_goes_down_first_has_the_same_friction() -> None:
    run, plan = swept(noise=0.0)
    assert run.samples.motor_torque is not None
    turned = replace(
        run,
        excitation=replace(plan, weights=-plan.weights),
        samples=replace(
            run.samples, motor_position=-run.samples.motor_position, motor_torque=-run.samples.motor_torque
        ),
    )
    first, second = (friction_of_run(each).joints["j2"] for each in (run, turned))
    np.testing.assert_allclose(second.torque, first.torque, atol=1e-9)
    np.testing.assert_allclose(second.velocity, first.velocity, rtol=1e-9)


GEN3 = Path(__file__).resolve().parents[6] / "shared" / "data" / "kinova_gen3"


@cache
def friction_of(name: str) -> list[FrictionData]:
    """Motor torque from current less the sensor's torque, of each joint where it moves."""
    if not GEN3.is_dir():
        reason = "the public recording of a Kinova Gen3 is not in ../shared/data/kinova_gen3"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    path = GEN3 / name
    names = path.read_text(encoding="utf-8").partition("\n")[0].strip().split(",")
    table = np.loadtxt(path, delimiter=",", skiprows=1)
    low_pass = LowPass(20.0, PERIOD_S)

    def channel(quantity: str) -> Array:
        return low_pass.apply(table[:, [names.index(f"{quantity}{joint}") for joint in range(1, 8)]])

    velocity, motor, sensor = channel("Velocity"), channel("TorqueCur"), channel("TorqueSm")
    acceleration = np.asarray(np.gradient(velocity, PERIOD_S, axis=0))
    rows = slice(low_pass.settling, -low_pass.settling, low_pass.stride)
    moves = moving_mask(velocity, rest_threshold(velocity))[rows]
    return [
        FrictionData(
            velocity[rows, j][moves[:, j]], (motor - sensor)[rows, j][moves[:, j]],
            load=sensor[rows, j][moves[:, j]], acceleration=acceleration[rows, j][moves[:, j]], in_time=True,
        )
        for j in range(7)
    ]  # fmt: skip


@pytest.mark.parametrize(
    "joint", [pytest.param(joint, marks=() if joint in (2, 6) else pytest.mark.slow) for joint in range(1, 8)]
)  # a large joint and a small one quickly
def test_friction_of_one_motion_is_that_of_another(joint: int):
    here, there = (friction_of(f"opti_traj_testing{k}.csv")[joint - 1] for k in (1, 2))
    fit = compare_laws(here).best_fit
    error = fit.torque(there) - there.torque

    assert fit.verdict.word != "refused"
    # What a verdict calls unexplained; without friction, all of it would be.
    assert np.sqrt(np.mean(error**2) / np.mean(there.torque**2)) < POOR_RELATIVE_ERROR
    words = {verdict.name: verdict.word for verdict in fit.parameter_verdicts}
    assert words["coulomb"] == "identified"
