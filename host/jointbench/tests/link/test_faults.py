"""What each fault does to a stream: how often, to what, when, and the same in whatever pieces the stream comes.

Rates are judged by the binomial distribution: of n independent units struck with probability p, the number struck is
within 5 standard deviations sqrt(n p (1 - p)) of n p but once in 1.7 million; seeds are fixed, so it holds or it does
not.
"""

import math
import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jointbench.link.fault import Faults, parse_fault_url
from jointbench.link.fault.byte_faults import at_wrong_baud
from jointbench.link.fault.direction import LONGEST_FRAME
from jointbench.link.fault.kinds import KINDS

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
