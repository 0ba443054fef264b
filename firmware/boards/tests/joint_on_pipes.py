"""main.py of a board for the tests: the firmware on drivers/joint.py and a real line, with pins and sensors of objects.

The emulated board's pipes bring the time, the sensors and the bytes; what goes back is what the pins and the drive say,
so a test sees what a motor would. Reading the pipes is the passing of time. The canaries behind all buffers are looked
at in each tick.
"""

import struct
import sys

from unix import Board as Pipes


class Module:
    pass


BAUD = 921600
PERIOD_US = 1000  # the first message is the first tick, a period after the clock starts
pipes = Pipes()
ticks = 0
sys.modules["time"] = Module()
sys.modules["time"].ticks_us = lambda: ticks
sys.modules["time"].ticks_diff = lambda a, b: a - b

from drivers.errors import SensorFault
from drivers.joint import Joint
from drivers.uart_line import BUFFER, UartLine
from jointboard import rooms


class Pin:
    """Takes a level, and nothing else that could fail."""

    OUT = 1
    levels = {}

    def __init__(self, number, mode, value):
        self.number = number
        self.value(value)

    def value(self, level):
        self.levels[self.number] = level


class Dog:
    """Tells on the console when it is started, and with every 100th time that it is fed."""

    fed = 0

    def __init__(self, timeout):
        print("watchdog", timeout, file=sys.stderr)

    def feed(self):
        Dog.fed += 1
        if Dog.fed % 100 == 0:
            print("fed", Dog.fed, file=sys.stderr)


class Uart:
    """A port's UART with BUFFER bytes each way, whose line is the pipes: it carries BAUD bits a second.

    Allocates nothing, as a port's does not.
    """

    def __init__(self):
        self.arrived, self.waiting, self.sent, self.buffer = 0, 0, 0, bytearray(BUFFER)

    def any(self):
        return self.arrived

    def readinto(self, into, most):
        count, self.arrived = self.arrived, 0
        assert count <= most
        for k in range(count):
            into[k] = pipes.incoming[pipes.INCOMING_AT + k]
        return count

    def write(self, data, count):
        for k in range(count):
            self.buffer[(self.sent + self.waiting + k) % BUFFER] = data[k]
        self.waiting += count
        assert self.waiting <= BUFFER, "a write that would wait"

    def pass_on(self):
        count = min(self.waiting, BAUD * PERIOD_US // 10000000)
        for k in range(count):
            pipes.outgoing[pipes.OUTGOING_AT + k] = self.buffer[(self.sent + k) % BUFFER]
        self.sent, self.waiting = (self.sent + count) % BUFFER, self.waiting - count
        pipes.send(count)

    def flush(self):
        pipes.flush()


class Drive:
    current_mA = 0

    def command(self, current_mA):
        self.current_mA = current_mA

    def off(self):
        self.current_mA = 0
        if struct.unpack_from("<i", pipes.inputs, 24)[0] == 30001:  # the supply says: let the bus to the drive be stuck
            raise OSError(5)


class Encoder:
    COUNTS = 16384
    fault = 30000  # as the supply: let the encoder fail

    def read(self):
        _, supply = struct.unpack_from("<ii", pipes.inputs, 20)
        if supply == self.fault:
            raise SensorFault("encoder: 3 bad readings in a row")
        return struct.unpack_from("<i", pipes.inputs, 16)[0]


class Board(Joint):
    kind = "joint"
    uid = b"12345678"
    reset_cause = 1
    clock_Hz = 0
    adc = (16000, 12, 3300)
    encoder_source = 3

    def __init__(self):
        super().__init__(Pin, Dog)
        self.uart = Uart()
        self.begin(UartLine(self.uart, BAUD, PERIOD_US), Encoder(), None, None)
        if "sim_joint" in self.config:
            self.complete(None)
        else:  # without measuring the current's zero: no time passes yet
            self.drive = Drive()

    def measure(self, inputs):
        for k in range(24, 96):  # a slice would take memory
            inputs[k] = pipes.inputs[k]

    def wait_tick(self):
        tick = struct.unpack_from("<i", pipes.inputs, 0)[0]
        struct.pack_into("<3i", pipes.outputs, 0, tick, Pin.levels[4], getattr(self.drive, "current_mA", 0))
        global ticks
        assert rooms.intact()
        self.uart.pass_on()
        self.uart.arrived = pipes.wait_tick()
        ticks = (struct.unpack_from("<I", pipes.inputs, 4)[0] + PERIOD_US) & 0x3FFFFFFF
        return super().wait_tick()


board = Board()
board.disable()
from jointboard import app

app.run(board)
