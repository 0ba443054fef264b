"""Ports and the wall clock, on pseudo-terminals: real bytes through the kernel, no board behind them."""

import contextlib
import os
import termios
import tty
from collections.abc import Iterator

import pytest

from jointbench.errors import BoardLost, BoardSilent
from jointbench.link.bench_file import BoardEntry
from jointbench.link.board import Board
from jointbench.link.clock import WallClock
from jointbench.link.line import Port


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
