"""Every error of the drivers. They say what, with which value, and what to do about it."""


class WiringError(ValueError):
    """config.json does not describe a board that could work."""


class SensorFault(OSError):
    """A sensor has not answered sensibly several times in a row, or says itself that it cannot."""


class ZeroFault(SensorFault):
    """The current sensor's zero cannot be told: the motor moves, or the reading is no zero."""
