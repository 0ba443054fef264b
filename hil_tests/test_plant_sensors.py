"""The sensors' integers, the edges of encoders, and the response of a board's filter."""

import dataclasses
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from hil_tests.link_helpers import COBOT, record_wave
from hil_tests.pendulum import (
    ARM_INERTIA,
    COBOT6_PLANT,
    GRAVITY,
    LENGTH,
    MASS,
    RATIO,
    ROTOR_INERTIA,
    TORQUE_CONSTANT,
    drive_open,
    pendulum_robot,
    pendulum_truth,
)
from hil_tests.virtual_bench import virtual_bench
from hil_tests.virtual_bench.model import TICK, PlantKind
from hil_tests.virtual_bench.plant import OVERSAMPLES, Motion, Plant
from hil_tests.virtual_bench.plant_file import read_plant_file
from hil_tests.virtual_bench.sensors import CAPTURE_CLOCK, EdgeTimes, Sensors
from hil_tests.virtual_bench.truth import true_parameters
from jointbench.bench import Bench, open_bench
from jointbench.model import load_robot
from jointbench.recording import Samples

COBOT6 = load_robot("cobot6")
TRUTH = read_plant_file(COBOT6_PLANT, COBOT6)
TICKS = 4000


def still(
    position: float = 0.0,
    current: float = 0.0,
    torque: float = 0.0,
    temperature: float = 22.0,
    bus_voltage: float = 48.0,
) -> Motion:
    ones = np.ones(6)
    samples = np.ones((OVERSAMPLES, 6))
    return Motion(
        position * ones, position * ones, current * samples, torque * samples,
        temperature=temperature * ones, bus_voltage=bus_voltage,
    )  # fmt: skip


def decimated(sensors: Sensors, motion: Motion, ticks: int = TICKS) -> np.ndarray:
    """Centred sums of the ADC blocks, shape (ticks, n, 2): what the board's first stage makes of them."""
    return np.array([sensors.read(motion).adc.sum(axis=2, dtype=int) for _ in range(ticks)]) - 2048 * OVERSAMPLES


def in_amperes(sensors: Sensors, counts: np.ndarray) -> np.ndarray:
    facts = [sensors.facts(joint) for joint in range(6)]
    zero = np.array([fact["current.zero"] for fact in facts])
    return (counts[..., 0] - zero) * np.array([fact["current.scale"] for fact in facts]) * 1e-9


def test_current_noise_is_what_the_plant_file_says() -> None:
    sensors = Sensors(COBOT6, TRUTH, "harmonic", seed=1)
    samples = np.array([sensors.read(still(current=1.0)).adc for _ in range(TICKS)])[:, :, 0, :]
    step = 2 * np.array([joint.current_range for joint in TRUTH.joints]) / 4096
    rms = samples.std(axis=(0, 2)) * step
    expected = np.sqrt(TRUTH.sensors.current_noise**2 + step**2 / 12)
    # 64 000 samples give the rms to 0.3 %; 1.2 % are four of that.
    np.testing.assert_allclose(rms, expected, rtol=0.012)
    # White: the decimated mean of 16 is four times quieter.
    mean_rms = in_amperes(sensors, decimated(sensors, still())).std(axis=0)
    np.testing.assert_allclose(mean_rms, expected / 4, rtol=0.05)


def test_ideal_gain_is_exact_and_harmonic_gain_is_not() -> None:
    limits: dict[PlantKind, tuple[float, float]] = {"ideal": (0.0, 5e-4), "harmonic": (2e-3, 1.1e-2)}
    for kind, (low, high) in limits.items():
        sensors = Sensors(COBOT6, TRUTH, kind, seed=3)
        up = in_amperes(sensors, decimated(sensors, still(current=4.0))).mean(axis=0)
        down = in_amperes(sensors, decimated(sensors, still(current=-4.0))).mean(axis=0)
        error = np.abs((up - down) / 8.0 - 1.0).max()  # noise leaves 4e-5 of it
        assert low <= error < high, kind


def test_offset_left_by_calibration_is_the_published_truth() -> None:
    sensors = Sensors(COBOT6, TRUTH, "harmonic", seed=5)
    measured = in_amperes(sensors, decimated(sensors, still())).mean(axis=0)
    noise = TRUTH.sensors.current_noise / math.sqrt(TICKS * OVERSAMPLES)
    np.testing.assert_allclose(measured, sensors.current_offset, rtol=0, atol=5 * noise)
    assert np.abs(sensors.current_offset).max() > 10 * noise  # a fit can see it
    assert np.abs(sensors.current_offset).max() < 5 * TRUTH.sensors.current_zero_calibration
    published = true_parameters(COBOT6, TRUTH, "harmonic", sensors)
    for joint, drive, offset in zip(COBOT6.joints, COBOT6.drives, sensors.current_offset, strict=True):
        assert published[joint.name]["offset"] == pytest.approx(drive.torque_per_current * offset)


