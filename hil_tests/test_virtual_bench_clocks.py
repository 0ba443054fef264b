"""Boards with clocks of their own: when they tick, what they read then, and one timeline for all."""

import functools
import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.interpolate import CubicSpline

from hil_tests.link_helpers import HERE, wave
from hil_tests.pendulum import COBOT6_PLANT
from hil_tests.raw_client import RawClient
from hil_tests.small_bench import write_bench_file
from hil_tests.virtual_bench import virtual_bench
from hil_tests.virtual_bench.board import BoardClock
from hil_tests.virtual_bench.lockstep import motion_between
from hil_tests.virtual_bench.plant import OVERSAMPLES, Motion, Plant
from hil_tests.virtual_bench.plant_file import read_plant_file
from jointbench.bench import BoardClock as HostBoardClock
from jointbench.bench import board_clock, open_bench
from jointbench.model import load_robot
from jointbench.recording import Recorder, Run, decode_recording, open_run
from jointbench.recording.board_record import BoardRecord
from jointbench.recording.timeline import RESIDUAL_LIMIT_US
from jointbench.testing.requirements import Measured
from jointwire import Frame, FrameReader, MessageType, encode_frame
from tools.truth import read_truth

CLOCKS = Path(__file__).parent / "benches" / "cobot6_clocks.toml"
BenchWriter = Callable[..., Path]


class Report(NamedTuple):
    """What programs/report.py sends at each tick."""

    tick: int
    time_us: int
    sync_edges: int
    sync_us: int
    motor_count: int
    link_count: int
    bus_voltage: int
    temperature: int
    received: int
    now_us: int


@pytest.fixture
def write_bench(tmp_path: Path) -> BenchWriter:
    return functools.partial(write_bench_file, tmp_path)


def reports(client: RawClient, duration_us: int) -> dict[int, list[tuple[int, Report]]]:
    """Reports of each board with the time they came, over a while."""
    came: dict[int, list[tuple[int, Report]]] = {node: [] for node in client.ports}
    end_us = client.time_us + duration_us
    while client.time_us < end_us:
        for node, data in client.wait(end_us - client.time_us).items():
            came[node] += [(client.time_us, Report(*words)) for words in struct.iter_unpack("<10i", data)]
    return came


# The clock alone


@given(st.integers(0, 2**42), st.integers(-10_000_000, 10_000_000), st.integers(0, 10**13))
def test_a_clock_reaches_a_reading_at_the_first_time_that_shows_it(offset: int, drift: int, elapsed: int) -> None:
    clock = BoardClock(offset, drift)
    reading = offset + elapsed
    time_us = clock.reaches(reading)
    assert clock.reads(time_us) >= reading
    assert clock.reads(time_us - 1) < reading


def test_a_clock_gains_its_drift() -> None:
    assert BoardClock(7, 100_000).reads(10**10) == 7 + 10**10 + 10**6  # 100 ppm: 1 s in 10 000 s
    assert BoardClock(7, -100_000).reads(10**10) == 7 + 10**10 - 10**6
    assert BoardClock().reads(123_456) == BoardClock().reaches(123_456) == 123_456


# Boards that tick by it


def test_boards_tick_when_their_own_clocks_say_so(write_bench: BenchWriter, tmp_path: Path) -> None:
    drifts, offsets = (0.0, 10_000.0, -10_000.0), (0.0, 3.0004, 12.75)
    boards = [f"clock_ppm = {ppm}\nclock_offset_s = {offset}" for ppm, offset in zip(drifts, offsets, strict=True)]
    bench = write_bench(*["report.py"] * 3, boards=boards)
    with virtual_bench(bench, out=tmp_path / "sim") as live, RawClient(live) as client:
        assert client.bench["common_ticks"] is False
        came = reports(client, 500_000)
        truth = client.ask({"truth": True})["truth"]
    counts = []
    for node, ppm, offset_s in zip((1, 2, 3), drifts, offsets, strict=True):
        assert truth[f"j{node}"]["clock"] == {"offset_us": round(1e6 * offset_s), "ppm": ppm}
        times = np.array([time for time, _ in came[node]])
        ticks = np.array([report.tick for _, report in came[node]])
        assert [report.time_us for _, report in came[node]] == list(1000 * ticks)
        assert (np.diff(ticks) == 1).all()
        # Times are whole µs, rounded up: a tick comes within 1 µs after its clock got there.
        exact = (1000.0 * ticks - 1e6 * offset_s) / (1.0 + 1e-6 * ppm)
        assert ((times - exact >= -1e-3) & (times - exact < 1.001)).all()
        counts.append(len(ticks))
    assert counts == [500, 505, 495]  # ±1 %: within half a second, five ticks more and five fewer


