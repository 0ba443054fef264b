"""A holding brake, which engages without current: "brake" of config.json, and its pin among "pins".

The pin is at its other level, or floats, while the brake is engaged: a resistor outside gives the coil's switch the
same level in a reset. Wiring, and why it goes through an AND with ENABLE: docs/wiring.md.
"""

from drivers.configuration import item, whole
from drivers.errors import WiringError

LONGEST_MS = 2000


def brake_pin(config, facts):
    """The pin's number; None where there is no brake. Its times become facts.

    Raises:
        WiringError: one of "brake" and pins.brake is missing, a time is none of a brake, another of pins has the pin.
    """
    number = config["pins"].get("brake")
    if "brake" not in config and number is None:
        return None
    if "brake" not in config:
        raise WiringError("config.json: pins.brake is given, but no brake with engage_ms and release_ms")
    number = item(config, "pins", "brake")
    if list(config["pins"].values()).count(number) > 1:
        raise WiringError("config.json: pins.brake is %r, which another of pins has; give it its own" % (number,))
    facts["brake.engage_time"] = whole(config, "brake.engage_ms", 1, LONGEST_MS)
    facts["brake.release_time"] = whole(config, "brake.release_ms", 1, LONGEST_MS)
    open_level(config)
    return number


def open_level(config):
    """The level that opens it, 1 or 0."""
    return whole(config, "brake.open_level", 0, 1, 1)


class LevelBrake:
    """A brake at a pin that is a level: value(1) opens it. Args: the port's Pin; the pin; the level that opens it."""

    def __init__(self, pin_class, number, level):
        self._level = level
        self._pin = pin_class(number, pin_class.OUT, value=1 - level)

    def value(self, opens):
        self._pin.value(self._level if opens else 1 - self._level)
