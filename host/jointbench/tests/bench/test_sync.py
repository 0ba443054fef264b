"""Where a board's clock and ticks lie on the host's clock."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jointbench.bench.sync import BoardClock, Exchange, Pulse, board_clock, common_start_us, tie_by_pulses
from jointbench.tests.bench.wire import LEAST_US, MOST_US, TICK_US, WORD, TrueClock
from jointwire import MessageType, decode_frame, encode_frame

MINUTE_US = 60_000_000
SEEDS = range(25)


def turned(difference):
    """A difference of counters that wrap, without whole turns."""
    return (difference + WORD / 2) % WORD - WORD / 2


def errors_us(clock: BoardClock, true: TrueClock, start_us: int, end_us: int) -> np.ndarray:
    """By how much the ticks in between are put wrongly on the host's clock, whichever turn they are counted in."""
    at = np.linspace(start_us, end_us, 200)
    first = true.tick(start_us)
    turns = round((clock.tick_at(start_us) - first) / WORD) * WORD
    ticks = np.array([true.tick(each) for each in at])
    return np.asarray(clock.tick_host_us(ticks + turns)) - true.tick_host_us(ticks)


def boards(
    seed: int, count: int = 3, span_us: int = MINUTE_US
) -> tuple[list[TrueClock], list[BoardClock], np.random.Generator]:
    """True clocks, what their exchanges make of them, and the generator to go on with."""
    rng = np.random.default_rng(seed)
    true = [TrueClock.random(rng) for _ in range(count)]
    found = [board_clock(each.exchanges(rng, span_us), TICK_US, each.stamps(0, span_us)) for each in true]
    return true, found, rng


@pytest.mark.parametrize("seed", SEEDS)
def test_a_minute_over_usb_is_aligned_to_a_fifth_of_a_millisecond(seed: int) -> None:
    """The requirement; single exchanges are off by up to 2.5 ms here.

    The largest error of 200 seeds with three boards each was 0.12 ms against the host, 0.18 ms between two boards.
    """
    true, found, _ = boards(seed)
    errors = np.array([errors_us(clock, board, 0, MINUTE_US) for clock, board in zip(found, true, strict=True)])
    assert np.max(np.ptp(errors, axis=0)) <= 200.0
    for clock, board in zip(found, true, strict=True):
        worst = np.max(np.abs(errors_us(clock, board, 0, MINUTE_US)))
        assert worst <= 200.0
        assert worst <= clock.bound_us
        # 10 ppm make 0.3 ms in half a minute; a line that misses the drift is off by 3 ms.
        assert clock.drift_ppm == pytest.approx(board.drift_ppm, abs=10.0)


@pytest.mark.parametrize("seed", SEEDS)
def test_pulses_align_boards_to_20_microseconds(seed: int) -> None:
    """The requirement; edges are stamped to 1 µs with 2 µs of jitter. The largest error of 200 seeds was 4.8 µs."""
    true, found, rng = boards(seed)
    instants = np.arange(0.3e6, MINUTE_US, 1e6)
    tied = tie_by_pulses(found, [each.pulses(rng, instants) for each in true])
    apart = [errors_us(clock, board, 0, MINUTE_US) for clock, board in zip(tied, true, strict=True)]
    assert all(np.max(np.abs(each - apart[0])) <= 20.0 for each in apart)
    assert [clock.pulses for clock in tied] == [len(instants)] * 3
    assert max(clock.residual_us for clock in tied) < 5.0
    assert all(np.max(np.abs(each)) <= clock.bound_us for each, clock in zip(apart, tied, strict=True))


@pytest.mark.parametrize("seed", range(5))
def test_pulses_that_a_board_missed_or_dreamt_of_do_no_harm(seed: int) -> None:
    true, found, rng = boards(seed)
    instants = np.arange(0.3e6, MINUTE_US, 1e6)
    seen = [each.pulses(rng, instants) for each in true]
    seen[1] = [pulse for index, pulse in enumerate(seen[1]) if index % 3]
    dreamt = [*true[2].pulses(rng, instants[4:6] + 450_000.0), *true[2].pulses(rng, instants[9:10] + 200.0)]
    seen[2] = [pulse for index, pulse in enumerate(seen[2]) if index not in (4, 9)] + dreamt
    tied = tie_by_pulses(found, seen)
    apart = [errors_us(clock, board, 0, MINUTE_US) for clock, board in zip(tied, true, strict=True)]
    assert max(np.max(np.abs(each - apart[0])) for each in apart) <= 20.0


