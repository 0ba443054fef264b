"""The line to the host as a USB port of its own (CDC), beside the port that is the interpreter's console.

Nothing waits: a transfer is begun when none is on its way, and a host that does not read lets it lie. Then there is no
room, and frames are dropped and counted as on any full line. What arrives is taken by the interpreter between two
bytecodes, a packet of 64 bytes at a time; when the ring is full, USB itself holds the host back.

The port's interface is named NAME, so that a host tells the two apart. It is there from the constructor on: the board
leaves the bus for 50 ms then, and comes back with both ports. Costs: docs/boards.md.
"""

import io
import os
import struct
from time import sleep_ms

import machine
import micropython
from micropython import const

NAME = "Jointbench line"
PACKET = const(64)  # of USB full speed
MOST = const(127)  # bytes sent in a turn: no whole packets, which would ask for an empty one to end them
RING = const(512)  # bytes received and not yet asked for
WRAP = const(1023)
IN = const(0x80)  # direction of an endpoint
SETUP = const(1)  # stage of a control transfer
CLASS_REQUEST = const(0x21)  # to an interface; its answer 0xA1
SET_LINE_CODING, GET_LINE_CODING, SET_LINE_STATE = const(0x20), const(0x21), const(0x22)
FLUSH_MS = const(100)
POLL, READABLE = const(3), const(1)  # of ioctl


class UsbLine:
    """Bytes between the Hal and the host's port."""

    receive_buffer = RING
    budget = MOST

    def __init__(self):
        self._usb = usb = machine.USBDevice()
        usb.active(False)
        built_in = usb.BUILTIN_DEFAULT
        usb.builtin_driver = built_in  # pyright: ignore[reportAttributeAccessIssue] (the stubs lack it)
        self._interface = built_in.itf_max
        self._notify = IN | built_in.ep_max
        self._from_host, self._to_host = built_in.ep_max + 1, IN | (built_in.ep_max + 1)
        self._coding = bytearray(struct.pack("<IBBB", 921600, 0, 0, 8))  # a speed that means nothing here
        self._packet, self._ring = bytearray(PACKET), bytearray(RING)
        self._head = self._tail = 0  # of the ring, modulo twice its size
        self._buffer = bytearray(MOST)
        whole = memoryview(self._buffer)
        self._parts = [whole[:count] for count in range(MOST + 1)]  # a slice of its own would take memory in a tick
        self._open = self._sending = self._full = False
        usb.config(
            built_in.desc_dev, self._describe(built_in), {built_in.str_max: NAME}, self._opened, self._reset,
            self._control, self._transferred,
        )  # fmt: skip
        usb.active(True)

    def receive(self, into, most):
        count = min(most, self.waiting())
        if count:
            take(into, self._ring, self._tail, count)
            self._tail = self._tail + count & WRAP
        if self._full and RING - self.waiting() >= PACKET:
            self._full = False
            self._listen()
        return count

    def waiting(self):
        return self._head - self._tail & WRAP

    def room(self):
        return MOST if self._open and not self._sending else 0

    def send(self, data, count):
        copy(self._buffer, data, count)
        self._sending = True
        try:
            self._usb.submit_xfer(self._to_host, self._parts[count])
        except OSError:  # the host has just reset the bus
            self._sending = False

    def flush(self):
        for _ in range(FLUSH_MS):
            if not self._sending:
                break
            sleep_ms(1)

    def become_console(self):
        """From now on it is typed at the interpreter here, too, until the board's next reset."""
        os.dupterm(Console(self))

    def _listen(self):
        try:
            self._usb.submit_xfer(self._from_host, self._packet)
        except OSError:
            pass  # likewise; _opened() begins anew

    # Called between two bytecodes of whatever runs.

    def _opened(self, _descriptor):
        self._open, self._sending, self._full = True, False, False
        self._listen()

    def _reset(self):
        self._open = self._sending = False

    def _transferred(self, endpoint, _result, count):
        if endpoint == self._to_host:
            self._sending = False
        elif endpoint == self._from_host:
            put(self._ring, self._head, self._packet, count)
            self._head = self._head + count & WRAP
            if RING - self.waiting() >= PACKET:
                self._listen()
            else:
                self._full = True
        return True

    def _control(self, stage, request):
        if stage != SETUP:
            return True
        if request[0] & 0x7F != CLASS_REQUEST:
            return False
        if request[1] in (SET_LINE_CODING, GET_LINE_CODING):
            return self._coding
        return request[1] == SET_LINE_STATE

    def _describe(self, built_in):
        """The configuration: what is built in, and two interfaces of ours behind it."""
        first, name = self._interface, built_in.str_max
        both = bytearray(built_in.desc_cfg)
        both += bytes((8, 0x0B, first, 2, 2, 2, 0, name))  # these two belong together: CDC, ACM
        both += bytes((9, 4, first, 0, 1, 2, 2, 0, name))  # control; with an endpoint that nothing is told by
        both += bytes((5, 0x24, 0, 0x20, 0x01, 5, 0x24, 1, 0, first + 1, 4, 0x24, 2, 2, 5, 0x24, 6, first, first + 1))
        both += bytes((7, 5, self._notify, 3, 8, 0, 16))
        both += bytes((9, 4, first + 1, 0, 2, 0x0A, 0, 0, 0))  # data
        both += bytes((7, 5, self._from_host, 2, PACKET, 0, 0, 7, 5, self._to_host, 2, PACKET, 0, 0))
        struct.pack_into("<HB", both, 2, len(both), first + 2)
        return both


class Console(io.IOBase):
    """The line as a stream; what a host does not fetch in time is lost."""

    def __init__(self, line):
        self._line = line

    def readinto(self, into):
        return self._line.receive(into, len(into)) or None

    def write(self, data):
        whole = memoryview(data)
        for begin in range(0, len(whole), MOST):
            part = whole[begin : begin + MOST]
            self._line.flush()
            if self._line.room():
                self._line.send(part, len(part))
        return len(whole)

    def ioctl(self, request, flags):
        if request != POLL:
            return 0
        return flags & (READABLE if self._line.waiting() else 0)


@micropython.viper
def copy(_into, _data, count: int):
    into, data = ptr8(_into), ptr8(_data)
    k = 0
    while k < count:
        into[k] = data[k]
        k += 1


@micropython.viper
def put(_ring, head: int, _packet, count: int):
    ring, packet = ptr8(_ring), ptr8(_packet)
    k = 0
    while k < count:
        ring[(head + k) & (RING - 1)] = packet[k]
        k += 1


@micropython.viper
def take(_into, _ring, tail: int, count: int):
    into, ring = ptr8(_into), ptr8(_ring)
    k = 0
    while k < count:
        into[k] = ring[(tail + k) & (RING - 1)]
        k += 1
