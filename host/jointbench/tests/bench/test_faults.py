"""What each fault does to a stream: how often, to what, when, and the same in whatever pieces the stream comes.

Rates are judged by the binomial distribution: of n independent units struck with probability p, the number struck is
within 5 standard deviations sqrt(n p (1 - p)) of n p but once in 1.7 million; seeds are fixed, so it holds or it does
not.
"""

import contextlib
import doctest
import math
import os
import random
import re
import termios
import threading
import time
import tty
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import serial
from hypothesis import given, settings
from hypothesis import strategies as st

from jointbench.bench.bench_file import BoardEntry
from jointbench.bench.clock import WallClock
from jointbench.bench.fault import Faults, is_fault_url, parse_fault_url
from jointbench.bench.fault.faults import LONGEST_FRAME
from jointbench.bench.fault.kinds import KINDS, at_wrong_baud
from jointbench.bench.line import Port
from jointbench.errors import BoardLost, FileError

PORT = ";/dev/null"


def faults(options: str) -> Faults:
    return parse_fault_url(f"fault://{options}{PORT}")[0]


def through(options: str, data: bytes, now_us: int = 0) -> tuple[bytes, int]:
    """What comes of bytes from board to host, and how often the one fault struck."""
    line = faults(options)
    line.rx.put(data, now_us)
    (count,) = line.counts.values()
    return line.rx.take(1 << 60), count


def within(count: int, n: int, p: float) -> bool:
    return abs(count - n * p) <= 5.0 * math.sqrt(n * p * (1.0 - p))


def numbered(n: int) -> bytes:
    """Frames that say which one they are and have none of the other's bytes in common places."""
    return b"".join(b"%06d" % number + b"\0" for number in range(n))


def numbers(data: bytes) -> list[int]:
    return [int(frame) for frame in data.split(b"\0") if frame]


STREAM = random.Random(7).randbytes(200_000)


@pytest.mark.parametrize("rate", [0.5, 0.01, 0.001])
def test_bytes_are_dropped_at_their_rate(rate: float) -> None:
    data, count = through(f"seed=1&rx.drop={rate}", STREAM)
    assert within(count, len(STREAM), rate)
    assert len(data) == len(STREAM) - count


@pytest.mark.parametrize("rate", [0.5, 0.01, 0.001])
def test_one_bit_of_a_byte_is_flipped_each_as_often(rate: float) -> None:
    data, count = through(f"seed=1&rx.flip={rate}", STREAM)
    assert within(count, len(STREAM), rate)
    flipped = [before ^ after for before, after in zip(STREAM, data, strict=True) if before != after]
    assert len(flipped) == count
    for bit in range(8):
        assert within(flipped.count(1 << bit), count, 1 / 8)
    assert sum(flipped.count(1 << bit) for bit in range(8)) == count


def test_bytes_are_struck_independently() -> None:
    """Gaps between independent strikes are geometric: one follows the other at once as often as by chance."""
    data, count = through("seed=3&rx.flip=0.1", bytes(200_000))
    at = [position for position, byte in enumerate(data) if byte]
    assert within(sum(1 for one, next_one in pairwise(at) if next_one == one + 1), count - 1, 0.1)


@pytest.mark.parametrize(("name", "rate"), [("lose", 0.1), ("duplicate", 0.05), ("truncate", 0.2), ("delay", 0.3)])
def test_frames_are_struck_at_their_rate(name: str, rate: float) -> None:
    n = 20_000
    data, count = through(f"seed=1&rx.{name}={rate}", numbered(n))
    assert within(count, n, rate)
    whole = [frame for frame in data.split(b"\0") if len(frame) == 6]
    match name:
        case "lose":
            assert len(numbers(data)) == n - count
        case "duplicate":
            assert numbers(data) == sorted([*range(n), *(one for one, two in pairwise(numbers(data)) if one == two)])
            assert len(numbers(data)) == n + count
        case "truncate":
            assert data.count(b"\0") == n - count  # the delimiter at least is gone, so that the next frame suffers, too
            assert n - 2 * count <= len(whole)
        case _:
            assert numbers(data) == list(range(n))


