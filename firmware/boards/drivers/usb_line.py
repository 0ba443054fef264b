"""The line to the host on the console's own USB port: for trying a board out, without a motor's power.

A host that stops reading holds a write up for as long as 500 ms (MicroPython's MICROPY_HW_USB_CDC_TX_TIMEOUT), and no
tick runs meanwhile. So use a UART where a motor can move. Reading takes a call per byte, thus at most MOST a tick.
"""

import select
import sys

from micropython import const

MOST = const(32)  # bytes received in a tick
PACKET = const(64)  # of USB full speed


class UsbLine:
    """Bytes between the Hal and sys.stdin and sys.stdout."""

    receive_buffer = 512  # of the rp2 port
    budget = PACKET

    def __init__(self):
        self._in, self._out = sys.stdin.buffer, sys.stdout.buffer
        self._readable, self._writable = select.poll(), select.poll()
        self._readable.register(sys.stdin, select.POLLIN)
        self._writable.register(sys.stdout, select.POLLOUT)
        self._byte = bytearray(1)

    def receive(self, into, most):
        count = 0
        while count < most and count < MOST and _ready(self._readable):
            self._in.readinto(self._byte)
            into[count] = self._byte[0]
            count += 1
        return count

    def room(self):
        return PACKET if _ready(self._writable) else 0

    def send(self, data, count):
        self._out.write(data, count)  # pyright: ignore[reportCallIssue] (the stubs lack write(data, count))

    def flush(self):
        pass  # a write returns when USB has taken it

    def become_console(self):
        pass  # it is


def _ready(poll):
    for _ in poll.ipoll(0):  # poll() would allocate a list
        return True
    return False