def test_torque_facts_read_the_torque() -> None:
    sensors = Sensors(COBOT6, TRUTH, "harmonic", seed=6)
    counts = decimated(sensors, still(torque=30.0))[..., 1].mean(axis=0)
    facts = [sensors.facts(joint) for joint in range(6)]
    zero, scale = (np.array([fact[name] for fact in facts]) for name in ("torque.zero", "torque.scale"))
    torque = (counts - zero) * scale * 1e-6
    # Calibration leaves 0.02 N·m (one sigma), the scale's rounding 1e-4 of 30 N·m.
    np.testing.assert_allclose(torque, 30.0, rtol=0, atol=0.08)


def test_converters_clip_at_12_bits() -> None:
    sensors = Sensors(COBOT6, TRUTH, "harmonic", seed=7)
    assert sensors.read(still(current=100.0, torque=1e4)).adc.min() == 4095
    assert sensors.read(still(current=-100.0, torque=-1e4)).adc.max() == 0


def test_encoders_resolve_their_counts_and_wrap() -> None:
    sensors = Sensors(COBOT6, TRUTH, "harmonic", seed=8)
    facts = [sensors.facts(joint) for joint in range(6)]
    angles = np.linspace(-2.5, 2.5, 997)
    readings = [sensors.read(still(position=angle)) for angle in angles]
    counts = np.array([reading.link_count for reading in readings])
    assert counts.min() >= 0
    assert counts.max() < 524288
    links = (counts - [fact["encoder.link_zero"] for fact in facts] + 262144) % 524288 - 262144
    np.testing.assert_array_equal(links, np.floor(angles / (2 * math.pi) * 524288)[:, None] * np.ones(6))
    motors = np.array([reading.motor_count for reading in readings]).astype(int)
    moved = np.cumsum((np.diff(motors, axis=0) + 32768) % 65536 - 32768, axis=0)
    turned = (angles[1:] - angles[0]) / (2 * math.pi) * 4096 * 101
    assert np.abs(moved - turned[:, None]).max() <= 1.0  # both ends are rounded down to whole counts
    assert np.ptp(turned) > 3 * 65536  # the counter really wrapped


def test_same_seed_same_sensors_other_seed_others() -> None:
    first, again, other = (Sensors(COBOT6, TRUTH, "harmonic", seed) for seed in (11, 11, 12))
    assert first.facts(0) == again.facts(0) != other.facts(0)
    np.testing.assert_array_equal(first.read(still()).adc, again.read(still()).adc)
    assert (first.read(still()).adc != other.read(still()).adc).any()


def test_torque_and_motion_are_of_the_same_instant() -> None:
    """A regression as a host would do it, on a plant with closed form, finds every parameter and no delay.

    The mean current over a tick meets the mean of the motion at its two ends; a column with the torque's slope takes up
    any delay between the two.
    """
    viscous = 0.5
    truth = dataclasses.replace(pendulum_truth(joint={"viscous": viscous}), steps_per_tick=2)
    times = TICK * np.arange(3000)
    current = 1.5 * np.sin(2 * math.pi * 1.3 * times) + 0.8 * np.sin(2 * math.pi * 3.1 * times)
    motions = drive_open(Plant(pendulum_robot(), truth, "ideal"), current[:, None])
    q = np.array([motion.motor_position[0] for motion in motions])
    torque = RATIO * TORQUE_CONSTANT * np.array([motion.current[:, 0].mean() for motion in motions])
    dq = (-q[4:] + 8 * q[3:-1] - 8 * q[1:-3] + q[:-4]) / (12 * TICK)
    ddq = (-q[4:] + 16 * q[3:-1] - 30 * q[2:-2] + 16 * q[1:-3] - q[:-4]) / (12 * TICK**2)
    columns = np.stack([ddq, dq, np.cos(q[2:-2]), np.sin(q[2:-2])], axis=1)
    window = 0.5 * (columns[1:] + columns[:-1])
    measured = torque[3:-2]
    slope = np.gradient(measured, TICK)
    fit = np.linalg.lstsq(np.column_stack([window, -slope])[5:-5], measured[5:-5], rcond=None)[0]
    expected = [ARM_INERTIA + ROTOR_INERTIA, viscous, MASS * GRAVITY * LENGTH, 0.0]
    # 1e-4: the trapezoid's error on a mean over a tick and the differences' at 3 Hz.
    np.testing.assert_allclose(fit[:4], expected, rtol=1e-4, atol=1e-3)
    # Delay [s]: sixteen samples of the current's lag stand for their mean to 1 µs; a fit feels delays from 100 µs on.
    assert abs(fit[4]) < 3e-6


