"""A serial wire of a certain speed, with any number of stations: one byte after the other, and collisions.

A byte takes ten bit times. A station sends when it has something, whoever else is sending: it listens to nobody while
it does. Bytes that two stations send in the same byte time reach nobody as they were.
"""

from collections.abc import Iterable
from itertools import pairwise

import numpy as np

_BITS_US = 10 * 10**6  # bits of a byte, times µs in a second
_BACKLOG = 65536  # bytes that wait at a station, to be sent or to be read; more are lost


class Wire:
    """What is sent and heard on a wire; byte times are counted from true time zero.

    A station hears a byte time when another one sends in it. Where several do, all hear the byte of the
    lowest station changed.
    """

    def __init__(self, baud: int, stations: Iterable[int], chance: np.random.Generator) -> None:
        """Start silent. `stations` are numbers of the caller's choice, `chance` draws what collisions leave."""
        self._baud = baud
        self._chance = chance
        self._heard = {station: bytearray() for station in stations}
        self._free = dict.fromkeys(self._heard, 0)  # byte time from which each station has nothing to send yet
        self._sending: list[tuple[int, int, bytes]] = []  # byte time, station, bytes: not yet heard
        self._past = 0  # byte times that are over

    def send(self, station: int, data: bytes, time_us: int) -> None:
        """Send bytes from `time_us` on, after those the station is still sending."""
        now = -(-time_us * self._baud // _BITS_US)
        first = max(self._free[station], now)
        data = data[: max(0, now + _BACKLOG - first)]
        self._sending.append((first, station, data))
        self._free[station] = first + len(data)

    def hear(self, station: int, time_us: int, most: int = _BACKLOG) -> bytes:
        """Bytes that a station has heard completely by `time_us` and not been given before."""
        end = time_us * self._baud // _BITS_US
        if end > self._past:
            self._listen(end)
        heard = self._heard[station]
        if not heard:
            return b""
        data = bytes(heard[:most])
        del heard[:most]
        return data

    def clear(self) -> None:
        """Forget all that is being sent and all that was heard."""
        self._sending.clear()
        for station, heard in self._heard.items():
            self._free[station] = 0
            heard.clear()

    def _listen(self, end: int) -> None:
        """Let every station hear the byte times before `end`."""
        self._past = end
        if not self._sending:
            return
        over = sorted((first, sender, data[: end - first]) for first, sender, data in self._sending if first < end)
        rest = [(max(first, end), sender, data[max(0, end - first) :]) for first, sender, data in self._sending]
        self._sending = [run for run in rest if run[2]]
        if any(first + len(data) > after for (first, _, data), (after, _, _) in pairwise(over)):
            over = self._collide(over)
        for _, sender, data in over:
            for station, heard in self._heard.items():
                if station != sender:
                    heard += data[: _BACKLOG - len(heard)]

    def _collide(self, runs: list[tuple[int, int, bytes]]) -> list[tuple[int, int, bytes]]:
        """Split runs into single byte times; where stations meet, the byte is nobody's and everybody's."""
        nobody = min(self._heard) - 1
        senders: dict[int, list[tuple[int, int]]] = {}
        for first, sender, data in runs:
            for place, value in enumerate(data, start=first):
                senders.setdefault(place, []).append((sender, value))
        bytes_apart: list[tuple[int, int, bytes]] = []
        for place, sent in sorted(senders.items()):
            sender, value = min(sent)
            if len(sent) > 1:
                sender, value = nobody, value ^ int(self._chance.integers(1, 256))
            bytes_apart.append((place, sender, bytes((value,))))
        return bytes_apart
