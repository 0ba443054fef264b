"""fault:// as a port: for any program through pyserial, and in the host's own time."""

import contextlib
import os
import termios
import threading
import time
import tty
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
import serial

from jointbench.errors import BoardLost, FaultUrlError
from jointbench.link.bench_file import BoardEntry
from jointbench.link.clock import WallClock
from jointbench.link.port import Port


@pytest.fixture
def far_end() -> Iterator[tuple[int, str]]:
    """A descriptor, and the path of the terminal whose other end it is."""
    far, near = os.openpty()
    tty.setraw(near)
    yield far, os.ttyname(near)
    for descriptor in (far, near):
        with contextlib.suppress(OSError):
            os.close(descriptor)


def open_fault(options: str, path: str, **settings) -> Any:
    return serial.serial_for_url(f"fault://{options};{path}", 921600, **settings)


def test_any_program_can_open_it(far_end: tuple[int, str]) -> None:
    far, path = far_end
    with open_fault("seed=1&rx.drop=every:3&tx.lose=every:2", path, timeout=5.0) as port:
        os.write(far, b"abcdefgh")
        assert port.read(6) == b"abdegh"
        assert port.write(b"one\0two\0three\0") == 14
        assert os.read(far, 100) == b"one\0three\0"
        assert port.faults == {"tx.lose": 1, "rx.drop": 2}
        os.write(far, b"xy")
        port.timeout = 0.05
        assert port.read(100) == b"y"  # the ninth byte was x
        port.timeout = 0
        assert port.read(1) == b""
        assert port.fileno() > 0


def test_settings_reach_the_port_behind(far_end: tuple[int, str]) -> None:
    with open_fault("", far_end[1]) as port:
        port.baudrate = 115200
        near = os.open(far_end[1], os.O_RDWR | os.O_NOCTTY)
        assert termios.tcgetattr(near)[4:6] == [termios.B115200, termios.B115200]
        os.close(near)
        port.reset_input_buffer()
        port.reset_output_buffer()
        port.flush()
        with pytest.raises(serial.SerialException, match="already open"):
            port.open()
    with pytest.raises(serial.SerialException):
        port.read(1)
    with pytest.raises(serial.SerialException):
        port.write(b"x")
    with serial.serial_for_url("fault://;loop://") as port:  # whose RTS is its CTS, and DTR its DSR
        assert (port.cts, port.dsr, port.ri, port.cd) == (True, True, False, True)
        port.rts = port.dtr = False
        port.break_condition = True
        assert (port.cts, port.dsr) == (False, False)


def test_what_is_held_comes_in_its_time_and_goes_on_while_somebody_reads(far_end: tuple[int, str]) -> None:
    far, path = far_end
    with open_fault("rx.delay=1,for:50ms&tx.delay=1,for:80ms", path, timeout=5.0) as port:
        start = time.monotonic()
        port.write(b"request\0")
        os.write(far, b"answer\0")
        assert port.read(7) == b"answer\0"
        assert time.monotonic() - start >= 0.05
        os.set_blocking(far, False)
        with pytest.raises(BlockingIOError):
            os.read(far, 100)
        port.timeout = 0.1
        port.read(1)
        assert os.read(far, 100) == b"request\0"


def test_a_read_can_be_cancelled_by_another_thread(far_end: tuple[int, str]) -> None:
    with open_fault("", far_end[1]) as port:
        reader = threading.Thread(target=port.read, args=(1,))
        reader.start()
        port.cancel_read()
        reader.join(5.0)
        assert not reader.is_alive()


def test_a_wrong_url_or_port_is_told() -> None:
    with pytest.raises(serial.SerialException, match=r"there is no fault 'rx\.dorp'"):
        serial.serial_for_url("fault://rx.dorp=1;loop://")
    with pytest.raises(serial.SerialException, match="/dev/nowhere"):
        serial.serial_for_url("fault://rx.drop=1;/dev/nowhere")
    with pytest.raises(FaultUrlError, match=r"there is no fault 'rx\.dorp'"):
        Port([BoardEntry(1, "j1", "fault://rx.dorp=1;loop://", 921600)])
    with pytest.raises(BoardLost, match=r"^j1 \(node 1\): port fault://rx.drop=1;/dev/nowhere cannot be opened"):
        Port([BoardEntry(1, "j1", "fault://rx.drop=1;/dev/nowhere", 921600)])


@pytest.mark.parametrize("inner", ["terminal", "loop"])
def test_the_host_counts_what_is_on_the_wire(far_end: tuple[int, str], inner: str) -> None:
    far, path = far_end
    path = path if inner == "terminal" else "loop://"
    port = Port([BoardEntry(1, "j1", f"fault://rx.drop=every:2&tx.lose=every:2;{path}", 921600)])
    clock, came = WallClock([port]), bytearray()
    port.sink = lambda data, time_us: came.extend(data)
    port.write(b"abcd\0lost\0")
    assert port.written == 5
    if inner == "terminal":
        assert os.read(far, 100) == b"abcd\0"
        os.write(far, b"abcd\0")
    while len(came) < 3:
        clock.wait(1_000_000)
    assert came == b"ac\0"
    assert (port.received, port.faults) == (5, {"tx.lose": 1, "rx.drop": 2})
    port.close()


def test_the_clock_wakes_for_what_is_held(far_end: tuple[int, str]) -> None:
    """A wait of ten seconds ends when a delayed request is due, and when a delayed answer is."""
    far, path = far_end
    port = Port([BoardEntry(1, "j1", f"fault://tx.delay=1,for:30ms&rx.delay=1,for:60ms;{path}", 921600)])
    clock, came = WallClock([port]), []
    port.sink = lambda data, time_us: came.append((data, time_us))
    before_us = clock.now_us()
    port.write(b"request\0")
    sent_us = clock.now_us()
    assert port.written == 0
    assert port.next_due_us is not None
    assert before_us <= port.next_due_us - 30_000 <= sent_us
    clock.wait(10_000_000)
    assert port.written == 8
    assert clock.now_us() < sent_us + 5_000_000
    assert os.read(far, 100) == b"request\0"
    os.write(far, b"one\0")
    times = [clock.now_us()]
    while not came:
        clock.wait(10_000_000)
        times.append(clock.now_us())
    assert came[0][0] == b"one\0"
    assert came[0][1] - times[0] >= 60_000
    assert all(later - earlier < 5_000_000 for earlier, later in pairwise(times))
    port.close()
