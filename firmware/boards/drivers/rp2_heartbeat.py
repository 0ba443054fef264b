# ruff: noqa: F403, F405 (what asm_pio puts into a program is known to the stubs alone)
"""ENABLE as a retriggerable one-shot in a PIO: the pin stays high only while the program keeps kicking it.

A kick is a word written to the state machine's FIFO: how long the pin may stay high from then on, in turns of three
cycles of 1 us. A word of 0 lets go at once. A program that hangs, stalls, waits for flash or has its interrupts off
lets go of the motor by doing nothing: no interrupt, no DMA and no processor is needed for it. 8 of the PIO's 32 words.
The pull-down at ENABLE stays: while a chip boots its pins float.
"""

import rp2
from machine import Pin, mem32
from micropython import const

from drivers import rp2_chip

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rp2.asm_pio import *

FREQUENCY_HZ = const(1000000)
TURN_US = const(3)
SHORTEST_US = const(4000)
TX = const(0x10)  # FIFO of the first state machine
MACHINE = const(3)  # of its PIO: ENABLE's, of a second motor the one before; then those of brakes


# fmt: off
@rp2.asm_pio(set_init=rp2.PIO.OUT_LOW)
def program():
    wrap_target()
    label("off")
    set(pins, 0)
    pull(block)             # the first kick
    mov(x, osr)
    jmp(not_x, "off")
    set(pins, 1)
    label("count")
    pull(noblock)           # a kick, or else x as it is
    mov(x, osr)
    jmp(x_dec, "count")
    wrap()
# fmt: on


def brake_machine(config, motor=0):
    """The state machine of a motor's brake; a program that hangs lets it engage as it lets ENABLE go.

    Of a board's only motor it is the third, which an index pulse and the pin fault would need both (rp2_guard.py). Of
    two motors it is the one that an index pulse of this motor would have (rp2_index.py).
    """
    if "partner" not in config:
        return MACHINE - 1
    own = config["partner"] if motor else config
    if "index" in own.get("motor_encoder", {}):
        from drivers.errors import WiringError

        raise WiringError(
            "config.json: %sbrake and motor_encoder.index: of two motors each may have one of them, for the PIO has no "
            "state machine left" % ("partner: " if motor else "")
        )
    return MACHINE - 2 - motor


class Heartbeat:
    """ENABLE's pin: value(1) is a kick, value(0) lets go. `address` is where to write, `kick` what.

    Args: the pin's number; which PIO; the tick in us, two of which may be missed; which state machine of the PIO; the
    level that a kick gives.
    """

    def __init__(self, pin, pio, period_us, machine=MACHINE, level=1, frequency=FREQUENCY_HZ):
        self._machine = rp2.StateMachine(4 * pio + machine, program, freq=frequency, set_base=Pin(pin))
        self.address = rp2_chip.PIO + pio * rp2_chip.PIO_STEP + TX + 4 * machine
        self.kick = max(SHORTEST_US, 3 * period_us) // TURN_US
        if not level:
            mem32[rp2_chip.PIN_CONTROL + 8 * pin] |= rp2_chip.INVERTED
        self._machine.active(1)

    def value(self, level):
        mem32[self.address] = self.kick if level else 0
