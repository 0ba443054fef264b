"""Columns of drives and compensations."""

import dataclasses
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.errors import RobotError, ShapeError
from jointbench.model import (
    Compensation,
    Coupling,
    Drive,
    Robot,
    base_parameters,
    compensation_columns,
    compensation_parameter_names,
    drive_columns,
    drive_parameter_names,
    known_beside_links,
    known_drive_parameters,
    load_robot,
    model_columns,
    model_parameter_names,
    regressor,
    sine_spring,
    spring,
    with_compensations,
    with_passive,
)
from jointbench.model.base_parameters import doubled_compensations
from jointbench.model.chosen_columns import ChosenColumns
from jointbench.model.model_columns import CompensationTerms

RandomMotion = Callable[[Robot, int, int], tuple[Array, Array, Array]]


def test_a_joints_own_terms(random_motion: RandomMotion) -> None:
    robot = load_robot("cobot6")
    _, dq, ddq = random_motion(robot, 20, 0)
    columns, names = drive_columns(robot, dq, ddq)
    values = np.zeros(len(names))
    for quantity, value in {"rotor_inertia": 2.0, "viscous": 3.0, "coulomb": 5.0, "offset": 7.0}.items():
        values[names.index(f"j3.{quantity}")] = value

    torques = (columns @ values).reshape(dq.shape)

    expected = np.zeros_like(dq)
    expected[:, 2] = 2 * ddq[:, 2] + 3 * dq[:, 2] + 5 * np.sign(dq[:, 2]) + 7
    np.testing.assert_allclose(torques, expected, rtol=1e-14)


def test_the_wrists_motor_rubs_with_both_joints(
    random_motion: RandomMotion,
) -> None:
    robot = load_robot("tx40")
    _, dq, ddq = random_motion(robot, 20, 0)
    columns, names = drive_columns(robot, dq, ddq)
    inertia, viscous, coulomb = (
        columns.reshape(20, 6, -1)[:, :, names.index(f"wrist.{quantity}")]
        for quantity in ("rotor_inertia", "viscous", "coulomb")
    )

    np.testing.assert_array_equal(inertia[:, [4, 5]], ddq[:, [5, 4]])
    np.testing.assert_array_equal(viscous[:, [4, 5]], dq[:, [5, 4]])
    both = np.sign(dq[:, 4] + dq[:, 5])
    np.testing.assert_array_equal(coulomb[:, [4, 5]], np.column_stack([both, both]))
    for column in (inertia, viscous, coulomb):
        assert not column[:, :4].any()


def test_coupling_is_the_motors_own_mechanics(
    random_motion: RandomMotion,
) -> None:
    """Columns of a coupling, with those of its joints, span what each motor's inertia does through M."""
    robot = replace(
        load_robot("cobot6"), couplings=(Coupling("shoulder", ("j1", "j2"), ((50.0, 20.0), (-30.0, 40.0))),)
    )
    _, dq, ddq = random_motion(robot, 40, 0)
    motor_inertia = np.array([0.3, 0.7])
    matrix = robot.transmission_matrix[:2, :2]
    expected = np.zeros_like(dq)
    expected[:, :2] = ddq[:, :2] @ (matrix.T @ np.diag(motor_inertia) @ matrix).T

    columns, names = drive_columns(robot, dq, ddq)
    values, *_ = np.linalg.lstsq(columns, expected.ravel(), rcond=None)

    np.testing.assert_allclose(columns @ values, expected.ravel(), atol=1e-9)  # torques up to 1e4, rounding 1e-12
    assert "shoulder.j1.coulomb" in names
    assert "shoulder.j2.coulomb" in names


def differential() -> Robot:
    """Two joints that both motors of a bevel differential turn, q1 = (φ1 - φ2)/2 and q2 = (φ1 + φ2)/2."""
    return replace(load_robot("cobot6"), couplings=(Coupling("bevels", ("j1", "j2"), ((90.0, 90.0), (-90.0, 90.0))),))


