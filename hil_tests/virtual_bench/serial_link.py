"""The way of bytes between a client's port and its boards: pseudo-terminals, an adapter's delays, and the wire.

A byte takes ten bit times. A station sends when it has something, whoever else is sending: it listens to nobody while
it does. Bytes that two stations send in the same byte time reach nobody as they were.
"""

import os
import pty
import termios
import tty
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np

from hil_tests.virtual_bench.bench_file import RP2040, BoardEntry, LinkModel
from hil_tests.virtual_bench.board import MAX_SERIAL
from hil_tests.virtual_bench.errors import BenchError

NEVER = 2**63 - 1  # [µs]


class Delay:
    """One direction of an adapter: a transfer takes `latency_us`, and up to `jitter_us` more (uniform, seeded).

    Attributes:
        next_us: when the next bytes arrive [µs], or `NEVER`.
    """

    def __init__(self, latency_us: int, jitter_us: int, chance: np.random.Generator) -> None:
        """Start with nothing under way."""
        self._latency_us = latency_us
        self._jitter_us = jitter_us
        self._chance = chance
        self._under_way: deque[tuple[int, bytes]] = deque()
        self._last_us = 0
        self.next_us = NEVER

    def send(self, data: bytes, time_us: int) -> None:
        """Take one transfer; it does not overtake the one before."""
        late = int(self._chance.integers(self._jitter_us + 1)) if self._jitter_us else 0
        self._last_us = max(self._last_us, time_us + self._latency_us + late)
        self._under_way.append((self._last_us, data))
        self.next_us = self._under_way[0][0]

    def arrived(self, time_us: int) -> Iterator[tuple[int, bytes]]:
        """Hand out what has arrived by `time_us`, each transfer with its time."""
        while self.next_us <= time_us:
            transfer = self._under_way.popleft()
            self.next_us = self._under_way[0][0] if self._under_way else NEVER
            yield transfer

    def clear(self) -> None:
        """Forget what is under way."""
        self._under_way.clear()
        self.next_us = NEVER


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


_MAX_WAITING = 65536  # bytes kept for a client that does not read, as a USB host would


class Port:
    """The bench's end of one serial line, with the totals that a lockstep client counts in."""

    def __init__(self) -> None:
        """Open a pseudo-terminal in raw mode; its client end stays open here, so that clients may come and go.

        Raises:
            BenchError: the system has no pseudo-terminal left.
        """
        try:
            self._bench, self._client = pty.openpty()
        except OSError as error:
            raise BenchError(f"no pseudo-terminal for a board ({error}); end other programs that use some") from error
        tty.setraw(self._client, termios.TCSANOW)
        os.set_blocking(self._bench, False)
        self.path = os.ttyname(self._client)
        self._from_client = bytearray()
        self._to_client = bytearray()
        self.taken = 0  # bytes taken from the client since `restart`
        self.sent = 0  # bytes the client can read since `restart`

    def fileno(self) -> int:
        """Return the descriptor that is readable when the client has written."""
        return self._bench

    def take(self) -> None:
        """Take what the client has written so far."""
        try:
            data = os.read(self._bench, _MAX_WAITING)
        except BlockingIOError:
            return
        self.taken += len(data)
        self._from_client += data

    def release(self, total: int, most: int = _MAX_WAITING) -> bytes:
        """Taken bytes up to the `total`-th since `restart` that were not released before, at most so many."""
        count = min(max(0, len(self._from_client) - max(0, self.taken - total)), most)
        data = bytes(self._from_client[:count])
        del self._from_client[:count]
        return data

    @property
    def waiting(self) -> bool:
        """Whether bytes for the client did not fit yet."""
        return bool(self._to_client)

    def put(self, data: bytes) -> None:
        """Give the client bytes; what does not fit waits, and beyond a limit is lost."""
        self._to_client += data[: _MAX_WAITING - len(self._to_client)]
        try:
            count = os.write(self._bench, self._to_client)
        except BlockingIOError:
            return
        self.sent += count
        del self._to_client[:count]

    def restart(self) -> None:
        """Forget what is under way in both directions and count from zero: the next client starts clean."""
        self.take()
        termios.tcflush(self._client, termios.TCIFLUSH)
        self._from_client.clear()
        self._to_client.clear()
        self.taken = self.sent = 0

    def close(self) -> None:
        """Close both ends."""
        os.close(self._bench)
        os.close(self._client)


