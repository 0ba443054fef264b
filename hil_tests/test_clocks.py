"""Boards with clocks of their own, recorded over a link like USB: one timeline for all, judged by the truth."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

from hil_tests.link_helpers import HERE, wave
from hil_tests.virtual_bench import virtual_bench
from jointbench.bench import BoardClock, board_clock, open_bench
from jointbench.recording import Recorder, Run, decode_recording, open_run
from jointbench.recording.board_record import BoardRecord
from jointbench.recording.timeline import RESIDUAL_LIMIT_US
from jointbench.testing.measured import Measured
from tools.truth import read_truth

pytestmark = pytest.mark.slow

CLOCKS = HERE / "benches" / "cobot6_clocks.toml"
PERIOD_S, REPEATS = 8.192, 3
TICK_US = 1000


@dataclass(frozen=True)
class Recorded:
    """A run, what its boards sent, and their true clocks: offset [µs] and drift [ppm] of each, in joint order."""

    run: Run
    records: tuple[BoardRecord, ...]
    truth: tuple[tuple[float, float], ...]

    def true_us(self, board: int, tick):
        """When a board really had these ticks, by the bench's time, which is also the host's."""
        offset_us, ppm = self.truth[board]
        return (TICK_US * np.asarray(tick, dtype=float) - offset_us) / (1.0 + 1e-6 * ppm)

    def apart_us(self, clocks: list[BoardClock]) -> list[float]:
        """Largest error of each clock against the first one's, over the run."""
        errors = []
        for board, (clock, record) in enumerate(zip(clocks, self.records, strict=True)):
            ticks = np.linspace(record.ticks.span[0], record.ticks.span[1], 100)
            errors.append(np.asarray(clock.tick_host_us(ticks)) - self.true_us(board, ticks))
        return [float(np.max(np.abs(error - errors[0]))) for error in errors]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    folder = tmp_path_factory.mktemp("clocks")
    with virtual_bench(CLOCKS, plant="ideal", seed=5, out=folder / "sim") as live:
        truth = read_truth(live)
        with open_bench(live) as bench:
            bench.connect()
            bench.configure()
            motion = wave(bench, period=PERIOD_S)
            bench.move_to(bench.robot.home)
            about = bench.provenance(repeats=REPEATS)
            bench.play(motion, REPEATS, Recorder(folder / "run", about))
    run = open_run(folder / "run")
    joints = {board["node"]: board["joint"] for board in run.provenance["board"]}
    records = decode_recording(folder / "run" / "frames.bin", joints).boards
    clocks = [truth[joint]["clock"] for joint in run.samples.joint_names]
    return Recorded(run, tuple(records.values()), tuple((clock["offset_us"], clock["ppm"]) for clock in clocks))


def test_nothing_was_lost_and_nothing_is_wrong(recorded: Recorded, measured: Measured) -> None:
    run = recorded.run
    assert run.provenance["common_ticks"] is False
    assert run.ledger is not None
    assert run.ledger.is_valid, run.ledger.text()
    measured("stream.lost", run.ledger.samples_lost)
    assert run.warnings == ()


def test_pulses_put_the_boards_on_one_timeline(recorded: Recorded, measured: Measured) -> None:
    clocks = [recorded.run.clocks[joint] for joint in recorded.run.samples.joint_names]
    assert min(clock.pulses for clock in clocks) >= 0.9 * PERIOD_S * REPEATS
    measured("clock.apart", recorded.apart_us(clocks), "µs")
    measured("clock.residual_with_pulses", [clock.residual_us for clock in clocks], "µs")
    drifts = np.array([(clock.drift_ppm, ppm) for clock, (_, ppm) in zip(clocks, recorded.truth, strict=True)])
    found, true = (drifts - drifts[0]).T
    measured("clock.drift_error", np.abs(found - true), "ppm")


