"""What can happen to single bytes on a wire; each fault is a function of bytes to bytes that keeps its own count."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import lru_cache
from random import Random

from jointbench.link.fault.schedule import Trigger

_BITS = 10  # of a byte on the wire: start, eight data bits from the lowest, stop


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
        """What becomes of bytes that pass at this time."""


class _SingleByteFault(ByteFault):
    """Strikes each byte by itself."""

    def apply(self, data: bytes, now_us: int) -> bytes:
        """What becomes of bytes that pass at this time."""
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
        """What becomes of a byte that is struck."""


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
        """What becomes of bytes that pass at this time; a strike within a burst begins it anew."""
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
    """What a UART reads of one byte, from an idle line, at `ratio` times the baud rate it was sent with.

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