PER_TICK = round(CAPTURE_CLOCK * TICK)
SPEEDS = np.array([0.3, -0.3, 1.0, -7.25, 900.125, 0.0])  # counts a tick


@pytest.mark.parametrize("first", [0, 2**31 - 5, 10**9])
def test_an_edge_comes_when_a_whole_count_is_passed(first: int) -> None:
    edges = EdgeTimes(len(SPEEDS))
    start, before = 0.4 + np.zeros(len(SPEEDS)), np.zeros(len(SPEEDS), dtype=np.int64)
    last = start
    for k in range(60):
        exact = start + SPEEDS * k
        found = edges.at(first + k, exact).astype(np.int64)
        moved = np.floor(exact) != np.floor(last)
        np.testing.assert_array_equal(found[~moved], before[~moved])  # without an edge the last one's time stays
        # Where the motor was at that time: a whole count, to a count of the clock, and no later whole one since.
        ago = (((first + k) * PER_TICK - found[moved]) % 2**32) / PER_TICK
        assert ago.size == 0 or (ago.min() >= 0.0 and ago.max() <= 1.0)
        place = exact[moved] - SPEEDS[moved] * ago
        assert np.abs(place - np.rint(place)).max(initial=0.0) <= np.abs(SPEEDS).max() / PER_TICK
        assert np.abs(exact[moved] - place).max(initial=0.0) <= 1.0 + np.abs(SPEEDS).max() / PER_TICK
        before, last = found, exact


def test_counts_over_time_between_edges_are_the_speed() -> None:
    edges, last = EdgeTimes(1), None
    for k in range(200):
        exact = np.array([0.25 + 12.7 * k])
        time = int(edges.at(k, exact)[0])
        if last is not None and k > 2:
            speed = (int(exact[0]) - last[0]) / (time - last[1]) * PER_TICK
            assert speed == pytest.approx(12.7, rel=2.1 / PER_TICK)  # each time is cut to a count of the clock
        last = int(exact[0]), time


QUICK = {"cutoff_hz": 300.0, "filter_order": 2, "cic_order": 1}
SLOW = {"cutoff_hz": 12.0, "filter_order": 4, "cic_order": 2}
PERIOD = 1024


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    out = tmp_path_factory.mktemp("sim")
    with virtual_bench(COBOT, plant="ideal", seed=5, out=out) as path, open_bench(path) as bench:
        bench.connect()
        yield bench


@pytest.fixture(scope="module")
def quick(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Samples:
    return _record(bench, tmp_path_factory.mktemp("quick"), QUICK)


@pytest.fixture(scope="module")
def slow(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Samples:
    """The same motion behind a slow filter."""
    return _record(bench, tmp_path_factory.mktemp("slow"), SLOW)


def _record(bench: Bench, folder: Path, settings: dict) -> Samples:
    bench.configure(**settings)
    bench.move_to(bench.robot.home)
    return record_wave(bench, folder / "run", repeats=3).samples


def lag(quick: Samples, slow: Samples, channel: str) -> np.ndarray:
    """Delay [s] by joint that the stated filters leave unexplained.

    Each recording goes through the other's filter, so that both hold the motion behind both filters. Where the one
    that is stated of the slow recording has less delay than the one that ran, what went through it comes earlier.
    """
    behind_both = []
    for samples, other in ((quick, slow), (slow, quick)):
        assert other.board_filters is not None
        values = getattr(samples, channel)[samples.play_tick >= 0]
        filtered = [each.apply(column) for each, column in zip(other.board_filters, values.T, strict=True)]
        behind_both.append(np.column_stack(filtered)[PERIOD:])  # the first period still settles
    early, late = behind_both
    slope = np.gradient(late, slow.sample_period, axis=0)
    return np.sum(slope * (early - late), axis=0) / np.sum(slope**2, axis=0)


@pytest.mark.parametrize("channel", ["motor_current", "joint_torque"])
def test_a_board_filters_as_its_registers_say(quick: Samples, slow: Samples, channel: str) -> None:
    assert slow.board_filters is not None
    ran = slow.board_filters[0]
    assert len(ran.sections) == 2
    assert ran.cic_order == 2
    # The smallest mistake is the decimator's order, 0.53 ms: half of it tells. The wrist's two last joints carry so
    # little that their sensors' noise hides it.
    tolerance = 0.25e-3
    assert lag(quick, slow, channel)[:4] == pytest.approx(0.0, abs=tolerance)
    for part in ({"cic_order": 1}, {"sections": ran.sections[:1]}, {"sections": ran.sections[1:]}):
        wrong = dataclasses.replace(ran, **part)
        stated = dataclasses.replace(slow, board_filters=(wrong,) * slow.n_joints)
        assert lag(quick, stated, channel)[:4] == pytest.approx(ran.delay - wrong.delay, abs=tolerance), part
