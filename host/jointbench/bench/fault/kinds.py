"""The kinds of faults: when each strikes, and what it does to bytes, frames or the time at which they pass."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from random import Random

NEVER = 1 << 62
_BITS = 10  # of a byte on the wire: start, eight data bits from the lowest, stop


@dataclass(frozen=True)
class Kind:
    """A kind of fault.

    Attributes:
        unit: what it strikes: "byte", "frame", or "time" for one that has no unit to count.
        does: what it does, in words.
        defaults: settings of its own, and what they are where they are not given.
    """

    unit: str
    does: str
    defaults: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def settings(self) -> tuple[str, ...]:
        """Names of all that can be set after its rate."""
        schedule = ("every", "at") if self.unit == "time" else ("every", "at", "from", "until")
        return (*schedule, *self.defaults)


KINDS: dict[str, Kind] = {
    "drop": Kind("byte", "the byte is lost"),
    "flip": Kind("byte", "one of its bits is inverted"),
    "baud": Kind("byte", "a burst of bytes from it on is read at a wrong baud rate", {"bytes": "32", "ratio": "2"}),
    "lose": Kind("frame", "the frame is lost"),
    "duplicate": Kind("frame", "it comes twice"),
    "truncate": Kind("frame", "it loses its end, delimiter included"),
    "delay": Kind("frame", "it comes later, and what follows no sooner", {"for": "20ms"}),
    "reorder": Kind("frame", "the next one passes it; after `for` without one it goes on alone", {"for": "50ms"}),
    "reset": Kind("frame", "the line breaks in it, loses what is under way and is dead for `for`", {"for": "300ms"}),
    "stall": Kind("time", "nothing passes for `for`, then all that waited", {"for": "300ms"}),
}


@dataclass(frozen=True)
class Schedule:
    """Schedule by which a fault strikes its units (bytes or frames).

    Attributes:
        rate: probability of each unit, None where it does not go by rate.
        every: each unit of this number is struck, None where it does not go by number.
        at_us: times; the first unit from each on is struck.
        from_us, until_us: strikes before or from these times on are left out.
    """

    rate: float | None = None
    every: int | None = None
    at_us: tuple[int, ...] = ()
    from_us: int = 0
    until_us: int = NEVER


class Trigger:
    """Counts units and says which of them are struck, the same ones however the stream is cut into pieces."""

    def __init__(self, schedule: Schedule, random: Random) -> None:
        """Start at the first unit; `random` is this trigger's alone."""
        self._schedule = schedule
        self._random = random
        self._times = sorted(schedule.at_us, reverse=True)
        self._left = self._gap() - 1  # units before the next that is struck

    def strikes(self, count: int, now_us: int) -> list[int]:
        """Return those of the next `count` units, that pass at this time, which are struck, as indices from 0."""
        if self._times:
            return self._due(now_us) if count else []
        struck: list[int] = []
        while self._left < count:
            struck.append(self._left)
            self._left += self._gap()
        self._left -= count
        in_time = self._schedule.from_us <= now_us < self._schedule.until_us
        return struck if in_time else []

    def _due(self, now_us: int) -> list[int]:
        due = False
        while self._times and self._times[-1] <= now_us:
            self._times.pop()
            due = True
        return [0] if due else []

    def _gap(self) -> int:
        """Units from one struck to the next: geometric for a rate, so that each unit has its own chance."""
        if self._schedule.every is not None:
            return self._schedule.every
        rate = self._schedule.rate
        if not rate:
            return NEVER
        if rate >= 1.0:
            return 1
        return 1 + int(math.log(1.0 - self._random.random()) / math.log1p(-rate))


class ByteFault(ABC):
    """Strikes single bytes of a stream.

    Attributes:
        struck: how often.
    """

    def __init__(self, trigger: Trigger, random: Random) -> None:
        """`random` decides everything but when to strike."""
        self.struck = 0
        self._trigger, self._random = trigger, random

    @abstractmethod
    def apply(self, data: bytes, now_us: int) -> bytes:
        """Return the bytes that pass at this time, damaged."""


