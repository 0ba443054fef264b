from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from jointbench.dynamics import drive_columns, drive_parameter_names, model_columns, model_parameter_names, regressor
from jointbench.errors import ShapeError
from jointbench.robot import Array, Coupling, Robot, load_robot

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
