"""When the motor encoders' newest edges came, as a board's capture clock has it."""

import numpy as np
from numpy.typing import NDArray

from hil_tests.virtual_bench.plant_file import TICK
from jointbench.arrays import Array

CAPTURE_CLOCK = 16_000_000  # [Hz], of the board's own time


class EdgeTimes:
    """The times of one clock's boards, from tick to tick; positions run linearly in between."""

    def __init__(self, count: int, tick: float = TICK) -> None:
        """Start `count` encoders without any edge; a tick lasts so long [s]."""
        self._per_tick = round(CAPTURE_CLOCK * tick)
        self._before: Array | None = None
        self._times = np.zeros(count, dtype=np.int64)

    def at(self, tick: int, exact: Array) -> NDArray[np.uint32]:
        """Times of the newest edges up to a tick [counts of the capture clock, modulo 2^32], shape (n,).

        Args:
            tick: of these boards, one more than in the call before.
            exact: motor encoder positions at it, unrounded [counts], shape (n,).
        """
        if self._before is not None:
            start, end = np.floor(self._before), np.floor(exact)
            moved = start != end
            # The last whole number that was passed: on the way up the one reached, on the way down the one left.
            edge = np.where(end > start, end, end + 1.0)[moved]
            part = (edge - self._before[moved]) / (exact[moved] - self._before[moved])
            self._times[moved] = (tick - 1) * self._per_tick + np.ceil(part * self._per_tick).astype(np.int64)
        self._before = exact.copy()
        return (self._times & 0xFFFFFFFF).astype(np.uint32)