def test_both_counters_wrap(write_bench: BenchWriter, tmp_path: Path) -> None:
    offsets = (4294.967296 - 0.0205, 4294967.296 - 0.0205)  # the µs clock after 20.5 ms, and the ticks
    boards = [f"clock_offset_s = {offset}" for offset in offsets]
    with (
        virtual_bench(write_bench("report.py", "report.py", boards=boards), out=tmp_path / "sim") as live,
        RawClient(live) as client,
    ):
        came = reports(client, 60_000)
    times = [report.time_us for _, report in came[1]]
    assert times[0] < 0 < times[-1]  # as signed words of the board: past 2^32 they start again from zero
    assert {(after - before) % 2**32 for before, after in pairwise(times)} == {1000}
    ticks = [report.tick for _, report in came[2]]
    assert ticks[0] < 0 < ticks[-1]
    assert {(after - before) % 2**32 for before, after in pairwise(ticks)} == {1}
    assert min(abs(report.tick) for _, report in came[1]) > 4_000_000  # one counter wraps without the other


def test_boards_without_clocks_tick_together_and_say_so(write_bench: BenchWriter, tmp_path: Path) -> None:
    bench = write_bench("report.py", "report.py")
    with virtual_bench(bench, out=tmp_path / "sim") as live, RawClient(live) as client:
        assert client.bench["common_ticks"] is True
        came = reports(client, 20_000)
    for node in (1, 2):
        assert [time for time, _ in came[node]] == list(range(1_000, 21_000, 1_000))
        assert [report.tick for _, report in came[node]] == list(range(1, 21))
        assert all(report.now_us == report.time_us == 1_000 * report.tick for _, report in came[node])


def test_a_service_time_moves_what_is_sent_and_what_the_clock_says(write_bench: BenchWriter, tmp_path: Path) -> None:
    bench = write_bench("report.py", "report.py", extra="[link]\nservice_us = 150\n", boards=["", "clock_ppm = 10000"])
    with virtual_bench(bench, out=tmp_path / "sim") as live, RawClient(live) as client:
        came = reports(client, 50_000)
    assert [time % 1000 for time, _ in came[1]] == [150] * len(came[1])
    assert {report.now_us - report.time_us for _, report in came[1]} == {150}
    # 1 % fast: 150 µs are 151 of its own, and each reading is rounded down.
    assert {report.now_us - report.time_us for _, report in came[2]} <= {151, 152}


# SYNC pulses


def test_an_edge_reaches_all_boards_at_once_and_each_reads_its_own_clock(
    write_bench: BenchWriter, tmp_path: Path
) -> None:
    clocks = (BoardClock(), BoardClock(3_000_400, 80_000), BoardClock(2**32 - 250_000, -100_000))
    boards = [f"clock_ppm = {clock.drift_ppb / 1e3}\nclock_offset_s = {clock.offset_us / 1e6}" for clock in clocks]
    bench = write_bench(*["report.py"] * 3, extra="[link]\nsync_s = 0.05\n", boards=boards)
    with virtual_bench(bench, out=tmp_path / "sim") as live, RawClient(live) as client:
        came = reports(client, 500_000)
    for node, clock in enumerate(clocks, start=1):
        for time_us, report in came[node]:
            assert report.sync_edges == time_us // 50_000
            edge_us = 50_000 * report.sync_edges
            assert report.sync_us % 2**32 == (clock.reads(edge_us) % 2**32 if report.sync_edges else 0)
        assert {report.sync_edges for _, report in came[node]} >= set(range(10))


# What is sampled between the plant's ticks