def test_a_reordered_frame_changes_places_with_the_next() -> None:
    """The one that passes is not struck itself, so of n frames n p / (1 + p) are; its spread is below the binomial."""
    n, rate = 20_000, 0.1
    data, count = through(f"seed=1&rx.reorder={rate}", numbered(n))
    assert within(count, n, rate / (1.0 + rate))
    came = numbers(data)
    assert sorted(came) == list(range(n))
    assert sum(1 for place, number in enumerate(came) if number == place + 1) == count


def test_a_rate_of_one_is_each_and_of_zero_is_none() -> None:
    assert through("rx.drop=1", STREAM) == (b"", len(STREAM))
    assert through("rx.drop=0", STREAM) == (STREAM, 0)


def test_every_nth() -> None:
    assert through("rx.drop=every:3", b"abcdefgh") == (b"abdegh", 2)
    assert numbers(through("rx.lose=every:4", numbered(9))[0]) == [0, 1, 2, 4, 5, 6, 8]


def test_at_given_times_the_first_that_comes_is_struck() -> None:
    line = faults("rx.lose=at:1s,at:2s")
    came = []
    for number, now_us in enumerate([0, 999_999, 1_200_000, 1_200_001, 1_999_999, 2_000_000, 9_000_000]):
        line.rx.put(b"%d\0" % number, now_us)
        came += numbers(line.rx.take(now_us))
    assert came == [0, 1, 3, 4, 6]
    assert line.counts == {"rx.lose": 2}


def test_a_rate_holds_within_its_time() -> None:
    line = faults("rx.drop=1,from:1s,until:2s")
    came = b""
    for now_us in (0, 999_999, 1_000_000, 1_999_999, 2_000_000):
        line.rx.put(b"ab", now_us)
        came += line.rx.take(now_us)
    assert came == b"ababab"
    assert line.counts == {"rx.drop": 4}


def test_delayed_frames_come_later_and_in_order() -> None:
    line = faults("seed=2&rx.delay=0.5,for:5ms..20ms")
    due: dict[int, int] = {}
    for number in range(2000):
        line.rx.put(b"%d\0" % number, 1000 * number)
    while (now_us := line.rx.next_due_us) is not None:
        for number in numbers(line.rx.take(now_us)):
            due[number] = now_us
    assert list(due) == list(range(2000))
    late = [now_us - 1000 * number for number, now_us in due.items()]
    assert min(late) == 0
    assert 19_000 < max(late) <= 20_000
    # Those struck alone would average 12.5 ms, and no frame comes before one that is delayed.
    assert list(due.values()) == sorted(due.values())


def test_a_delay_alone_is_evenly_spread() -> None:
    line = faults("seed=2&rx.delay=1,for:5ms..20ms")
    delays = []
    for number in range(2000):
        line.rx.put(b"x\0", 1_000_000 * number)
        assert line.rx.next_due_us is not None
        delays.append(line.rx.next_due_us - 1_000_000 * number)
        line.rx.take(line.rx.next_due_us)
    assert 5_000 <= min(delays) < max(delays) <= 20_000
    # Mean of 2000 even draws: 5 standard deviations of it are 5 * 15 ms / sqrt(12 * 2000).
    assert abs(sum(delays) / 2000 - 12_500) < 5 * 15_000 / math.sqrt(12 * 2000)


def test_a_frame_that_waits_for_the_next_does_not_wait_for_ever() -> None:
    line = faults("rx.reorder=every:2,for:50ms")
    line.rx.put(b"a\0b\0", 0)
    assert line.rx.take(0) == b"a\0"
    assert line.next_due_us() == 50_000
    assert line.rx.take(49_999) == b""
    assert line.rx.take(50_000) == b"b\0"
    line.rx.put(b"c\0d\0", 60_000)
    line.rx.put(b"e\0", 70_000)
    assert line.rx.take(70_000) == b"c\0e\0d\0"


def test_a_stall_holds_all_and_loses_nothing() -> None:
    line = faults("rx.stall=at:2s,for:0.3s")
    line.rx.put(b"before", 1_999_999)
    assert line.rx.take(1_999_999) == b"before"
    line.rx.put(b"during, ", 2_000_000)
    line.rx.put(b"and ", 2_299_999)
    assert line.rx.take(2_299_999) == b""
    assert line.rx.next_due_us == 2_300_000
    line.rx.put(b"after", 2_300_000)
    assert line.rx.take(2_300_000) == b"during, and after"
    assert line.counts == {"rx.stall": 1}


