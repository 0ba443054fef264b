"""The fault:// port as pyserial makes it, for any program: miniterm, a script, somebody else's tool."""

from __future__ import annotations

import select
import threading
import time
from collections.abc import Callable
from typing import Any

import serial
from serial.serialutil import Timeout

from jointbench.bench.fault.faults import Faults, parse_fault_url
from jointbench.bench.line import close_serial, file_descriptor, open_serial, read_waiting
from jointbench.errors import FileError

_LOOK_S = 0.005  # between looks at a port that cannot be waited on, and at what another thread has written
_LINE_SETTINGS = ("baudrate", "bytesize", "parity", "stopbits", "xonxoff", "rtscts", "dsrdtr")
_PORT_SETTINGS = ("write_timeout", "exclusive")


class Serial(serial.SerialBase):
    """A port behind a faulty line; pyserial opens it for fault:// URLs.

    What is delayed on its way to the board goes on while somebody reads or writes.

    Attributes:
        now_us: the time that faults go by [µs]: since the port was opened, unless another clock is set here.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Open a port as pyserial does."""
        self._inner: Any = None
        self._faults = Faults(())
        self._received = bytearray()
        self._cancelled = False
        self._lock = threading.RLock()  # miniterm writes in one thread and reads in another
        self.now_us: Callable[[], int] = _stopwatch()
        super().__init__(*args, **kwargs)

    @property
    def faults(self) -> dict[str, int]:
        """Number of strikes of each fault, by direction and name."""
        return self._faults.counts

    def open(self) -> None:
        """Open the port behind the faults.

        Raises:
            serial.SerialException: it is open already, or the URL or the port behind it is wrong.
        """
        if self.is_open:
            raise serial.SerialException("port is already open")
        try:
            self._faults, url = parse_fault_url(str(self.portstr))
        except FileError as error:
            raise serial.SerialException(str(error)) from error
        self._inner = open_serial(url, **{name: getattr(self, name) for name in _LINE_SETTINGS + _PORT_SETTINGS})
        self.now_us = _stopwatch()
        self.is_open: bool = True

    def close(self) -> None:
        """Close the port behind the faults; closing twice is harmless."""
        if self.is_open:
            self.is_open = False
            close_serial(self._inner)

    def read(self, size: int = 1) -> bytes:
        """Up to `size` bytes: all of them, or what came until the time-out."""
        timeout_s: Any = self.timeout
        timeout = Timeout(timeout_s)
        self._pass_on()
        while len(self._received) < size and not timeout.expired() and not self._cancelled:
            self._wait(timeout.time_left())
            self._pass_on()
        self._cancelled = False
        with self._lock:
            data = bytes(self._received[:size])
            del self._received[:size]
        return data

    def write(self, data: Any) -> int:
        """Send bytes, or whatever can be made into bytes, through the faults."""
        self._need_open()
        data = bytes(data)
        with self._lock:
            self._faults.tx.put(data, self.now_us())
            self._pass_on()
        return len(data)

    @property
    def in_waiting(self) -> int:
        """Bytes that can be read now."""
        self._pass_on()
        return len(self._received)

    def fileno(self) -> int:
        """File descriptor of the port behind: bytes that faults hold do not make it readable."""
        return self._inner.fileno()

    def flush(self) -> None:
        """Wait until the port behind has sent what it was given."""
        self._need_open()
        self._inner.flush()

    def cancel_read(self) -> None:
        """Let a read in another thread return with what it has."""
        self._cancelled = True

    def reset_input_buffer(self) -> None:
        """Throw away what was received."""
        self._need_open()
        with self._lock:
            self._inner.reset_input_buffer()
            self._received.clear()

    def reset_output_buffer(self) -> None:
        """Throw away what the port behind has not sent yet."""
        self._need_open()
        self._inner.reset_output_buffer()

    @property
    def cts(self) -> bool:
        """Clear To Send of the port behind."""
        return self._inner.cts

    @property
    def dsr(self) -> bool:
        """Data Set Ready of the port behind."""
        return self._inner.dsr

    @property
    def ri(self) -> bool:
        """Ring Indicator of the port behind."""
        return self._inner.ri

    @property
    def cd(self) -> bool:
        """Carrier Detect of the port behind."""
        return self._inner.cd

    def _reconfigure_port(self) -> None:
        for name in _LINE_SETTINGS:
            if getattr(self._inner, name) != getattr(self, name):
                setattr(self._inner, name, getattr(self, name))

    def _update_break_state(self) -> None:
        self._inner.break_condition = self.break_condition

    def _update_rts_state(self) -> None:
        self._inner.rts = self.rts

    def _update_dtr_state(self) -> None:
        self._inner.dtr = self.dtr

    def _need_open(self) -> None:
        if not self.is_open:
            raise serial.PortNotOpenError()

    def _pass_on(self) -> None:
        """Let through the faults what has come and what is due, both ways."""
        self._need_open()
        with self._lock:
            while data := read_waiting(self._inner):
                self._faults.rx.put(data, self.now_us())
            now_us = self.now_us()
            self._received += self._faults.rx.take(now_us)
            if due := self._faults.tx.take(now_us):
                self._inner.write(due)

    def _wait(self, left_s: float | None) -> None:
        """Until something may have come or be due, or for the time left, but never long."""
        wait_s = _LOOK_S if left_s is None else min(left_s, _LOOK_S)
        if (due_us := self._faults.next_due_us()) is not None:
            wait_s = min(wait_s, max(due_us - self.now_us(), 0) * 1e-6)
        descriptor = file_descriptor(self._inner)
        select.select([] if descriptor is None else [descriptor], [], [], wait_s)


def _stopwatch() -> Callable[[], int]:
    """Time since now [µs]."""
    start_ns = time.monotonic_ns()
    return lambda: (time.monotonic_ns() - start_ns) // 1000
