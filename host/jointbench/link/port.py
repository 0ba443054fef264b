"""A board's port: bytes in and out, counted, and what became of it."""

from __future__ import annotations

import select
from collections.abc import Callable

import serial

from jointbench.errors import BoardLost
from jointbench.link.bench_file import BoardEntry

_WRITE_TIMEOUT_S = 2.0  # a port that takes no bytes for this long has nobody at its other end
_CHUNK = 65536


class Port:
    """One board's serial port.

    Attributes:
        node, joint: the board at its other end.
        url: what was opened.
        written, received: bytes since it was opened.
        lost: why the board is gone; empty while it is there.
        sink: what received bytes are handed to, with the clock's time [µs].
    """

    def __init__(self, entry: BoardEntry) -> None:
        """Open the port.

        Raises:
            BoardLost: it cannot be opened.
        """
        self.node, self.joint, self.url = entry.node, entry.joint, entry.url
        self.written = 0
        self.received = 0
        self.lost = ""
        self.sink: Callable[[bytes, int], None] = _nobody
        try:
            self._serial = serial.serial_for_url(
                entry.url, baudrate=entry.baud, timeout=0, write_timeout=_WRITE_TIMEOUT_S, exclusive=True
            )
        except (serial.SerialException, ValueError, OSError) as error:
            in_use = "exclusively lock" in str(error)
            reason = "another program already uses it; close that first" if in_use else str(error)
            raise BoardLost(self.joint, self.node, f"port {self.url} cannot be opened: {reason}") from error

    def fileno(self) -> int | None:
        """File descriptor to wait on, or None where the kind of port has none."""
        try:
            return self._serial.fileno()
        except (AttributeError, OSError, ValueError):  # io.UnsupportedOperation is both of the latter
            return None

    def write(self, data: bytes) -> None:
        """Send bytes; on a port that is gone they go nowhere and `lost` says so."""
        if self.lost:
            return
        try:
            self._serial.write(data)
            self.written += len(data)
        except (serial.SerialException, OSError) as error:
            self.lost = f"port {self.url} takes no bytes: {error}"

    def read(self, size: int = _CHUNK) -> bytes:
        """Bytes that are there, at most `size`."""
        try:
            data = self._serial.read(size)
        except (serial.SerialException, OSError) as error:
            self.lost = f"port {self.url} is gone: {error}"
            return b""
        self.received += len(data)
        return data

    def read_exactly(self, size: int, timeout_s: float) -> bytes:
        """Exactly `size` bytes that are known to be under way; fewer when the port is lost."""
        data = bytearray()
        while len(data) < size and not self.lost:
            if not select.select([self._serial.fileno()], [], [], timeout_s)[0]:
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

    def close(self) -> None:
        """Close the port; closing twice is harmless."""
        self._serial.close()


def _nobody(data: bytes, time_us: int) -> None:
    """Where bytes go that arrive before a board listens."""
