"""When a sensor's errors are its end: one bad frame is noise, several in a row are a fault."""

from micropython import const

from drivers.errors import SensorFault

TOLERATED = const(2)


class Failures:
    """Counts a sensor's bad readings. `total` is since boot."""

    def __init__(self, sensor):
        self._sensor = sensor
        self._row = 0
        self.total = 0

    def none(self):
        self._row = 0

    def one(self, what, value):
        """Note a bad reading, for which the last good one stands in.

        Raises SensorFault when more than TOLERATED came in a row; then counting begins anew, so that the board, its
        motor off, can still be talked to.
        """
        self.total += 1
        self._row += 1
        if self._row > TOLERATED:
            self._row = 0
            raise SensorFault(
                "%s: %d bad readings in a row, the last: %s (0x%04x); check its wiring, supply and magnet"
                % (self._sensor, TOLERATED + 1, what, value)
            )
