"""Settings in SI and the registers made of them say the same."""

from dataclasses import replace

import numpy as np
import pytest

from jointbench.errors import ConfigurationDiffers, TrajectoryError
from jointbench.link.bench_file import ServoOverride
from jointbench.link.current_filter import butterworth_registers
from jointbench.link.identity import Facts
from jointbench.link.servo import default_settings
from jointbench.robot import load_robot
from jointbench.tests.link.wire import DEFAULTS
from jointwire import BY_NAME, JOINT_CHANNELS

ROBOT = load_robot("cobot6")
FACTS = Facts(DEFAULTS)
COUNTS = 4096 * 101 / (2.0 * np.pi)


def test_registers_give_the_torque_that_was_asked_for() -> None:
    settings = replace(default_settings(ROBOT)[1], stiffness=12000.0, damping=250.0, viscous_feedforward=20.0)
    drive = ROBOT.drives[1]
    raw = settings.registers("j2", 2, drive, FACTS)
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
    drive = replace(ROBOT.drives[1], ratio=-101.0)
    raw = default_settings(ROBOT)[1].registers("j2", 2, drive, FACTS)
    low, high = ROBOT.joints[1].position_limits
    assert (raw["limit.position_min"], raw["limit.position_max"]) == (round(-high * COUNTS), round(-low * COUNTS))
    assert raw["servo.kp"] > 0


def test_a_board_streams_what_it_has_and_a_joint_needs() -> None:
    settings, drive = default_settings(ROBOT)[0], ROBOT.drives[0]
    assert settings.registers("j1", 1, drive, FACTS)["stream.channels"] == JOINT_CHANNELS
    fewer = Facts({**FACTS.registers, "board.channels": 0b10000010111})
    assert settings.registers("j1", 1, drive, fewer)["stream.channels"] == 0b10111


def test_the_default_rule_follows_the_inertia() -> None:
    settings = default_settings(ROBOT)
    assert settings[1].stiffness > 4.0 * settings[5].stiffness
    for each in settings:
        assert each.damping == pytest.approx(2.0 * 0.7 * each.stiffness / 65.0)


def test_the_bench_file_has_the_last_word() -> None:
    settings = default_settings(ROBOT, {"j3": ServoOverride(stiffness=5000.0, damping=99.0)})
    assert (settings[2].stiffness, settings[2].damping) == (5000.0, 99.0)
    assert settings[1] == default_settings(ROBOT)[1]


def test_a_robot_without_masses_gets_a_servo_from_its_torque_limits() -> None:
    joints = tuple(replace(joint, link=replace(joint.link, mass=None)) for joint in ROBOT.joints)
    settings = default_settings(replace(ROBOT, joints=joints))
    assert settings[0].stiffness == pytest.approx(ROBOT.joints[0].torque_limit / 0.04)


def test_what_does_not_fit_a_register_is_named() -> None:
    settings = replace(default_settings(ROBOT)[0], current_limit=50.0)
    message = r"^j1 \(node 1\): limit\.current would be 50 A, allowed is 0 to 32000"
    with pytest.raises(ConfigurationDiffers, match=message):
        settings.registers("j1", 1, ROBOT.drives[0], FACTS)


@pytest.mark.parametrize("cutoff", [10.0, 50.0, 100.0, 200.0, 450.0])
def test_the_filter_is_butterworth_with_gain_one_at_rest(cutoff: float) -> None:
    raw = butterworth_registers(cutoff, 1e-3)
    for name, value in raw.items():
        assert BY_NAME[name].minimum <= value <= BY_NAME[name].maximum
    b = np.array([raw["filter.b0"], raw["filter.b1"], raw["filter.b2"]]) / 2**14
    a = np.array([2**14, raw["filter.a1"], raw["filter.a2"]]) / 2**14
    assert b.sum() == a.sum()
    assert np.abs(np.roots(a)).max() < 1.0
    z = np.exp(-2j * np.pi * cutoff * 1e-3) ** np.arange(3)
    # 14 bits: at 10 Hz b0 is 16 of 16384, so the cut-off may be off by some per cent; the run knows the exact filter.
    assert abs(b @ z / (a @ z)) == pytest.approx(np.sqrt(0.5), rel=0.03)


@pytest.mark.parametrize("cutoff", [0.5, 480.0])
def test_an_impossible_cutoff(cutoff: float) -> None:
    with pytest.raises(TrajectoryError, match="must be from 1 to 450 Hz"):
        butterworth_registers(cutoff, 1e-3)
