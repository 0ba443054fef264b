"""AS5047P magnetic encoder on SPI: 14 bits a turn, each frame with parity and an error flag.

An answer comes with the frame after its request, so a reading is two frames of 16 bits: 4 us on the line at 8 MHz, and
some tens of us of interpreter. Registers as in the AS5047P data sheet (ams), register tables. MISO needs a
pull-up: a cut line then reads as an error, not as angle 0.
"""

import micropython
from micropython import const

from drivers.errors import SensorFault
from drivers.failures import Failures

BAUD = const(8000000)
FASTEST_BAUD = const(10000000)
POLARITY = const(0)  # SPI mode 1
PHASE = const(1)

# Requests: address, bit 14 to read, bit 15 for even parity over all 16.
ANGLE = b"\xff\xff"  # ANGLECOM 0x3FFF: corrected for the time the sensor takes
ERRORS = b"\x40\x01"  # ERRFL 0x0001; reading clears it
NOTHING = b"\xc0\x00"  # NOP 0x0000

ERROR_FLAG = const(0x4000)
VALUE = const(0x3FFF)
ERROR_NAMES = ("framing", "invalid command", "parity of a request")


class As5047p:
    """The absolute angle as counts 0 … COUNTS - 1.

    A sensor that speaks alike differs in NAME, the request DIAGNOSTICS, and what FLAGS its answer tells: each a mask,
    whether that bit must be set, and what is wrong where it is not so.

    Args: a bus with write_readinto(), set up as BAUD, POLARITY and PHASE say; the sensor's select pin.
    Raises SensorFault when it does not answer, or its magnet will not do.
    """

    COUNTS = 16384
    NAME = "AS5047P"
    DIAGNOSTICS = b"\xff\xfc"  # DIAAGC 0x3FFC
    FLAGS = (
        (0x100, True, "not ready (no sensor on the line?)"),  # LF: the offset loop has settled
        (0x200, False, "angle overflow"),  # COF
        (0x400, False, "magnet too strong or too near"),  # MAGH
        (0x800, False, "magnet too weak, too far or missing"),  # MAGL
    )

    def __init__(self, spi, select):
        self._spi = spi
        self._select = select
        self._answer = bytearray(2)
        self._angle = 0
        self.failures = Failures(self.NAME)
        select.value(1)
        self._ask(ERRORS)  # what happened before is not of interest
        self.check()

    def read(self):
        """The angle now; the one before in place of a bad frame. Allocates nothing."""
        answer = self._ask(ANGLE)
        if parity(answer):
            self.failures.one("parity", answer)
        elif answer & ERROR_FLAG:
            self.failures.one("the error flag", self._ask(ERRORS))
        else:
            self.failures.none()
            self._angle = answer & VALUE
        return self._angle

    def complain(self, answer):
        """Raise what three bad frames in a row mean, the last of which is this one."""
        raise SensorFault("%s: 3 bad readings in a row, the last 0x%04x: %s" % (
            self.NAME, answer, "parity" if parity(answer) else "the error flag"))  # fmt: skip

    def check(self):
        """Raise SensorFault with what the sensor says is wrong with itself, its magnet or the line."""
        answer = self._ask(self.DIAGNOSTICS)
        wrong = []
        if parity(answer):
            wrong.append("parity of the answer")
        elif answer & ERROR_FLAG:
            errors = self._ask(ERRORS)
            wrong += [name for k, name in enumerate(ERROR_NAMES) if errors >> k & 1] or ["error flag"]
        else:
            wrong += [what for mask, must, what in self.FLAGS if bool(answer & mask) != must]
        if wrong:
            raise SensorFault("%s: %s (0x%04x)" % (self.NAME, ", ".join(wrong), answer))

    def _ask(self, request):
        self._frame(request)
        return self._frame(NOTHING)

    def _frame(self, request):
        self._select.value(0)
        self._spi.write_readinto(request, self._answer)
        self._select.value(1)
        return self._answer[0] << 8 | self._answer[1]


@micropython.viper
def parity(word: int) -> int:
    """1 when an odd number of the 16 bits are set."""
    word ^= word >> 8
    word ^= word >> 4
    word ^= word >> 2
    word ^= word >> 1
    return word & 1
