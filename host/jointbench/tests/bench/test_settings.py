"""Settings in SI and the registers made of them say the same.

Feed-forward of a motion: joint torque to motor currents, what a board is sent, and what is refused.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from jointbench.bench import Feedforward
from jointbench.bench.client import RegisterName
from jointbench.bench.identity import Facts
from jointbench.bench.settings import (
    COEFFICIENTS,
    COUNT_SHARE,
    JointSettings,
    ServoOverride,
    butterworth_registers,
    default_settings,
    motor_settings,
    softened,
    stream_registers,
)
from jointbench.errors import BoardRefused, ExcitationError, FileError, ShapeError, SignalError
from jointbench.model import Drive, Robot, load_robot
from jointbench.tests.bench.wire import DEFAULTS
from jointwire import BY_NAME, JOINT_CHANNELS

ROBOT = load_robot("cobot6")
FACTS = Facts(DEFAULTS)
BENCHES = Path(__file__).parents[4] / "hil_tests" / "benches"
COUNTS = 4096 * 101 / (2.0 * np.pi)
ARM = load_robot("nursing_arm")
# Motors as fast as this arm's have coarse encoders; with the default one some limits would not fit their registers.
ARM_FACTS = Facts({**DEFAULTS, "encoder.motor_counts": 512, "drive.ratio": 3_060_000})


def registers(
    index: int, settings: Sequence[JointSettings], robot: Robot = ROBOT, facts: Facts = FACTS
) -> dict[RegisterName, int]:
    """Of one joint's board, where all joints have these settings."""
    return motor_settings(settings, robot.drive_train)[index].registers(f"j{index + 1}", index + 1, facts)


def with_second(settings: JointSettings, robot: Robot = ROBOT) -> tuple[JointSettings, ...]:
    """The default settings, but these of the second joint."""
    first, _, *others = default_settings(robot)
    return (first, settings, *others)


def test_registers_give_the_torque_that_was_asked_for() -> None:
    settings = replace(default_settings(ROBOT)[1], stiffness=12000.0, damping=250.0, viscous_feedforward=20.0)
    drive = ROBOT.drives[1]
    raw = registers(1, with_second(settings))
    # The servo in the firmware: mA = (kp counts) >> 8, mA = (kd counts/tick Q8) >> 12, as registers.py scales them.
    torque = drive.torque_per_current * 1e-3
    assert raw["servo.kp"] / 256 * COUNTS * torque == pytest.approx(12000.0, rel=1e-3)
    assert raw["servo.kd"] / 16 * COUNTS * 1e-3 * torque == pytest.approx(250.0, rel=1e-3)
    assert raw["servo.velocity_feedforward"] / 16 * COUNTS * 1e-3 * torque == pytest.approx(20.0, rel=5e-3)
    assert raw["limit.current"] == 10000
    low, high = ROBOT.joints[1].position_limits
    assert (raw["limit.position_min"], raw["limit.position_max"]) == (round(low * COUNTS), round(high * COUNTS))
    assert raw["limit.velocity"] == pytest.approx(settings.velocity_limit * COUNTS * 1e-3 * 256, abs=1)
    assert raw["limit.link_timeout"] == 500


def test_a_motor_that_turns_the_other_way_keeps_its_window() -> None:
    drives = [replace(drive, ratio=-101.0) if drive.joint == "j2" else drive for drive in ROBOT.drives]
    raw = registers(1, default_settings(ROBOT), replace(ROBOT, drives=tuple(drives)))
    low, high = ROBOT.joints[1].position_limits
    assert (raw["limit.position_min"], raw["limit.position_max"]) == (round(-high * COUNTS), round(-low * COUNTS))
    assert raw["servo.kp"] > 0


def test_a_board_streams_what_it_has_and_a_joint_needs() -> None:
    settings = default_settings(ROBOT)
    assert registers(0, settings)["stream.channels"] == JOINT_CHANNELS
    fewer = Facts({**FACTS.registers, "board.channels": 0b10000010111})
    assert registers(0, settings, facts=fewer)["stream.channels"] == 0b10111


