"""Lines of a bench: their speed, who hears whom, delays, and every byte unchanged.

The firmware sends back what an ECHO carries, so each frame here crosses the line, the board's decoder and its encoder
twice; a board of a few lines that sends back whatever comes shows the same of bytes that are no frames.
"""

import functools
import tomllib
import zlib
from collections.abc import Callable, Generator
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hil_tests.raw_client import RawClient
from hil_tests.small_bench import write_bench_file
from hil_tests.virtual_bench import virtual_bench
from hil_tests.virtual_bench.bench_file import read_bench_file
from hil_tests.virtual_bench.serial_link import NEVER, Delay, Wire
from jointbench.testing.requirements import Measured
from jointwire import BY_NAME, MAX_BODY, PROTOCOL_MAJOR, PROTOCOL_MINOR, Frame, FrameReader, MessageType, encode_frame

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


BAUD = 1_000_000  # a byte in 10 µs
MESSAGE = bytes(range(1, 101))


def wire(*stations: int, seed: int = 0) -> Wire:
    return Wire(BAUD, stations or (0, 1, 2), np.random.default_rng(seed))


def test_bytes_come_one_after_the_other_at_the_speed_of_the_wire() -> None:
    line = wire()
    line.send(0, MESSAGE, 1_000)
    assert line.hear(1, 1_009) == b""
    assert line.hear(1, 1_010) == MESSAGE[:1]
    assert line.hear(1, 1_509) == MESSAGE[1:50]
    assert line.hear(1, 5_000) == MESSAGE[50:]
    assert line.hear(2, 5_000) == MESSAGE  # every other station hears it
    assert line.hear(0, 5_000) == b""  # and nobody itself


def test_a_station_sends_one_thing_after_the_other() -> None:
    line = wire()
    line.send(0, MESSAGE, 0)
    line.send(0, b"more", 20)
    assert line.hear(1, 1_039) == MESSAGE + b"mor"
    assert line.hear(1, 1_040) == b"e"


def test_a_station_takes_no_more_than_it_asks_for() -> None:
    line = wire()
    line.send(0, MESSAGE, 0)
    assert line.hear(1, 10_000, most=30) == MESSAGE[:30]
    assert line.hear(1, 10_000, most=512) == MESSAGE[30:]


def test_bytes_that_meet_are_garbled_for_everybody_and_the_others_are_not() -> None:
    line = wire(0, 1, 2, 3)
    line.send(0, b"A" * 60, 0)
    line.send(1, b"B" * 60, 400)  # bytes 40 to 59 of the first meet the first 20 of the second
    heard = {station: line.hear(station, 10_000) for station in range(4)}
    met = heard[2][40:60]
    assert heard[2] == b"A" * 40 + met + b"B" * 40
    assert heard[3] == heard[2]
    assert heard[0] == met + b"B" * 40  # what the others sent, and the garble of both
    assert heard[1] == b"A" * 40 + met
    assert b"A" not in met  # the lowest station's byte is always changed


def test_collisions_come_from_the_seed() -> None:
    def garble(seed: int) -> bytes:
        line = wire(seed=seed)
        line.send(0, MESSAGE, 0)
        line.send(1, MESSAGE, 0)
        return line.hear(2, 10_000)

    assert garble(3) == garble(3)
    assert garble(3) != garble(4)


def test_a_gap_of_one_byte_is_no_collision() -> None:
    line = wire()
    line.send(0, b"A" * 10, 0)
    line.send(1, b"B" * 10, 100)
    assert line.hear(2, 10_000) == b"A" * 10 + b"B" * 10


def test_what_a_slow_wire_cannot_carry_is_lost_and_not_piled_up() -> None:
    line = wire(0, 1)
    for millisecond in range(2_000):
        line.send(0, bytes(512), 1_000 * millisecond)
    total = sum(len(line.hear(1, 1_000 * millisecond)) for millisecond in range(3_000))
    assert total == pytest.approx(2_000 * 100 + 65_536, rel=0.01)  # all it carried, and what waited at the end