_HOST = 0  # the client's station on a wire; boards' nodes start at 1


class SerialLink:
    """One port with its board, or with the boards that share its line; a board is known by its first motor's node.

    Without a baud rate a board takes at most a tick's worth of bytes each tick, and what it sends is with the adapter
    at once. With one there is a wire for each direction, and a shared line is a single wire for all. An adapter looks
    at its wire at each tick of the plant: every millisecond, as one on USB does, unless the bench has other ticks. A
    chip's UART and its pins are a wire by themselves.
    """

    def __init__(self, boards: Sequence[BoardEntry], model: LinkModel, seed: int) -> None:
        """Open a port for `boards`, all of one line.

        Raises:
            BenchError: the system has no pseudo-terminal left.
        """
        self.port = Port()
        self.nodes = tuple(sorted(motor.node for board in boards for motor in board.motors))
        self.key = str(self.nodes[0])
        down, up, *collisions = (np.random.default_rng((seed, self.nodes[0], part)) for part in range(4))
        self._down = Delay(model.latency_us, model.jitter_us, down)
        self._up = Delay(model.latency_us, model.jitter_us, up)
        self._waiting = bytearray()  # for a board without a wire
        self._wires: tuple[Wire, ...] = ()  # to the boards, from the boards
        baud = None if boards[0].url == RP2040 else boards[0].baud
        shared = boards[0].shares_line
        if baud is not None:
            stations = (_HOST, *sorted(board.node for board in boards))
            wires = [Wire(baud, stations, chance) for chance in collisions]
            self._wires = (wires[0], wires[0] if shared else wires[1])
        self.wired = baud is not None

    @property
    def next_us(self) -> int:
        """When the next bytes reach the client [µs]."""
        return self._up.next_us

    def client_sends(self, data: bytes, time_us: int) -> None:
        """Take bytes the client has written."""
        if data:
            self._down.send(data, time_us)

    def hears(self, node: int, time_us: int) -> bytes:
        """Next bytes for a board at its tick."""
        if self._down.next_us <= time_us:
            self._take_down(time_us)
        if self._wires:
            return self._wires[0].hear(node, time_us, MAX_SERIAL)
        if not self._waiting:
            return b""
        data = bytes(self._waiting[:MAX_SERIAL])
        del self._waiting[:MAX_SERIAL]
        return data

    def arrivals(self, time_us: int) -> list[tuple[int, bytes]]:
        """Bytes that set out by `time_us` for a chip, whose own line this is, and when; its UART takes its time."""
        return list(self._down.arrived(time_us))

    def sends(self, node: int, data: bytes, time_us: int) -> None:
        """Take bytes that a board sends from `time_us` on."""
        if self._wires:
            self._wires[1].send(node, data, time_us)
        else:
            self._up.send(data, time_us)

    def collect(self, time_us: int) -> None:
        """Let the adapter take what it has heard from its wire; only where there is one (`wired`)."""
        self._take_down(time_us)
        data = self._wires[1].hear(_HOST, time_us)
        if data:
            self._up.send(data, time_us)

    def deliver(self, time_us: int) -> bool:
        """Give the client what has arrived by `time_us`, or waits, and say whether anything arrived."""
        data = b"".join([data for _, data in self._up.arrived(time_us)])
        self.port.put(data)
        return bool(data)

    def restart(self) -> None:
        """Forget all that is under way, in the port too."""
        self.port.restart()
        self._waiting.clear()
        for part in (self._down, self._up, *self._wires):
            part.clear()

    def _take_down(self, time_us: int) -> None:
        for arrival_us, data in self._down.arrived(time_us):
            if self._wires:
                self._wires[0].send(_HOST, data, arrival_us)
            else:
                self._waiting += data
