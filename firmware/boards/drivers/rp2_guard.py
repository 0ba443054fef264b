# ruff: noqa: F403, F405 (what asm_pio puts into a program is known to the stubs alone)
"""The pins stop and fault of an RP2 take ENABLE down by themselves: a PIO does it 20 us after one of them is low.

Beside the heartbeat's program in its PIO, which takes the same pin up at its first kick alone: what has fallen here
stays down until the tick lets go, too. That learns of it by a flag that stays set, also when the pin was low for a
moment only. A tick of 1 ms alone takes up to 1.1 ms. What lasts less than 16 us is noise. 6 of the PIO's 32 words.
"""

import rp2
from machine import Pin, mem32
from micropython import const

from drivers import rp2_chip

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rp2.asm_pio import *

FREQUENCY_HZ = const(1000000)
FLAGS = const(0x30)  # of a PIO: IRQ


# fmt: off
@rp2.asm_pio(set_init=rp2.PIO.OUT_LOW)
def program():
    wrap_target()
    label("again")
    wait(0, pin, 0)
    set(x, 7)
    label("look")
    jmp(pin, "again")       # it was noise
    jmp(x_dec, "look")
    set(pins, 0)
    irq(rel(0))             # the state machine's own flag: what tells the tick
    wrap()
# fmt: on


class Guard:
    """take() gives the bits, as safety_pins.py has them, of the pins that were low since; `address`: the flags.

    Args: the pins' numbers, first that of stop, then that of fault, None where there is none, which are inputs
    already; config.json; the heartbeat's PIO, of which stop has state machine 0, fault 1 or, with an index pulse, 2.
    """

    def __init__(self, numbers, config, pio):
        self.address = rp2_chip.PIO + pio * rp2_chip.PIO_STEP + FLAGS
        self._machines, self.machines = [], []  # those of the PIO, by number
        enable = Pin(config["pins"]["enable"])
        for number, machine in zip(numbers, (0, 2 if "index" in config.get("motor_encoder", {}) else 1)):
            if number is not None:
                watched = Pin(number)
                one = rp2.StateMachine(
                    4 * pio + machine, program, freq=FREQUENCY_HZ, set_base=enable, in_base=watched, jmp_pin=watched
                )
                one.active(1)
                self.machines.append(machine)
                self._machines.append(one)

    def take(self):
        found = mem32[self.address] & 7
        mem32[self.address] = found  # taken back, until it is seen low once more
        return found ^ 6 if found > 3 else found
