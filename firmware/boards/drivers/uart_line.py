"""The line to the host on a UART. Sending never waits where the port buffers (RP2, ESP32).

A port does not tell how full its transmit buffer is, but a UART empties it at a known rate: `room` is worked out from
that. The STM32 port has no transmit buffer: there sending waits for each byte, so a tick sends what fits `patience_us`.
When the program ends for the REPL, the line becomes the interpreter's console: no host could flash the board over it
otherwise.
"""

import os

from micropython import const

from drivers.errors import WiringError

BUFFER = const(1024)  # of the port, each way
SLOWEST = const(57600)  # a slower line cannot carry a frame of samples in time
BITS = const(10)  # on the line for a byte


class UartLine:
    """Bytes between the Hal and a machine.UART set up with BUFFER bytes each way; `budget` of them go out in a tick.

    Args: the UART; its speed; the tick in us; whether it has a transmit buffer, and how long to wait where not; which
    of its interrupts wakes the console (`UART.IRQ_RX`) where the port does not look for input by itself; the driver of
    an RS-485 line (rp2_driver_enable.py).
    """

    receive_buffer = BUFFER

    def __init__(self, uart, baud, period_us, buffered=True, patience_us=300, wake=None, driver=None):
        if baud < SLOWEST:
            raise WiringError("config.json: line.baud is %d; it must be at least %d" % (baud, SLOWEST))
        self.uart = uart
        self._wake, self._driver = wake, driver
        self._a_tick = baud * period_us // (BITS * 1000000)
        self.budget = self._a_tick + 4 & ~3
        self._capacity = BUFFER if buffered else max(1, baud * patience_us // (BITS * 1000000))
        if not buffered:
            self._a_tick = self._capacity
        self._waiting = 0  # bytes given to the port and not yet on the line, at most

    def receive(self, into, most):
        """Called once a tick, whether or not anything is to be sent: what the line has sent since is free again."""
        waiting = self._waiting - self._a_tick
        self._waiting = waiting if waiting > 0 else 0
        count = self.uart.any()
        if not count:
            return 0
        return self.uart.readinto(into, count if count < most else most) or 0

    def room(self):
        return self._capacity - self._waiting

    def send(self, data, count):
        self._waiting += count
        if self._driver:
            self._driver.begin()
        self.uart.write(data, count)  # pyright: ignore[reportCallIssue] (the stubs lack write(data, count))
        if self._driver:
            self._driver.sending(count)

    def flush(self):
        self.uart.flush()

    def become_console(self):
        """From now on what arrives is typed at the interpreter, until the board's next reset.

        Nothing that came before is: the port still has what a host said while the board started, before DMA took the
        line, and the first byte of most frames is a Ctrl-D or the like.
        """
        while self.uart.any():
            self.uart.read(self.uart.any())
        os.dupterm(self.uart)
        if self._wake is not None:
            self.uart.irq(os.dupterm_notify, self._wake)
