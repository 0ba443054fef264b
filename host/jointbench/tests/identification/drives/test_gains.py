import dataclasses

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.errors import FitError, RobotError
from jointbench.identification.drives import DriveGains, DriveSignals, identify_gains
from jointbench.identification.payload_body import KnownPayload
from jointbench.model import Drive, Robot, base_parameters, drive_parameter_names, load_robot, model_columns, regressor
from jointbench.model.variants import with_payload
from jointbench.signals import moving_mask, rest_threshold
from jointbench.tests.identification.drives.simulated_joints import arm, motion

CURRENT_NOISE_A = 0.010
FRICTION = {"rotor_inertia": 0.5, "viscous": 5.0, "coulomb": 2.0, "offset": 0.1}
OFF = np.array([0.9, 1.1, 1.05, 0.95, 1.02, 0.93])
"""True torque constants over those of the robot file."""

ARM = arm(3)


def loaded(robot: Robot, mass: float = 3.0, on: str = "forearm", at=(0.02, 0.03, 0.1)) -> Robot:
    return with_payload(robot, "steel", on, mass, at)


def added(robot: Robot, heavier: Robot) -> Array:
    assert robot.standard_parameters is not None
    assert heavier.standard_parameters is not None
    return heavier.standard_parameters - robot.standard_parameters


def recorded(
    robot: Robot, noise_seed: int | None, n: int = 600, period: float = 10.0, efficiency: float = 1.0
) -> DriveSignals:
    """What is recorded of the robot when its constants are OFF, by the constants of its file."""
    q, dq, ddq, step = motion(robot, 1, n, period)
    columns, names = model_columns(robot, q, dq, ddq)
    friction = [FRICTION[name.split(".")[-1]] for name in names[10 * robot.n_links :]]
    assert robot.standard_parameters is not None
    torque = (columns @ np.concatenate([robot.standard_parameters, friction])).reshape(q.shape)
    train = robot.drive_train
    asked = train.motor_torque(torque)
    passed = np.where(asked * train.motor_motion(dq) >= 0.0, efficiency, 1.0 / efficiency)
    nominal = np.array([drive.torque_constant for drive in train.drives])
    current = asked / (passed * nominal * OFF[: robot.n_joints])
    if noise_seed is not None:
        current = current + CURRENT_NOISE_A * np.random.default_rng(noise_seed).standard_normal(current.shape)
    used = moving_mask(dq, rest_threshold(dq), 2)
    return DriveSignals(q, dq, ddq, train.joint_torque(current * nominal), used, step)


def gains(robot: Robot, heavier: Robot, seed: int | None, directions: bool = False, **how) -> DriveGains:
    """Both recordings and what comes of them."""
    first = recorded(robot, seed, **how)
    second = recorded(heavier, None if seed is None else seed + 1, **how)
    return identify_gains(robot, first, second, added(robot, heavier), directions=directions)


def constants(robot: Robot) -> Array:
    nominal = np.array([drive.torque_constant for drive in robot.drive_train.drives])
    return nominal * OFF[: robot.n_joints]


def test_exact_data_give_exact_constants_and_parameters():
    robot = arm(6)
    found = gains(robot, loaded(robot, on="flange_and_tool"), None)
    assert found.torque_constants == pytest.approx(constants(robot), rel=1e-9)
    friction = [FRICTION[name.split(".")[-1]] for name in drive_parameter_names(robot)]
    assert robot.standard_parameters is not None
    truth = found.base.group(np.concatenate([robot.standard_parameters, friction]))
    assert found.parameters == pytest.approx(truth, rel=1e-6, abs=1e-9)


def test_motors_that_several_joints_share():
    robot = load_robot("nursing_arm")
    nominal = np.array([drive.torque_constant for drive in robot.drive_train.drives])
    found = gains(robot, loaded(robot, on=robot.joints[-1].link.name), 3)
    assert not np.array_equal(robot.transmission_matrix, np.diag(np.diag(robot.transmission_matrix)))
    for motor, truth in zip(found.motors, nominal * OFF, strict=True):
        assert motor is not None
        assert motor.verdict.word == "identified"
        assert abs(motor.torque_constant - truth) < 4.0 * motor.sigma  # six values


