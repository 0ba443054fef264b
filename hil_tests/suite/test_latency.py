"""How soon boards answer, by the wall clock: what a polled adapter, a busy host and a board's tick leave of it."""

from collections.abc import Callable

import numpy as np

from jointbench.bench import Bench
from jointbench.testing import realtime

REQUESTS = 500
PAUSE_US = 5_000  # at no fixed phase of the ticks: half of it on average


@realtime
def test_answers_come_soon(connected: Bench, measured: Callable[..., None]) -> None:
    random, clock = np.random.default_rng(0), connected.clock
    took_us: list[int] = []
    for k in range(REQUESTS):
        exchange = connected.all_boards[k % len(connected.all_boards)].ping()
        took_us.append(exchange.received_us - exchange.sent_us)
        clock.wait(int(random.integers(PAUSE_US)))
    measured("latency.answer_median", float(np.median(took_us)) * 1e-3)
    measured("latency.answer_worst", max(took_us) * 1e-3)
