# ruff: noqa: F403, F405 (what asm_pio puts into a program is known to the stubs alone)
"""An encoder's index pulse on the RP2: a PIO sees it rise, and DMA latches the quadrature counter that instant.

Two DMA channels start each other: one waits for the PIO's word, the other copies the counter's. The interrupt, some
us later, only judges what was latched, once a turn of the motor, and raises the flag that tells the tick of lost edges
anyway, which kernels look at, too. 4 of the PIO's 32 words, beside the heartbeats'.
"""

from array import array

import rp2
from machine import Pin, mem32
import micropython
from micropython import const
from uctypes import addressof

from drivers import rp2_chip
from drivers.index_pulse import judge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rp2.asm_pio import *

RX = const(0x20)  # FIFO of the first state machine
MACHINE = const(2)  # of its PIO, less the counter's flag, 1 or 2; the heartbeats have those after them
ALWAYS = const(0x3F)  # DREQ that is always there
IRQ_FORCE = const(4)  # after a PIO's IRQ register


# fmt: off
@rp2.asm_pio(fifo_join=rp2.PIO.JOIN_RX)
def program():
    wrap_target()
    wait(0, pin, 0)
    wait(1, pin, 0)
    in_(null, 32)
    push(noblock)
    wrap()
# fmt: on


class Index:
    """Args: Z's pin; which PIO; the addresses of the counter and its PIO's flags; its flag; what judges."""

    def __init__(self, number, pio, counter, flags, flag, pulse):
        pin = Pin(number, Pin.IN, Pin.PULL_UP)
        self.pulse, self._state = pulse, pulse.state
        self._force, self._flag = flags + IRQ_FORCE, flag
        machine = MACHINE - flag
        self._latch = array("I", [0, 0])  # the PIO's word, the counter
        first, second = self._dmas = rp2.DMA(), rp2.DMA()
        request = rp2_chip.PIO_RX_REQUEST + pio * rp2_chip.PIO_REQUEST_STEP + machine
        fifo = rp2_chip.PIO + pio * rp2_chip.PIO_STEP + RX + 4 * machine
        at = addressof(self._latch)
        for dma, other, source, target, paced in (
            (first, second, fifo, at, request),
            (second, first, counter, at + 4, ALWAYS),
        ):
            ctrl = dma.pack_ctrl(
                size=2,
                inc_read=False,
                inc_write=False,
                treq_sel=paced,
                chain_to=other.channel,  # pyright: ignore[reportAttributeAccessIssue] (the stubs lack it)
            )
            dma.config(read=source, write=target, count=1, ctrl=ctrl, trigger=False)
        first.active(1)
        self._machine = rp2.StateMachine(4 * pio + machine, program, in_base=pin)
        self._machine.active(1)
        pin.irq(self._judge, Pin.IRQ_RISING, hard=True)

    def _judge(self, _pin):
        if judge(self._state, latched(self._latch)):
            mem32[self._force] = self._flag


@micropython.viper
def latched(_latch) -> int:
    latch = ptr32(_latch)
    return latch[1] & 0xFFFF
