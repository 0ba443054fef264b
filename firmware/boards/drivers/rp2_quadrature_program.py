# ruff: noqa: F403, F405 (what asm_pio puts into a program is known to the stubs alone)
"""The quadrature counter's PIO program: counts all four edges and tells each one's position and time.

A turn of it takes CYCLES whatever it finds, so its own turns are the clock: 6.25 MHz at 125 MHz, 7.5 MHz at 150 MHz. It
looks at A and B once a turn, so a state of theirs must last longer than a turn: up to 6.25 million edges a second, less
what their spacing jitters. A change of both at once is an edge missed, or noise: the state machine's flag tells that
the position is no longer true.

It fills the PIO's memory, and so stands at address 0, as its jump table needs.
"""

import rp2
from micropython import const
from rp2 import PIO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rp2.asm_pio import *

CYCLES = const(20)  # of the system clock in a turn; at 125 and 150 MHz a millisecond is a whole number of turns


# fmt: off
@rp2.asm_pio(fifo_join=PIO.JOIN_RX)
def program():
    # Jump table, by BABA: pins at the turn before, pins now. Forward is A before B.
    jmp("turn")      [13]
    jmp("forward")
    jmp("backward")
    jmp("both")
    jmp("backward")
    jmp("turn")      [13]
    jmp("both")
    jmp("forward")
    jmp("forward")
    jmp("both")
    jmp("turn")      [13]
    jmp("backward")
    jmp("both")
    jmp("backward")
    jmp("forward")
    jmp("turn")      [13]
    label("both")
    irq(rel(0))      [12]
    wrap_target()
    label("turn")
    jmp(x_dec, "on")        # x counts turns, down from 0: their number is ~x
    label("on")
    mov(isr, null)
    in_(osr, 2)
    in_(pins, 2)
    mov(osr, isr)           # its low bits are the pins now
    mov(pc, isr)
    label("forward")
    mov(y, invert(y))       # y is the position; it can only be counted down
    jmp(y_dec, "up")
    label("up")
    mov(y, invert(y))
    jmp("tell")
    label("backward")
    jmp(y_dec, "tell") [3]
    label("tell")
    mov(isr, y)
    push(block)             # never both words or none: DMA takes them long before the FIFO's eight are full
    mov(isr, invert(x))
    push(block)      [5]
    wrap()
# fmt: on
