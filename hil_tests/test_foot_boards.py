"""Boards of feet: sensors, bench files, and a bench of a biped that says through them what it weighs."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hil_tests.test_plant_feet import PLANT, ROBOT, TOTAL_MASS, TRUTH
from hil_tests.virtual_bench.bench_file import read_bench_file
from hil_tests.virtual_bench.errors import BenchFileError
from hil_tests.virtual_bench.plant_file import read_plant_file
from hil_tests.virtual_bench.sensors import Sensors
from hil_tests.virtual_bench.standing_plant import StandingPlant
from hil_tests.virtual_bench.truth import true_parameters
from jointwire import BY_NAME

BENCH = Path(__file__).resolve().parent / "benches" / "gorobot2.toml"
STANDING = StandingPlant(ROBOT, TRUTH, "ideal").standing()
assert TRUTH.sensors.force is not None
FORCE = replace(TRUTH.sensors.force, hysteresis_width=0.0, drift=0.0)
STEADY = replace(TRUTH, sensors=replace(TRUTH.sensors, force=FORCE))
"""Without what moves a cell's zero: loops and warmth."""


def counts(sensors: Sensors, ticks: int) -> np.ndarray:
    return np.array([sensors.read(STANDING).foot_force for _ in range(ticks)])


def test_counts_are_gain_times_force_and_zero() -> None:
    sensors = Sensors(ROBOT, STEADY, "harmonic", seed=1)
    assert sensors.feet is not None
    told = true_parameters(ROBOT, STEADY, "harmonic", sensors)
    ticks = 4000
    read = counts(sensors, ticks)
    for k, foot in enumerate(ROBOT.feet):
        facts, truth = sensors.feet.facts(k), told[foot.name]
        scale = facts["force.scale"] * BY_NAME["force.scale"].scale
        zeros = [facts[f"force.zero_{corner}"] for corner in range(1, 5)]
        force = (read[:, k] - zeros) * scale
        expected = np.array(truth["gain"]) * STANDING.foot_force[k] + truth["zero_error"]
        sigma = FORCE.noise / np.sqrt(ticks)
        np.testing.assert_allclose(force.mean(axis=0), expected, rtol=0, atol=4 * sigma)
        # 4 sigma of a standard deviation out of so many samples.
        np.testing.assert_allclose(force.std(axis=0), FORCE.noise, rtol=4 / np.sqrt(2 * ticks))
        assert np.abs(np.array(truth["gain"]) - 1.0).max() <= FORCE.gain_spread
        assert np.abs(truth["zero_error"]).max() < 4 * FORCE.zero_calibration


def test_a_cell_saturates() -> None:
    sensors = Sensors(ROBOT, TRUTH, "harmonic", seed=1)
    assert sensors.feet is not None
    top = sensors.feet.read(np.array([[1e4] * 4, [-1e4] * 4]))
    assert set(top[0]) == {round(FORCE.range / FORCE.step)}
    assert set(top[1]) == {-round(FORCE.range / FORCE.step)}


def test_noise_has_a_seed_of_its_own() -> None:
    """Benches of one seed have the same boards; with another noise seed they are the same on another day."""
    same, again, other = (Sensors(ROBOT, TRUTH, "harmonic", 7, noise) for noise in (None, 7, 8))
    assert same.feet is not None
    assert other.feet is not None
    np.testing.assert_array_equal(same.feet.gain, other.feet.gain)
    assert same.facts(3) == other.facts(3)
    for sensors in (same, again, other):
        sensors.read(STANDING)
    first, second, third = (sensors.read(STANDING) for sensors in (same, again, other))
    np.testing.assert_array_equal(first.foot_force, second.foot_force)
    np.testing.assert_array_equal(first.adc, second.adc)
    assert (first.foot_force != third.foot_force).any()
    assert (first.adc != third.adc).any()