def test_samples_each_few_ticks() -> None:
    each = motor_settings(default_settings(ROBOT), ROBOT.drive_train)[0]
    raw = each.registers("j1", 1, FACTS, sample_every=8)
    rates = {name: value for name, value in raw.items() if name.startswith("stream.every")}
    kinds = ("motor_current", "motor_encoder", "link_encoder", "torque_sensor", "command", "foot_force")
    assert rates == {f"stream.every_{kind}": 3 for kind in kinds}  # supply and temperature keep their own
    foot = Facts({**DEFAULTS, "board.channels": 0b11110100000})
    assert stream_registers(foot, 1) == {
        "stream.channels": 0b11110100000, "stream.block": 64, "stream.always": 0,
    }  # fmt: skip
    again = Facts({**DEFAULTS, **raw})
    assert {name for name in stream_registers(again, 1) if "every" in name} == rates.keys()
    assert not {name for name in stream_registers(again, 8) if "every" in name}
    with pytest.raises(FileError, match="sample_every = 3: boards sample each 1, 2, 4, 8, 16, 32, 64 ticks"):
        stream_registers(foot, 3)


def test_the_default_rule_follows_the_inertia() -> None:
    settings = default_settings(ROBOT)
    assert settings[1].stiffness > 4.0 * settings[5].stiffness
    for each in settings:
        assert each.damping == pytest.approx(2.0 * 0.7 * each.stiffness / 65.0)


def test_the_bench_file_has_the_last_word() -> None:
    settings = default_settings(ROBOT, {"j3": ServoOverride(stiffness=5000.0, damping=99.0)})
    assert (settings[2].stiffness, settings[2].damping) == (5000.0, 99.0)
    assert settings[1] == default_settings(ROBOT)[1]


def test_a_joint_in_torque_mode_has_no_servo() -> None:
    robot = load_robot("rehab_arm")
    hand = default_settings(robot)[4]
    low, high = robot.joints[4].position_limits
    assert (hand.stiffness, hand.damping, hand.following_limit) == (0.0, 0.0, high - low)
    registers = motor_settings(default_settings(robot), robot.drive_train)[4].registers("j5", 5, FACTS)
    assert [registers[name] for name in ("servo.kp", "servo.kd", "servo.ki", "servo.friction")] == [0, 0, 0, 0]
    with pytest.raises(FileError, match=r"^joint 'j5' has servo values in the bench file, but .* in torque mode"):
        default_settings(robot, {"j5": ServoOverride(damping=0.1)})


def test_a_robot_without_masses_gets_a_servo_from_its_torque_limits() -> None:
    joints = tuple(replace(joint, link=replace(joint.link, mass=None)) for joint in ROBOT.joints)
    settings = default_settings(replace(ROBOT, joints=joints))
    assert settings[0].stiffness == pytest.approx(ROBOT.joints[0].torque_limit / 0.04)


def test_a_coarse_encoder_makes_the_default_servo_softer() -> None:
    """Of six servos with 4096 counts a turn of the joint: one count is 1.5 mrad."""
    robot = load_robot(BENCHES / "robots" / "dynamixel6.toml")
    facts = [Facts({**DEFAULTS, "encoder.motor_counts": 4096, "drive.ratio": 1000})] * robot.n_joints
    rule = default_settings(robot)
    with pytest.raises(BoardRefused, match=r"servo\.kp would be"):
        registers(1, rule, robot, facts[1])

    soft = softened(rule, robot.drive_train, facts)

    for index, (joint, hard, drive) in enumerate(zip(soft, rule, robot.drives, strict=True)):
        of_a_count = joint.stiffness * 2.0 * np.pi / 4096 / drive.torque_constant
        assert of_a_count == pytest.approx(COUNT_SHARE * joint.current_limit)
        assert joint.damping / joint.stiffness == pytest.approx(hard.damping / hard.stiffness)
        assert registers(index, soft, robot, facts[index])["servo.kp"] > 0


