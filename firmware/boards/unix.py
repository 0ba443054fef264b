"""Emulated board: MicroPython's unix port on two pipes. Also the main.py of such a board.

File 3 brings a tick's inputs and received bytes, file 4 takes its outputs and sent bytes; one message each way per
tick, so the other end decides when time goes on. The first word sent names this layout, the second how long the inputs
are: with "partner" in config.json inputs and outputs are there twice, one after the other, and the first say what is
received and sent. When file 3 ends, so does the process.

With "drive" in config.json the motor is a smart drive at a bus of its own: file 6 takes what the board says there,
file 5 brings what is answered to it at once, each time as two bytes that count and as many bytes.
"""

import json
import struct

from micropython import const
from uctypes import addressof

LAYOUT = const(0x4A420004)  # "JB", version 4
INPUTS = const(128)  # bytes of a motor: those of the Hal, then how many are received, and the time
RECEIVED = const(120)
NOW_US = const(124)
OUTPUTS = const(16)  # bytes of a motor; the fourth word counts those to be sent
LINE = const(512)  # bytes the line takes in a tick, each way


class Partner:
    """The board's second motor."""

    def __init__(self, config, inputs, outputs):
        self.node, self.facts = config["node"], config["facts"]
        self.inputs, self.outputs = inputs, outputs


class Bus:
    """Files 5 and 6 as the UART of a drive's bus."""

    def __init__(self):
        self._from_drive = open(5, "rb")
        self._to_drive = open(6, "wb")
        self._count = bytearray(2)
        self._unread = 0

    def any(self):
        return self._unread

    def readinto(self, into, most):
        count, self._unread = self._unread, 0
        return self._from_drive.readinto(into, count)

    def write(self, data, count):
        if self._unread:  # nobody has read them: a UART's buffer would run over in time
            self._from_drive.read(self._unread)
        self._count[0], self._count[1] = count & 0xFF, count >> 8
        self._to_drive.write(self._count)
        self._to_drive.write(data, count)
        if self._from_drive.readinto(self._count) != 2:
            raise EOFError
        self._unread = self._count[0] | self._count[1] << 8


class Board:
    """The two pipes as a board's hardware (boards/__init__.py says what each part means)."""

    kind = "unix"
    reset_cause = 1  # power on
    clock_Hz = 0
    adc = (16000, 12, 3300)
    encoder_source = 4  # emulated
    receive_buffer = LINE
    sync_input = True

    def __init__(self):
        self._from_bench = open(3, "rb")
        self._to_bench = open(4, "wb")
        with open("config.json") as file:
            config = json.load(file)
        self.node = config["node"]
        self.uid = bytes.fromhex(config["uid"])
        self.facts = config["facts"]
        motors = 2 if "partner" in config else 1
        self.INCOMING_AT, self.OUTGOING_AT = motors * INPUTS, motors * OUTPUTS
        self.inputs = self.incoming = bytearray(self.INCOMING_AT + LINE)
        self.outputs = self.outgoing = bytearray(self.OUTGOING_AT + LINE)
        if motors == 2:
            inputs, outputs = memoryview(self.inputs)[INPUTS:], memoryview(self.outputs)[OUTPUTS:]
            self.partner = Partner(config["partner"], inputs, outputs)
        self.clock_at = addressof(self.inputs) + NOW_US
        self._received = memoryview(self.incoming)[self.INCOMING_AT :]
        self._message = bytearray(16)
        struct.pack_into("<4I", self._message, 0, LAYOUT, self.INCOMING_AT, 0, 0)
        self._to_bench.write(self._message)
        self._answering = False
        self._sent = 0
        self._drive = None
        if "drive" in config:
            from drivers.smart_drive import smart_drive

            self._drive = smart_drive(Bus(), config)
            self.facts.update(self._drive.facts)

    def disable(self):
        outputs = self.outputs
        for motor in range(0, self.OUTGOING_AT, OUTPUTS):
            for k in range(motor + 4, motor + 12):
                outputs[k] = 0
        if self._drive:
            self._drive.off()

    def wait_tick(self):
        self.flush()
        if self._from_bench.readinto(self.inputs, self.INCOMING_AT) != self.INCOMING_AT:
            raise EOFError
        self._answering = True
        count = self.inputs[RECEIVED] | self.inputs[RECEIVED + 1] << 8
        if count and self._from_bench.readinto(self._received, count) != count:
            raise EOFError
        if self._drive:
            for k in range(4):  # the tick that is answered, also where measuring fails
                self.outputs[k] = self.inputs[k]
            self._drive.measure(self.inputs)
        return count

    def watchdog(self, timeout_ms):
        pass  # the bench ends a board that does not answer

    def before_erasing(self):
        pass

    def now_us(self):
        return struct.unpack_from("<I", self.inputs, NOW_US)[0]

    def stopwatch_us(self):
        return self.now_us()  # how fast the host is says nothing of a board

    def apply(self):
        """They go out with the tick's message; a smart drive is told now."""
        if self._drive:
            self._drive.apply(self.outputs)

    def room(self):
        return LINE

    def send(self, count):
        self._sent = count

    def flush(self):
        if not self._answering:
            return
        self._answering = False
        self.outputs[12] = self._sent & 0xFF
        self.outputs[13] = self._sent >> 8
        try:
            self._to_bench.write(self.outputs, self.OUTGOING_AT + self._sent)
        except OSError:  # nobody reads any more
            raise EOFError
        self._sent = 0


if __name__ == "__main__":
    board = Board()
    board.disable()
    # The package is compiled only now: outputs come first.
    from jointboard import app

    app.run(board)
