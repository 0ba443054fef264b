"""Friction out of a played stair of speeds: gravity, offsets and what comes with the square of speed cancel."""

from dataclasses import replace

import numpy as np
import pytest

from jointbench.dynamics import drive_columns, inverse_dynamics
from jointbench.excitation import Excitation, SpeedStairs, plan_speed_sweep
from jointbench.identification.friction import FrictionData, fit_friction, friction_law, friction_of_run
from jointbench.recording import Run
from jointbench.robot import load_robot
from jointbench.tests.identification.synthetic import PERIOD_S, run_of

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
