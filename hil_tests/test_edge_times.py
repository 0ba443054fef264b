"""The capture clock of the emulated boards: the time of an edge is the time at which a whole count was passed."""

import numpy as np
import pytest

from hil_tests.virtual_bench.model import TICK
from hil_tests.virtual_bench.sensors import CAPTURE_CLOCK, EdgeTimes

PER_TICK = round(CAPTURE_CLOCK * TICK)
SPEEDS = np.array([0.3, -0.3, 1.0, -7.25, 900.125, 0.0])  # counts a tick


@pytest.mark.parametrize("first", [0, 2**31 - 5, 10**9])
def test_an_edge_comes_when_a_whole_count_is_passed(first: int) -> None:
    edges = EdgeTimes(len(SPEEDS))
    start, before = 0.4 + np.zeros(len(SPEEDS)), np.zeros(len(SPEEDS), dtype=np.int64)
    last = start
    for k in range(60):
        exact = start + SPEEDS * k
        found = edges.at(first + k, exact).astype(np.int64)
        moved = np.floor(exact) != np.floor(last)
        np.testing.assert_array_equal(found[~moved], before[~moved])  # without an edge the last one's time stays
        # Where the motor was at that time: a whole count, to a count of the clock, and no later whole one since.
        ago = (((first + k) * PER_TICK - found[moved]) % 2**32) / PER_TICK
        assert ago.size == 0 or (ago.min() >= 0.0 and ago.max() <= 1.0)
        place = exact[moved] - SPEEDS[moved] * ago
        assert np.abs(place - np.rint(place)).max(initial=0.0) <= np.abs(SPEEDS).max() / PER_TICK
        assert np.abs(exact[moved] - place).max(initial=0.0) <= 1.0 + np.abs(SPEEDS).max() / PER_TICK
        before, last = found, exact


def test_counts_over_time_between_edges_are_the_speed() -> None:
    edges, last = EdgeTimes(1), None
    for k in range(200):
        exact = np.array([0.25 + 12.7 * k])
        time = int(edges.at(k, exact)[0])
        if last is not None and k > 2:
            speed = (int(exact[0]) - last[0]) / (time - last[1]) * PER_TICK
            assert speed == pytest.approx(12.7, rel=2.1 / PER_TICK)  # each time is cut to a count of the clock
        last = int(exact[0]), time
