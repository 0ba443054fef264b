"""The way of bytes between a client's port and its boards: an adapter's delays, and the wire where speed is limited."""

from collections.abc import Sequence

import numpy as np

from hil_tests.virtual_bench.bench_file import RP2040, BoardEntry, LinkModel
from hil_tests.virtual_bench.delay import Delay
from hil_tests.virtual_bench.pipe_layout import MAX_SERIAL
from hil_tests.virtual_bench.ports import Port
from hil_tests.virtual_bench.wire import Wire

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
