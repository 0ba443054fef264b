"""A port, bytes in and out, and its line: what it receives, cut into frames and handed to the board each is from."""

from __future__ import annotations

import errno
import os
import re
import select
import socket
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import serial

from jointbench.bench.fault import is_fault_url, parse_fault_url
from jointbench.bench.port_lock import PortLock, lock_port
from jointbench.errors import BoardLost, PortInUse
from jointwire import BROADCAST_NODE, Chunk, Frame, FrameReader, MessageType, encode_frame
from jointwire.messages import FIRST_FROM_BOARD

if TYPE_CHECKING:
    from jointbench.bench.bench_file import BoardEntry
    from jointbench.bench.clock import Clock


_CHUNK = 65536


SCHEMES = ("serial", "socket", "rfc2217", "hwgrep", "loop", "fault")
"""What may stand before the colon of a port's URL; pyserial knows others, of which one writes files."""

_SCHEME = re.compile(r"\s*([A-Za-z][A-Za-z0-9+.-]*):")
_WRITE_TIMEOUT_S = 2.0  # a port that takes no bytes for this long has nobody at its other end
NEVER = 2**63  # [µs]


def refused_scheme(url: str) -> str:
    """Reason why a port's URL is not opened, "" where it may be: a device has no scheme, or "serial:"."""
    scheme = _SCHEME.match(url.strip().removeprefix("serial:"))
    if scheme is None or scheme[1].lower() in SCHEMES or re.fullmatch(r"(?i)com\d+", scheme[1]):
        return ""
    return f"{scheme[1]!r} is no kind of port that is opened here; name a device, or one of {', '.join(SCHEMES)}"


def open_serial(url: str, **settings: Any) -> Any:
    """Open a serial device or a URL of one of `SCHEMES`, so that reading never waits.

    Raises:
        ValueError: the URL's scheme is another, or as pyserial does.
        serial.SerialException, OSError: as pyserial does.
    """
    if why := refused_scheme(url):
        raise ValueError(why)
    if url.lower().startswith("rfc2217:"):
        settings.pop("write_timeout", None)  # pyserial has none there; the connection's own holds
    port = serial.serial_for_url(url, timeout=0, **settings)
    if url.lower().startswith("socket:"):
        _send_at_once(port.fileno())
    return port


def file_descriptor(port: Any) -> int | None:
    """File descriptor to wait on, or None where the kind of port has none."""
    try:
        return port.fileno()
    except (AttributeError, OSError, ValueError):  # io.UnsupportedOperation is both of the latter
        return None


def read_waiting(port: Any, size: int = _CHUNK) -> bytes:
    """Bytes that are there, at most `size`, of a port opened by `open_serial`.

    Raises:
        serial.SerialException, OSError: the port is gone.
    """
    data: bytes = port.read(size)
    if file_descriptor(port) is None:  # rfc2217:// gives one byte a time to who does not wait
        pieces = [data]
        got = len(data)
        while data and got < size:
            data = port.read(size - got)
            pieces.append(data)
            got += len(data)
        return b"".join(pieces)
    return data


def close_serial(port: Any) -> None:
    """Close a port opened by `open_serial`; closing twice is harmless."""
    connection: socket.socket | None = getattr(port, "_socket", None)
    port.close()
    if connection is not None:
        connection.close()  # pyserial forgets one that the other end has ended, without closing it


def _send_at_once(descriptor: int) -> None:
    """A request is small and waits for its answer: TCP must not wait for more of it."""
    with socket.socket(fileno=os.dup(descriptor)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


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
            FileError: its fault:// URL is wrong.
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
        """Number of strikes of each fault of a fault:// URL; empty for any other."""
        return self._faults.counts if self._faults else {}

    @property
    def next_due_us(self) -> int | None:
        """Time at which faults let something pass that they hold [µs]; None while they hold nothing."""
        return self._faults.next_due_us() if self._faults else None

    def why_lost(self, node: int) -> str:
        """Reason why a board is gone, with its port or alone; empty while it is there."""
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

    def announce(self, **facts: Any) -> None:
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
    """Drop bytes that arrive before a board listens."""


def _at_start() -> int:
    """Return the time before there is a clock."""
    return 0


class Member(Protocol):
    """One board's side of a line."""

    def heard(self, data: bytes) -> None:
        """Take note of raw bytes that are most likely this board's."""
        ...

    def take(self, time_us: int, chunk: Chunk) -> None:
        """Take a frame of this board, or what came in its place."""
        ...

    def ping_frame(self) -> bytes:
        """Build a PING for this board."""
        ...


class Line:
    """The line of one board: whatever is to be sent goes out at once.

    Attributes:
        port, clock: through which, and when.
        nodes: the boards on it.
        speaker: the node whose turn it is, or was last; noise is put down to it.
    """

    def __init__(self, port: Port, clock: Clock) -> None:
        """Listen at the port; nothing is sent."""
        self.port = port
        self.clock = clock
        self.nodes: tuple[int, ...] = port.nodes
        self.speaker: int = port.nodes[0]
        self._reader = FrameReader()
        self._members: dict[int, Member] = {}
        port.sink = self._receive

    def join(self, node: int, member: Member) -> None:
        """Hand everything from this node to `member` from now on."""
        self._members[node] = member

    def send(self, node: int, frame: bytes) -> None:
        """Send a frame to a node; on a shared line, as soon as the line is free."""
        self.port.write(frame)

    def stop_all(self) -> None:
        """Send STOP to every board this instant, whoever speaks, and wait for nothing."""
        self.port.write(encode_frame(MessageType.STOP, BROADCAST_NODE, 0, self.clock.now_us()))

    def keep_alive(self, node: int) -> None:
        """Let the node hear of the host; a shared line does so by itself."""
        self.port.write(self._members[node].ping_frame())

    def attend(self, node: int, transmit_buffer: int) -> None:
        """The node has been greeted and has that many bytes to keep what it has to say; give it turns from now on."""

    @property
    def patience_us(self) -> int:
        """Time by which an answer may come later than on a line of the board's own [µs]."""
        return 0

    def due_us(self) -> int:
        """Latest time at which `serve` must be called [µs]."""
        return NEVER

    def serve(self) -> None:
        """Do what is due."""

    @property
    def rest(self) -> bytes:
        """Bytes since the last delimiter."""
        return self._reader.pending

    def _receive(self, data: bytes, time_us: int) -> None:
        if self.speaker in self._members:
            self._members[self.speaker].heard(data)
        for chunk in self._reader.feed(data):
            node = self.speaker
            if isinstance(chunk.content, Frame):
                if chunk.content.type < FIRST_FROM_BOARD:
                    continue  # some adapters give the host its own words back
                if chunk.content.node in self._members:
                    node = chunk.content.node
            if node in self._members:
                self._members[node].take(time_us, chunk)
            self._heard(time_us, chunk)

    def _heard(self, time_us: int, chunk: Chunk) -> None:
        """A chunk has been handed on."""
