"""What the checks say of the public recordings as they are, by the mapping that is proposed for them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from jointbench.identification.log_check import LogCheck, check_log
from jointbench.recording import Run
from jointbench.tests.identification.log_check.logs import exchanged, kinova_log, turned

RUNS = ("RecordTrajectory_quadratic", "Trajectory1", "opti_traj_testing1", "opti_traj_testing2")


def suspected(check: LogCheck) -> list[tuple[str, tuple[str, ...]]]:
    return [(finding.name, finding.joints) for finding in check.findings if finding.word != "fine"]


@pytest.mark.parametrize("name", RUNS)
def test_kinova_runs_are_fine(name: str, tmp_path: Path) -> None:
    check = check_log(kinova_log(name, tmp_path))
    assert suspected(check) == [], "\n".join(check.lines())


def test_the_sensor_that_was_silent_is_named(tmp_path: Path) -> None:
    run = kinova_log("RunTrajectory1", tmp_path)
    assert suspected(check_log(run)) == [("no information", ("joint_1",))]


@pytest.fixture(scope="module")
def kinova(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return kinova_log("opti_traj_testing1", tmp_path_factory.mktemp("kinova"))


def with_velocity(run: Run, change: object) -> Run:
    assert callable(change)
    return replace(run, samples=replace(run.samples, joint_velocity=change(np.array(run.samples.joint_velocity))))


def test_a_velocity_of_the_opposite_sign(kinova: Run) -> None:
    check = check_log(with_velocity(kinova, lambda v: turned(v, 4)))
    assert suspected(check) == [("velocity", ("joint_5",))]
    assert "the velocity has the opposite sign (-1 times" in check.warnings[0]


def test_velocities_in_degrees(kinova: Run) -> None:
    check = check_log(with_velocity(kinova, np.rad2deg))
    assert [joints for _, joints in suspected(check)] == [(name,) for name in kinova.robot.joint_names]
    assert all("the velocity is in degrees" in warning for warning in check.warnings)


def test_exchanged_velocities(kinova: Run) -> None:
    check = check_log(with_velocity(kinova, lambda v: exchanged(v, 0, 3)))
    assert suspected(check) == [("velocity", ("joint_1", "joint_4")), ("velocity", ("joint_4", "joint_1"))]
    assert "is that of joint_4's position" in check.warnings[0]


def test_a_velocity_that_is_late(kinova: Run) -> None:
    check = check_log(with_velocity(kinova, lambda v: np.vstack([np.repeat(v[:1], 50, axis=0), v[:-50]])))
    assert [joints for _, joints in suspected(check)] == [(name,) for name in kinova.robot.joint_names]
    assert all("ms late" in warning for warning in check.warnings)
    for finding in check.findings:
        if finding.name == "velocity":
            assert finding.value == pytest.approx(0.05, abs=0.005)  # as logged they are up to 4 ms early


def test_a_wrong_sample_rate(kinova: Run) -> None:
    slower = replace(kinova, samples=replace(kinova.samples, sample_period=2e-3, time=2.0 * kinova.samples.time))
    found = suspected(check_log(slower))
    assert [each for each in found if each[0] == "velocity"] == [
        ("velocity", (name,)) for name in kinova.robot.joint_names
    ]


def test_a_velocity_of_something_else(kinova: Run) -> None:
    noise = np.random.default_rng(1).standard_normal(kinova.samples.time.shape)

    def change(velocity: np.ndarray) -> np.ndarray:
        velocity[:, 2] = np.cumsum(noise) / 30.0
        return velocity

    check = check_log(with_velocity(kinova, change))
    assert suspected(check) == [("velocity", ("joint_3",))]
    assert "does not follow the position" in check.warnings[0]


def test_sensors_are_looked_at_too(kinova: Run) -> None:
    sensor = np.array(kinova.samples.joint_torque)
    for joint_torque, expected in (
        (turned(sensor, 1), ("swapped sign", ("joint_2",))),
        (exchanged(sensor, 1, 5), ("exchanged", ("joint_2", "joint_6"))),
    ):
        found = suspected(check_log(replace(kinova, samples=replace(kinova.samples, joint_torque=joint_torque))))
        assert found == [expected]