def test_encoders_before_gears_leave_the_default_servo_as_it_is() -> None:
    for robot, facts in ((ROBOT, FACTS), (ARM, ARM_FACTS)):
        rule = default_settings(robot)
        assert softened(rule, robot.drive_train, [facts] * robot.n_joints) == rule


def test_what_does_not_fit_a_register_is_named() -> None:
    settings = replace(default_settings(ROBOT)[1], current_limit=50.0)
    message = r"^j2 \(node 2\): limit\.current would be 50 A, allowed is 0 to 32000"
    with pytest.raises(BoardRefused, match=message):
        registers(1, with_second(settings))


@pytest.mark.parametrize("order", [2, 4])
@pytest.mark.parametrize("cutoff", [10.0, 50.0, 100.0, 200.0, 450.0])
def test_the_filter_is_butterworth_with_gain_one_at_rest(cutoff: float, order: int) -> None:
    raw = butterworth_registers(cutoff, 1e-3, order)
    for name, value in raw.items():
        assert BY_NAME[name].minimum <= value <= BY_NAME[name].maximum
    z = np.exp(-2j * np.pi * cutoff * 1e-3) ** np.arange(3)
    response = 1.0 + 0.0j
    for section in (1, 2):
        b0, b1, b2, a1, a2 = (raw[cast(RegisterName, f"filter.{section}.{name}")] for name in COEFFICIENTS)
        assert b0 + b1 + b2 == 2**27 + a1 + a2
        assert np.abs(np.roots([2**27, a1, a2])).max() < 1.0
        response *= complex(np.array([b0, b1, b2]) @ z) / complex(np.array([2**27, a1, a2]) @ z)
    # Half a unit of 2^-27 in 1 + a1 + a2, which is 0.004 at 10 Hz, moves the gain by 1e-6 of it; four of them in all.
    assert abs(response) == pytest.approx(np.sqrt(0.5), rel=4e-6)


@pytest.mark.parametrize("cutoff", [0.5, 480.0])
def test_an_impossible_cutoff(cutoff: float) -> None:
    with pytest.raises(SignalError, match="must be from 1 to 450 Hz"):
        butterworth_registers(cutoff, 1e-3)


def test_trips_and_feed_forward_become_registers() -> None:
    joint = replace(
        default_settings(ROBOT)[1], integral=1000.0, friction_torque=5.0, friction_band=0.05, continuous_current=3.0,
        thermal_time=20.0, supply_limits=(40.0, 56.0), temperature_limit=80.0, cic_order=2,
    )  # fmt: skip
    drive = ROBOT.drives[1]
    raw = registers(1, with_second(joint))
    counts = abs(drive.ratio) * FACTS.motor_counts / (2.0 * np.pi)
    si = {name: value * BY_NAME[name].scale for name, value in raw.items()}
    ampere = 1.0 / abs(drive.torque_per_current)
    for name, value in {
        "servo.ki": 1000.0 * ampere / counts * 1e-3,
        "servo.friction": 5.0 * ampere,
        "servo.friction_band": 0.05 * counts * 1e-3,
    }.items():
        assert si[cast(RegisterName, name)] == pytest.approx(value, abs=BY_NAME[name].scale / 2)  # rounded
    assert (raw["limit.continuous_current"], raw["limit.thermal_time"]) == (3000, 20_000)
    assert (raw["limit.supply_min"], raw["limit.supply_max"]) == (40_000, 56_000)
    assert (raw["limit.temperature"], raw["adc.cic_order"]) == (35_315, 2)


