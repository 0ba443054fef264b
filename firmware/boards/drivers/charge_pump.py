"""ENABLE for an external charge pump: the pin turns over with each turn of the main loop while the motor may be driven.

The pump (docs/wiring.md) makes a level of its edges, and none of a pin that stands, high or low: a program that hangs,
stalls or erases flash lets the motor go. For boards whose chip does not make ENABLE a heartbeat by itself.
"""


class ChargePump:
    """ENABLE's pin: value(1) turns it over, value(0) lets it stand low. Args: the pin, which is low."""

    def __init__(self, pin):
        self._pin = pin
        self._level = 0

    def value(self, level):
        self._level = level and 1 - self._level
        self._pin.value(self._level)
