"""Where a board's ticks lie on the host's clock."""

import numpy as np
import pytest

from jointbench.link.sync import Exchange, tick_offset


def exchanges(offset: float, drift: float, seed: int, count: int = 200) -> list[Exchange]:
    """PINGs each 100 ms with delays from 0.2 to 5 ms either way, as on a busy USB."""
    rng = np.random.default_rng(seed)
    result: list[Exchange] = []
    for k in range(count):
        sent = 100_000 * k
        there, back = (200 + rng.exponential(600, 2)).astype(int)
        tick = (sent + there) / 1000 * (1.0 + drift * 1e-3) + offset
        result.append(Exchange(sent, sent + int(there) + int(back), int(np.floor(tick))))
    return result


@pytest.mark.parametrize("seed", range(10))
def test_the_offset_is_known_to_a_tick(seed: int) -> None:
    found = tick_offset(exchanges(1234.5, 0.0, seed), 1000.0)
    # A tick is cut off downwards: half a tick on average.
    assert found.offset == pytest.approx(1234.0, abs=0.5)
    assert abs(found.drift) < 0.02


@pytest.mark.parametrize("drift", [-0.1, 0.1])
def test_a_clock_that_is_100_ppm_off_is_seen_to_drift(drift: float) -> None:
    assert tick_offset(exchanges(0.0, drift, 1), 1000.0).drift == pytest.approx(drift, abs=0.02)


def test_one_exchange_is_enough_for_an_offset() -> None:
    found = tick_offset([Exchange(1000, 3000, 502)], 1000.0)
    assert (found.offset, found.drift, found.round_trip_us) == (500.0, 0.0, 2000.0)
    assert found.tick_at(10_000, 1000.0) == 510


@pytest.mark.parametrize("sent", [5, 2**32 - 10, 2**32 + 7, 3 * 2**32 - 1])
def test_the_nonce_is_the_time_of_sending_past_its_wrap(sent: int) -> None:
    exchange = Exchange.from_pong(sent & 0xFFFFFFFF, 1, sent + 2500)
    assert (exchange.sent_us, exchange.received_us) == (sent, sent + 2500)