def test_truth_tells_the_whole_robot() -> None:
    told = true_parameters(ROBOT, TRUTH, "ideal", Sensors(ROBOT, TRUTH, "ideal", seed=0))
    masses = [each["standard_parameters"][0] for each in told.values() if "standard_parameters" in each]
    assert sum(masses) == pytest.approx(TOTAL_MASS, rel=1e-12)
    assert told["base"]["total_mass"] == pytest.approx(TOTAL_MASS, rel=1e-12)
    assert told["l_foot"]["cable_pull"] == list(TRUTH.feet[1].cable_pull)


def test_the_truth_is_a_biped_that_eight_parameters_describe() -> None:
    """Left = right, centres of mass on the axes of the robot's link kinds, and small links as drawn."""
    assert TRUTH.base_link is not None
    true = {joint.link.name: truth.link for joint, truth in zip(ROBOT.joints, TRUTH.joints, strict=True)}
    true["r_foot"] = TRUTH.base_link
    for kind in ROBOT.link_kinds:
        along = []
        for axis in kind.links:
            link = true.pop(axis.link)
            from_start = np.array(link.center_of_mass) - axis.start
            along.append((float(from_start @ np.array(axis.direction)), link.mass))
            assert np.linalg.norm(np.cross(from_start, axis.direction)) < 1e-6  # [m]
        assert np.ptp(np.array(along, dtype=float), axis=0).max() < 1e-6
    for joint in ROBOT.joints:
        if joint.link.name in true:
            assert true[joint.link.name].mass == joint.link.mass
            assert true[joint.link.name].center_of_mass == joint.link.center_of_mass


@pytest.mark.parametrize(
    ("wrong", "right", "words"),
    [
        ('foot = "r_foot"', 'foot = "paw"', "foot = 'paw': robot 'gorobot2' has r_foot, l_foot"),
        ("sample_every = 8", "sample_every = 0", "sample_every = 0 must be a whole number of at least 1"),
        ("sample_every = 8", "sample_every = 3", "sample_every = 3 must be one of 1, 2, 4, 8, 16, 32, 64 ticks"),
        ("node = 14", "node = 13", "node 13 has two boards"),
    ],
)
def test_a_wrong_bench_file_is_refused(tmp_path: Path, wrong: str, right: str, words: str) -> None:
    text = BENCH.read_text(encoding="utf-8")
    assert wrong in text
    file = tmp_path / "bench.toml"
    file.write_text(text.replace(wrong, right).replace("../virtual_bench/plants", str(PLANT.parent)), encoding="utf-8")
    with pytest.raises(BenchFileError, match=words):
        read_bench_file(file)


@pytest.mark.parametrize(
    ("wrong", "right", "words"),
    [
        ("[[feet]]", "[[paws]]", "describes the feet none, but robot 'gorobot2' has r_foot, l_foot"),
        ("[floor]", "[ceiling]", "'floor' is missing"),
        ("force_step_N", "force_stop_N", "'force_step_N' is missing"),
        ("cable_pull_N = [-0.5, -0.6, 0.6]", "cable_pull_N = [1.0]", "cable_pull_N"),
    ],
)
def test_a_wrong_plant_file_is_refused(tmp_path: Path, wrong: str, right: str, words: str) -> None:
    text = PLANT.read_text(encoding="utf-8")
    assert wrong in text
    file = tmp_path / "plant.toml"
    file.write_text(text.replace(wrong, right), encoding="utf-8")
    with pytest.raises(BenchFileError, match=re.escape(words)):
        read_plant_file(file, ROBOT)


def test_the_bench_has_a_line_for_each_leg() -> None:
    bench = read_bench_file(BENCH)
    assert [[board.joint[0] for board in line] for line in bench.lines] == [["r"] * 7, ["l"] * 7]
    assert [board.joint for board in bench.boards if board.on_foot] == [foot.name for foot in ROBOT.feet]
    assert tuple(board.joint for board in bench.boards if not board.on_foot) == ROBOT.joint_names
