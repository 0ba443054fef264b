"""Driver enable of an RS-485 transceiver: "de" of "line" in config.json, high while bits are on the line.

A PIO holds it by the heartbeat's program, of which a turn here is 1 us: whoever gives bytes to the UART says for how
long, so neither an interrupt nor the processor is needed to end it, and a program that hangs frees the line. By kernels
(rp2_turn.py) it rises more than 1 us before the first bit and falls 4 us after the last stop bit; drivers in Python
hold it for 0.1 ms longer.
"""

from time import ticks_add, ticks_diff, ticks_us

from machine import Pin, freq, mem32
from micropython import const

from drivers import rp2_chip
from drivers.errors import WiringError
from drivers.rp2_heartbeat import Heartbeat

FREQUENCY_HZ = const(3000000)  # three cycles a turn
DIVISORS = const(0x24)  # registers of a UART: IBRD, FBRD
LONGEST_US = const(100000)


class DriverEnable:
    """`address`: where to write for how many us the line is driven from now on; `byte_time`: of a byte, us Q8.

    Args: the pin; which PIO and state machine; the UART's number and speed.
    """

    def __init__(self, pin, pio, machine, number, baud):
        one = Heartbeat(pin, pio, 0, machine, 1, FREQUENCY_HZ)
        self.address = one.address
        base = rp2_chip.UART[number] + DIVISORS
        divisor = 64 * mem32[base] + (mem32[base + 4] & 63)
        # The UART is clocked by 48 MHz or as the processor is, whichever makes the speed that was asked for.
        clock = min(48, freq() // 1000000, key=lambda MHz: abs(4000000 * MHz // divisor - baud))
        self.byte_time = (640 * divisor + clock - 1) // clock
        self._one, self._until, self._rest = one, ticks_us(), 0

    def begin(self):
        """Drive the line: bytes are about to be given to the UART."""
        mem32[self.address] = LONGEST_US

    def sending(self, count):
        """So many bytes have been given to it: drive the line until they are sent, after those before."""
        now = ticks_us()
        span = max(16 * ticks_diff(self._until, now) + self._rest, 0) + (count * self.byte_time >> 4) + 1
        self._until, self._rest = ticks_add(now, span >> 4), span & 15
        mem32[self.address] = (span >> 4) + 1


class HalfDuplex:
    """A UART whose transceiver is turned round for as long as bytes are sent."""

    def __init__(self, uart, driver):
        self._uart, self._driver = uart, driver
        self.any, self.readinto = uart.any, uart.readinto

    def write(self, data, count):
        self._driver.begin()
        self._uart.write(data, count)
        self._driver.sending(count)


def driver_enable(config, taken, pio, bus="line", baud=921600):
    """None where the line has none. Args: config.json; the state machines of the PIO that others have; whose pin."""
    pin = config[bus].get("de")
    if pin is None:
        return None
    if pin in config["pins"].values():
        raise WiringError("config.json: %s.de is %r, which one of pins has; give it its own" % (bus, pin))
    for machine in (0, 1, 2):
        if machine not in taken:
            Pin(pin, Pin.OUT, value=0)
            return DriverEnable(pin, pio, machine, config[bus]["uart"], config[bus].get("baud", baud))
    raise WiringError(
        "config.json: %s.de: the PIO has no state machine left; leave out one of stop, fault, brake, "
        "motor_encoder.index, or the second motor's" % bus
    )
