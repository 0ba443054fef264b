"""Findings judge themselves; what cannot be looked at is said; a file without inertias still tells something."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from jointbench.identification.log_check import LogCheck, LogFinding, check_log
from jointbench.identification.log_signals import Causes, LogSignals, unexplained
from jointbench.identification.observations import observe
from jointbench.identification.settings import FitSettings
from jointbench.model import Link, base_parameters, load_robot, spring, with_compensations, with_passive
from jointbench.recording import Run
from jointbench.signals import Motion
from jointbench.tests.identification.log_check.logs import (
    altered,
    exchanged,
    kinova_log,
    log_of,
    position_of,
    simulated_log,
    torque_of,
    turned,
)  # fmt: skip


def finding(value: float) -> LogFinding:
    return LogFinding("limits", ("j1",), value, 0.1, 0.5, "outside", "do this")


@pytest.mark.parametrize(
    ("value", "word"),
    [
        (0.0, "fine"),
        (0.0999, "fine"),
        (0.1, "suspicious"),
        (0.5, "wrong"),
        (math.inf, "wrong"),
        (math.nan, "suspicious"),
    ],
)
def test_a_finding_judges_its_figure(value: float, word: str) -> None:
    assert finding(value).word == word
    assert str(finding(value)).startswith(f"{word}: limits")


def test_a_check_is_as_bad_as_its_worst_finding() -> None:
    assert LogCheck((), ()).word == "fine"
    assert LogCheck((finding(0.0), finding(0.2)), ()).word == "suspicious"
    check = LogCheck((finding(0.7), finding(0.2), finding(0.0)), ("velocities: none",))
    assert check.verdict == "the log looks wrong: 1 wrong, 1 suspicious, 1 fine"
    assert check.warnings == (
        "wrong: limits j1: outside; do this",
        "suspicious: limits j1: outside; do this",
    )
    assert list(check.lines())[-1] == "  not looked at: velocities: none"
    plain = check.to_dict()
    assert plain["word"] == "wrong"
    assert plain["findings"][0]["advice"] == "do this"
    assert plain["findings"][2]["advice"] == ""


@pytest.mark.parametrize("value", [math.inf, math.nan])
def test_a_figure_that_json_does_not_know_is_null(value: float) -> None:
    plain = finding(value).to_dict()
    assert plain["value"] is None
    json.dumps(plain, allow_nan=False)


@pytest.fixture(scope="module")
def log() -> Run:
    return simulated_log(Path("run"))


@pytest.mark.parametrize("name", ["tx40", "nursing_arm", "rehab_arm", "modular7", "gorobot2"])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_file_whose_masses_are_off_by_two_is_no_fault_of_the_log(name: str, seed: int) -> None:
    check = check_log(simulated_log(Path(name), name, seed, off_by=2.0))
    assert check.word == "fine", "\n".join(check.lines())


def test_gaps_are_no_fault(log: Run) -> None:
    valid = np.array(log.samples.valid)
    position, torque = position_of(log), torque_of(log)
    valid[4000:4300] = False
    position[4000:4300] = torque[4000:4300] = np.nan
    samples = replace(log.samples, valid=valid, motor_position=position, motor_torque=torque, joint_velocity=None)
    check = check_log(replace(log, samples=samples))
    assert check.word == "fine", "\n".join(check.lines())


def test_a_log_in_crumbs_cannot_be_looked_at(log: Run) -> None:
    valid = np.array(log.samples.valid)
    valid[::50] = False
    check = check_log(replace(log, samples=replace(log.samples, valid=valid)))
    assert check.findings == ()
    assert "no stretch of" in check.left_out[0]


def without_inertias(run: Run) -> Run:
    bare = tuple(replace(joint, link=Link(joint.link.name)) for joint in run.robot.joints)
    return replace(run, robot=replace(run.robot, joints=bare))


def test_without_inertias_friction_tells_signs_and_order_of_some(log: Run) -> None:
    bare = without_inertias(altered(log))
    check = check_log(bare)
    assert check.word == "fine", "\n".join(check.lines())
    assert any("gives its links no mass" in reason for reason in check.left_out)
    names = bare.robot.joint_names
    found = {
        each.joints
        for j in range(len(names))
        for each in check_log(altered(bare, torque=turned(torque_of(bare), j))).findings
        if each.name == "swapped sign" and each.word != "fine"
    }
    # Joints without gravity: 1 turns about the vertical, and little hangs on the wrist.
    assert {("j1",), ("j5",), ("j6",)} <= found
    check = check_log(altered(bare, torque=exchanged(torque_of(bare), 0, 5)))
    assert [each.joints for each in check.findings if each.name == "exchanged"] == [("j1", "j6")]


def test_what_explains_a_torque_is_not_negative(log: Run) -> None:
    rng = np.random.default_rng(5)
    q = rng.standard_normal((400, log.robot.n_joints))
    motion = Motion(q, rng.standard_normal(q.shape), rng.standard_normal(q.shape))
    causes = Causes.of_motion(log.robot, motion)
    assert causes.rigid is not None
    torque = 3.0 + 0.7 * causes.rigid[:, 2] + 2.0 * causes.resisting[0, :, 2] + 5.0 * causes.resisting[2, :, 2]
    assert unexplained(torque, causes, 2) == 0.02  # all of it, down to what no file explains
    assert unexplained(-torque, causes, 2) > 0.95
    assert unexplained(1000.0 * torque, causes, 2) > 0.1
    assert unexplained(1000.0 * torque, causes, 2, scale=1000.0) == 0.02
    assert unexplained(np.full(400, 7.0), causes, 2) == 1.0


def test_of_a_long_log_parts_are_looked_at(log: Run) -> None:
    position, torque = np.tile(position_of(log), (60, 1)), np.tile(torque_of(log), (60, 1))
    run = log_of(Path("long"), log.robot, position, torque)
    run.samples.valid[:: len(log.samples.time)] = False  # the motion does not end where it begins
    check = check_log(run)
    assert check.word == "fine", "\n".join(check.lines())
    signals = LogSignals.of_run(run)
    assert len(signals.position) <= 420_000
    assert signals.pieces[-1].stop == len(signals.position)


def test_springs_that_the_robot_names_are_no_mix_up(log: Run) -> None:
    """A strong one is most of its joint's torque: without its name, motion and file explain little of it."""
    assert log.samples.motor_torque is not None
    torque = log.samples.motor_torque.copy()
    torque[:, 2] += 60.0 * (log.samples.motor_position[:, 2] - 0.5)
    sprung = altered(log, torque=torque)
    assert check_log(sprung).word != "fine"
    named = replace(sprung, robot=with_compensations(log.robot, spring("return", log.robot.joint_names[2])))
    assert check_log(named).word == check_log(log).word == "fine"


