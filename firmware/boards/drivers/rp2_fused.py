"""A board's tick by the kernels of rp2_turn.py: fills their cells, and is the line's DMA.

For the parts of a tick that have kernels: quadrature motor encoder, AS5047P at the link, current loop with PWM and
direction, UART. A board with others runs drivers/joint.py's, which are slower.
"""

from array import array

from machine import mem32
from micropython import const
from uctypes import addressof

import rp2
from drivers import rp2_chip, rp2_turn
from drivers.rp2_ring import Ring
from drivers.rp2_turn import OUT
from jointboard import framing

RECEIVED = const(2048)  # bytes of the ring of what arrives; a power of two
ENCODED_BITS = const(11)  # framing.ENCODED is 2048
INTERRUPTS, DMA_CONTROL, FLAGS = const(0x38), const(0x48), const(0x18)  # registers of a UART
UART_BUSY = const(8)
COMPARE, TOP, SLICE = const(0x0C), const(0x10), const(0x14)  # of a PWM slice, and its size
LATER = const(2000)  # us: the first tick

for _name in ("CODE", "GONE", "NEXT", "END", "LONGEST_TICK", "SPENT", "TURNS", "LATE_BY"):
    assert getattr(rp2_turn, _name) == getattr(framing, _name)
assert framing.ENCODED == 1 << ENCODED_BITS


class Fused:
    """The kernels' cells, `t`, of which `address` is the address.

    Args: the board's inputs and outputs; the tick in us; its RoundRobinAdc, Quadrature, CurrentLoop, Heartbeat; the
    pins of PWM and direction; the UART's number.
    """

    def __init__(self, inputs, outputs, period_us, adc, encoder, loop, heartbeat, pwm, direction, number):
        self.t = t = array("i", bytes(4 * rp2_turn.CELLS))
        self.address = addressof(t)
        self._base, self._interrupts = rp2_chip.UART[number], None
        request = rp2_chip.UART_TX_REQUEST + 2 * number
        self.ring = Ring(self._base, request + 1, 1, RECEIVED)
        self._sender, self._request = rp2.DMA(), request
        self._sender_at = addressof(self._sender.registers)  # pyright: ignore[reportAttributeAccessIssue] (the stubs lack it)
        self._put(0, {
            rp2_turn.INPUTS: addressof(inputs), rp2_turn.TIMER: rp2_chip.TIMER, rp2_turn.PERIOD: period_us,
            rp2_turn.DOG: self.address + 4 * (rp2_turn.CELLS - 1), rp2_turn.BUSY: 1 << rp2_chip.DMA_BUSY,
            rp2_turn.RX_DMA: self.ring.channels[0], rp2_turn.RX_DMA_2: self.ring.channels[1],
            rp2_turn.RX_RING: self.ring.address, rp2_turn.RX_MASK: RECEIVED - 1,
            rp2_turn.TX_DMA: self._sender_at,
        })  # fmt: skip
        self._put(rp2_turn.ADC_RING, dict(enumerate(adc.cells())))
        self._put(rp2_turn.ENCODER, dict(enumerate(encoder.cells())))
        slice = rp2_chip.PWM + SLICE * (pwm >> 1 & 7)
        self._put(OUT, {
            rp2_turn.OUTPUTS: addressof(outputs), rp2_turn.LOOP: addressof(loop.cells()),
            rp2_turn.PWM_COMPARE: slice + COMPARE, rp2_turn.PWM_TOP: mem32[slice + TOP], rp2_turn.SHIFT: 16 * (pwm & 1),
            rp2_turn.PIN_SET: rp2_chip.PIN_SET, rp2_turn.PIN_CLEAR: rp2_chip.PIN_CLEAR,
            rp2_turn.DIRECTION: 1 << direction, rp2_turn.KICK_AT: heartbeat.address, rp2_turn.KICK: heartbeat.kick,
        })  # fmt: skip

    def add_link_encoder(self, number, select):
        """An AS5047P on this SPI, which is set up, with its select pin's number."""
        self._put(rp2_turn.LINK, dict(enumerate((rp2_chip.SPI[number], 1 << select, 0, 0))))

    @property
    def bad_reading(self):
        return self.t[rp2_turn.BAD_WORD] & 0xFFFF

    def join(self, line):
        """Take over the UART for the line of these cells (framing.py), and begin to count ticks."""
        t = self.t
        t[rp2_turn.LINE] = word(addressof(line))
        line[framing.RECEIVED_AT], line[framing.RECEIVED_MASK] = word(self.ring.address), RECEIVED - 1
        line[framing.NEXT] = line[framing.END] = 0
        line[framing.CUT_AT] = t[OUT + rp2_turn.KICK_AT]  # a kick of 0 lets ENABLE go
        self._interrupts = mem32[self._base + INTERRUPTS]
        mem32[self._base + INTERRUPTS] = 0  # DMA gives and takes the bytes from now on
        mem32[self._base + DMA_CONTROL] = 3
        sender = self._sender
        ctrl = sender.pack_ctrl(size=0, inc_write=False, ring_size=ENCODED_BITS, ring_sel=False, treq_sel=self._request)
        sender.config(read=line[framing.ENCODED_AT], write=self._base, count=0, ctrl=ctrl, trigger=False)
        self.ring.start()
        t[rp2_turn.DUE] = word(mem32[rp2_chip.TIMER] + LATER)

    def watch(self, timeout_ms):
        """The watchdog has begun: each tick feeds it."""
        self.t[rp2_turn.DOG_LOAD] = rp2_chip.WATCHDOG_COUNTS * timeout_ms
        self.t[rp2_turn.DOG] = rp2_chip.WATCHDOG + rp2_chip.WATCHDOG_LOAD

    def edge(self, _pin):
        """The SYNC line's interrupt, a hard one."""
        rp2_turn.note_edge(self.address)

    def flush(self):
        """Wait until all that was encoded is on the line, and give the UART back to the port, if it was taken."""
        if self._interrupts is None:
            return
        while mem32[self._sender_at + 12] >> rp2_chip.DMA_BUSY & 1:
            pass
        while mem32[self._base + FLAGS] & UART_BUSY:
            pass
        self._sender.close()
        self.ring.close()
        mem32[self._base + DMA_CONTROL] = 0
        mem32[self._base + INTERRUPTS] = self._interrupts

    def _put(self, at, values):
        for k, value in values.items():
            self.t[at + k] = word(value)


def word(number):
    """The number as a cell holds it: 32 bits, signed."""
    return ((number + 0x80000000) & 0xFFFFFFFF) - 0x80000000