def test_a_pair_of_motors_is_as_stiff_as_its_joints_ask_for() -> None:
    """Mᵀ K M - diag(asked) has no negative eigenvalue where gains differ within a pair, and is no more than needed."""
    settings = [
        replace(each, stiffness=1000.0 * factor, damping=10.0 * factor, integral=factor)
        for each, factor in zip(default_settings(ARM), (4.0, 1.0, 2.0, 3.0, 1.0, 1.0), strict=True)
    ]
    motors = motor_settings(settings, ARM.drive_train)
    constants = np.array([drive.torque_constant for drive in ARM.drives])
    matrix = ARM.transmission_matrix
    for name in ("stiffness", "damping", "integral"):
        of_motors = np.array([getattr(each, name) for each in motors]) * constants
        asked = np.array([getattr(each, name) for each in settings])
        more = (matrix.T * of_motors) @ matrix - np.diag(asked)
        assert np.linalg.eigvalsh(more).min() > -1e-9 * asked.max()
        assert np.diag(more)[[0, 3, 4, 5]] == pytest.approx(0.0, abs=1e-9 * asked.max())  # the stiffer of each pair


def test_feed_forward_of_a_pair_never_drives_a_joint_by_itself() -> None:
    asked = np.array([4.0, 1.0, 2.0, 3.0, 1.0, 1.0])
    settings = [
        replace(each, friction_torque=value, viscous_feedforward=value)
        for each, value in zip(default_settings(ARM), asked, strict=True)
    ]
    motors = motor_settings(settings, ARM.drive_train)
    constants = np.array([drive.torque_constant for drive in ARM.drives])
    matrix = ARM.transmission_matrix
    friction = np.array([each.friction_current for each in motors]) * constants
    for signs in product((-1.0, 1.0), repeat=6):
        assert np.all(np.abs(matrix.T @ (friction * signs)) <= asked * (1.0 + 1e-12))
    viscous = (matrix.T * (np.array([each.viscous_feedforward for each in motors]) * constants)) @ matrix
    assert np.linalg.eigvalsh(np.diag(asked) - viscous).min() > -1e-12
    assert viscous[4, 4] == pytest.approx(1.0)  # of joints that ask for the same each gets it


def test_windows_of_a_pair_hold_its_joints_and_their_errors() -> None:
    settings = default_settings(ARM)
    motors = motor_settings(settings, ARM.drive_train)
    matrix = ARM.transmission_matrix
    corners = np.array(list(product(*(each.position_limits for each in settings))))
    phi = corners @ matrix.T
    windows = np.array([each.position_limits for each in motors])
    np.testing.assert_allclose(phi.min(axis=0), windows[:, 0], rtol=1e-12)  # reached, and not passed
    np.testing.assert_allclose(phi.max(axis=0), windows[:, 1], rtol=1e-12)
    behind = np.array(list(product((-1.0, 1.0), repeat=6))) * [each.following_limit for each in motors]
    error = np.abs(behind @ np.linalg.inv(matrix).T).max(axis=0)
    np.testing.assert_allclose(error, [each.following_limit for each in settings], rtol=1e-12)


def test_the_nursing_arm_fits_its_registers() -> None:
    settings = default_settings(ARM)
    for index, each in enumerate(settings):
        raw = registers(index, settings, ARM, ARM_FACTS)
        # As one of two equal motors: half of the joint's stiffness; whole numbers leave a few percent of it.
        counts = 512 * 3060 / (2.0 * np.pi)
        stiffness = 2.0 * raw["servo.kp"] / 256 * 1e-3 * counts * ARM.drives[index].torque_constant * 3060
        pair = settings[index // 2 * 2 : index // 2 * 2 + 2]
        assert stiffness == pytest.approx(max(one.stiffness for one in pair), rel=0.05), each


def test_a_board_without_a_motor_is_told_what_to_stream_and_no_more() -> None:
    robot = replace(ROBOT, drives=(*ROBOT.drives[:5], Drive.none("j6")))
    channels = 1 << 2 | 1 << 5 | 1 << 11
    raw = registers(5, default_settings(robot), robot, Facts({**DEFAULTS, "board.channels": channels}))
    assert raw["stream.channels"] == 1 << 2 | 1 << 5
    assert raw["stream.always"] == 0
    assert not any(name.startswith(("servo.", "limit.")) for name in raw)


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
