"""Boards with clocks of their own: when they tick, what they read then, SYNC pulses, and the delays of a link."""

import functools
import math
import struct
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hil_tests.pendulum import COBOT6_PLANT
from hil_tests.raw_client import RawClient
from hil_tests.small_bench import write_bench_file
from hil_tests.virtual_bench import virtual_bench
from hil_tests.virtual_bench.board import BoardClock
from hil_tests.virtual_bench.lockstep import motion_between
from hil_tests.virtual_bench.plant import OVERSAMPLES, Motion, Plant
from hil_tests.virtual_bench.plant_file import read_plant_file
from jointbench.robot import load_robot
from jointwire import Frame, FrameReader, MessageType, encode_frame

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
