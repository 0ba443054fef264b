"""main.py of a board for the tests: the firmware on drivers/joint.py, with pins, sensors and line of objects.

The emulated board's pipes bring the time, the sensors and the bytes; what goes back is what the pins and the drive say,
so a test sees what a motor would. Reading the pipes is the passing of time.
"""

import struct
import sys

from unix import Board as Pipes


class Module:
    pass


PERIOD_US = 1000  # the first message is the first tick, a period after the clock starts
pipes = Pipes()
ticks = 0
sys.modules["time"] = Module()
sys.modules["time"].ticks_us = lambda: ticks
sys.modules["time"].ticks_diff = lambda a, b: a - b

from drivers.errors import SensorFault
from drivers.joint import Joint


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


class Line:
    receive_buffer = 512
    arrived = 0

    def receive(self, into, most):
        count, self.arrived = self.arrived, 0
        into[:count] = pipes.incoming[pipes.INCOMING_AT : pipes.INCOMING_AT + count]
        return count

    def room(self):
        return pipes.room()

    def send(self, data, count):
        pipes.outgoing[pipes.OUTGOING_AT : pipes.OUTGOING_AT + count] = data[:count]
        pipes.send(count)

    def flush(self):
        pipes.flush()

    def become_console(self):
        pass


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
        self.begin(Line(), Encoder(), None, None)
        if "sim_joint" in self.config:
            self.complete(None)
        else:  # without measuring the current's zero: no time passes yet
            self.drive = Drive()

    def measure(self, inputs):
        inputs[24:96] = pipes.inputs[24:96]

    def wait_tick(self):
        tick = struct.unpack_from("<i", pipes.inputs, 0)[0]
        struct.pack_into("<3i", pipes.outputs, 0, tick, Pin.levels[4], getattr(self.drive, "current_mA", 0))
        global ticks
        self.line.arrived = pipes.wait_tick()
        ticks = (struct.unpack_from("<I", pipes.inputs, 4)[0] + PERIOD_US) & 0x3FFFFFFF
        return super().wait_tick()


board = Board()
board.disable()
from jointboard import app

app.run(board)
