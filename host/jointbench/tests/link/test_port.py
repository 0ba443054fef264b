"""Ports and the wall clock, on pseudo-terminals: real bytes through the kernel, no board behind them."""

import contextlib
import os
import tty
from collections.abc import Iterator

import pytest

from jointbench.errors import BoardLost, BoardSilent
from jointbench.link.bench_file import BoardEntry
from jointbench.link.board import Board
from jointbench.link.clock import WallClock
from jointbench.link.port import Port


@pytest.fixture
def line() -> Iterator[tuple[int, Port]]:
    """The far end's descriptor, and the port."""
    far, near = os.openpty()
    tty.setraw(near)
    port = Port(BoardEntry(1, "j1", os.ttyname(near), 921600))
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


def test_nobody_there(line: tuple[int, Port]) -> None:
    board = Board(line[1], WallClock([line[1]]))
    with pytest.raises(BoardSilent, match=r"not one byte on .*; is it powered, is this its port"):
        board.hello()


def test_ports_without_a_descriptor_are_looked_at() -> None:
    port = Port(BoardEntry(1, "j1", "loop://", 921600))
    clock, came = WallClock([port]), bytearray()
    port.sink = lambda data, time_us: came.extend(data)
    port.write(b"there and back")
    while len(came) < 14:
        clock.wait(1000)
    assert came == b"there and back"
    port.close()


def test_there_is_no_such_port() -> None:
    with pytest.raises(BoardLost, match=r"^j9 \(node 9\): port /dev/nowhere cannot be opened"):
        Port(BoardEntry(9, "j9", "/dev/nowhere", 921600))
