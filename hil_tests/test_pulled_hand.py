"""A force at the nursing arm's hand, the paper's tau_ext: in the plant, in what the model lacks, and taken off."""

from dataclasses import dataclass

import numpy as np
import pytest

import jointbench as jb
from hil_tests.link_helpers import NURSING_ARM, inject
from hil_tests.virtual_bench import virtual_bench
from hil_tests.virtual_bench.bench_file import read_bench_file
from hil_tests.virtual_bench.errors import ControlError
from hil_tests.virtual_bench.hardware_faults import HardwareFaults, Injection
from hil_tests.virtual_bench.plant import Plant
from jointbench.bench import open_bench
from jointbench.errors import FitError
from jointbench.recording import Run, record

WEIGHT = np.array([0.0, 0.0, -30.0])


@dataclass(frozen=True)
class Recorded:
    """A model of the arm alone, and another motion with the weight on its hand."""

    pulled: Run
    model: jb.Model


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    folder = tmp_path_factory.mktemp("runs")
    robot = jb.load_robot("nursing_arm")
    motions = [jb.random_excitation(robot, harmonics=2, period=4.8, seed=seed) for seed in (1, 2)]
    with virtual_bench(NURSING_ARM, plant="ideal", out=folder / "sim") as live, open_bench(live) as bench:
        bench.connect()
        bench.configure()
        free = record(bench, motions[0], folder / "free", repeats=1)
        inject(bench, "pull", 6, force_N=WEIGHT[2])
        pulled = record(bench, motions[1], folder / "pulled", repeats=1)
    return Recorded(pulled, jb.fit(free, robot))


@pytest.mark.slow
def test_what_the_model_lacks_is_the_force_at_the_hand(recorded: Recorded) -> None:
    check = jb.validate(recorded.model, recorded.pulled)
    missing = (check.measured - check.predicted)[check.complete]
    samples = recorded.pulled.samples
    played = samples.play_tick >= 0
    time = samples.play_tick[played] * samples.sample_period
    joints = samples.motor_position[played].T
    q = np.stack([np.interp(check.time[check.complete], time, joint) for joint in joints], axis=1)

    truth = external(q, WEIGHT)
    rms = np.sqrt(np.mean(truth**2, axis=0))
    loaded = rms > 1.0  # the rotations hardly carry it
    assert loaded.tolist() == [False, True, False, True, False, True]
    error = np.sqrt(np.mean((missing - truth) ** 2, axis=0))
    # Two short motions: 6, 5 and 4 % of its rms, of which the model's own error is 2, 2 and 1.
    assert np.all(error[loaded] < 0.1 * rms[loaded]), error / rms
    per_newton = np.stack([external(q, axis).ravel() for axis in np.eye(3)], axis=1)
    told, *_ = np.linalg.lstsq(per_newton, missing.ravel())
    np.testing.assert_allclose(told, WEIGHT, atol=1.5)  # [0.1, -0.5, -30.7] N of these motions


@pytest.mark.slow
def test_a_known_force_is_taken_off(recorded: Recorded) -> None:
    weight = jb.Wrench("hand", WEIGHT)
    free = jb.without_external(recorded.pulled, weight)
    assert free.warnings[-1] == "a known force at 'hand' was taken off its torques"
    with_it, without = (jb.validate(recorded.model, run).error_all.relative for run in (recorded.pulled, free))
    assert np.all(with_it[[1, 3, 5]] > 0.2), with_it
    assert np.all(without < 0.03), without
    constant = np.tile(WEIGHT, (free.samples.n_samples, 1))
    as_channel = jb.without_external(recorded.pulled, jb.Wrench("hand", constant))
    assert as_channel.samples.motor_torque is not None
    assert free.samples.motor_torque is not None
    np.testing.assert_allclose(as_channel.samples.motor_torque, free.samples.motor_torque, atol=1e-9)
    with pytest.raises(FitError, match=r"force has shape \(5, 3\); it must be \(3,\), or \(\d+, 3\)"):
        jb.without_external(recorded.pulled, jb.Wrench("hand", constant[:5]))
    with pytest.raises(FitError, match="'nursing_arm' has no frame 'tool'; there are"):
        jb.without_external(recorded.pulled, jb.Wrench("tool", WEIGHT))


def external(q: np.ndarray, force: np.ndarray) -> np.ndarray:
    """tau_ext of a force at the hand by differences of the hand's place: none of the product's Jacobians."""
    robot = jb.load_robot("nursing_arm")
    torque = np.empty_like(q)
    for joint in range(robot.n_joints):
        step = 1e-5 * np.eye(robot.n_joints)[joint]
        torque[:, joint] = -(hand(robot, q + step) - hand(robot, q - step)) @ force / 2e-5
    return torque


def hand(robot: jb.Robot, q: np.ndarray) -> np.ndarray:
    """Where the hand is [m], multiplied out from the file's placements."""
    at = np.tile(np.eye(4), (len(q), 1, 1))
    for joint, position in zip(robot.joints, q.T, strict=True):
        placed, turn = np.eye(4), np.tile(np.eye(4), (len(q), 1, 1))
        placed[:3, :3], placed[:3, 3] = joint.placement
        turn[:, 0, 0] = turn[:, 1, 1] = np.cos(position)
        turn[:, 1, 0], turn[:, 0, 1] = np.sin(position), -np.sin(position)
        at = at @ placed @ turn
    return (at @ [0.0, 0.12, 0.0, 1.0])[:, :3]


def test_the_plant_rests_on_its_brakes_with_the_weight_that_statics_has() -> None:
    """A still arm with closed brakes: what gears carry changes by tau_ext, to what the flexing gears give way."""
    bench = read_bench_file(NURSING_ARM)
    torques = []
    for force in (0.0, -30.0):
        plant = Plant(bench.robot, bench.plant, "harmonic")
        pull = np.array([0.0, 0.0, 0.0, 0.0, 0.0, force])
        motion = plant.advance(np.zeros(6, bool), np.zeros(6), pull=pull)
        for _ in range(1499):
            motion = plant.advance(np.zeros(6, bool), np.zeros(6), pull=pull)
        torques.append(motion.torque[-1])
    q = plant.link_position[None]
    np.testing.assert_allclose(torques[1] - torques[0], external(q, WEIGHT)[0], atol=0.02)


def test_things_hang_on_arms_alone() -> None:
    with pytest.raises(ControlError, match="a pull is at an arm whose base stands still; this robot can have a shove"):
        HardwareFaults({1: {}}, {1: 0}, 1, is_arm=False).inject(Injection(1, "pull", 5.0))
