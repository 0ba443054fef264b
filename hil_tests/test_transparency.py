"""Every byte and every length crosses a serial line unchanged, both ways, and no byte is a command to the board.

The firmware sends back what an ECHO carries, so each frame here crosses the line, the board's decoder and its encoder
twice; a board of a few lines that sends back whatever comes shows the same of bytes that are no frames.
"""

from collections.abc import Generator
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path

import pytest

from hil_tests.raw_client import RawClient
from hil_tests.small_bench import write_bench_file
from hil_tests.virtual_bench import virtual_bench
from jointbench.testing.measured import Measured
from jointwire import MAX_BODY, PROTOCOL_MAJOR, PROTOCOL_MINOR, Frame, FrameReader, MessageType, encode_frame

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


class Wire:
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
def line(folder: Path, shared: bool) -> Generator[list[Wire]]:
    """The boards of a line: one on a port of its own, or two that share one."""
    boards = (SHARED, SHARED) if shared else ()
    path = write_bench_file(folder, *([None, None] if shared else [None]), boards=boards)
    with virtual_bench(path, plant="ideal", out=folder / "sim") as live, RawClient(live) as client:
        yield [Wire(client, 1, node, shared) for node in ((1, 2) if shared else (1,))]


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