def test_cleared_wires_are_silent() -> None:
    line = wire()
    line.send(0, MESSAGE, 0)
    line.hear(1, 500)
    line.clear()
    assert line.hear(1, 10_000) == line.hear(2, 10_000) == b""
    line.send(0, b"new", 10_000)
    assert line.hear(2, 11_000) == b"new"


@given(
    sends=st.lists(st.tuples(st.integers(0, 2), st.binary(min_size=1, max_size=30), st.integers(0, 400)), max_size=12),
    pauses=st.lists(st.integers(1, 300), max_size=20),
)
def test_when_one_listens_changes_nothing(sends: list[tuple[int, bytes, int]], pauses: list[int]) -> None:
    """However often stations listen in between, they hear the same."""
    time_us, often, once = 0, wire(), wire()
    heard = {station: b"" for station in range(3)}
    for station, data, pause in sends:
        time_us += pause
        often.send(station, data, time_us)
        once.send(station, data, time_us)
        for listener in heard:
            heard[listener] += often.hear(listener, time_us)
    for pause in pauses:
        time_us += pause
        heard[2] += often.hear(2, time_us)
    for listener in heard:
        heard[listener] += often.hear(listener, 10**6)
        assert heard[listener] == once.hear(listener, 10**6)


# Delays


def test_transfers_take_the_latency_and_up_to_the_jitter_and_keep_their_order() -> None:
    adapter = Delay(125, 875, np.random.default_rng(1))
    for k in range(2_000):
        adapter.send(k.to_bytes(2, "big"), 2_000 * k)
    arrived = list(adapter.arrived(10**9))
    delays = np.array([due - 2_000 * k for k, (due, _) in enumerate(arrived)])
    assert [int.from_bytes(data, "big") for _, data in arrived] == list(range(2_000))
    assert delays.min() >= 125
    assert delays.max() <= 1_000
    # Uniform: mean 562.5, its standard error 253 / sqrt(2000) = 5.7; five of them.
    assert abs(delays.mean() - 562.5) < 28
    assert adapter.next_us == NEVER


@given(st.lists(st.integers(0, 300), min_size=2, max_size=30))
def test_a_transfer_never_overtakes_another(pauses: list[int]) -> None:
    adapter, time_us = Delay(100, 1_000, np.random.default_rng(5)), 0
    for k, pause in enumerate(pauses):
        time_us += pause
        adapter.send(bytes((k,)), time_us)
    due = [when for when, _ in adapter.arrived(10**9)]
    assert due == sorted(due)


def test_bytes_are_there_when_they_are_due_and_not_before() -> None:
    adapter = Delay(300, 0, np.random.default_rng(0))
    adapter.send(b"now", 1_000)
    assert adapter.next_us == 1_300
    assert list(adapter.arrived(1_299)) == []
    assert list(adapter.arrived(1_300)) == [(1_300, b"now")]


LONGEST = MAX_BODY - 2  # an ECHO's data, behind their count
MIRROR = """
from board import Board
board = Board()
board.disable()
try:
    while True:
        count = board.wait_tick()
        board.outputs[:4] = board.inputs[:4]
        start, at = board.INCOMING_AT, board.OUTGOING_AT
        board.outgoing[at : at + count] = board.incoming[start : start + count]
        board.send(count)
except EOFError:
    pass
"""
SHARED = 'line = "bus"\nbaud = 921600'