def test_a_passive_joint_has_no_torque_to_look_at(log: Run) -> None:
    assert log.samples.motor_torque is not None
    torque = log.samples.motor_torque.copy()
    torque[:, -1] = np.nan
    passive = replace(altered(log, torque=torque), robot=with_passive(log.robot, log.robot.joint_names[-1]))
    assert check_log(passive).word == "fine"


def test_nothing_but_its_rest_is_said_of_a_joint_that_stands_still(log: Run) -> None:
    """Whatever its position's noise, its velocity and its torque would tell of a joint that moves."""
    position, torque = position_of(log), torque_of(log)
    rng = np.random.default_rng(4)
    position[:, 3] = 0.3 + 2e-4 * rng.standard_normal(len(position))
    position[:, 5] = 0.0
    torque[:, 3] *= -1.0
    velocity = np.gradient(position, log.samples.sample_period, axis=0)
    velocity[:, 3] = velocity[:, 1]
    check = check_log(altered(log, position=position, torque=torque, velocity=velocity))
    named = [(finding.name, finding.joints, finding.word) for finding in check.findings if finding.word != "fine"]
    assert named == [("still joint", ("j4",), "suspicious"), ("still joint", ("j6",), "suspicious")], check.verdict


def test_noise_of_a_joint_at_rest_is_not_fitted(log: Run) -> None:
    position = position_of(log)
    position[:, 3] = 0.3 + 2e-4 * np.random.default_rng(4).standard_normal(len(position))
    run = altered(log, position=position)
    rows = observe(run, run.robot, base_parameters(run.robot), FitSettings(cutoff_Hz=20.0, delay=0.0)).n_fitted
    assert rows[3] == 0
    assert min(rows[:3] + rows[4:]) > 300  # 10 s with 40 rows a second, most of them away from rest


def slider(run: Run) -> Run:
    """The run, its second joint taken for one that slides, as far as the checks see."""
    joints = list(run.robot.joints)
    joints[1] = replace(joints[1], kind="prismatic")
    return replace(run, robot=replace(run.robot, joints=tuple(joints)))


def test_columns_of_different_units_are_never_called_exchanged(log: Run) -> None:
    """Two velocities may look alike by chance; one of metres a second is none of radians a second."""
    velocity = np.gradient(position_of(log), log.samples.sample_period, axis=0)
    mixed = slider(altered(log, torque=exchanged(torque_of(log), 0, 1), velocity=exchanged(velocity, 0, 1)))
    turning = altered(log, torque=exchanged(torque_of(log), 0, 1), velocity=exchanged(velocity, 0, 1))
    pairs = [
        {
            frozenset(finding.joints)
            for finding in check_log(run).findings
            if "exchanged" in f"{finding.name} {finding.what}"
        }
        for run in (turning, mixed)
    ]
    assert frozenset(("j1", "j2")) in pairs[0]
    assert all("j2" not in joints for joints in pairs[1])


def test_boards_recordings_get_no_importers_advice(log: Run) -> None:
    """There is no mapping to correct where boards recorded."""
    swapped = altered(log, torque=turned(torque_of(log), 2))
    recorded = replace(swapped, provenance={**swapped.provenance, "board": [{"node": 1, "joint": "j1"}]})
    imported = " ".join(check_log(swapped).warnings)
    assert "write gain = -1 for it in [torque]" in imported
    at_boards = " ".join(check_log(recorded).warnings)
    assert "check the wiring of encoder and current sensor, and the sign of drive.ratio" in at_boards
    assert not {"[torque]", "[position]", "[time]", "mapping", "sample_rate_Hz", "invalid_rows"} & set(
        at_boards.split()
    )


def test_a_run_of_other_joints_than_its_robot_has_cannot_be_looked_at(log: Run) -> None:
    """As two boards of a robot of six joints make one."""
    check = check_log(replace(log, robot=load_robot("cobot6:5")))
    assert not check.findings
    assert "the run has joints" in check.left_out[0]


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