def test_stalls_come_again_and_again() -> None:
    line = faults("rx.stall=every:1s,for:100ms")
    for now_us in (0, 50_000, 1_000_000, 1_050_000, 1_100_000, 2_099_999, 2_100_000):
        line.rx.put(b"x", now_us)
    assert [line.rx.take(now_us) for now_us in (1_099_999, 1_100_000, 2_099_999, 2_100_000)] == [
        b"xx",
        b"xxx",
        b"",
        b"xx",
    ]
    assert line.counts == {"rx.stall": 2}


def test_a_reset_breaks_the_frame_and_the_line_is_dead_for_a_while() -> None:
    line = faults("seed=5&reset=at:1s,for:300ms&rx.delay=every:2,for:1s")
    line.rx.put(numbered(2), 900_000)  # the second is under way for a second
    frame = bytes(range(1, 200)) + b"\0"
    line.rx.put(frame + b"\x01\x02", 1_000_000)
    line.tx.put(frame, 1_100_000)
    broken = line.rx.take(1_000_000)
    assert broken[:7] == b"000000\0"
    assert frame.startswith(broken[7:])
    assert len(broken) - 7 < len(frame)
    assert frame.startswith(line.tx.take(1_100_000))
    line.rx.put(b"\x03\0lost\0tail", 1_299_999)
    line.rx.put(b"\x04\0next\0", 1_300_000)
    assert line.rx.take(9_000_000) == b"\x04\0next\0"
    assert line.counts == {"rx.reset": 1, "tx.reset": 1, "rx.delay": 2}


def test_a_byte_read_at_its_own_baud_rate_is_itself() -> None:
    for byte in range(256):
        assert at_wrong_baud(byte, 1.0) == bytes([byte])


def test_a_byte_read_at_a_wrong_baud_rate() -> None:
    # At half the rate the middles of the receiver's bits are at 3, 5, 7 and 9 of the sender's, then the line is idle.
    for byte in range(256):
        expected = sum((byte >> sent & 1) << bit for bit, sent in enumerate((2, 4, 6))) | 0b11111000
        assert at_wrong_baud(byte, 0.5) == bytes([expected])
    # At twice the rate each bit is seen twice: of all zeros, the start bit's second half and seven halves of zeros,
    # and the line, low throughout, has no edge for a second byte.
    assert at_wrong_baud(0x00, 2.0) == b"\x00"
    assert at_wrong_baud(0xFF, 2.0) == b"\xfe"
    # 0, then 1 and 0 in turn: from the second falling edge on after the first byte's stop bit the rest is a byte again.
    assert at_wrong_baud(0x55, 2.0) == b"\x66\xe6"


def test_a_baud_glitch_is_a_burst() -> None:
    data, count = through("rx.baud=every:50,bytes:8,ratio:0.5", bytes(100))
    assert count == 2
    assert data == bytes(49) + b"\xf8" * 8 + bytes(42) + b"\xf8"
    rate, n = 0.001, len(STREAM)
    assert within(through(f"rx.baud={rate}", STREAM)[1], n, rate)


def test_directions_and_faults_do_not_shift_each_other() -> None:
    alone, both = faults("seed=4&rx.flip=0.01"), faults("seed=4&flip=0.01&rx.lose=0.5,from:1s")
    for line in (alone, both):
        line.tx.put(STREAM[:1000], 0)
        line.rx.put(STREAM[:5000] + b"\0", 0)
    assert alone.tx.take(0) == STREAM[:1000]
    assert alone.rx.take(0) == both.rx.take(0)
    assert both.tx.take(0) != STREAM[:1000]


def test_the_seed_decides() -> None:
    assert through("seed=1&rx.flip=0.01", STREAM) == through("seed=1&rx.flip=0.01", STREAM)
    assert through("seed=1&rx.flip=0.01", STREAM) != through("seed=2&rx.flip=0.01", STREAM)


def test_a_stream_without_delimiters_is_not_kept_for_ever() -> None:
    line = faults("rx.lose=0")
    line.rx.put(b"x" * (3 * LONGEST_FRAME + 10), 0)
    assert len(line.rx.take(0)) == 3 * LONGEST_FRAME
    line.rx.put(b"\0", 0)
    assert line.rx.take(0) == b"x" * 10 + b"\0"


