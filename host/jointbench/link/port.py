"""A port: bytes in and out, counted, and what became of it."""

from __future__ import annotations

import errno
import os
import select
from collections.abc import Callable, Sequence
from typing import Any

import serial

from jointbench.errors import BoardLost, PortInUse
from jointbench.link.bench_file import BoardEntry
from jointbench.link.fault import is_fault_url, parse_fault_url
from jointbench.link.port_lock import PortLock, lock_port
from jointbench.link.serial_port import close_serial, file_descriptor, open_serial, read_waiting

_WRITE_TIMEOUT_S = 2.0  # a port that takes no bytes for this long has nobody at its other end
_CHUNK = 65536


class Port:
    """A serial port with one board at its other end, or several on a line that they share.

    Attributes:
        nodes, joints: the boards, by ascending node.
        key: what a virtual bench calls the port, its lowest node.
        url: what was opened.
        written, received: bytes on the wire since it was opened, behind the faults of a fault:// URL.
        lost: why the port is gone; empty while it is there.
        dead: why a board is gone though its port is there, by node.
        descriptor: to wait on, None where the kind of port has none.
        sink: what received bytes are handed to, with the clock's time [µs].
        now_us: the clock's time; faults go by it.
    """

    def __init__(self, entries: Sequence[BoardEntry]) -> None:
        """Open the port of boards that have the same URL.

        Raises:
            BoardLost: it cannot be opened; it names the first entry's board.
            FaultUrlError: its fault:// URL is wrong.
        """
        first = entries[0]
        by_node = sorted(entries, key=lambda entry: entry.node)
        self.nodes: tuple[int, ...] = tuple(entry.node for entry in by_node)
        self.joints: tuple[str, ...] = tuple(entry.joint for entry in by_node)
        self.key: str = str(self.nodes[0])
        self.url: str = first.url
        self.written: int = 0
        self.received: int = 0
        self.lost: str = ""
        self.dead: dict[int, str] = {}
        self.sink: Callable[[bytes, int], None] = _nobody
        self.now_us: Callable[[], int] = _at_start
        self._faults, inner = parse_fault_url(first.url) if is_fault_url(first.url) else (None, first.url)
        self._lock: PortLock | None = None
        try:
            self._lock = lock_port(inner)
            self._serial = open_serial(inner, baudrate=first.baud, write_timeout=_WRITE_TIMEOUT_S, exclusive=True)
        except PortInUse as error:
            raise BoardLost(first.joint, first.node, f"port {error}") from error
        except (serial.SerialException, ValueError, OSError) as error:
            self._unlock()
            in_use = "exclusively lock" in str(error)
            reason = "another program already uses it; close that first" if in_use else str(error)
            if isinstance(error, OSError) and error.errno == errno.ENOENT:  # pyserial says it twice over
                reason = "there is no such port; is the board plugged in? `jointbench list` shows those that there are"
            raise BoardLost(first.joint, first.node, f"port {self.url} cannot be opened: {reason}") from error
        self.descriptor: int | None = file_descriptor(self._serial)
        self._plain = type(self._serial) is serial.Serial

    @property
    def faults(self) -> dict[str, int]:
        """How often each fault of a fault:// URL has struck; empty for any other."""
        return self._faults.counts if self._faults else {}

    @property
    def next_due_us(self) -> int | None:
        """When faults let something pass that they hold; None while they hold nothing."""
        return self._faults.next_due_us() if self._faults else None

    def why_lost(self, node: int) -> str:
        """Why a board is gone, with its port or alone; empty while it is there."""
        return self.lost or self.dead.get(node, "")

    def write(self, data: bytes) -> None:
        """Send bytes; on a port that is gone they go nowhere and `lost` says so."""
        if self._faults is None:
            self._write_wire(data)
            return
        self._faults.tx.put(data, self.now_us())
        self._write_wire(self._faults.tx.take(self.now_us()))

    def deliver(self, data: bytes, time_us: int) -> bool:
        """Hand bytes that `read` gave at this time to the sink, and pass on what faults have held until then.

        Returns:
            Whether the sink was given anything.
        """
        if self._faults is not None:
            self._write_wire(self._faults.tx.take(time_us))
            self._faults.rx.put(data, time_us)
            data = self._faults.rx.take(time_us)
        if data:
            self.sink(data, time_us)
        return bool(data)

    def read(self, size: int = _CHUNK) -> bytes:
        """Bytes on the wire, at most `size`; where the port has a descriptor it must be ready."""
        try:
            if self._plain:  # without pyserial's two selects and its time-outs: this is called for each arrival
                data = os.read(self.descriptor or 0, size)
                if not data:
                    raise serial.SerialException("it was unplugged")
            else:
                data = read_waiting(self._serial, size)
        except BlockingIOError:
            return b""
        except (serial.SerialException, OSError) as error:
            self.lost = f"port {self.url} is gone: {error}"
            return b""
        self.received += len(data)
        return data

    def read_exactly(self, size: int, timeout_s: float) -> bytes:
        """Exactly `size` bytes that are known to be under way; fewer when the port is lost."""
        data = bytearray()
        while len(data) < size and not self.lost:
            if self.descriptor is None or not select.select([self.descriptor], [], [], timeout_s)[0]:
                self.lost = f"port {self.url}: {size - len(data)} bytes were sent and never came"
                break
            data += self.read(size - len(data))
        return bytes(data)

    def discard(self) -> None:
        """Throw away what was received before anybody listened."""
        try:
            self._serial.reset_input_buffer()
        except (serial.SerialException, OSError) as error:
            self.lost = f"port {self.url} is gone: {error}"

    def tell_others(self, **facts: Any) -> None:
        """Have the port's lock, where it has one, tell these facts to whoever finds it taken."""
        if self._lock:
            self._lock.tell(**facts)

    def close(self) -> None:
        """Close the port; closing twice is harmless."""
        close_serial(self._serial)
        self._unlock()

    def _unlock(self) -> None:
        if self._lock:
            self._lock.close()

    def _write_wire(self, data: bytes) -> None:
        if self.lost or not data:
            return
        try:
            taken = self._write_at_once(data)
            if taken < len(data):
                self._serial.write(data[taken:])
            self.written += len(data)
        except (serial.SerialException, OSError) as error:
            self.lost = f"port {self.url} takes no bytes: {error}"

    def _write_at_once(self, data: bytes) -> int:
        """Write what goes without waiting, as nearly all does: pyserial's time-outs take longer than the write."""
        if not self._plain or self.descriptor is None:
            return 0
        try:
            return os.write(self.descriptor, data)
        except BlockingIOError:
            return 0


def _nobody(data: bytes, time_us: int) -> None:
    """Where bytes go that arrive before a board listens."""


def _at_start() -> int:
    """Return the time before there is a clock."""
    return 0
