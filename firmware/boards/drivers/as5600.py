"""AS5600 magnetic encoder on I2C: 12 bits a turn.

A reading is 3 bytes: 68 us on the line at 400 kHz, 27 us at 1 MHz. The sensor's address pointer, once set to the raw
angle, stays there (its data sheet, automatic increment of the address pointer). Its output is filtered
by the sensor itself, up to 2.2 ms: good for a joint's absolute position, too slow for its velocity.
"""

from micropython import const

from drivers.errors import SensorFault
from drivers.failures import Failures

ADDRESS = const(0x36)
STATUS = const(0x0B)
RAW_ANGLE = b"\x0c"
DETECTED = const(0x20)  # MD
TOO_WEAK = const(0x10)  # ML
TOO_STRONG = const(0x08)  # MH


class As5600:
    """The absolute angle as counts 0 … COUNTS - 1.

    Args: a bus with writeto(), readfrom_into() and readfrom_mem_into().
    Raises SensorFault when it does not answer, or its magnet will not do.
    """

    COUNTS = 4096

    def __init__(self, i2c):
        self._i2c = i2c
        self._answer = bytearray(2)
        self._status = bytearray(1)
        self._angle = 0
        self._pointed = False
        self.failures = Failures("AS5600")
        self.check()

    def read(self):
        """The angle now; the one before when the bus fails."""
        try:
            if not self._pointed:
                self._i2c.writeto(ADDRESS, RAW_ANGLE)
                self._pointed = True
            self._i2c.readfrom_into(ADDRESS, self._answer)
        except OSError as error:
            self._pointed = False
            self.failures.one("the bus", error.errno or 0)
            return self._angle
        angle = self._answer[0] << 8 | self._answer[1]
        if angle >= 4096:  # the four highest bits are always 0: this was no angle
            self._pointed = False
            self.failures.one("no angle", angle)
        else:
            self.failures.none()
            self._angle = angle
        return self._angle

    def complain(self, answer):
        """Raise what three bad readings in a row mean, the last of which is this one."""
        self.check()
        raise SensorFault("AS5600: 3 bad readings in a row, the last 0x%04x; check its wiring" % answer)

    def check(self):
        """Raise SensorFault with what is wrong with the magnet, or when nothing answers."""
        self._pointed = False
        try:
            self._i2c.readfrom_mem_into(ADDRESS, STATUS, self._status)
        except OSError as error:
            raise SensorFault("AS5600: no answer at I2C address 0x36 (%s); check SDA, SCL and supply" % error)
        status = self._status[0]
        if not status & DETECTED:
            raise SensorFault("AS5600: no magnet seen (status 0x%02x)" % status)
        if status & TOO_WEAK:
            raise SensorFault("AS5600: magnet too weak or too far (status 0x%02x)" % status)
        if status & TOO_STRONG:
            raise SensorFault("AS5600: magnet too strong or too near (status 0x%02x)" % status)