def bound(robot: Robot, heavier: Robot) -> Array:
    """Cramér-Rao bound of the torque constants."""
    base = base_parameters(robot)
    friction = [FRICTION[name.split(".")[-1]] for name in drive_parameter_names(robot)]
    assert robot.standard_parameters is not None
    truth = base.group(np.concatenate([robot.standard_parameters, friction]))
    inverse = 1.0 / constants(robot)
    ratio = np.array([drive.ratio for drive in robot.drives])
    information = 0.0
    for payload in (np.zeros(10 * robot.n_links), added(robot, heavier)):
        data = recorded(robot, None)
        columns = base.project(model_columns(robot, data.q, data.dq, data.ddq)[0]).reshape(*data.q.shape, -1)
        known = (regressor(robot, data.q, data.dq, data.ddq) @ payload).reshape(data.q.shape)
        torque = (columns @ truth + known) / ratio
        by_constant = -torque[:, :, None] * inverse[:, None] ** 2 * np.eye(robot.n_joints)
        slopes = np.concatenate([by_constant, columns * (inverse / ratio)[:, None]], axis=2)[data.used]
        information = information + slopes.T @ slopes / CURRENT_NOISE_A**2
    return np.sqrt(np.diag(np.linalg.inv(information)))[: robot.n_joints]


@pytest.mark.parametrize("draws", [8, pytest.param(60, marks=pytest.mark.slow)])
def test_constants_reach_the_cramer_rao_bound(draws: int):
    heavier = loaded(ARM)
    found = [gains(ARM, heavier, 2 * k) for k in range(draws)]
    errors = np.array([each.torque_constants for each in found]) - constants(ARM)
    stated = np.array([[motor.sigma for motor in each.motors if motor is not None] for each in found])
    least = bound(ARM, heavier)
    # 60 draws tell a deviation to 9 % and a mean to 13 % of one; three times that.
    assert errors.std(axis=0) == pytest.approx(least, rel=3.0 / np.sqrt(2.0 * draws))
    assert np.all(np.abs(errors.mean(axis=0)) < 3.0 / np.sqrt(draws) * least)
    assert np.sqrt(np.mean(stated**2, axis=0)) == pytest.approx(least, rel=0.1)


def test_efficiency_is_told_where_the_load_drives_the_motor():
    found = gains(ARM, loaded(ARM), 4, directions=True, efficiency=0.9)
    for motor, truth in zip(found.motors[1:], constants(ARM)[1:], strict=True):
        assert motor is not None
        assert motor.efficiency is not None
        assert motor.efficiency_sigma is not None
        assert abs(motor.efficiency - 0.9) < 4.0 * motor.efficiency_sigma
        assert motor.efficiency_sigma < 0.033  # the loss of 0.1 is 3 σ from none
        assert abs(motor.torque_constant - truth) < 4.0 * motor.sigma
    words = {verdict.name: verdict.word for verdict in found.verdicts}
    assert words["j2.gear_loss"] == "identified"
    # Joint 1 stands upright: nothing but its own inertia ever drives the motor, and friction eats that up.
    first = found.motors[0]
    assert first is not None
    assert first.efficiency is None
    assert words["j1.gear_loss"] == "refused"


def test_a_motor_on_which_the_payload_has_no_effect_is_not_observable_and_the_reason_says_why():
    # A hundred seconds a period: nothing swings, and the upright first joint bears no weight.
    found = gains(ARM, loaded(ARM), 6, period=100.0)
    first, *others = found.motors
    assert first is not None
    assert first.verdict.word == "not observable"
    assert np.isnan(first.torque_constant)
    assert "the payload changes this motor's torque by" in first.verdict.reason
    assert all(motor is not None and motor.verdict.word == "identified" for motor in others)


