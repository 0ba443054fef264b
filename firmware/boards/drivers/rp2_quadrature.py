"""Quadrature counter with edge times in a PIO: each edge's position and time land in memory by themselves.

The PIO runs drivers/rp2_quadrature_program.py, DMA takes what it tells to two words of memory. B's pin is A's plus 1.
"""

import rp2
from machine import Pin, freq, mem32
import micropython
from micropython import const
from uctypes import addressof

from drivers import rp2_chip
from drivers.errors import SensorFault
from drivers.rp2_quadrature_program import CYCLES, program
from drivers.rp2_ring import Ring

FLAGS = const(0x30)  # PIO registers: IRQ, and RXF of state machine 0
RX = const(0x20)


class Quadrature:
    """`read()` gives the 16-bit count and puts the newest edge's time into the Hal's inputs.

    Args: A's pin number; which PIO (0, 1, on the RP2350 also 2); the Hal's inputs; which of the PIO's state machines.
    """

    _index = None

    def __init__(self, pin_a, pio, inputs, machine=0):
        pins = [Pin(pin, Pin.IN, Pin.PULL_UP) for pin in (pin_a, pin_a + 1)]
        base = rp2_chip.PIO + pio * rp2_chip.PIO_STEP
        request = rp2_chip.PIO_RX_REQUEST + pio * rp2_chip.PIO_REQUEST_STEP + machine
        self._pins, self._bit = (pin_a, pin_a + 1), 1 << machine
        self._inputs = addressof(inputs)
        self._flags = base + FLAGS
        self._machine = rp2.StateMachine(4 * pio + machine, program, in_base=pins[0])
        for start in ("set(x, 0)", "set(y, 0)", "mov(osr, pins)"):
            self._machine.exec(start)
        self._ring = Ring(base + RX + 4 * machine, request, 4, 8)
        self._ring.start()
        self._machine.active(1)
        self.clock_Hz = freq() // CYCLES

    def read(self):
        self.check()
        return newest(self._ring.address, self._inputs)

    def watch_index(self, config, facts, pio):
        """Have each index pulse judged, if the motor has them: its part of config.json, facts; the counter's PIO."""
        if "index" in config["motor_encoder"]:
            from drivers.index_pulse import IndexPulse
            from drivers.rp2_index import Index

            pulse = IndexPulse(config, facts.get("encoder.motor_counts", 4096))
            pin = config["motor_encoder"]["index"]
            self._index = Index(pin, 1 - min(pio, 1), self._ring.address, self._flags, self._bit, pulse)

    def check(self):
        """Raise SensorFault when an edge was missed, or an index pulse came where it does not belong."""
        if flags(self._flags) & self._bit:
            mem32[self._flags] = self._bit
            if self._index and self._index.pulse.is_off():
                self._index.pulse.complain()
            raise SensorFault(
                "motor encoder at pins %d, %d: A and B changed at once; noise, a loose wire, or faster than it can be"
                % self._pins
            )

    def cells(self):
        """For rp2_turn.py: the two words that DMA keeps, the PIO's flags, and which of them is this encoder's."""
        return [self._ring.address, self._flags, self._bit]

    def close(self):
        self._machine.active(0)
        self._ring.close()


@micropython.viper
def flags(address: int) -> int:
    return ptr32(address)[0]


@micropython.viper
def newest(ring: int, inputs: int) -> int:
    """DMA writes the two words some cycles apart: take them when two readings agree."""
    pair = ptr32(ring)
    position = 0
    time = 0
    again = 1
    while again:
        position = pair[0]
        time = pair[1]
        again = (position ^ pair[0]) | (time ^ pair[1])
    ptr32(inputs)[28] = time
    return position & 0xFFFF