def test_another_delimiter() -> None:
    assert through("delimiter=10&rx.lose=every:2", b"one\ntwo\nthree\n")[0] == b"one\nthree\n"


SETTINGS = {"stall": "every:700us,for:50us", "baud": "0.02,bytes:5", "reset": "0.02,for:200us"}
OPTIONS = [f"{name}={SETTINGS.get(name, '0.05' if kind.unit == 'byte' else '0.2')}" for name, kind in KINDS.items()]


@pytest.mark.parametrize("options", [*OPTIONS, "&".join(OPTIONS), "&".join(reversed(OPTIONS))])
@given(
    blocks=st.lists(st.tuples(st.integers(0, 500), st.binary(max_size=200)), max_size=12),
    seed=st.integers(0, 1000),
    data=st.data(),
)
@settings(max_examples=30)  # of each kind
def test_the_pieces_in_which_bytes_come_do_not_matter(options: str, blocks, seed: int, data) -> None:
    """Bytes that come at the same times: cut otherwise, the same bytes come out at the same times, and counts agree."""
    whole, cut = faults(f"seed={seed}&{options}"), faults(f"seed={seed}&{options}")
    now_us = 0
    for gap_us, block in blocks:
        now_us += gap_us
        whole.rx.put(block, now_us)
        start = 0
        came = b""
        while start < len(block):
            end = data.draw(st.integers(start + 1, len(block)))
            cut.rx.put(block[start:end], now_us)
            came += cut.rx.take(now_us)
            start = end
        assert whole.rx.take(now_us) == came + cut.rx.take(now_us)
    assert whole.rx.take(now_us + 10**9) == cut.rx.take(now_us + 10**9)
    assert whole.counts == cut.counts


def test_without_faults_nothing_changes() -> None:
    line = faults("seed=1")
    line.rx.put(STREAM, 0)
    assert line.rx.take(0) == STREAM
    assert line.counts == {}


def test_the_port_behind_is_taken_as_it_is() -> None:
    assert parse_fault_url("fault://;/dev/ttyACM0")[1] == "/dev/ttyACM0"
    inner = "socket://bench.local:4000/;x?logging=debug&y=1"
    faults, url = parse_fault_url(f"fault://seed=0x10&rx.drop=1e-3&;{inner}")
    assert url == inner
    assert faults.counts == {"rx.drop": 0}


def test_a_fault_without_a_direction_is_in_both() -> None:
    assert parse_fault_url("fault://flip=0.5&tx.lose=0.1;x")[0].counts == {"tx.flip": 0, "tx.lose": 0, "rx.flip": 0}