def moving(ticks: int) -> list[Motion]:
    robot = load_robot("cobot6")
    plant = Plant(robot, read_plant_file(COBOT6_PLANT, robot), "harmonic")
    on, motions = np.ones(6, dtype=bool), [plant.standing()]
    for k in range(ticks):
        motions.append(plant.advance(on, np.full(6, 2.0 * math.sin(2 * math.pi * 3.0 * 1e-3 * k))))
    return motions


def test_motion_between_ticks_lies_between_them() -> None:
    *_, before, after = moving(100)
    assert motion_between(before, after, 1.0) is after
    half = motion_between(before, after, 0.5)
    np.testing.assert_allclose(half.motor_position, (before.motor_position + after.motor_position) / 2, rtol=1e-12)
    both = np.concatenate((before.current, after.current))
    # Half a tick is eight of sixteen samples: the window begins with the ninth of the tick before.
    np.testing.assert_allclose(half.current, both[OVERSAMPLES // 2 :][:OVERSAMPLES], rtol=1e-12)
    early = motion_between(before, after, 1 / 32)  # half a sample
    both = np.concatenate((before.torque, after.torque))
    np.testing.assert_allclose(early.torque, (both[:OVERSAMPLES] + both[1:][:OVERSAMPLES]) / 2, rtol=1e-12)


def test_a_shifted_board_sees_the_same_motion_later() -> None:
    """Two samples of one smooth motion, a fraction of a tick apart, differ by that time and by nothing else."""
    motions = moving(400)
    part = 0.37
    between = [motion_between(a, b, part) for a, b in pairwise(motions[100:])]
    whole = np.array([motion.motor_position for motion in motions[101:]])
    shifted = np.array([motion.motor_position for motion in between])
    velocity = np.gradient(whole, 1e-3, axis=0)
    lead = float((velocity * (whole - shifted)).sum() / (velocity**2).sum())
    # 2 µs: what linear interpolation and differences leave of 630 µs on a motion of 3 Hz; sync is judged at 20 µs.
    assert lead == pytest.approx(1e-3 * (1 - part), abs=2e-6)


# Delays of the link


def test_bytes_take_the_latency_each_way(write_bench: BenchWriter, tmp_path: Path) -> None:
    with (
        virtual_bench(write_bench("echo.py", extra="[link]\nlatency_us = 300\n"), out=tmp_path / "sim") as live,
        RawClient(live) as client,
    ):
        client.wait(250)
        client.write(1, b"in time")
        assert client.wait(5_000) == {1: b"in time"}
        assert client.time_us == 1_300  # with the board at 550, served at its tick, back 300 later
        client.wait(401)
        client.write(1, b"too late")
        assert client.wait(5_000) == {1: b"too late"}
        assert client.time_us == 3_300  # with the board at 2001, after the tick


def jittered(bench: Path, out: Path, seed: int) -> list[int]:
    with virtual_bench(bench, seed=seed, out=out) as live, RawClient(live) as client:
        times = []
        for k in range(100):
            sent_us = client.time_us
            client.write(1, bytes((65 + k % 26,)))
            assert client.wait(10_000)[1]
            times.append(client.time_us - sent_us)
            client.wait(1_237)  # not a multiple of the tick
    return times


def test_jitter_comes_from_the_seed_and_stays_within_its_bounds(write_bench: BenchWriter, tmp_path: Path) -> None:
    bench = write_bench("echo.py", extra="[link]\nlatency_us = 125\njitter_us = 875\n")
    first = jittered(bench, tmp_path / "a", seed=2)
    assert jittered(bench, tmp_path / "b", seed=2) == first
    assert jittered(bench, tmp_path / "c", seed=3) != first
    assert min(first) >= 250  # twice the latency
    assert max(first) <= 3_000  # twice the longest transfer, and a tick of waiting
    assert len(set(first)) > 50


def test_time_is_honoured_to_the_microsecond(write_bench: BenchWriter, tmp_path: Path) -> None:
    bench = write_bench("report.py", extra="[link]\nlatency_us = 217\n", boards=["clock_ppm = 100"])
    with virtual_bench(bench, out=tmp_path / "sim") as live, RawClient(live) as client:
        assert client.wait(1) == {1: b""}
        assert client.time_us == 1
        assert client.wait(1_215) == {1: b""}
        assert client.time_us == 1_216
        assert len(client.wait(1)[1]) == 40
        assert client.time_us == 1_217  # tick at 1000 (999.9 rounded up), and its way


def test_same_seed_same_bytes_with_clocks_and_delays(tmp_path: Path) -> None:
    def stream(out: Path, seed: int) -> list[tuple[int, dict[int, bytes]]]:
        with virtual_bench(CLOCKS, seed=seed, out=tmp_path / out) as live, RawClient(live) as client:
            for node in client.ports:
                client.write(node, encode_frame(MessageType.HELLO, node, 1, major=1, minor=1))
            moments = []
            while client.time_us < 100_000:
                moments.append((client.time_us, client.wait(100_000 - client.time_us)))
            assert not client.dead
            return moments

    first = stream(Path("a"), seed=4)
    assert stream(Path("b"), seed=4) == first
    assert stream(Path("c"), seed=5) != first


LINK = """
[link]
latency_us = 125
jitter_us = 875
service_us = 150
sync_s = 0.2
"""
WRAPPING = [  # within a second: nothing, the µs clock after 0.3 s, the tick counter after 0.5 s
    "clock_ppm = 35\nclock_offset_s = 11.2503",
    "clock_ppm = -20\nclock_offset_s = 4294.667296",
    "clock_ppm = -100\nclock_offset_s = 4294966.796",
]


def test_the_firmware_tells_its_true_clock(write_bench: BenchWriter, tmp_path: Path) -> None:
    bench = write_bench(*[None] * 3, extra=LINK, boards=WRAPPING)
    assert_true_clocks(bench, tmp_path / "sim", pings=100, sync_us=200_000, edges=4)


@pytest.mark.slow
def test_six_boards_tell_their_true_clocks(tmp_path: Path) -> None:
    assert_true_clocks(CLOCKS, tmp_path / "sim", pings=399, sync_us=1_000_000, edges=3)


def assert_true_clocks(bench: Path, out: Path, pings: int, sync_us: int, edges: int) -> None:
    """PONG and SYNC of real boards, judged by the bench's truth: to the µs, over both counters' wraps."""
    pongs: list[tuple[int, int, int, Frame]] = []
    told: dict[int, list[tuple[int, int]]] = {}
    with virtual_bench(bench, out=out) as live, RawClient(live) as client:
        truth = client.ask({"truth": True})["truth"]
        clocks = {node: BoardClock(**rate(truth[f"j{node}"]["clock"])) for node in client.ports}
        readers = {node: FrameReader() for node in client.ports}
        told |= {node: [] for node in client.ports}
        sent_us: dict[tuple[int, int], int] = {}
        for sequence in range(1, pings + 1):
            node = sequence % len(clocks) + 1
            sent_us[node, sequence] = client.time_us
            client.write(node, encode_frame(MessageType.PING, node, sequence, nonce=sequence))
            end_us = client.time_us + 9_137  # not a multiple of the tick
            while client.time_us < end_us:
                for port, data in client.wait(end_us - client.time_us).items():
                    for chunk in readers[port].feed(data):
                        frame = chunk.content
                        assert isinstance(frame, Frame)
                        if frame.type is MessageType.PONG:
                            pongs.append((port, sent_us[port, frame.body.nonce], client.time_us, frame))
                        elif frame.type is MessageType.SYNC:
                            told[port].append((frame.body.edge, frame.body.edge_us))
    assert len(pongs) == pings
    for node, sent, received, frame in pongs:
        clock = clocks[node]
        built = (frame.time_us - clock.reads(sent)) % 2**32
        # It lay on the way for 125 µs at least, each way.
        assert 124 <= built <= clock.reads(received) - clock.reads(sent) - 124
        ticks = (frame.body.tick - clock.reads(sent) // 1000) % 2**32
        assert ticks <= (received - sent) // 1000 + 1
    for node, clock in clocks.items():
        assert told[node] == [(edge, clock.reads(sync_us * edge) % 2**32) for edge in range(1, edges + 1)], node


def rate(clock: dict[str, float]) -> dict[str, int]:
    return {"offset_us": int(clock["offset_us"]), "drift_ppb": round(1e3 * clock["ppm"])}


CLOCKS_CLOCKS = HERE / "benches" / "cobot6_clocks.toml"
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

    def apart_us(self, clocks: list[HostBoardClock]) -> list[float]:
        """Largest error of each clock against the first one's, over the run."""
        errors = []
        for board, (clock, record) in enumerate(zip(clocks, self.records, strict=True)):
            ticks = np.linspace(record.ticks.span[0], record.ticks.span[1], 100)
            errors.append(np.asarray(clock.tick_host_us(ticks)) - self.true_us(board, ticks))
        return [float(np.max(np.abs(error - errors[0]))) for error in errors]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    folder = tmp_path_factory.mktemp("clocks")
    with virtual_bench(CLOCKS_CLOCKS, plant="ideal", seed=5, out=folder / "sim") as live:
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


@pytest.mark.slow
def test_nothing_was_lost_and_nothing_is_wrong(recorded: Recorded, measured: Measured) -> None:
    run = recorded.run
    assert run.provenance["common_ticks"] is False
    assert run.ledger is not None
    assert run.ledger.is_valid, run.ledger.text()
    measured("stream.lost", run.ledger.samples_lost)
    assert run.warnings == ()


@pytest.mark.slow
def test_pulses_put_the_boards_on_one_timeline(recorded: Recorded, measured: Measured) -> None:
    clocks = [recorded.run.clocks[joint] for joint in recorded.run.samples.joint_names]
    assert min(clock.pulses for clock in clocks) >= 0.9 * PERIOD_S * REPEATS
    measured("clock.apart", recorded.apart_us(clocks), "µs")
    measured("clock.residual_with_pulses", [clock.residual_us for clock in clocks], "µs")
    drifts = np.array([(clock.drift_ppm, ppm) for clock, (_, ppm) in zip(clocks, recorded.truth, strict=True)])
    found, true = (drifts - drifts[0]).T
    measured("clock.drift_error", np.abs(found - true), "ppm")


@pytest.mark.slow
def test_pings_alone_put_the_boards_within_a_fifth_of_a_tick(recorded: Recorded, measured: Measured) -> None:
    clocks = [board_clock(record.exchanges, TICK_US, record.stamps) for record in recorded.records]
    measured("clock.apart_by_pings", recorded.apart_us(clocks), "µs")
    assert all(clock.pulses == 0 for clock in clocks)
    assert max(clock.residual_us for clock in clocks) < RESIDUAL_LIMIT_US  # or every run over USB would be warned of
    for board, (clock, record) in enumerate(zip(clocks, recorded.records, strict=True)):
        at = record.ticks.span[1]
        assert abs(clock.tick_host_us(at) - recorded.true_us(board, at)) <= clock.bound_us


@pytest.mark.slow
def test_ticks_by_number_would_be_seconds_off(recorded: Recorded) -> None:
    """What the alignment is for: the same tick number means another moment on every board."""
    at = [float(recorded.true_us(board, record.ticks.first[0])) for board, record in enumerate(recorded.records)]
    numbers = [int(record.ticks.first[0]) for record in recorded.records]
    assert np.ptp(at) < 1e6 < TICK_US * np.ptp(numbers)


@pytest.mark.slow
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


@pytest.mark.slow
def test_the_two_sides_of_each_gear_agree_as_on_one_clock(recorded: Recorded) -> None:
    samples = recorded.run.samples
    assert samples.link_position is not None
    known = samples.valid.all(axis=1) & (samples.play_tick >= 0)
    apart = samples.motor_position[known] - samples.link_position[known]
    # Both encoders' steps; the ideal plant's gears are stiff.
    ratios = np.array([drive.ratio for drive in recorded.run.robot.drives])
    steps = 2.0 * np.pi * (1.0 / 4096.0 / ratios + 1.0 / 524288.0)
    assert (np.std(apart, axis=0) < steps).all()


@pytest.mark.slow
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
