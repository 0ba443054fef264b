"""External drive that takes its current command over CAN (drivers/command_frame.py), by pyb.CAN at 1 Mbit/s.

A frame that finds all three mailboxes of the controller full is lost: the bus is not acknowledged by anybody. Several
commands in a row are a fault. "Off" that nobody hears is none: a drive without power is off, and a board at rest has
no motor to stop; its frames are tried on, and counted.
"""

from drivers.command_frame import CAN_ID, DATA, DATA_SIZE, SIZE, fill
from drivers.failures import Failures


class CanDrive:
    """command(mA) and off(). Args: a CAN with send(data, id), set up; the board's node."""

    def __init__(self, can, node):
        self._can = can
        self._id = CAN_ID + node
        self._frame = bytearray(SIZE)
        self._data = memoryview(self._frame)[DATA : DATA + DATA_SIZE]
        self.failures = Failures("CAN drive")

    def command(self, current_mA):
        fill(self._frame, current_mA, 1)
        try:
            self._can.send(self._data, self._id)
        except OSError as error:
            self.failures.one("no room to send", error.errno or 0)
        else:
            self.failures.none()

    def off(self):
        fill(self._frame, 0, 0)
        try:
            self._can.send(self._data, self._id)
        except OSError:
            self.failures.total += 1