def wrist_with_a_third_motor() -> Robot:
    third = Drive("third", "j6", "direct", 25.0, 0.1, 5.0)
    matrix = ((45.0, 0.0), (32.0, 32.0), (10.0, -25.0))
    return replace(load_robot("cobot6"), couplings=(Coupling("wrist", ("j5", "j6"), matrix, (third,)),))


def twins() -> Robot:
    second = Drive("second", "j1", "direct", -80.0, 0.1, 5.0)
    return replace(load_robot("cobot6"), couplings=(Coupling("twins", ("j1",), ((101.0,), (-80.0,)), (second,)),))


COUPLED = pytest.mark.parametrize("robot", [load_robot("cobot6"), differential(), wrist_with_a_third_motor(), twins()])


@COUPLED
def test_columns_with_known_parameters_are_the_drive_trains_own_torque(
    robot: Robot, random_motion: RandomMotion
) -> None:
    """Friction of both sides and rotor inertia of each motor, of random sizes, by the matrix and by the columns."""
    rng = np.random.default_rng(1)
    known = ("rotor_inertia", "motor_coulomb", "motor_viscous", "link_coulomb", "link_viscous")

    def filled(drive: Drive) -> Drive:
        return replace(drive, **dict(zip(known, rng.uniform(0.1, 1.0, len(known)).tolist(), strict=True)))

    couplings = tuple(
        replace(each, more=tuple(replace(filled(drive), link_coulomb=None, link_viscous=None) for drive in each.more))
        for each in robot.couplings
    )
    robot = replace(robot, drives=tuple(map(filled, robot.drives)), couplings=couplings)
    _, dq, ddq = random_motion(robot, 40, 1)
    columns, names = drive_columns(robot, dq, ddq)
    values = known_drive_parameters(robot)

    offsets = np.array([name.endswith(".offset") for name in names])
    np.testing.assert_array_equal(np.isnan(values), offsets)
    train = robot.drive_train
    expected = train.known_friction(dq) + ddq @ train.known_inertia
    torque = columns[:, ~offsets] @ values[~offsets]
    np.testing.assert_allclose(torque, expected.ravel(), rtol=0.0, atol=1e-12 * np.abs(expected).max())  # rounding


@COUPLED
def test_what_is_not_known_is_nan(robot: Robot) -> None:
    """Cobot6 says nothing of friction and rotors, so that nothing of its drives is known."""
    assert np.isnan(known_drive_parameters(robot)).all()


def test_a_differentials_motors_are_told_apart_by_what_is_odd_in_them() -> None:
    """Their common inertia goes with the joints' own, their difference stays; Coulomb friction is each one's own."""
    names = base_parameters(differential()).leading_names
    assert "bevels.j1.viscous" in names
    assert "bevels.j2.viscous" not in names
    assert "bevels.j1.coulomb" in names
    assert "bevels.j2.coulomb" in names


def test_two_motors_of_one_joint_are_one_to_the_model() -> None:
    """What both do at the joint adds up, so that there are no columns to tell them apart."""
    assert drive_parameter_names(twins()) == drive_parameter_names(load_robot("cobot6"))


def test_sign_velocity_and_smooth_sign_reach_the_coulomb_columns() -> None:
    robot = load_robot("cobot6")
    dq, ddq = np.full((1, 6), 0.5), np.zeros((1, 6))
    column = drive_parameter_names(robot).index("j2.coulomb")

    assert drive_columns(robot, dq, ddq)[0][1, column] == 1.0
    assert drive_columns(robot, dq, ddq, sign_velocity=-dq)[0][1, column] == -1.0
    assert drive_columns(robot, dq, ddq, sign=np.tanh)[0][1, column] == np.tanh(0.5)


def test_model_columns_are_links_then_drives(
    random_motion: RandomMotion,
) -> None:
    robot = load_robot("tx40")
    q, dq, ddq = random_motion(robot, 10, 0)

    columns, names = model_columns(robot, q, dq, ddq)

    np.testing.assert_array_equal(columns[:, :60], regressor(robot, q, dq, ddq))
    np.testing.assert_array_equal(columns[:, 60:], drive_columns(robot, dq, ddq)[0])
    assert names == model_parameter_names(robot)
    assert names[:2] == ("j1.m", "j1.mcx")
    assert names[59:61] == ("j6.Izz", "j1.rotor_inertia")
    assert names[-1] == "wrist.coulomb"