@pytest.mark.parametrize("name", KINDS)
def test_every_fault_can_be_given_in_each_way(name: str) -> None:
    ways = ["every:1s", "at:1s,at:2.5s"] if KINDS[name].unit == "time" else ["0.5", "every:7", "at:.5s", "0,from:10ms"]
    own = "".join(f",{setting}:{value}" for setting, value in KINDS[name].defaults.items())
    for way in ways:
        assert parse_fault_url(f"fault://{name}={way}{own};x")[0].counts == {f"tx.{name}": 0, f"rx.{name}": 0}
        assert parse_fault_url(f"fault://rx.{name}={way};x")[0].counts == {f"rx.{name}": 0}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            "rx.dorp=0.1;x",
            r"there is no fault 'rx\.dorp'; there are drop, flip, baud, lose, .*, with rx\. \(boa",
        ),
        ("up.drop=0.1;x", r"there is no fault 'up\.drop'"),
        ("rx.drop=1.5;x", r"rx\.drop = '1\.5' must be a rate from 0 to 1, such as 0\.001"),
        ("rx.drop=-1;x", r"rx\.drop = '-1' must be a rate from 0 to 1"),
        ("rx.drop=nan;x", r"rx\.drop = 'nan' must be a rate from 0 to 1"),
        ("rx.drop=often;x", r"rx\.drop = 'often' must be a rate from 0 to 1"),
        ("rx.drop;x", r"'rx\.drop' has no value; a fault is written NAME=RATE or NAME=SETTING:VALUE"),
        ("rx.drop=from:1s;x", r"must say when by one of a rate for each byte, every:N or at:TIME"),
        ("rx.drop=0.1,every:3;x", r"must say when by one of"),
        ("rx.drop=0.1,for:1s;x", r"rx\.drop has no setting 'for:1s'; it has every, at, from, until\."),
        ("rx.drop=0.1,0.2;x", r"rx\.drop has rate twice"),
        ("rx.drop=0.1&drop=0.2;x", r"rx\.drop is given twice"),
        ("seed=1&seed=2;x", r"seed is given twice"),
        ("rx.drop=every:0;x", r"rx\.drop every = '0' must be a whole number from 1\."),
        ("rx.drop=at:2;x", r"rx\.drop at:2 is not a time; it is a number with s, ms or us, such as 0\.3s"),
        ("rx.stall=0.1;x", r"rx\.stall has no setting '0\.1'; it has every, at, for"),
        ("rx.stall=for:1s;x", r"must say when by one of every:TIME or at:TIME"),
        ("rx.stall=every:1s,for:1s;x", r"rx\.stall every 1s leaves no time between stalls of 1s; it must be longer"),
        ("rx.delay=1,for:2ms..1ms;x", r"rx\.delay for:2ms\.\.1ms must begin with its shorter time"),
        ("rx.reset=0.1,for:1s..2s;x", r"rx\.reset for:1s\.\.2s is a range, which only a delay can have"),
        ("rx.baud=0.1,ratio:0;x", r"rx\.baud ratio:0 must be a number from 0\.1 to 10"),
        ("rx.baud=0.1,bytes:none;x", r"rx\.baud bytes = 'none' must be a whole number from 1 to"),
        ("seed=one;x", r"seed = 'one' must be a whole number from 0"),
        ("delimiter=256;x", r"delimiter = '256' must be a whole number from 0 to 255"),
        ("rx.drop=0.1", r"there is no port: it comes last, after a semicolon"),
        ("rx.drop=0.1;", r"there is no port"),
        ("rx.drop=0.1;fault://rx.flip=1;x", r"its port is a fault:// itself; put all faults into one"),
    ],
)
def test_what_is_wrong_is_named_with_what_is_allowed(options: str, message: str) -> None:
    with pytest.raises(FileError, match=message) as caught:
        parse_fault_url(f"fault://{options}")
    assert str(caught.value).startswith(f"fault://{options}: ")
    assert "For example fault://seed=1&rx.drop=0.001&tx.stall=at:2s,for:0.3s;/dev/ttyACM0" in str(caught.value)


def test_the_example_of_the_errors_is_right() -> None:
    faults, url = parse_fault_url("fault://seed=1&rx.drop=0.001&tx.stall=at:2s,for:0.3s;/dev/ttyACM0")
    assert (faults.counts, url) == ({"tx.stall": 0, "rx.drop": 0}, "/dev/ttyACM0")
    assert is_fault_url("FAULT://seed=1;x")
    assert not is_fault_url("/dev/ttyACM0")


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
    with pytest.raises(FileError, match=r"there is no fault 'rx\.dorp'"):
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


DOCS = Path(__file__).parents[4] / "docs" / "faults.md"
TEXT = DOCS.read_text(encoding="utf-8")


def test_its_table_is_that_of_the_code() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (.*?) \| (.*?) ?\|$", TEXT, re.MULTILINE)
    of_code = [
        (name, kind.unit, kind.does, ",".join(f"{setting}:{value}" for setting, value in kind.defaults.items()))
        for name, kind in KINDS.items()
    ]
    assert [(name, unit, does, own.strip("`")) for name, unit, does, own in rows] == of_code
    assert f"or for {LONGEST_FRAME} of them" in TEXT


def test_its_urls_and_settings_are_right() -> None:
    urls = set(re.findall(r'fault://[^"`\s]*;[^"`\s.:]+', TEXT))
    assert len(urls) >= 5
    wrong = []
    for url in urls:
        try:
            parse_fault_url(url)
        except FileError:
            wrong.append(url)
    assert len(wrong) == 1  # the one that shows what is said of it
    assert "rx.drop=2;" in wrong[0]
    settings = re.findall(r"`(rx\.\w+=[^`]+)`", TEXT)
    assert len(settings) >= 7
    for setting in settings:
        parse_fault_url(f"fault://{setting};x")


def test_its_examples_print_what_they_show() -> None:
    outcome = doctest.testfile(str(DOCS), module_relative=False, encoding="utf-8")
    assert outcome.attempted >= 8
    assert outcome.failed == 0