class TransparencyWire:
    """Requests to one board, answered one by one."""

    def __init__(self, client: RawClient, port: int, node: int, shared: bool) -> None:
        self._client, self._port, self._node, self._shared = client, port, node, shared
        self._reader = FrameReader()
        self._sequence = 1000 * node

    def ask(self, kind: MessageType, answer: MessageType, **fields) -> Frame:
        """The answer to a request, which must come at the first try; on a shared line, after the board's YIELD."""
        self._sequence += 1
        self._client.write(self._node, encode_frame(kind, self._node, self._sequence, **fields))
        found, done = None, False
        deadline = self._client.time_us + 200_000
        while not done and self._client.time_us < deadline:
            for chunk in self._reader.feed(self._client.wait(deadline - self._client.time_us)[self._port]):
                frame = chunk.content
                assert isinstance(frame, Frame), (kind, fields, chunk)
                found = frame if frame.type is answer else found
                done = frame.type is (MessageType.YIELD if self._shared else answer)
        assert self._client.dead == {}
        assert found is not None, (kind, fields)
        return found

    def say(self, data: bytes) -> None:
        """Send bytes that need no answer."""
        self._client.write(self._node, data)

    def hello(self):
        return self.ask(MessageType.HELLO, MessageType.HELLO_ACK, major=PROTOCOL_MAJOR, minor=PROTOCOL_MINOR).body

    def echo(self, data: bytes) -> bytes:
        return bytes(self.ask(MessageType.ECHO, MessageType.ECHO_REPLY, count=len(data), data=data).body.data)


def bytes_differing(one: bytes, other: bytes) -> int:
    """How many bytes two answers do not have in common, place by place; those that only one has count."""
    return sum(a != b for a, b in zip_longest(one, other))


@contextmanager
def line(folder: Path, shared: bool) -> Generator[list[TransparencyWire]]:
    """The boards of a line: one on a port of its own, or two that share one."""
    boards = (SHARED, SHARED) if shared else ()
    path = write_bench_file(folder, *([None, None] if shared else [None]), boards=boards)
    with virtual_bench(path, plant="ideal", out=folder / "sim") as live, RawClient(live) as client:
        yield [TransparencyWire(client, 1, node, shared) for node in ((1, 2) if shared else (1,))]


@pytest.mark.parametrize("shared", [False, True], ids=["port", "bus"])
@pytest.mark.slow
def test_frames_of_every_length_with_every_byte_cross_unchanged(
    tmp_path: Path, shared: bool, measured: Measured
) -> None:
    with line(tmp_path, shared) as wires:
        before, wrong = [wire.hello() for wire in wires], 0
        for length in range(LONGEST + 1):
            data = bytes((length + place) & 0xFF for place in range(length))
            wrong += bytes_differing(wires[length % len(wires)].echo(data), data)
        measured("line.echo_wrong", wrong, "bytes")
        after = [wire.hello() for wire in wires]
        for first, last in zip(before, after, strict=True):
            assert last.tick > first.tick  # nothing has restarted it
            assert last.state == first.state


@pytest.mark.parametrize("shared", [False, True], ids=["port", "bus"])
@pytest.mark.parametrize("byte", [0x00, 0x03, 0x04, 0x0A, 0x0D, 0x11, 0x13, 0x1A, 0x7F, 0xFF])
def test_no_byte_is_a_command(tmp_path: Path, shared: bool, byte: int) -> None:
    """Delimiters, Ctrl-C (0x03), end of file, line ends, XON, XOFF, suspend: as data, and between frames."""
    with line(tmp_path, shared) as wires:
        before = wires[0].hello()
        for length in (1, 253, 254, 255, LONGEST):
            assert wires[0].echo(bytes([byte]) * length) == bytes([byte]) * length
        wires[0].say(bytes([byte]) * 100 + b"\0")
        assert wires[0].hello().tick > before.tick


def test_bytes_that_are_no_frames_cross_a_port_in_every_length(tmp_path: Path) -> None:
    (tmp_path / "mirror.py").write_text(MIRROR)
    path = write_bench_file(tmp_path, str(tmp_path / "mirror.py"))
    with virtual_bench(path, plant="ideal", out=tmp_path / "sim") as live, RawClient(live) as client:
        for length in range(1, 1101):
            data, came = bytes((7 * length + place) & 0xFF for place in range(length)), b""
            client.write(1, data)
            deadline = client.time_us + 50_000
            while len(came) < length and client.time_us < deadline:
                came += client.wait(deadline - client.time_us)[1]
            assert came == data
        assert client.dead == {}
