"""Each fault that logs have is found in two real recordings and a simulated one, and named with its joints."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.identification.log_check import LogCheck, LogFinding, check_log
from jointbench.recording import Run
from jointbench.tests.identification.log_check.logs import (
    altered,
    exchanged,
    kinova_log,
    position_of,
    simulated_log,
    torque_of,
    turned,
    tx40_log,
)  # fmt: skip

RECORDED = pytest.mark.slow  # each fault of each joint of real recordings: half a minute
LOGS = (pytest.param("kinova", marks=RECORDED), pytest.param("tx40", marks=RECORDED), "simulated")


@pytest.fixture(scope="module", params=LOGS)
def log(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    where = tmp_path_factory.mktemp("logs")
    if request.param == "kinova":
        return kinova_log("opti_traj_testing1", where)
    return tx40_log(where) if request.param == "tx40" else simulated_log(where / "run")


def named(check: LogCheck, name: str) -> list[LogFinding]:
    return [finding for finding in check.findings if finding.name == name and finding.word != "fine"]


def only(check: LogCheck, name: str, *joints: str) -> bool:
    """Whether it is wrong by this name, for these joints alone."""
    found = named(check, name)
    return check.word == "wrong" and [finding.joints for finding in found] == [joints]


def joints(run: Run) -> Iterator[tuple[int, str]]:
    yield from enumerate(run.robot.joint_names)


def test_nothing_is_said_against_a_log_that_is_right(log: Run) -> None:
    check = check_log(log)
    assert check.word == "fine", "\n".join(check.lines())
    assert check.warnings == ()


def test_a_swapped_sign_of_any_torque(log: Run) -> None:
    for j, name in joints(log):
        assert only(check_log(altered(log, torque=turned(torque_of(log), j))), "swapped sign", name)


def test_a_swapped_sign_of_any_position(log: Run) -> None:
    for j, name in joints(log):
        assert only(check_log(altered(log, position=turned(position_of(log), j))), "swapped sign", name)


def test_exchanged_neighbours(log: Run) -> None:
    names = log.robot.joint_names
    for j in range(len(names) - 1):
        for change in ({"torque": exchanged(torque_of(log), j, j + 1)},
                       {"position": exchanged(position_of(log), j, j + 1)}):  # fmt: skip
            assert only(check_log(altered(log, **change)), "exchanged", names[j], names[j + 1])


@pytest.mark.slow
def test_any_two_exchanged_joints(log: Run) -> None:
    names = log.robot.joint_names
    for i, j in combinations(range(len(names)), 2):
        for change in ({"torque": exchanged(torque_of(log), i, j)}, {"position": exchanged(position_of(log), i, j)}):
            assert only(check_log(altered(log, **change)), "exchanged", names[i], names[j])


def test_two_faults_at_once(log: Run) -> None:
    names = log.robot.joint_names
    torque = exchanged(turned(torque_of(log), 3), 0, 1)
    check = check_log(altered(log, torque=torque))
    assert [finding.joints for finding in named(check, "exchanged")] == [(names[0], names[1])]
    assert [finding.joints for finding in named(check, "swapped sign")] == [(names[3],)]


def test_degrees_taken_for_radians(log: Run) -> None:
    check = check_log(altered(log, position=np.rad2deg(position_of(log))))
    assert only(check, "degrees for radians", *log.robot.joint_names)
    assert named(check, "limits")
    assert named(check, "speed")


def test_radians_taken_for_degrees(log: Run) -> None:
    check = check_log(altered(log, position=np.deg2rad(position_of(log))))
    assert only(check, "radians for degrees", *log.robot.joint_names)


def test_a_whole_turn_off(log: Run) -> None:
    for j, name in joints(log):
        position = position_of(log)
        position[:, j] -= 2.0 * np.pi
        (finding,) = named(check_log(altered(log, position=position)), "limits")
        assert finding.joints == (name,)
        assert finding.word == "wrong"
        assert "-1 whole turn off" in finding.what
        assert "add 6.283185 rad, 360 deg, to this joint's offset" in finding.advice


def test_a_quarter_of_a_turn_off_is_not_taken_for_degrees(log: Run) -> None:
    for j, name in joints(log):
        low, high = log.robot.position_limits[j]
        position = position_of(log)
        position[:, j] += high + 0.25 * np.pi - position[:, j].min()
        if position[:, j].min() < high + 0.05 * (high - low):
            continue  # inside what zeros of real robots may be off
        (finding,) = named(check_log(altered(log, position=position)), "limits")
        assert finding.joints == (name,)
        assert "degrees" not in finding.what


def test_a_joint_that_stands_still(log: Run) -> None:
    for j, name in joints(log):
        position = position_of(log)
        position[:, j] = position[0, j]
        (finding,) = named(check_log(altered(log, position=position)), "still joint")
        assert (finding.joints, finding.word) == ((name,), "suspicious")
        position[:, j] += 1e-4 * np.sin(np.arange(len(position)))
        (finding,) = named(check_log(altered(log, position=position)), "still joint")
        assert (finding.joints, finding.word) == ((name,), "suspicious")


def at_motors(run: Run, torque: Array) -> Array:
    return torque @ np.linalg.inv(run.robot.transmission_matrix)


def test_a_saturated_current(log: Run) -> None:
    for j, name in joints(log):
        torque = at_motors(log, torque_of(log))
        torque[:, j] = np.minimum(torque[:, j], np.quantile(torque[:, j], 0.97))
        check = check_log(altered(log, torque=torque @ log.robot.transmission_matrix))
        assert [finding.joints for finding in named(check, "saturated")] == [(name,)]


@pytest.mark.parametrize("deviation", [1e-3, 0.3])
def test_a_current_that_is_only_noise(log: Run, deviation: float) -> None:
    rng = np.random.default_rng(7)
    for j, name in joints(log):
        torque = at_motors(log, torque_of(log))
        torque[:, j] = deviation * torque[:, j].std() * rng.standard_normal(len(torque))
        check = check_log(altered(log, torque=torque @ log.robot.transmission_matrix))
        (finding,) = named(check, "no information")
        assert (finding.joints, finding.word) == ((name,), "wrong")


def test_a_torque_that_never_changes(log: Run) -> None:
    torque = at_motors(log, torque_of(log))
    torque[:, 1] = 0.25
    assert only(check_log(altered(log, torque=torque)), "no information", log.robot.joint_names[1])


def test_stuck_positions(log: Run) -> None:
    h = log.samples.sample_period
    for j, name in joints(log):
        position = position_of(log)
        speed = np.abs(np.gradient(position[:, j], h))
        middle = int(np.argmax(speed[1000:-1000])) + 1000
        part = slice(middle - round(0.03 / h), middle + round(0.03 / h))
        position[part, j] = position[part.start, j]
        (finding,) = named(check_log(altered(log, position=position)), "stuck samples")
        assert finding.joints == (name,)
        assert 0.05 <= finding.value <= 0.07


def test_torques_in_thousandths(log: Run) -> None:
    assert only(check_log(altered(log, torque=1000.0 * torque_of(log))), "torque scale", *log.robot.joint_names)
