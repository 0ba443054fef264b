"""Benches whose ticks are not a millisecond: the same robot and the same boards, more often."""

from pathlib import Path

import numpy as np
import pytest

from hil_tests.link_helpers import record_wave, wave
from hil_tests.pendulum import COBOT6_PLANT
from hil_tests.virtual_bench import virtual_bench
from hil_tests.virtual_bench.bench_file import read_bench_file
from hil_tests.virtual_bench.errors import BenchFileError
from hil_tests.virtual_bench.model import PLANT_KINDS, PlantKind
from hil_tests.virtual_bench.plant import Plant
from hil_tests.virtual_bench.plant_file import read_plant_file
from hil_tests.virtual_bench.sensors import CAPTURE_CLOCK, EdgeTimes
from jointbench.bench import open_bench
from jointbench.robot import load_robot
from jointbench.testing.measured import Measured
from tools.load.lockstep import write_variation

COBOT6 = load_robot("cobot6")
TRUTH = read_plant_file(COBOT6_PLANT, COBOT6)
TICK_US = 250
BOARDS = 2
WAY, PERIOD = 0.06, 0.64  # of a wave


@pytest.mark.parametrize("ticks", ["99", "10001", "250.5", '"fast"'])
def test_ticks_that_cannot_be_are_told(tmp_path: Path, ticks: str) -> None:
    path = write_variation(tmp_path, tick_us=TICK_US)
    path.write_text(path.read_text().replace(f"tick_us = {TICK_US}", f"tick_us = {ticks}"))
    with pytest.raises(BenchFileError, match="tick_us"):
        read_bench_file(path)


def test_steps_are_no_longer_than_the_plant_file_wants_them() -> None:
    for tick_us in (100, 250, 333, 1000, 1700, 10_000):
        truth = TRUTH.on_ticks_of(1e-6 * tick_us)
        assert truth.tick / truth.steps_per_tick <= TRUTH.tick / TRUTH.steps_per_tick * (1.0 + 1e-12)
        assert truth.steps_per_tick == 1 or truth.tick / (truth.steps_per_tick - 1) > 5e-4 * (1.0 - 1e-12)


@pytest.mark.parametrize("kind", PLANT_KINDS)
def test_a_robot_moves_alike_on_any_ticks(kind: PlantKind) -> None:
    """A current for 50 ms: positions within a thousandth of the way, the windings as warm as before."""
    enabled, command = np.ones(6, dtype=bool), np.full(6, 0.8)
    usual, fast = Plant(COBOT6, TRUTH, kind), Plant(COBOT6, TRUTH.on_ticks_of(1e-6 * TICK_US), kind)
    start = usual.link_position
    slow_motion = [usual.advance(enabled, command) for _ in range(50)][-1]
    fast_motion = [fast.advance(enabled, command) for _ in range(200)][-1]
    way = np.abs(slow_motion.link_position - start)
    assert way.max() > 1e-3
    np.testing.assert_allclose(fast_motion.link_position, slow_motion.link_position, rtol=0.0, atol=1e-3 * way.max())
    assert fast.time == pytest.approx(usual.time)
    warmth = slow_motion.temperature - TRUTH.power.ambient
    np.testing.assert_allclose(fast_motion.temperature - TRUTH.power.ambient, warmth, rtol=1e-3)


def test_edges_are_timed_within_short_ticks() -> None:
    edges, per_tick = EdgeTimes(1, 1e-6 * TICK_US), round(CAPTURE_CLOCK * 1e-6 * TICK_US)
    edges.at(10, np.array([0.25]))
    assert edges.at(11, np.array([1.25]))[0] == 10 * per_tick + 0.75 * per_tick


def test_boards_play_and_stream_four_times_a_millisecond(tmp_path: Path, measured: Measured) -> None:
    bench_file = write_variation(tmp_path, tick_us=TICK_US)
    live_bench = virtual_bench(bench_file, plant="ideal", out=tmp_path / "sim", modules=BOARDS)
    with live_bench as live, open_bench(live) as bench:
        bench.connect()
        bench.configure()
        assert {fact.tick_period for fact in bench.facts} == {1e-6 * TICK_US}
        first = bench.boards[0].ping()
        run = record_wave(bench, tmp_path / "run", motion=wave(bench, WAY, PERIOD))
        last = bench.boards[0].ping()
    measured("load.fast_rate", (last.tick - first.tick) / (1e-6 * (last.received_us - first.received_us)))
    assert run.ledger is not None
    assert run.ledger.closes
    assert run.ledger.samples_lost == 0
    assert run.warnings == ()
    playing = run.samples.play_tick >= 0
    np.testing.assert_array_equal(run.samples.play_tick[playing], np.arange(round(1e6 * PERIOD / TICK_US)))
    assert run.samples.time[1] - run.samples.time[0] == pytest.approx(1e-6 * TICK_US)
    position, home = run.samples.motor_position[playing], np.array(COBOT6.home[:BOARDS])
    w = 2.0 * np.pi * np.arange(len(position)) * TICK_US * 1e-6 / PERIOD
    planned = home + WAY * ((1.0 - np.cos(w)) ** 2 / 4.0)[:, None]
    assert np.abs(position - planned).max() < 0.02  # a third of the following limit that boards keep
