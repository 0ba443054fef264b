"""How bytes travel: the speed of a wire, collisions, and the delays of an adapter."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hil_tests.virtual_bench.serial_link import NEVER, Delay, Wire

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
