"""A board's own clock: how it reads at a true time, and when it reaches a reading."""

from dataclasses import dataclass

_BILLION = 10**9


@dataclass(frozen=True)
class BoardClock:
    """A clock in µs that shows `offset_us` at true time zero and gains `drift_ppb` µs in 1000 s.

    All in whole numbers, so that a run of any length has the same times everywhere. A board counts tick n when its
    clock reaches n tick periods; on the wire both count modulo 2^32.
    """

    offset_us: int = 0
    drift_ppb: int = 0

    def reads(self, time_us: int) -> int:
        """Reading [µs] at a true time [µs], rounded down."""
        return self.offset_us + time_us + time_us * self.drift_ppb // _BILLION

    def reaches(self, reading_us: int) -> int:
        """First true time [µs] at which it shows at least this reading [µs]."""
        return -((self.offset_us - reading_us) * _BILLION // (_BILLION + self.drift_ppb))