def test_wrong_shape_is_named() -> None:
    with pytest.raises(ShapeError, match=r"dq has shape \(6,\)"):
        drive_columns(load_robot("cobot6"), np.zeros(6), np.zeros(6))


def test_a_robot_without_drives_has_no_columns_of_them(random_motion: RandomMotion) -> None:
    robot = load_robot("cobot6")
    robot = replace(robot, drives=tuple(Drive.none(name) for name in robot.joint_names))
    motion = random_motion(robot, 20, 0)

    assert drive_columns(robot, *motion[1:])[0].shape == (120, 0)
    np.testing.assert_array_equal(model_columns(robot, *motion)[0], regressor(robot, *motion))
    assert base_parameters(robot).rank == 36


ARM = load_robot("cobot6")


def tendon(q: Array, dq: Array, ddq: Array) -> Array:
    """Over two joints: its stretch to the third power, and a damper that stiffens with it."""
    both = q.sum(axis=1, keepdims=True)
    return np.stack([both**3, both**2 * dq.sum(axis=1, keepdims=True)], axis=2).repeat(2, axis=1)


SPRUNG = with_compensations(
    ARM, spring("elbow", "j3"), sine_spring("wrist", "j5"), Compensation("tendon", ("j2", "j3"), ("k", "c"), tendon)
)
NAMES = ("elbow.stiffness", "elbow.preload", "wrist.sine", "wrist.cosine", "tendon.k", "tendon.c")


def test_columns_stand_beside_the_others(random_motion: RandomMotion) -> None:
    q, dq, ddq = random_motion(SPRUNG, 20, 0)
    columns, names = compensation_columns(SPRUNG, q, dq, ddq)
    assert names == compensation_parameter_names(SPRUNG) == NAMES
    whole, all_names = model_columns(SPRUNG, q, dq, ddq)
    plain, plain_names = model_columns(ARM, q, dq, ddq)
    np.testing.assert_array_equal(whole, np.hstack([plain, columns]))
    assert all_names == plain_names + NAMES
    by_joint = columns.reshape(20, 6, -1)
    np.testing.assert_array_equal(by_joint[:, 2, 0], q[:, 2])
    np.testing.assert_array_equal(by_joint[:, 4, 3], np.cos(q[:, 4]))
    np.testing.assert_array_equal(by_joint[:, 1, 4], (q[:, 1] + q[:, 2]) ** 3)
    np.testing.assert_array_equal(by_joint[:, 1, 4:], by_joint[:, 2, 4:])
    assert np.count_nonzero(by_joint.any(axis=0)) == 2 + 2 + 2 * 2
    assert np.isnan(known_beside_links(SPRUNG)[-6:]).all()


def test_a_passive_joint_has_no_row(random_motion: RandomMotion) -> None:
    robot = with_passive(SPRUNG, "j3")
    columns, _ = compensation_columns(robot, *random_motion(robot, 5, 0))
    assert not columns.reshape(5, 6, -1)[:, 2].any()
    assert columns.reshape(5, 6, -1)[:, 1, 4:].all()
    assert (
        "elbow.stiffness acts on no joint whose torque is modelled" in doubled_compensations(base_parameters(robot))[0]
    )


def test_slopes_are_those_of_differences(random_motion: RandomMotion) -> None:
    motion = random_motion(SPRUNG, 9, 0)
    terms = CompensationTerms.of(SPRUNG)
    weights = np.random.default_rng(0).standard_normal((9, len(terms.row)))
    slopes = terms.pull_back(*motion, weights)
    far = 1e-4  # another step than theirs, so that agreement is no identity
    for which in range(3):
        for joint in range(6):
            step = np.zeros((3, 1, 6))
            step[which, 0, joint] = far
            ahead, behind = (terms.values(*(np.stack(motion) + sign * step)) for sign in (1.0, -1.0))
            expected = np.sum(weights * (ahead - behind), axis=1) / (2.0 * far)
            # Third derivatives of cubes times the square of the step.
            np.testing.assert_allclose(slopes[which][:, joint], expected, rtol=0.0, atol=1e-6)


