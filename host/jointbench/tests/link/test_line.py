"""A line of one board: frames come out of bytes however those were cut, and nothing is kept back."""

from dataclasses import dataclass, field
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from jointbench.link.line import Line
from jointbench.tests.link.wire import Wire, WireBoard
from jointwire import Chunk, Frame, FrameReader, MessageType, encode_frame

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