def test_a_clock_that_wanders_is_followed_by_its_pulses() -> None:
    """A crystal that warms up by 2 ppm in ten minutes bends by 0.15 ms; pulses each second follow that."""
    rng, span_us = np.random.default_rng(5), 600_000_000
    steady = TrueClock(-20.0, 1e6, 0)

    def warm(host_us):
        return host_us * (1.0 + 30e-6) + 1e-6 * host_us**2 / span_us

    def exchange(sent: int, board) -> Exchange:
        there, back = rng.uniform(LEAST_US, MOST_US, 2)
        shown = int(board(sent + there))
        return Exchange(sent, sent + int(there + back), shown // TICK_US, shown % WORD)

    times = np.arange(0, span_us, 100_000) + rng.integers(0, 2000, span_us // 100_000)
    clocks = [board_clock([exchange(int(t), board) for t in times], TICK_US) for board in (steady.board_us, warm)]
    instants = np.arange(0.3e6, span_us, 1e6)
    pulses = [
        [Pulse(k, int(board(t)) % WORD, int(t) + 900) for k, t in enumerate(instants)]
        for board in (steady.board_us, warm)
    ]
    at = np.linspace(0, span_us, 500)
    by_pings = clocks[1].host_us(warm(at)) - clocks[0].host_us(steady.board_us(at))
    assert np.max(np.abs(by_pings)) > 50.0  # or there is nothing to show
    tied = tie_by_pulses(clocks, pulses)
    assert np.max(np.abs(tied[1].host_us(warm(at)) - tied[0].host_us(steady.board_us(at)))) <= 20.0


@pytest.mark.parametrize("count", [2, 3, 4])
@pytest.mark.parametrize("seed", range(5))
def test_few_pulses_of_a_short_run_align_boards_as_well(seed: int, count: int) -> None:
    """Too short for PINGs to tell the drift; edges that are some µs wrong tell it to some ppm."""
    rng = np.random.default_rng(seed)
    true = [TrueClock.random(rng) for _ in range(2)]
    span_us, instants = 5_000_000, np.arange(0.5e6, 1e6 * count, 1e6)
    found = [board_clock(each.exchanges(rng, 200_000), TICK_US, each.stamps(0, span_us)) for each in true]
    assert [clock.drift_ppm for clock in found] == [0.0, 0.0]  # too short to tell
    tied = tie_by_pulses(found, [each.pulses(rng, instants) for each in true])
    end_us = int(instants[-1] + 0.5e6)
    apart = [errors_us(clock, board, 0, end_us) for clock, board in zip(tied, true, strict=True)]
    assert np.max(np.abs(apart[1] - apart[0])) <= 20.0
    assert tied[1].residual_us >= 10.0  # few points lie near their line, which shows nothing


def test_one_of_few_pulses_that_is_another_edge_makes_no_drift() -> None:
    rng = np.random.default_rng(1)
    true = [TrueClock.random(rng) for _ in range(2)]
    found = [board_clock(each.exchanges(rng, 200_000), TICK_US, each.stamps(0, 3_000_000)) for each in true]
    seen = [true[0].pulses(rng, np.array([0.5e6, 1.5e6])), true[1].pulses(rng, np.array([0.5e6, 1.54e6]))]
    tied = tie_by_pulses(found, seen)
    assert tied[1].drift_ppm == 0.0
    assert tied[1].residual_us > 10_000.0


def test_no_boards_are_no_clocks() -> None:
    assert tie_by_pulses([], []) == ()


def test_boards_without_pulses_stay_as_they_are() -> None:
    true, found, rng = boards(1)
    assert tie_by_pulses(found, [[], [], []]) == tuple(found)
    only = true[1].pulses(rng, np.arange(0.3e6, 30e6, 1e6))
    assert tie_by_pulses(found, [[], only, []]) == tuple(found)
    others = [true[0].pulses(rng, np.arange(10.3e6, 20e6, 1e6)), true[1].pulses(rng, np.array([2.1e6, 28.3e6])), []]
    assert tie_by_pulses(found, others) == tuple(found)
    once = [each.pulses(rng, np.array([5e6])) for each in true]
    assert tie_by_pulses(found, once) == tuple(found)


@pytest.mark.parametrize("count", range(1, 9))
@pytest.mark.parametrize("seed", range(5))
def test_a_few_exchanges_at_the_start_place_the_board_within_the_bound(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    true = TrueClock.random(rng)
    exchanges = [each for k in range(count) for each in true.exchanges(rng, 1, 5_000_000 + 20_000 * k)]
    clock = board_clock(exchanges, TICK_US)
    assert clock.drift_ppm == 0.0
    assert np.max(np.abs(errors_us(clock, true, 5_000_000, 5_000_000 + 20_000 * count))) <= clock.bound_us
    # Of a start a quarter of a second ahead: the bound, what 100 ppm make of it, and half a tick for rounding.
    ahead = 5_000_000 + 20_000 * count + 250_000
    off = turned(clock.tick_at(ahead) - float(true.ticks_at(ahead))) * TICK_US
    assert abs(off) <= clock.bound_us + 25.0 + TICK_US / 2


def test_one_exchange_is_enough() -> None:
    clock = board_clock([Exchange(1000, 3000, 502, 502_300)], 1000.0)
    assert (clock.drift_ppm, clock.round_trip_us, clock.exchanges) == (0.0, 2000.0, 1)
    assert clock.offset_us == 500_300.0
    # Tick 502 began within the last millisecond; half of it either way is all that is known.
    assert clock.tick_zero_us == -200.0
    assert clock.bound_us == 1000.0 + 500.0
    assert clock.tick_at(10_000) == 510 or clock.tick_at(10_000) == 511


def test_the_fastest_exchanges_count() -> None:
    """Six of eight answers came late by 10 ms on one way; the other two say where the board is."""
    late = [0, 10_000, 10_000, 10_000, 10_000, 0, 10_000, 10_000]
    exchanges = [
        Exchange(20_000 * k, 20_000 * k + 500 + by, 20 * k, 20_000 * k + 250 + by) for k, by in enumerate(late)
    ]
    assert board_clock(exchanges, TICK_US).offset_us == 0.0


def test_no_exchange_is_no_clock() -> None:
    with pytest.raises(ValueError, match="at least one answered PING"):
        board_clock([], TICK_US)


@pytest.mark.parametrize("gap_min", [1, 34, 200])
def test_the_clock_goes_on_over_silences_and_wraps(gap_min: int) -> None:
    """Ticks tell which turn of the 71-minute clock it is, however long nothing was heard."""
    rng, gap_us = np.random.default_rng(gap_min), gap_min * MINUTE_US
    true = replace(TrueClock.random(rng), drift_ppm=100.0)
    exchanges = true.exchanges(rng, 20_000_000) + true.exchanges(rng, 20_000_000, gap_us)
    clock = board_clock(exchanges, TICK_US, true.stamps(0, 20_000_000))
    assert np.max(np.abs(errors_us(clock, true, 0, gap_us + 20_000_000))) <= 200.0


def test_ticks_that_slip_against_the_clock_are_seen_in_the_bound() -> None:
    rng = np.random.default_rng(2)
    true = TrueClock.random(rng)
    stamps = true.stamps(0, MINUTE_US)
    slipped = [(tick, (us + 2 * TICK_US * (k > len(stamps) // 2)) % WORD) for k, (tick, us) in enumerate(stamps)]
    exchanges = true.exchanges(rng, MINUTE_US)
    assert board_clock(exchanges, TICK_US, slipped).bound_us > board_clock(exchanges, TICK_US, stamps).bound_us + 1999.0


@pytest.mark.parametrize("seed", range(10))
def test_the_residual_tells_an_uneven_clock_from_delays(seed: int) -> None:
    true, found, rng = boards(seed)
    assert max(clock.residual_us for clock in found) < 150.0 < 3.0 * max(clock.scatter_us for clock in found)
    # From the middle on it goes 80 ppm faster: a corner of 2.4 ms, half a millisecond from any line.
    bent = replace(true[0], drift_ppm=true[0].drift_ppm + 80.0)
    bent = replace(bent, offset_us=bent.offset_us - 80e-6 * MINUTE_US / 2)
    halves = true[0].exchanges(rng, MINUTE_US // 2) + bent.exchanges(rng, MINUTE_US // 2, MINUTE_US // 2)
    assert board_clock(halves, TICK_US).residual_us > 200.0


def test_drift_that_cannot_be_told_from_jitter_is_not_claimed() -> None:
    rng = np.random.default_rng(0)
    for seconds in (0.5, 1.0, 2.0):
        clock = board_clock(TrueClock(80.0, 0.0, 0).exchanges(rng, int(seconds * 1e6)), TICK_US)
        assert clock.drift_ppm == 0.0


@given(
    seed=st.integers(0, 50),
    later_us=st.integers(0, 10**12),
    board_later_us=st.integers(0, WORD - 1),
    tick_later=st.integers(0, WORD - 1),
)
@settings(max_examples=40)
def test_neither_clock_has_a_preferred_zero(seed: int, later_us: int, board_later_us: int, tick_later: int) -> None:
    """Both clocks and the ticks may start anywhere: nothing but the offsets changes."""
    rng = np.random.default_rng(seed)
    true = TrueClock.random(rng)
    exchanges = true.exchanges(rng, 20_000_000)
    plain = board_clock(exchanges, TICK_US)
    moved = board_clock(
        [
            Exchange(
                each.sent_us + later_us, each.received_us + later_us, (each.tick + tick_later) % WORD,
                (each.board_us + board_later_us) % WORD,
            )
            for each in exchanges
        ],
        TICK_US,
    )  # fmt: skip
    # 10^12 µs in a float are known to 1e-4 µs, and the ticks' phase is taken from 2^42 µs.
    assert moved.drift_ppm == pytest.approx(plain.drift_ppm, abs=1e-4)
    assert moved.residual_us == pytest.approx(plain.residual_us, abs=0.01)
    assert moved.bound_us == pytest.approx(plain.bound_us, abs=0.05)
    at = 10_000_000
    assert turned(moved.board_us(at + later_us) - plain.board_us(at) - board_later_us) == pytest.approx(0.0, abs=0.01)
    assert turned(moved.ticks_at(at + later_us) - plain.ticks_at(at) - tick_later) == pytest.approx(0.0, abs=1e-3)


@given(seed=st.integers(0, 50), scale=st.integers(2, 20))
@settings(max_examples=40)
def test_times_in_another_unit_give_the_same_line_in_that_unit(seed: int, scale: int) -> None:
    rng = np.random.default_rng(seed)
    true = TrueClock(float(rng.uniform(-100, 100)), 0.0, 0)
    plain = true.exchanges(rng, 20_000_000)
    scaled = [
        Exchange(each.sent_us * scale, each.received_us * scale, each.tick, each.board_us * scale) for each in plain
    ]
    found, other = board_clock(plain, TICK_US), board_clock(scaled, TICK_US * scale)
    assert other.drift_ppm == pytest.approx(found.drift_ppm, rel=1e-9, abs=1e-9)
    assert other.residual_us == pytest.approx(scale * found.residual_us, rel=1e-9)
    assert other.ticks_at(1e7 * scale) == pytest.approx(found.ticks_at(1e7), rel=1e-9)


@given(seed=st.integers(0, 50), at_us=st.floats(0, 6e7))
@settings(max_examples=40)
def test_the_two_directions_are_inverse(seed: int, at_us: float) -> None:
    true, found, rng = boards(seed, 2, 10_000_000)
    instants = np.arange(0.3e6, 10e6, 1e6)
    for clock in tie_by_pulses(found, [each.pulses(rng, instants) for each in true]):
        # A bend's own shift, some µs a second of some µs, is what is left out of the inverse.
        assert clock.host_us(clock.board_us(at_us)) == pytest.approx(at_us, abs=1e-3)
        assert clock.tick_host_us(clock.ticks_at(at_us)) == pytest.approx(at_us, abs=1e-3)


@pytest.mark.parametrize("sent", [5, 2**32 - 10, 2**32 + 7, 3 * 2**32 - 1])
def test_the_nonce_is_the_time_of_sending_past_its_wrap(sent: int) -> None:
    encoded = encode_frame(MessageType.PONG, 1, 2, 77_000, nonce=sent & 0xFFFFFFFF, tick=76)
    exchange = Exchange.from_pong(decode_frame(encoded[:-1]), sent + 2500)
    assert exchange == Exchange(sent, sent + 2500, 76, 77_000)


def test_what_is_told_of_a_clock_is_plain_numbers() -> None:
    told = boards(3)[1][0].to_dict()
    assert list(told) == [
        "offset_us", "drift_ppm", "round_trip_us", "scatter_us", "residual_us", "bound_us", "exchanges", "pulses",
    ]  # fmt: skip
    assert all(isinstance(value, float | int) for value in told.values())


@given(st.lists(st.integers(0, 999), min_size=1, max_size=8), st.integers(0, 10**9))
def test_boards_start_at_ticks_as_near_as_their_phases_allow(phases_us: list[int], asked_us: int) -> None:
    clocks = [board_clock([Exchange(0, 0, 0, 0)], TICK_US, [(0, phase)]) for phase in phases_us]
    start_us = common_start_us(clocks, asked_us)
    assert 0 <= start_us - asked_us <= TICK_US
    starts = [clock.tick_host_us(clock.tick_at(start_us)) for clock in clocks]
    widest = max(np.diff(sorted(phases_us), append=min(phases_us) + TICK_US))
    assert np.ptp(starts) == pytest.approx(TICK_US - widest, abs=1.0)  # the moment is a whole µs


def test_a_clock_that_jumps_is_a_line_all_the_same() -> None:
    """No line satisfies all exchanges then; most of them still say where the clock is."""
    rng = np.random.default_rng(0)
    true = TrueClock.random(rng)
    after = replace(true, offset_us=true.offset_us + 50_000.0, tick_zero_us=true.tick_zero_us + 50_000)
    exchanges = true.exchanges(rng, MINUTE_US) + after.exchanges(rng, 5_000_000, MINUTE_US)
    clock = board_clock(exchanges, TICK_US, true.stamps(0, MINUTE_US))
    assert np.max(np.abs(errors_us(clock, true, 0, MINUTE_US))) <= 300.0