@pytest.mark.parametrize("samples", [3, 20])
def test_chosen_columns_have_them(samples: int, random_motion: RandomMotion) -> None:
    motion = random_motion(SPRUNG, samples, 0)
    whole, names = model_columns(SPRUNG, *motion)
    roots = np.linspace(0.5, 2.0, 6)
    kept = np.flatnonzero(np.random.default_rng(0).uniform(size=len(names)) < 0.7)
    assert 0 < np.sum(kept >= len(names) - 6) < 6
    columns = whole[:, kept] * np.tile(roots, samples)[:, None]
    chosen = ChosenColumns.of(SPRUNG, kept, roots)
    values = chosen.values(motion, np.sign)
    expected = columns.T @ columns
    np.testing.assert_allclose(chosen.gram(values), expected, rtol=0.0, atol=1e-12 * np.abs(expected).max())

    # A function of the products, and its derivative along a direction of the motion.
    slope = np.random.default_rng(1).standard_normal((len(kept),) * 2)
    slope += slope.T
    by = np.stack(chosen.pull_back(motion, values, slope, np.zeros_like))
    direction = np.random.default_rng(2).standard_normal((3, samples, 6))

    def along(step: float) -> float:
        there = tuple(np.stack(motion) + step * direction)
        return float(np.sum(slope * chosen.gram(chosen.values((there[0], there[1], there[2]), np.sign))))

    difference = (along(1e-6) - along(-1e-6)) / 2e-6
    assert np.sum(by * direction) == pytest.approx(difference, rel=1e-5)


def test_a_spring_that_does_what_gravity_does_is_told_in_sum_with_it() -> None:
    """The second axis is level and meets the upright first one: a first moment there is a sine spring."""
    bare = dataclasses.replace(load_robot("rehab_arm"), compensations=())
    robot = with_compensations(bare, sine_spring("balancer", "j2"), spring("shut", "j4"))
    plain = base_parameters(bare)
    base = base_parameters(robot)
    assert base_parameters(robot, drives=False).rank == 22
    assert base.rank == plain.rank + 1
    assert base.leading_names[-1] == "shut.stiffness"
    assert doubled_compensations(base) == (
        "balancer.sine acts as j2.mcy in every motion, and is identifiable only in sum with that",
        "balancer.cosine acts as j2.mcx in every motion, and is identifiable only in sum with that",
        "shut.preload acts as j4.offset in every motion, and is identifiable only in sum with that",
    )
    words = {group.name: group for group in base.groups}
    assert words["j4.offset"].words == "torque offset of j4, plus the preload of shut"
    assert words["j2.mcy"].formula.endswith("+ 0.101937 balancer.sine")  # 1 / 9.81


def test_a_sine_spring_at_a_joint_that_is_carried_about_is_told_from_gravity() -> None:
    bare = dataclasses.replace(load_robot("rehab_arm"), compensations=())
    base = base_parameters(with_compensations(bare, sine_spring("balancer", "j4")))
    assert base.leading_names[-2:] == ("balancer.sine", "balancer.cosine")
    assert not doubled_compensations(base)


def test_columns_of_another_shape_or_without_values_are_refused(random_motion: RandomMotion) -> None:
    motion = random_motion(ARM, 4, 0)

    def flat(q: Array, dq: Array, ddq: Array) -> Array:
        return q

    def missing(q: Array, dq: Array, ddq: Array) -> Array:
        return np.full((*q.shape, 1), np.nan)

    for columns, said in ((flat, r"shape \(4, 1\) .* needed is .* \(4, 1, 1\)"), (missing, "not finite everywhere")):
        robot = with_compensations(ARM, Compensation("rope", ("j1",), ("k",), columns))
        with pytest.raises(RobotError, match=said):
            compensation_columns(robot, *motion)
