"""A port and its line: bytes become frames of the board each is from, and boards that share a line speak in turn."""

import contextlib
import os
import termios
import tty
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jointbench.bench.bench_file import BoardEntry
from jointbench.bench.board import Board
from jointbench.bench.clock import AttendedClock, WallClock
from jointbench.bench.connections import QUIET_US, SharedLine, bytes_per_second, check_load
from jointbench.bench.conversation import Conversation
from jointbench.bench.identity import Facts
from jointbench.bench.line import Line, Port
from jointbench.bench.settings import stream_registers
from jointbench.errors import BoardLost, BoardSilent, FileError
from jointbench.tests.bench.wire import DEFAULTS, Wire, WireBoard
from jointwire import Chunk, Frame, FrameReader, MessageType, Noise, encode_frame


@pytest.fixture
def line() -> Iterator[tuple[int, Port]]:
    """The far end's descriptor, and the port."""
    far, near = os.openpty()
    tty.setraw(near)
    port = Port([BoardEntry(1, "j1", os.ttyname(near), 921600)])
    os.close(near)
    yield far, port
    port.close()
    with contextlib.suppress(OSError):  # a test that pulled the plug has closed it
        os.close(far)


def test_bytes_go_both_ways_and_are_counted(line: tuple[int, Port]) -> None:
    far, port = line
    clock, came = WallClock([port]), []
    port.sink = lambda data, time_us: came.append((data, time_us))
    port.write(b"\x00\x0d\x0a\x11\xff")
    assert os.read(far, 100) == b"\x00\x0d\x0a\x11\xff"
    os.write(far, bytes(range(256)))
    while sum(len(data) for data, _ in came) < 256:
        clock.wait(1_000_000)
    assert b"".join(data for data, _ in came) == bytes(range(256))
    assert (port.written, port.received) == (5, 256)
    assert 0 <= came[0][1] <= clock.now_us()
    assert port.faults == {}


def test_a_terminal_as_the_system_makes_it_carries_every_byte_and_length() -> None:
    """Echo, line ends, Ctrl-C and flow control are on by default; the host must switch them off for itself."""
    far, near = os.openpty()
    assert termios.tcgetattr(near)[3] & termios.ISIG  # where the byte 0x03 is a signal
    port = Port([BoardEntry(1, "j1", os.ttyname(near), 921600)])
    clock, came = WallClock([port]), bytearray()
    port.sink = lambda data, time_us: came.extend(data)
    for length in range(1, 1101):
        data = bytes((length + place) & 0xFF for place in range(length))
        came.clear()
        os.write(far, data)
        while len(came) < length:
            clock.wait(1_000_000)
        assert came == data
        port.write(data)
        sent = b""
        while len(sent) < length:
            sent += os.read(far, length)
        assert sent == data
    port.close()
    os.close(near)
    os.close(far)


def test_a_wait_ends_after_its_time(line: tuple[int, Port]) -> None:
    clock = WallClock([line[1]])
    before = clock.now_us()
    clock.wait(20_000)
    # No sooner but for the kernel's rounding to its clock; a busy machine may be any time later.
    assert clock.now_us() - before >= 19_000


def test_a_port_that_is_pulled_out_is_lost_not_an_error(line: tuple[int, Port]) -> None:
    far, port = line
    clock = WallClock([port])
    board = Board(port, clock)
    os.close(far)
    with pytest.raises(BoardLost, match=r"^j1 \(node 1\): port .*"):
        board.hello()


def test_a_lost_port_is_waited_on_no_more(line: tuple[int, Port]) -> None:
    """A terminal without its other end is always ready; waiting on it would return at once and for ever."""
    far, port = line
    clock = WallClock([port])
    os.close(far)
    clock.wait(1_000_000)
    assert port.lost == port.why_lost(1) != ""
    before = clock.now_us()
    clock.wait(20_000)
    assert clock.now_us() - before >= 19_000
    port.write(b"goes nowhere")
    assert port.written == 0


