"""MT6701 magnetic encoder on its SSI: 14 bits a turn, with four bits of status and a CRC of six.

A reading is one frame of 24 bits, 3 us on the line at 8 MHz, and some tens of us of interpreter. The sensor shifts
out on rising edges of the clock, so they are read on falling ones (SPI mode 1); MOSI is not wired. What it measured is
some us old, and not corrected for that. Source: MagnTek MT6701 data sheet, "7.8.2 SSI": frame, status Mg[3:0], CRC
polynomial x^6 + x + 1 over the 18 bits before it, first bit first, from 0; a clock of 15.6 MHz at most.

MISO needs a pull-up: of a line without a sensor all bits are then 1, which no CRC allows. All bits 0 are a good frame.
"""

import micropython
from micropython import const

from drivers.errors import SensorFault
from drivers.failures import Failures

BAUD = const(8000000)
FASTEST_BAUD = const(15600000)
POLARITY = const(0)  # SPI mode 1
PHASE = const(1)

NO_TRACK = const(8)  # Mg[3]: it turns faster than it can be followed
FIELD = const(3)  # Mg[1:0]
FIELD_NAMES = ("", "magnet too strong or too near", "magnet too weak, too far or missing", "no such field status")


class Mt6701:
    """The absolute angle as counts 0 … COUNTS - 1.

    Args: a bus with readinto(), set up as BAUD, POLARITY and PHASE say; the sensor's select pin.
    Raises SensorFault when it does not answer, or its magnet will not do.
    """

    COUNTS = 16384

    def __init__(self, spi, select):
        self._spi = spi
        self._select = select
        self._frame = bytearray(3)
        self._angle = 0
        self.failures = Failures("MT6701")
        select.value(1)
        self._ask()
        self.check()

    def read(self):
        """The angle now; the one before in place of a bad frame. Allocates nothing."""
        frame = self._ask()
        if remainder(frame):
            self.failures.one("CRC", frame)
        elif frame >> 6 & NO_TRACK:
            self.failures.one("loss of track", frame)
        elif frame >> 6 & FIELD:
            self.failures.one("the magnet's field", frame)
        else:
            self.failures.none()
            self._angle = frame >> 10
        return self._angle

    def check(self):
        """Raise SensorFault with what the sensor says is wrong with its magnet, or that nothing answers."""
        frame = self._ask()
        if remainder(frame):
            raise SensorFault("MT6701: wrong CRC (0x%06x); is it on the line, and wired for SSI?" % frame)
        status = frame >> 6 & 15
        if status & NO_TRACK:
            raise SensorFault("MT6701: loss of track (0x%06x)" % frame)
        if status & FIELD:
            raise SensorFault("MT6701: %s (0x%06x)" % (FIELD_NAMES[status & FIELD], frame))

    def _ask(self):
        self._select.value(0)
        self._spi.readinto(self._frame)
        self._select.value(1)
        frame = self._frame
        return frame[0] << 16 | frame[1] << 8 | frame[2]


@micropython.viper
def remainder(frame: int) -> int:
    """Of a whole frame divided by x^6 + x + 1: 0 when its CRC is right."""
    bit = 23
    while bit >= 6:
        if (frame >> bit) & 1:
            frame ^= 0x43 << (bit - 6)
        bit -= 1
    return frame & 0x3F