class _SingleByteFault(ByteFault):
    """Strikes each byte by itself."""

    def apply(self, data: bytes, now_us: int) -> bytes:
        """Return the bytes that pass at this time, damaged."""
        strikes = self._trigger.strikes(len(data), now_us)
        if not strikes:
            return data
        self.struck += len(strikes)
        pieces: list[bytes] = []
        end = 0
        for position in strikes:
            pieces += data[end:position], self._strike(data[position])
            end = position + 1
        return b"".join([*pieces, data[end:]])

    @abstractmethod
    def _strike(self, byte: int) -> bytes:
        """Return what replaces a byte that is struck."""


class Drop(_SingleByteFault):
    """The byte is lost."""

    def _strike(self, byte: int) -> bytes:
        return b""


class Flip(_SingleByteFault):
    """One of its bits, each as likely, is inverted."""

    def _strike(self, byte: int) -> bytes:
        return bytes((byte ^ 1 << self._random.randrange(8),))


class BaudGlitch(ByteFault):
    """A burst of bytes is read at a wrong baud rate: what a UART makes of it."""

    def __init__(self, trigger: Trigger, random: Random, burst: int, ratio: float) -> None:
        """`burst`: bytes; `ratio`: the receiver's baud rate over the sender's."""
        super().__init__(trigger, random)
        self._burst, self._table = burst, _table(ratio)
        self._left = 0  # bytes of the burst still to come

    def apply(self, data: bytes, now_us: int) -> bytes:
        """Return the bytes that pass at this time, damaged; a strike within a burst begins it anew."""
        strikes = self._trigger.strikes(len(data), now_us)
        self.struck += len(strikes)
        if not strikes and not self._left:
            return data
        received = bytearray()
        end = 0
        for position in [*strikes, len(data)]:
            glitched = min(self._left, position - end)
            received += b"".join(self._table[byte] for byte in data[end : end + glitched])
            received += data[end + glitched : position]
            self._left -= glitched
            if position < len(data):
                self._left = self._burst
            end = position
        return bytes(received)


def at_wrong_baud(byte: int, ratio: float) -> bytes:
    """Bytes that a UART reads of one byte, from an idle line, at `ratio` times the baud rate it was sent with.

    The receiver samples the middles of its eight data bits from each falling edge on, and waits for the line to be
    high before the next edge; a byte without its stop bit is delivered as it was read, as UARTs do.
    """
    levels = [0, *((byte >> bit) & 1 for bit in range(8)), 1]
    received = bytearray()
    time = 0.0
    while (edge := _falling_edge(levels, time)) is not None:
        middles = (edge + (bit + 1.5) / ratio for bit in range(8))
        received.append(sum(_level(levels, middle) << bit for bit, middle in enumerate(middles)))
        time = edge + (_BITS - 0.5) / ratio
    return bytes(received)


def _level(levels: list[int], time: float) -> int:
    return levels[int(time)] if time < _BITS else 1


def _falling_edge(levels: list[int], time: float) -> int | None:
    """First falling edge from `time` on, in bits; the line is high before the start bit."""
    for bit in range(_BITS):
        if bit >= time and levels[bit] == 0 and (bit == 0 or levels[bit - 1] == 1):
            return bit
    return None


@lru_cache
def _table(ratio: float) -> tuple[bytes, ...]:
    return tuple(at_wrong_baud(byte, ratio) for byte in range(256))


@dataclass
class Passage:
    """Passage of one frame; each fault that strikes it changes something.

    Attributes:
        frames: what comes of it, in order.
        delay_us: how much later.
        patience_us: how long it waits for the next frame to pass it first; None where it does not wait.
        quiet_us: how long the line is dead after it; None where it is not.
    """

    frames: list[bytes]
    delay_us: int = 0
    patience_us: int | None = None
    quiet_us: int | None = None