def test_nobody_there(line: tuple[int, Port]) -> None:
    board = Board(line[1], WallClock([line[1]]))
    with pytest.raises(BoardSilent, match=r"not one byte on .*; is it powered, is this its port"):
        board.hello()


def test_ports_without_a_descriptor_are_looked_at() -> None:
    port = Port([BoardEntry(1, "j1", "loop://", 921600)])
    clock, came = WallClock([port]), bytearray()
    port.sink = lambda data, time_us: came.extend(data)
    port.write(b"there and back")
    while len(came) < 14:
        clock.wait(1000)
    assert came == b"there and back"
    port.close()


def test_a_port_of_several_boards() -> None:
    """Its key is the lowest node; one board may be gone and the others not."""
    port = Port([BoardEntry(node, f"j{node}", "loop://", 921600) for node in (12, 3, 7)])
    assert (port.nodes, port.joints, port.key) == ((3, 7, 12), ("j3", "j7", "j12"), "3")
    port.dead[7] = "its process has ended"
    assert [port.why_lost(node) for node in port.nodes] == ["", "its process has ended", ""]
    port.lost = "port loop:// is gone"
    assert port.why_lost(3) == port.why_lost(7) == "port loop:// is gone"
    port.close()
    with pytest.raises(BoardLost, match=r"^j12 \(node 12\): port /dev/nowhere cannot be opened"):
        Port([BoardEntry(node, f"j{node}", "/dev/nowhere", 921600) for node in (12, 3)])


def test_a_port_in_use_is_told(line: tuple[int, Port]) -> None:
    with pytest.raises(BoardLost, match=rf"port {line[1].url} is in use: .*; end that first, or wait until it is done"):
        Port([BoardEntry(1, "j1", line[1].url, 921600)])


def test_there_is_no_such_port() -> None:
    with pytest.raises(BoardLost, match=r"^j9 \(node 9\): port /dev/nowhere cannot be opened"):
        Port([BoardEntry(9, "j9", "/dev/nowhere", 921600)])


STREAM = b"\x33boot\0" + b"".join(
    encode_frame(MessageType.ECHO_REPLY, 1, seq, count=size, data=bytes(range(256)) * 4 + bytes(size - 1024))
    for seq, size in enumerate((1024, 1100, 1024))
) + b"unfinished"  # fmt: skip


@dataclass
class Listener:
    raw: bytes = b""
    chunks: list[Chunk] = field(default_factory=list[Chunk])

    def heard(self, data: bytes) -> None:
        self.raw += data

    def take(self, time_us: int, chunk: Chunk) -> None:
        self.chunks.append(chunk)

    def ping_frame(self) -> bytes:
        return encode_frame(MessageType.PING, 1, 0, nonce=0)


def listening() -> tuple[Wire, Line, Listener]:
    wire, listener = Wire(WireBoard(1)), Listener()
    line = Line(wire, wire)  # type: ignore[arg-type] - a simulated wire
    line.join(1, listener)
    return wire, line, listener


@given(st.lists(st.integers(0, len(STREAM)), max_size=40))
def test_the_same_chunks_come_from_any_pieces(cuts: list[int]) -> None:
    wire, line, listener = listening()
    places = [0, *sorted(cuts), len(STREAM)]
    for start, end in pairwise(places):
        wire.sink(STREAM[start:end], 0)
    assert listener.chunks == list(FrameReader().feed(STREAM))
    assert [type(chunk.content) is Frame for chunk in listener.chunks] == [False, True, True, True]
    assert listener.raw == STREAM
    assert line.rest == b"unfinished"


def test_a_board_that_babbles_without_an_end_does_not_fill_the_memory() -> None:
    wire, line, listener = listening()
    for _ in range(1000):
        wire.sink(b"\x55" * 100, 0)
    kept = sum(len(chunk.encoded) for chunk in listener.chunks) + len(line.rest)
    assert kept == 100_000
    assert len(line.rest) < 10_000


