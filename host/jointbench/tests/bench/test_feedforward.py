"""Feed-forward of a motion: joint torque to motor currents, what a board is sent, and what is refused."""

import numpy as np
import pytest

from jointbench.bench import Facts, Feedforward
from jointbench.errors import ExcitationError, ShapeError
from jointbench.model import load_robot
from jointwire import BY_NAME

REGISTERS = {name: register.default for name, register in BY_NAME.items()}


def facts(n: int, **changes: int) -> list[Facts]:
    board = Facts(REGISTERS | {name.replace("_", ".", 1): value for name, value in changes.items()})
    return [board] * n


def test_coupled_motors_get_their_currents_through_the_coupling() -> None:
    """Power is the same on both sides: torque · dq = Σ constant · current · motor velocity."""
    robot = load_robot("nursing_arm")
    rng = np.random.default_rng(3)
    torque, dq = rng.normal(size=(2, 40, robot.n_joints))
    fed = Feedforward.of_joint_torque(torque, robot)
    constants = np.array([drive.torque_constant for drive in robot.drive_train.drives])
    speeds = robot.drive_train.motor_motion(dq)
    np.testing.assert_allclose(
        np.sum(torque * dq, axis=1), np.sum(fed.motor_current_A * constants * speeds, axis=1), rtol=1e-9, atol=1e-12
    )
    off_diagonal = robot.transmission_matrix - np.diag(np.diag(robot.transmission_matrix))
    assert np.any(off_diagonal)  # of this robot two motors share joints
    np.testing.assert_allclose(fed.scaled(0.5).motor_current_A, 0.5 * fed.motor_current_A)


def test_a_board_is_sent_milliamperes_a_limit_above_the_peak_and_a_tighter_following_limit() -> None:
    robot = load_robot("cobot6")
    currents = np.zeros((5, 6))
    currents[2] = [0.4, -0.4, 0.8, 0.0, 0.1234, 0.2]
    sent = Feedforward(currents, np.full(6, 0.01)).for_boards(robot, facts(6), 5)
    assert [board.currents_mA[2] for board in sent] == [400, -400, 800, 0, 123, 200]
    assert all(board.currents_mA.dtype == np.int16 for board in sent)
    # 1.5 times the peak, but no more than limit.current, which is 1 A here.
    assert [board.registers["limit.feedforward"] for board in sent] == [600, 600, 1000, 0, 185, 300]
    assert sent[0].registers["limit.following"] == round(0.01 * 4096 / (2 * np.pi))
    wide = Feedforward(currents, np.full(6, 100.0)).for_boards(robot, facts(6), 5)
    assert wide[0].registers["limit.following"] == REGISTERS["limit.following"]  # never wider than the board's own


def test_a_board_watches_for_the_unexpected_only_where_a_band_is_given() -> None:
    robot, currents = load_robot("cobot6"), np.zeros((5, 6))
    band = np.array([0.1234, np.inf, 1e-6, 99.0, 0.5, np.inf])
    sent = Feedforward(currents, None, band).for_boards(robot, facts(6), 5)
    # Rounded up, for 0 would be off; no more than the register holds.
    assert [board.registers["limit.unexpected"] for board in sent] == [124, 0, 1, 32000, 500, 0]
    none = Feedforward(currents)
    assert {board.registers["limit.unexpected"] for board in none.for_boards(robot, facts(6), 5)} == {0}
    assert none.watch_text(robot.joint_names) == "no board watches for pushes: limit.unexpected is 0, off"
    assert "j1 0.123 A, j2 off" in Feedforward(currents, None, band).watch_text(robot.joint_names)
    with pytest.raises(ExcitationError, match=r"unexpected_limit_A of 'j3' is 0 A; give a current above 0, or inf"):
        Feedforward(currents, None, np.where(np.arange(6) == 2, 0.0, band)).for_boards(robot, facts(6), 5)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"shape": (4, 6)}, r"shape \(4, 6\); the trajectory has 5 knots and the bench 6 motors"),
        ({"value": np.nan}, r"of 'j3' at knot 1 is nan A"),
        ({"value": -1.001}, r"of 'j3' reaches 1\.001 A, its limit\.current is 1 A"),
    ],
)
def test_what_no_board_could_give_is_refused_before_anything_is_sent(changed, words: str) -> None:
    currents = np.zeros(changed.get("shape", (5, 6)))
    currents[1, 2] = changed.get("value", 0.0)
    with pytest.raises(ExcitationError, match=words):
        Feedforward(currents).for_boards(load_robot("cobot6"), facts(6), 5)


def test_torques_of_another_robot_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"shape \(5, 3\); robot 'cobot6' needs \(n_knots, 6\)"):
        Feedforward.of_joint_torque(np.zeros((5, 3)), load_robot("cobot6"))
