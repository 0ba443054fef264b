"""Lines with a speed, and lines that boards share: who hears what, and what becomes of bytes that meet."""

import functools
import tomllib
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from hil_tests.raw_client import RawClient
from hil_tests.small_bench import write_bench_file
from hil_tests.virtual_bench import virtual_bench
from hil_tests.virtual_bench.bench_file import read_bench_file
from jointwire import BY_NAME, Frame, FrameReader, MessageType, encode_frame

BUS = Path(__file__).parent / "benches" / "cobot6_bus.toml"
BenchWriter = Callable[..., Path]


@pytest.fixture
def write_bench(tmp_path: Path) -> BenchWriter:
    return functools.partial(write_bench_file, tmp_path)


def roll_call(*heard: bytes) -> bytes:
    """What programs/roll_call.py answers when it has heard these bytes."""
    numbers = sum(map(len, heard)), zlib.crc32(b"".join(heard))
    letters = [75 + (number >> 4 * place & 15) for number in numbers for place in range(8)]
    return b"<" + bytes(letters) + b">"


def test_all_on_a_line_hear_all_but_themselves(write_bench: BenchWriter, tmp_path: Path) -> None:
    bench = write_bench(*["roll_call.py"] * 3, boards=['line = "x"'] * 3)
    with virtual_bench(bench, out=tmp_path / "sim") as live, RawClient(live) as client:
        assert list(client.ports) == [1]
        client.write(1, b"NONE OF YOURS a")
        first = client.pass_time(5_000)[1]
        assert first == roll_call(b"NONE OF YOURS a")
        client.write(1, b"b")
        second = client.pass_time(5_000)[1]
        assert second == roll_call(b"NONE OF YOURS a", first, b"b")
        client.write(1, b"a")
        third = client.pass_time(5_000)[1]
        assert third == roll_call(b"NONE OF YOURS a", b"b", second, b"a")  # not its own


def test_two_lines_do_not_hear_each_other(write_bench: BenchWriter, tmp_path: Path) -> None:
    bench = write_bench(*["roll_call.py"] * 3, boards=['line = "x"', 'line = "y"', 'line = "x"'])
    with virtual_bench(bench, out=tmp_path / "sim") as live, RawClient(live) as client:
        assert list(client.ports) == [1, 2]
        client.write(1, b"ONLY X")
        client.write(2, b"ONLY Y b")
        assert client.pass_time(5_000)[2] == roll_call(b"ONLY Y b")
        client.write(3, b"c")  # goes to the port of node 1
        assert client.pass_time(5_000)[1] == roll_call(b"ONLY X", b"c")


def test_answers_that_meet_are_garbled_and_nobody_takes_them_for_whole(
    write_bench: BenchWriter, tmp_path: Path
) -> None:
    bench = write_bench(*["roll_call.py"] * 3, boards=['line = "x"'] * 3)
    with virtual_bench(bench, out=tmp_path / "sim") as live, RawClient(live) as client:
        client.write(1, b"ab")
        answer = client.pass_time(5_000)[1]
        assert len(answer) == 18  # both spoke at once
        assert answer[:1] != b"<"
        client.write(1, b"c")
        assert client.pass_time(5_000)[1] == roll_call(b"ab", answer, b"c")  # the third heard the same garble


def test_a_client_that_speaks_while_a_board_does_spoils_it(write_bench: BenchWriter, tmp_path: Path) -> None:
    bench = write_bench("roll_call.py", "roll_call.py", boards=['line = "x"\nbaud = 57600'] * 2)
    with virtual_bench(bench, out=tmp_path / "sim") as live, RawClient(live) as client:
        client.write(1, b"a")
        client.wait(1_500)  # the answer takes 3.1 ms from 1.0 ms on
        client.write(1, b"###")
        answer = client.pass_time(9_000)[1]
        assert len(answer) == 18
        assert (answer[:1], answer[-1:]) == (b"<", b">")
        assert b"#" not in answer
        assert sum(got != meant for got, meant in zip(answer, roll_call(b"a"), strict=True)) == 3


def test_collisions_are_the_same_for_the_same_seed(write_bench: BenchWriter, tmp_path: Path) -> None:
    bench = write_bench(*["roll_call.py"] * 2, boards=['line = "x"'] * 2)

    def garble(out: str, seed: int) -> bytes:
        with virtual_bench(bench, seed=seed, out=tmp_path / out) as live, RawClient(live) as client:
            client.write(1, b"ab")
            return client.pass_time(5_000)[1]

    first = garble("one", 1)
    assert garble("two", 1) == first
    assert garble("three", 2) != first


def test_a_wire_carries_what_its_baud_rate_says_both_ways_at_once(write_bench: BenchWriter, tmp_path: Path) -> None:
    bench = write_bench("echo.py", boards=["baud = 115200"])
    data = bytes(range(160, 256)) * 12  # 1152 bytes: 100 ms at 115200 baud
    with virtual_bench(bench, out=tmp_path / "sim") as live, RawClient(live) as client:
        assert client.bench["board"][0]["baud"] == 115200
        client.write(1, data)
        arrived, total = [(0, 0)], b""
        while len(total) < len(data):
            total += client.wait(1_000_000)[1]
            arrived.append((client.time_us, len(total)))
    assert total == data
    # The echo follows by a tick and, at the adapter, by less than a millisecond more.
    assert 100_000 < client.time_us <= 103_000
    (early_us, early), (late_us, late) = arrived[10], arrived[-10]
    assert 1e6 * (late - early) / (late_us - early_us) == pytest.approx(
        11_520, rel=0.02
    )  # a byte more or less at each end