def test_keep_alive_is_a_ping() -> None:
    wire, line, listener = listening()
    line.keep_alive(1)
    assert wire.written == len(listener.ping_frame())


def test_stop_goes_to_everybody() -> None:
    wire, line, _ = listening()
    line.stop_all()
    wire.wait(2_000)
    assert [(frame.type, frame.node) for frame in wire.boards[1].served] == [(MessageType.STOP, 0xFF)]


# A joint's DATA: 14 bytes a tick and two slow channels, 64 ticks a block, with head, header, CRC and COBS.
BLOCK, BLOCK_US = 914, 64_000


@dataclass
class Rig:
    wire: Wire
    line: SharedLine = field(init=False)
    clock: AttendedClock = field(init=False)
    talks: dict[int, Conversation] = field(init=False)
    heard: list[tuple[int, Chunk]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.line = SharedLine(self.wire, self.wire, 921600)  # type: ignore[arg-type] - a simulated wire
        self.clock = AttendedClock(self.wire, [self.line])
        self.talks = {
            node: Conversation(self.line, node, f"j{node}", self.clock, lambda frame: False) for node in self.wire.nodes
        }
        for talk in self.talks.values():
            talk.listener = lambda time_us, node, chunk: self.heard.append((node, chunk))

    def attend(self) -> None:
        for node in self.talks:
            self.line.attend(node, 4096)

    def pass_time(self, duration_us: int) -> None:
        self.wire.pass_time(self.clock, duration_us)  # type: ignore[arg-type] - a simulated clock

    def ask(self, node: int, kind: MessageType = MessageType.STOP, **fields) -> Frame:
        return self.talks[node].ask(kind, MessageType.ACK, lambda body: True, **fields)[1]

    def frames(self, node: int, kind: MessageType) -> list[Frame]:
        found = [chunk.content for of, chunk in self.heard if of == node]
        return [content for content in found if isinstance(content, Frame) and content.type is kind]

    @property
    def noise(self) -> list[int]:
        return [node for node, chunk in self.heard if isinstance(chunk.content, Noise)]


def rig(*boards: WireBoard, **wire) -> Rig:
    return Rig(Wire(*boards, **wire))


@pytest.mark.parametrize("count", [2, 3, 5])
def test_streaming_boards_are_heard_before_their_buffers_are_full(count: int) -> None:
    """Five boards at 1 kHz fill 80 % of 921600 baud."""
    each = rig(*(WireBoard(node) for node in range(1, count + 1)))
    each.attend()
    for node in each.talks:
        each.wire.stream(node, BLOCK_US, BLOCK)
    each.pass_time(5_000_000)
    assert each.wire.collisions == 0
    assert not each.noise
    for node, board in each.wire.boards.items():
        assert board.dropped == 0
        assert len(each.frames(node, MessageType.ECHO_REPLY)) >= 5_000_000 // BLOCK_US - 2
        # Ten a second keep a board alive and its clock seen, as on a line of its own.
        assert len(each.frames(node, MessageType.PONG)) >= 50


def test_nobody_is_polled_before_it_was_greeted() -> None:
    each = rig(WireBoard(1), WireBoard(2))
    each.pass_time(1_000_000)
    assert each.wire.written == 0
    each.line.attend(2, 4096)
    each.pass_time(1_000_000)
    assert not each.wire.boards[1].served
    assert len(each.wire.boards[2].served) >= 10


def test_polls_come_at_no_fixed_phase_of_a_tick() -> None:
    each = rig(WireBoard(1), WireBoard(2))
    each.attend()
    each.pass_time(4_000_000)
    assert len({frame.body.nonce % 1000 for frame in each.frames(1, MessageType.PONG)}) > 20


def test_a_request_waits_for_the_line_and_is_answered() -> None:
    each = rig(WireBoard(1), WireBoard(2), WireBoard(3))
    each.attend()
    for node in each.talks:
        each.wire.stream(node, BLOCK_US, BLOCK)
    for _ in range(10):
        for node in each.talks:
            assert each.ask(node, MessageType.WRITE, register=1, value=2).node == node
    assert each.wire.collisions == 0
    for board in each.wire.boards.values():
        assert len([frame for frame in board.served if frame.type is MessageType.WRITE]) == 10


def test_a_board_that_is_not_there_costs_the_others_little() -> None:
    each = rig(WireBoard(1), WireBoard(2, mute=True), WireBoard(3))
    each.attend()
    for node in (1, 3):
        each.wire.stream(node, BLOCK_US, BLOCK)
    before = each.wire.now_us()
    with pytest.raises(BoardSilent, match=r"^j2 \(node 2\): no answer to STOP in 4 tries of \d+ ms, and not one byte"):
        each.ask(2)
    assert each.wire.now_us() - before < 4 * (100_000 + each.line.patience_us) + 10_000
    assert len([frame for frame in each.wire.boards[2].served if frame.type is MessageType.STOP]) == 4
    each.pass_time(3_000_000)
    assert each.wire.boards[1].dropped == each.wire.boards[3].dropped == 0
    assert each.ask(3).node == 3


def test_a_yield_that_is_lost_ends_the_turn_all_the_same() -> None:
    each = rig(WireBoard(1, keeps_line=True), WireBoard(2))
    each.attend()
    before = each.wire.now_us()
    assert each.ask(1).node == 1
    assert each.ask(2).node == 2
    assert each.wire.now_us() - before < QUIET_US + 20_000
    assert each.wire.collisions == 0


def test_a_board_that_never_stops_speaking_does_not_keep_the_line() -> None:
    each = rig(WireBoard(1), WireBoard(2))
    each.ask(1)
    each.line.send(1, each.talks[1].frame(MessageType.STOP))
    for _ in range(400):  # half of the time, for a second
        each.wire.babble(1, b"\x55" * 110)
        each.pass_time(2_500)
    assert each.ask(2).node == 2


def test_stop_does_not_wait_for_its_turn() -> None:
    each = rig(WireBoard(1), WireBoard(2))
    each.attend()
    each.pass_time(100_000)
    while each.line._turn:
        each.pass_time(100)
    each.line.stop_all()
    each.pass_time(1_000)
    for board in each.wire.boards.values():
        assert board.served[-1].type is MessageType.STOP
        assert board.served[-1].node == 0xFF
    assert each.wire.collisions == 0


def test_a_stop_that_collides_is_confirmed_in_turn() -> None:
    each = rig(WireBoard(1), WireBoard(2))
    each.attend()
    each.wire.boards[1].ring += bytes([1]) * 2000 + b"\0"
    each.line.send(1, each.talks[1].ping_frame())
    each.pass_time(5_000)  # board 1 speaks for 20 ms
    each.line.stop_all()
    for node in each.talks:
        assert each.ask(node).body.request == MessageType.STOP
    assert each.wire.collisions > 0
    assert all(board.served[-1].type is MessageType.STOP for board in each.wire.boards.values())


def test_noise_is_put_down_to_the_node_whose_turn_it_was() -> None:
    hit = iter([False, False, True, *[False] * 1000])

    def damage(data: bytes) -> bytes:
        return data.replace(b"\0", b"\x33", 1) if next(hit) else data

    each = rig(WireBoard(1), WireBoard(2), damage=damage)
    each.ask(1)
    each.ask(2)
    each.ask(2)  # its ACK and its YIELD run into each other, so it asks again
    assert each.noise == [2]


def test_the_hosts_own_words_are_not_a_boards() -> None:
    each = rig(WireBoard(1), WireBoard(2))
    each.wire.sink(each.talks[2].frame(MessageType.STOP), 1000)
    assert each.heard == []
    assert each.talks[2].last_frame_us == 0


def test_a_request_that_waits_already_is_not_sent_twice() -> None:
    each = rig(WireBoard(1), WireBoard(2, mute=True))
    each.line.send(2, each.talks[2].frame(MessageType.STOP))
    request = each.talks[1].frame(MessageType.STOP)
    for _ in range(3):
        each.line.send(1, request)
    each.pass_time(500_000)
    assert len(each.wire.boards[1].served) == 1


def test_a_busy_computer_does_not_end_a_turn_whose_answer_has_come() -> None:
    each = rig(WireBoard(1), WireBoard(2))
    each.line.send(1, each.talks[1].frame(MessageType.STOP))
    held: list[bytes] = []
    deliver, each.wire.sink = each.wire.sink, lambda data, time_us: held.append(data)
    each.wire.wait(QUIET_US)  # nobody looks at the port meanwhile
    each.wire.wait(QUIET_US)
    written = each.wire.written
    each.line.send(2, each.talks[2].frame(MessageType.STOP))
    assert each.wire.written == written
    deliver(b"".join(held), each.wire.now_us())
    each.line.serve()
    each.wire.wait(1_000)
    assert len(each.wire.boards[2].served) == 1
    assert each.wire.collisions == 0


def loaded_line(count: int, baud: int = 921600) -> tuple[list[BoardEntry], list[Facts]]:
    return [BoardEntry(node, f"j{node}", "/dev/A", baud) for node in range(1, count + 1)], [Facts(DEFAULTS)] * count


def test_a_joints_stream_by_hand() -> None:
    # 64 ticks of 2 + 4 + 4 + 2 + 2 bytes and two slow channels of 2; a frame has 12 + 18 + 4 of head and CRC, the
    # COBS code and the delimiter, and a byte more for each 254. A turn: PING, PONG and YIELD of 22 + 26 + 18 bytes.
    block = 64 * 14 + 4 + 34 + 2 + (64 * 14 + 4 + 34) // 254
    # The zeros of head and CRC shift where COBS puts its bytes: two more or less.
    assert bytes_per_second(Facts(DEFAULTS)) == pytest.approx(block / 0.064 + 66 / 0.09, abs=2 / 0.064 + 3 / 0.09)


def test_dividers_and_channels_count() -> None:
    half = {**DEFAULTS, "stream.every_motor_encoder": 1}
    assert bytes_per_second(Facts(DEFAULTS)) - bytes_per_second(Facts(half)) == pytest.approx(2000, abs=20)
    without = {**DEFAULTS, "stream.channels": DEFAULTS["stream.channels"] & ~2}
    assert bytes_per_second(Facts(DEFAULTS)) - bytes_per_second(Facts(without)) == pytest.approx(4000, abs=20)


def test_fourteen_boards_fit_two_lines_with_a_sample_each_eighth_tick() -> None:
    foot = Facts({**DEFAULTS, "board.channels": 0b11110100000})
    leg = [Facts({**DEFAULTS, **stream_registers(facts, 8)}) for facts in (*[Facts(DEFAULTS)] * 6, foot)]
    entries = [BoardEntry(node, f"j{node}", "/dev/A", 921600) for node in range(1, 8)]
    check_load(entries, leg)
    assert sum(map(bytes_per_second, leg)) < 92160 / 3
    with pytest.raises(FileError, match="its boards stream 10"):
        check_load(entries, [Facts({**each.registers, **stream_registers(each, 1)}) for each in leg])


def test_five_fit_and_six_do_not() -> None:
    check_load(*loaded_line(5))
    message = r"line '/dev/A' of j1, .*, j6: its boards stream 9\d\.\d kB/s, 921600 baud carry 92\.2 kB/s, of which 90%"
    with pytest.raises(FileError, match=message):
        check_load(*loaded_line(6))
    check_load(*loaded_line(6, 2_000_000))