@pytest.mark.parametrize("seed", [6, pytest.param(8, marks=pytest.mark.slow), pytest.param(10, marks=pytest.mark.slow)])
@pytest.mark.parametrize("period", [100.0, pytest.param(300.0, marks=pytest.mark.slow)])
@pytest.mark.parametrize("alone", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_noise_never_passes_for_a_constant(seed: int, period: float, alone: bool):
    # Where its estimate of 1/k is negative, k and the joint's own parameters would grow together without an end.
    heavier = loaded(ARM)
    first, second = recorded(ARM, seed, period=period), recorded(heavier, seed + 1, period=period)
    payload = KnownPayload.of(3.0) if alone else added(ARM, heavier)
    found = identify_gains(ARM, first, second, payload, on="forearm")
    words = [verdict.word for verdict in found.verdicts]
    assert words == ["not observable", "identified", "identified"]
    for motor, truth in zip(found.motors[1:], constants(ARM)[1:], strict=True):
        assert motor is not None
        assert abs(motor.torque_constant - truth) < 4.0 * motor.sigma


def test_the_mass_alone_is_enough_for_the_constants_and_the_rest_of_the_payload():
    heavier = loaded(ARM)
    first, second = recorded(ARM, 2), recorded(heavier, 3)
    by_mass = identify_gains(ARM, first, second, KnownPayload.of(3.0), on="forearm")
    by_all = identify_gains(ARM, first, second, added(ARM, heavier))
    assert by_all.payload is None
    body = by_mass.payload
    assert body is not None
    assert body.sigma[0] == 0.0
    assert np.all(np.abs(body.center_of_mass - (0.02, 0.03, 0.1)) < 4.0 * body.sigma[1:4])
    for one, other, truth in zip(by_mass.motors, by_all.motors, constants(ARM), strict=True):
        assert one is not None
        assert other is not None
        assert abs(one.torque_constant - truth) < 4.0 * one.sigma
        assert one.sigma > 0.99 * other.sigma  # what is not known does not help
        assert one.sigma < 2.0 * other.sigma  # … and here it costs less than a half
        assert one.nominal == pytest.approx(truth / OFF[ARM.joint_index(one.name)])
    whole = KnownPayload.of(3.0, (0.02, 0.03, 0.1), 1e-9 * np.eye(3))  # pyright: ignore[reportArgumentType]
    same = identify_gains(ARM, first, second, whole, on="forearm")
    assert same.payload is None
    assert same.torque_constants == pytest.approx(by_all.torque_constants, rel=1e-6)


def test_friction_that_has_changed_is_told_from_the_payload():
    heavier = loaded(ARM)
    first, second = recorded(ARM, 4), recorded(heavier, 5)
    rubbing = dataclasses.replace(second, motor_torque=second.motor_torque + 1.0 + 0.5 * np.sign(second.dq))
    own = identify_gains(ARM, first, rubbing, KnownPayload.of(3.0), on="forearm", same_friction=False)
    errors = (own.torque_constants - constants(ARM)) / [motor.sigma for motor in own.motors if motor is not None]
    assert np.all(np.abs(errors) < 4.0)
    same = identify_gains(ARM, first, rubbing, added(ARM, heavier))
    assert abs(same.torque_constants[2] / constants(ARM)[2] - 1.0) > 0.05


def test_a_constant_far_from_that_of_the_file_is_told_by_a_motor_that_tells_it_alone():
    heavier = loaded(ARM)
    first, second = recorded(ARM, 2), recorded(heavier, 3)
    first, second = (dataclasses.replace(each, motor_torque=0.1 * each.motor_torque) for each in (first, second))
    found = identify_gains(ARM, first, second, added(ARM, heavier))
    for motor, truth in zip(found.motors[1:], constants(ARM)[1:], strict=True):
        assert motor is not None
        assert abs(motor.torque_constant - 10.0 * truth) < 4.0 * motor.sigma


def test_a_motor_that_stands_still_is_not_observable():
    first, second = recorded(ARM, 1), recorded(loaded(ARM), 2)
    for each in (first, second):
        each.used[:, 2] = False
    motor = identify_gains(ARM, first, second, added(ARM, loaded(ARM))).motors[2]
    assert motor is not None
    assert motor.verdict.word == "not observable"
    assert "never moves" in motor.verdict.reason


def test_a_payload_that_tells_nothing_is_refused():
    first = recorded(ARM, 1)
    with pytest.raises(FitError, match="no mass and no inertia"):
        identify_gains(ARM, first, first, np.zeros(30))
    one = arm(1)
    on_axis = loaded(one, on="shoulder", at=(0.0, 0.0, 0.1))
    with pytest.raises(FitError, match=r"no torque constant is told: j1\.torque_constant: not observable"):
        gains(one, on_axis, 1)
    few = dataclasses.replace(first, used=np.zeros_like(first.used))
    with pytest.raises(FitError, match="0 rows away from rest"):
        identify_gains(ARM, few, few, added(ARM, loaded(ARM)))


def test_motors_that_may_work_against_each_other_are_refused():
    robot = load_robot("nursing_arm")
    coupling = robot.couplings[0]
    drive = robot.drives[0]
    extra = Drive("extra", drive.joint, drive.kind, drive.ratio, drive.torque_constant, drive.current_limit)
    wider = dataclasses.replace(coupling, matrix=(*coupling.matrix, (100.0, 0.0)), more=(extra,))
    redundant = dataclasses.replace(robot, couplings=(wider, *robot.couplings[1:]))
    data = recorded(robot, None)
    with pytest.raises(RobotError, match="7 motors for 6 joints"):
        identify_gains(redundant, data, data, np.ones(60))