def test_a_shared_line_is_no_faster_than_its_baud_rate(write_bench: BenchWriter, tmp_path: Path) -> None:
    bench = write_bench("roll_call.py", "roll_call.py", boards=['line = "x"\nbaud = 115200'] * 2)
    data = b"SLOW" * 288  # 1152 bytes: 100 ms
    with virtual_bench(bench, out=tmp_path / "sim") as live, RawClient(live) as client:
        client.write(1, data + b"b")
        assert client.wait(100_000) == {1: b""}
        answer = client.pass_time(5_000)[1]
        assert answer == roll_call(data, b"b")


def test_without_a_baud_rate_nothing_is_slower_than_before(write_bench: BenchWriter, tmp_path: Path) -> None:
    with virtual_bench(write_bench("echo.py"), out=tmp_path / "sim") as live, RawClient(live) as client:
        client.write(1, bytes(512))
        assert client.wait(5_000) == {1: bytes(512)}
        assert client.time_us == 1_000


def test_the_live_file_gives_boards_of_a_line_one_port(tmp_path: Path) -> None:
    with virtual_bench(BUS, out=tmp_path / "sim") as live:
        boards = tomllib.loads(live.read_text(encoding="utf-8"))["board"]
        with RawClient(live) as client:
            assert list(client.wait(1_000)) == [1, 4]
            assert "its lowest node" in client.ask({"wait_us": 1, "written": {"2": 1}})["error"]
            assert set(client.ask({"truth": True})["truth"]) == {"j1", "j2", "j3", "j4", "j5", "j6"}
    urls = [board["url"] for board in boards]
    assert len(set(urls[:3])) == len(set(urls[3:])) == 1
    assert urls[0] != urls[3]
    assert all(board["baud"] == 921600 for board in boards)


@pytest.mark.unix_only("a program's end ends a unix board; a QEMU board then has its console on the line")
def test_a_dead_board_on_a_line_leaves_it_to_the_others(write_bench: BenchWriter, tmp_path: Path) -> None:
    bench = write_bench("echo.py", "roll_call.py", boards=['line = "x"'] * 2)
    with virtual_bench(bench, out=tmp_path / "sim") as live, RawClient(live) as client:
        client.write(1, b"x")
        client.pass_time(3_000)
        assert "told to end by the letter x" in client.dead["1"]
        client.write(2, b"b")
        answer = client.pass_time(5_000)[1]
        assert answer == roll_call(b"x", b"b")


def test_the_next_client_finds_a_silent_line(write_bench: BenchWriter, tmp_path: Path) -> None:
    bench = write_bench("roll_call.py", "roll_call.py", boards=['line = "x"\nbaud = 9600'] * 2)
    with virtual_bench(bench, out=tmp_path / "sim") as live:
        with RawClient(live) as client:
            client.write(1, b"a")
            client.pass_time(4_000)  # 18 bytes take 19 ms
        with RawClient(live) as client:
            assert client.pass_time(30_000) == {1: b""}


def test_boards_of_a_line_are_told_so(tmp_path: Path) -> None:
    """The real firmware answers a valid request on a shared line, and hands the line back."""
    with virtual_bench(BUS, out=tmp_path / "sim") as live, RawClient(live) as client:
        for node in range(1, 7):
            client.write(node, encode_frame(MessageType.HELLO, node, node, major=1, minor=1))
            data = client.pass_time(10_000)[1 if node < 4 else 4]
            frames = [chunk.content for chunk in FrameReader().feed(data)]
            assert all(isinstance(frame, Frame) and frame.node == node for frame in frames)
            assert [frame.type for frame in frames if isinstance(frame, Frame)] == [
                MessageType.HELLO_ACK,
                MessageType.YIELD,
            ]
    assert not read_bench_file(BUS).link.sync_us


def turn(client: RawClient, port: int, node: int, request: bytes) -> list[Frame]:
    """Give a board the line by a request, and return its frames up to the one that hands the line back."""
    reader, frames = FrameReader(), []
    client.write(node, request)
    end_us = client.time_us + 100_000
    while client.time_us < end_us:
        frames += [chunk.content for chunk in reader.feed(client.wait(end_us - client.time_us)[port])]
        assert all(isinstance(frame, Frame) and frame.node == node for frame in frames), frames
        if frames and frames[-1].type is MessageType.YIELD:
            return frames
    raise AssertionError(f"node {node} kept the line for 100 ms: {frames}")


def test_three_streaming_boards_fit_on_a_line_and_nothing_is_lost(tmp_path: Path) -> None:
    """Polled in turn by a client of no cleverness, with the line at the baud rate of a real board's UART."""
    ticks: dict[int, list[int]] = {node: [] for node in (1, 2, 3)}
    missed = 0
    with virtual_bench(BUS, out=tmp_path / "sim") as live, RawClient(live) as client:
        for node in ticks:
            turn(client, 1, node, encode_frame(MessageType.HELLO, node, 1, major=1, minor=1))
            write = encode_frame(MessageType.WRITE, node, 2, register=BY_NAME["stream.always"].id, value=1)
            turn(client, 1, node, write)
        sequence = 3
        while client.time_us < 1_500_000:
            for node in ticks:
                for frame in turn(client, 1, node, encode_frame(MessageType.PING, node, sequence, nonce=sequence)):
                    if frame.type is MessageType.DATA:
                        missed += frame.body.missed
                        ticks[node] += range(frame.body.first_tick, frame.body.first_tick + frame.body.count)
            sequence += 1
    assert missed == 0
    for node, seen in ticks.items():
        assert seen == list(range(seen[0], seen[0] + len(seen))), node
        assert len(seen) > 1_250  # 1.5 s but for the start, and for what waits in the board at the end
