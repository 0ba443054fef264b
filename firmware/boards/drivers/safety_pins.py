"""Pins that keep the motor off: stop, fault, limit_low and limit_high among "pins" of config.json. Low keeps it off.

stop and limit switches are contacts to 3.3 V that open, held low by a resistor: a cut wire is an open contact. fault is
the open-drain output of a power stage (nFAULT), pulled up. A tick looks at each once: on an RP2040 in Python 25 us for
four (kernels: 2 us). Wiring: docs/wiring.md.
"""

from machine import Pin

from drivers.errors import WiringError

NAMES = ("stop", "fault", "limit_low", "limit_high")  # the first is bit 0 of what is read


class SafetyPins:
    """read() gives the bits of those that are low, or were since it was last called where hardware latches that.

    Args: config.json; whether the chip's own pull-downs hold a pin low.
    """

    def __init__(self, config, pulls_down=True):
        pins = config["pins"]
        self.numbers = numbers = [pins.get(name) for name in NAMES]
        self.latched = nothing  # gives the bits of those that were low for a moment
        taken = [number for name, number in pins.items() if number is not None]
        for name, number in zip(NAMES, numbers):
            if number is not None and taken.count(number) > 1:
                raise WiringError(
                    "config.json: pins.%s is %r, which another of pins has; give it its own" % (name, number)
                )
        self._pins = [
            (1 << k, _input(numbers[k], NAMES[k] == "fault", pulls_down)) for k in range(4) if numbers[k] is not None
        ]

    def read(self):
        """Allocates nothing."""
        bits = self.latched()
        for bit, pin in self._pins:
            if not pin.value():
                bits |= bit
        return bits


def nothing():
    return 0


def _input(number, is_open_drain, pulls_down):
    if is_open_drain:
        return Pin(number, Pin.IN, Pin.PULL_UP)
    return Pin(number, Pin.IN, Pin.PULL_DOWN) if pulls_down else Pin(number, Pin.IN)