class FrameFault(ABC):
    """Strikes whole frames.

    Attributes:
        struck: how often.
    """

    def __init__(self, trigger: Trigger, random: Random) -> None:
        """`random` decides everything but when to strike."""
        self.struck: int = 0
        self._trigger, self._random = trigger, random

    def apply(self, passage: Passage, now_us: int) -> None:
        """Strike a frame that passes at this time, or leave it."""
        if self._trigger.strikes(1, now_us):
            self.struck += 1
            self._strike(passage)

    @abstractmethod
    def _strike(self, passage: Passage) -> None:
        """Change what becomes of a frame that is struck."""

    def _cut(self, frame: bytes) -> bytes:
        """A frame without its end: without its delimiter at least, without all of it at most."""
        return frame[: self._random.randrange(len(frame))]


class Lose(FrameFault):
    """The frame is lost."""

    def _strike(self, passage: Passage) -> None:
        passage.frames = []


class Duplicate(FrameFault):
    """It comes twice."""

    def _strike(self, passage: Passage) -> None:
        passage.frames *= 2


class Truncate(FrameFault):
    """It loses its end, so that the next frame's bytes follow without a delimiter."""

    def _strike(self, passage: Passage) -> None:
        passage.frames = [self._cut(frame) for frame in passage.frames]


class Delay(FrameFault):
    """It comes later, and what follows it no sooner."""

    def __init__(self, trigger: Trigger, random: Random, shortest_us: int, longest_us: int) -> None:
        """Each delay is evenly distributed between two [µs]."""
        super().__init__(trigger, random)
        self._range = shortest_us, longest_us

    def _strike(self, passage: Passage) -> None:
        passage.delay_us += self._random.randint(*self._range)


class Reorder(FrameFault):
    """It lets the next frame pass first; after a while without one it goes on alone."""

    def __init__(self, trigger: Trigger, random: Random, patience_us: int) -> None:
        """`patience_us`: how long it waits for a next frame."""
        super().__init__(trigger, random)
        self._patience_us = patience_us
        self._passing = False  # whether the frame before was struck: the one that passes it does not wait itself

    def apply(self, passage: Passage, now_us: int) -> None:
        """Strike a frame that passes at this time, or leave it."""
        before = self.struck
        if self._passing:
            self._trigger.strikes(1, now_us)
        else:
            super().apply(passage, now_us)
        self._passing = self.struck > before

    def _strike(self, passage: Passage) -> None:
        passage.patience_us = self._patience_us


class Reset(FrameFault):
    """The line breaks within the frame, loses what is under way, and is dead for a while."""

    def __init__(self, trigger: Trigger, random: Random, quiet_us: int) -> None:
        """`quiet_us`: how long nothing passes."""
        super().__init__(trigger, random)
        self._quiet_us = quiet_us

    def _strike(self, passage: Passage) -> None:
        passage.frames = [self._cut(frame) for frame in passage.frames[:1]]
        passage.quiet_us = self._quiet_us


class Stall:
    """Times at which nothing passes.

    Attributes:
        struck: how many stalls have held something up.
    """

    def __init__(self, starts_us: Sequence[int], every_us: int, length_us: int) -> None:
        """Stalls begin at given times, or (without any) at each multiple of `every_us`, and last `length_us`."""
        self.struck: int = 0
        self._starts_us, self._every_us, self._length_us = sorted(starts_us), every_us, length_us
        self._last_us = -1

    def end_us(self, due_us: int) -> int:
        """Time at which something passes that is due at this time [µs]."""
        while (start_us := self._start_us(due_us)) is not None:
            due_us = start_us + self._length_us
            if start_us > self._last_us:
                self.struck += 1
                self._last_us = start_us
        return due_us

    def _start_us(self, due_us: int) -> int | None:
        """Start of the stall that holds up what is due at this time."""
        if self._starts_us:
            running = [start for start in self._starts_us if start <= due_us < start + self._length_us]
            return running[-1] if running else None
        periods = due_us // self._every_us
        start_us = periods * self._every_us
        return start_us if periods and due_us < start_us + self._length_us else None