def test_pings_alone_put_the_boards_within_a_fifth_of_a_tick(recorded: Recorded, measured: Measured) -> None:
    clocks = [board_clock(record.exchanges, TICK_US, record.stamps) for record in recorded.records]
    measured("clock.apart_by_pings", recorded.apart_us(clocks), "µs")
    assert all(clock.pulses == 0 for clock in clocks)
    assert max(clock.residual_us for clock in clocks) < RESIDUAL_LIMIT_US  # or every run over USB would be warned of
    for board, (clock, record) in enumerate(zip(clocks, recorded.records, strict=True)):
        at = record.ticks.span[1]
        assert abs(clock.tick_host_us(at) - recorded.true_us(board, at)) <= clock.bound_us


def test_ticks_by_number_would_be_seconds_off(recorded: Recorded) -> None:
    """What the alignment is for: the same tick number means another moment on every board."""
    at = [float(recorded.true_us(board, record.ticks.first[0])) for board, record in enumerate(recorded.records)]
    numbers = [int(record.ticks.first[0]) for record in recorded.records]
    assert np.ptp(at) < 1e6 < TICK_US * np.ptp(numbers)


def test_every_sample_stands_where_it_was_taken(recorded: Recorded, measured: Measured) -> None:
    """Positions on the timeline against the raw ones at their true times: the delay between them, by least squares."""
    samples, first = recorded.run.samples, recorded.records[0]
    rows = recorded.true_us(0, _first_tick(recorded))
    rows = rows + 1e6 * samples.time * (1.0 / (1.0 + 1e-6 * recorded.truth[0][1]))
    for board, record in enumerate(recorded.records):
        track = record.channels["motor_position"]
        ticks = track.ticks.all()
        order = np.argsort(ticks)
        scale = samples.motor_position[samples.valid[:, board], board]
        taken_us, raw = recorded.true_us(board, ticks[order]), track.values[order].astype(float)
        raw *= 2.0 * np.pi / 4096.0 / recorded.run.robot.drives[board].ratio
        there = CubicSpline(taken_us - rows[0], raw)
        known = samples.valid[:, board] & (rows > taken_us[0]) & (rows < taken_us[-1])
        assert known.sum() > 0.99 * len(scale) > 0.9 * len(first.ticks)
        velocity = there(rows[known] - rows[0], 1)
        apart = samples.motor_position[known, board] - there(rows[known] - rows[0])
        measured("clock.sample_apart", abs(velocity @ apart / (velocity @ velocity)), "µs")


def test_the_two_sides_of_each_gear_agree_as_on_one_clock(recorded: Recorded) -> None:
    samples = recorded.run.samples
    assert samples.link_position is not None
    known = samples.valid.all(axis=1) & (samples.play_tick >= 0)
    apart = samples.motor_position[known] - samples.link_position[known]
    # Both encoders' steps; the ideal plant's gears are stiff.
    ratios = np.array([drive.ratio for drive in recorded.run.robot.drives])
    steps = 2.0 * np.pi * (1.0 / 4096.0 / ratios + 1.0 / 524288.0)
    assert (np.std(apart, axis=0) < steps).all()


def test_slow_channels_are_there_and_leave_no_holes(recorded: Recorded) -> None:
    samples = recorded.run.samples
    assert samples.bus_voltage is not None
    assert samples.temperature is not None
    assert samples.foot_force is None
    playing = np.flatnonzero(samples.play_tick >= 0)
    # Boards play by their own clocks: the fastest ends its 24.6 s 100 ppm, 2.5 ticks, before the first board.
    playing = playing[:-3]
    assert samples.valid[playing].all()
    for values in (samples.bus_voltage, samples.temperature):
        share = np.isfinite(values[playing]).mean(axis=0)
        np.testing.assert_allclose(share, 1 / 64, rtol=0.05)
    assert np.nanmin(samples.bus_voltage) > 10.0
    assert 273.0 < np.nanmin(samples.temperature) < np.nanmax(samples.temperature) < 373.0


def _first_tick(recorded: Recorded) -> int:
    """The tick of the timeline's first row, by the first board."""
    first_valid = int(np.flatnonzero(recorded.run.samples.valid[:, 0])[0])
    return int(recorded.records[0].ticks.span[0]) - first_valid
