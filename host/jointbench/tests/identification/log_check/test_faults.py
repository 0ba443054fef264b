"""Each fault that logs have is found in two real recordings and a simulated one, and named with its joints.

Steps, jitter and folded torque of simulated logs are named at their right size, and none where there is none.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.identification.fit import fit
from jointbench.identification.log_check import LogCheck, LogFinding, check_log
from jointbench.identification.log_sampling import (
    SAMPLING,
    PositionNoise,
    cutoff_notes,
    steps_hide_motion,
    time_jitter,
    value_step,
)
from jointbench.identification.recorded_signals import recorded_signals
from jointbench.identification.settings import FitSettings
from jointbench.recording import Run
from jointbench.signals import LowPass, smooth_motion
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
from jointbench.tests.identification.synthetic import arm, as_log, run_of, synthetic_run

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


H = 0.005
ARM = arm(3)


def motion(time: Array) -> Array:
    """Three joints that move at up to 1 rad/s, by sums of sines below 1.5 Hz."""
    angular = 2.0 * np.pi * np.array([[0.11, 0.37, 1.1], [0.13, 0.41, 1.3], [0.17, 0.29, 0.9]])
    size = 0.35 / angular
    phase = np.arange(9).reshape(3, 3)
    return np.sum(size * np.sin(time[:, None, None] * angular + phase), axis=2)


def sampled_log(
    *, step: float = 0.0, jitter: float = 0.0, torque_step: float = 0.0, noise: float = 0.0, seed: int = 1
) -> Run:
    """A sampled_log of 20 s at 200 Hz whose samples are late by up to a share of the period, and its torques noisy."""
    rng = np.random.default_rng(seed)
    time = H * np.arange(4000, dtype=np.float64)
    q = motion(time + jitter * H * rng.uniform(-1.0, 1.0, len(time)))
    q = step * np.round(q / step) if step else q + 1e-7 * rng.standard_normal(q.shape)
    torque = np.cos(motion(time)) * 20.0 + 2.0 * np.tanh(20.0 * np.gradient(motion(time), H, axis=0))
    torque += noise * torque.std(axis=0) * rng.standard_normal(torque.shape)
    torque = torque_step * np.round(torque / torque_step) if torque_step else torque
    run = as_log(run_of(ARM, q, torque, plan=None, repeats=0))
    return dataclasses.replace(run, samples=dataclasses.replace(run.samples, sample_period=H, time=time))


def findings(run: Run) -> dict[str, LogFinding]:
    return {found.name: found for found in check_log(run).findings if found.name in SAMPLING}


def test_a_log_without_faults_has_none() -> None:
    seen = findings(sampled_log(noise=0.01))
    assert set(seen) == set(SAMPLING)
    assert {each.word for each in seen.values()} == {"fine"}


def test_steps_are_found_at_their_size() -> None:
    step = np.deg2rad(0.09)
    run = sampled_log(step=step)
    assert [value_step(q) for q in run.samples.motor_position.T] == pytest.approx([step] * 3, rel=1e-6)  # rounding
    seen = findings(run)["position steps"]
    assert seen.word == "suspicious"
    assert "in steps of 0.09°" in seen.what
    # Against what the exact motion shows behind the same low-pass; one realisation of rounding differs from another.
    low_pass = LowPass(20.0, H)
    exact = smooth_motion(motion(run.samples.time), low_pass).ddq
    error = smooth_motion(run.samples.motor_position, low_pass).ddq - exact
    inside = slice(low_pass.settling, -low_pass.settling)
    share = np.sqrt(np.mean(error[inside] ** 2, axis=0) / np.mean(exact[inside] ** 2, axis=0))
    assert seen.value == pytest.approx(share.max(), rel=0.2)


@pytest.mark.parametrize("jitter", [0.1, 0.4])
@pytest.mark.parametrize("step", [0.0, 2e-4])
def test_jitter_is_found_at_its_size(jitter: float, step: float) -> None:
    run = sampled_log(jitter=jitter, step=step)
    # Of 4000 samples, each in seven differences: 5 % is three standard errors; steps add noise of their own.
    assert time_jitter([run.samples.motor_position], H) == pytest.approx(jitter * H / np.sqrt(3.0), rel=0.1)
    assert findings(run)["jitter"].word == "suspicious"
    assert "jitter" not in check_log(run).part.reason  # the cut-off is chosen for it: the model's verdict holds


def test_noise_steps_and_a_single_joint_are_no_jitter() -> None:
    rng = np.random.default_rng(0)
    q = motion(H * np.arange(4000, dtype=np.float64))
    for noisy in (q + 1e-4 * rng.standard_normal(q.shape), 1e-3 * np.round(q / 1e-3)):
        assert time_jitter([noisy], H) < 0.02 * H
    assert time_jitter([q[:, :1]], H) == 0.0


def test_rounded_torques_are_named() -> None:
    torque = sampled_log().samples.motor_torque
    assert torque is not None
    spread = float(torque[:, 0].std())
    seen = findings(sampled_log(torque_step=spread))["torque steps"]
    assert seen.word == "suspicious"
    # Of joints with other spreads the worst is told; rounding changes the spread by some percents.
    assert seen.value >= 0.9 / np.sqrt(12.0)
    assert findings(sampled_log(torque_step=0.01 * spread))["torque steps"].word == "fine"


def test_power_up_to_half_the_rate_is_named_and_that_behind_a_filter_is_not() -> None:
    seen = findings(sampled_log(noise=0.5))["aliasing"]
    assert seen.word == "suspicious"
    # White noise of a share s: s sqrt(20 Hz / 100 Hz) / sqrt(1 + s²); a median of a spectrum is within a tenth.
    assert seen.value == pytest.approx(0.5 * np.sqrt(20.0 / 100.0 / 1.25), rel=0.15)
    filtered = sampled_log(noise=0.5)
    torque = filtered.samples.motor_torque
    assert torque is not None
    samples = dataclasses.replace(filtered.samples, motor_torque=LowPass(30.0, H).apply(torque))
    assert findings(dataclasses.replace(filtered, samples=samples))["aliasing"].word == "fine"


def test_values_that_are_not_rounded_have_no_step() -> None:
    rng = np.random.default_rng(2)
    assert np.isnan(value_step(rng.standard_normal(5000)))
    assert np.isnan(value_step(np.zeros(100)))
    # Counts of an encoder behind a gear, with an offset, written as floats.
    assert value_step(0.3 + np.round(3000.0 * rng.standard_normal(5000)) * 1.7e-4) == pytest.approx(1.7e-4, rel=1e-6)


def test_the_model_says_what_bounds_its_cutoff() -> None:
    run = sampled_log(step=np.deg2rad(0.09), jitter=0.3)
    signals = recorded_signals(run, run.robot, FitSettings())
    steps, jitter = cutoff_notes(signals, [slice(0, 4000)], run.robot, 10.0)
    assert "come in steps of 0.09°" in steps
    assert "at twice the cut-off" in steps
    assert "jitter by 1" in jitter
    assert cutoff_notes(signals, [slice(0, 4000)], run.robot, 1.0) == []  # far below where it matters
    clean = recorded_signals(sampled_log(), run.robot, FitSettings())
    assert cutoff_notes(clean, [slice(0, 4000)], run.robot, 10.0) == []


def test_a_fit_of_a_coarse_log_says_so() -> None:
    run = as_log(synthetic_run(arm(2), motion_seed=3, noise_seed=3, repeats=1, counts_per_turn=200.0))
    model = fit(run, friction="coulomb_viscous")
    assert any("come in steps of 1.8°" in note for note in model.notes), model.notes


@pytest.mark.parametrize("name", ["cobot6"])
def test_a_good_simulated_arm_has_no_such_fault(tmp_path: Path, name: str) -> None:
    seen = findings(simulated_log(tmp_path, name))
    assert {each.word for each in seen.values()} == {"fine"}, seen


@pytest.mark.slow
def test_good_recordings_have_no_such_fault(tmp_path: Path) -> None:
    for run in (tx40_log(tmp_path), kinova_log("opti_traj_testing1", tmp_path)):
        assert {each.word for each in findings(run).values()} == {"fine"}


def test_too_short_pieces_tell_nothing() -> None:
    assert PositionNoise.of_positions([np.zeros((20, 3))], H, np.ones(3, dtype=np.bool_), 10.0) is None


@pytest.mark.parametrize(("step", "hides"), [(np.deg2rad(0.088), True), (np.deg2rad(0.088) / 101.0, False)])
def test_a_coarse_encoder_hides_the_motion_and_one_behind_a_gear_does_not(step: float, hides: bool) -> None:
    """At 1 kHz, 4096 counts a turn of the joint or of its motor: the velocity's power is the steps' or the motion's."""
    time = 1e-3 * np.arange(8000, dtype=np.float64)
    q = step * np.round(motion(time) / step)
    run = as_log(run_of(ARM, q, np.cos(q), plan=None, repeats=0))
    run = dataclasses.replace(run, samples=dataclasses.replace(run.samples, sample_period=1e-3, time=time))
    assert steps_hide_motion(recorded_signals(run, run.robot, FitSettings()), run.robot) is hides
    assert not [found for found in check_log(run).findings if found.name == "stuck samples"]  # slow, and no jump
