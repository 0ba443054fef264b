"""A board's tick by the kernels of rp2_turn.py: their cells, a motor's and a line's, and the line's DMA.

For the parts of a tick that have kernels: quadrature motor encoder, AS5047P or AS5600 at the link, current loop with
PWM and direction or with half bridges, UART. A bridge's converter and a thermistor are read by Python behind before().
A board with others runs drivers/joint.py's, which are slower.
"""

from array import array

from machine import mem32
from micropython import const
from uctypes import addressof

import rp2
from drivers import rp2_chip, rp2_turn
from drivers.rp2_ring import Ring
from drivers.rp2_turn import DOG, DOG_LOAD, OUT
from jointboard import framing

RECEIVED = const(2048)  # bytes of the ring of what arrives; a power of two
ENCODED_BITS = const(11)  # framing.ENCODED is 2048
INTERRUPTS, DMA_CONTROL, FLAGS = const(0x38), const(0x48), const(0x18)  # registers of a UART
UART_BUSY = const(8)
COMPARE, TOP, SLICE = const(0x0C), const(0x10), const(0x14)  # of a PWM slice, and its size
LATER = const(2000)  # us: the first tick

assert rp2_turn.GIVEN_UP_TO == framing.GIVEN
for _name in ("TAIL", "ENCODED_AT", "ENCODED"):
    assert getattr(rp2_turn, _name) == getattr(framing, _name)
for _name in ("CODE", "GONE", "NEXT", "END", "LONGEST_TICK", "SPENT", "TURNS", "LATE_BY"):
    assert getattr(rp2_turn, _name) == getattr(framing, _name)
assert framing.ENCODED == 1 << ENCODED_BITS


class Fused:
    """The kernels' cells of a motor, `t`, of which `address` is the address.

    Args: the motor's inputs and outputs; what RoundRobinAdc.cells() gives for it; its Quadrature, CurrentLoop and
    Heartbeat; its part "drive" of config.json, whose PWM runs.
    """

    def __init__(self, inputs, outputs, adc, encoder, loop, heartbeat, drive):
        self._encoder, self._link_encoder = encoder, None
        self.t = t = array("i", bytes(4 * rp2_turn.CELLS))
        self.address = addressof(t)
        self._put(0, {rp2_turn.INPUTS: addressof(inputs)})
        self._put(rp2_turn.ADC_RING, dict(enumerate(adc)))
        position, flags, bit = encoder.cells()
        self._put(0, {rp2_turn.ENCODER: position, rp2_turn.ENCODER_FLAGS: flags, rp2_turn.ENCODER_BIT: bit})
        self._put(OUT, {
            rp2_turn.OUTPUTS: addressof(outputs), rp2_turn.LOOP: addressof(loop.cells()),
            rp2_turn.PIN_SET: rp2_chip.PIN_SET, rp2_turn.PIN_CLEAR: rp2_chip.PIN_CLEAR,
            rp2_turn.KICK_AT: heartbeat.address, rp2_turn.KICK: heartbeat.kick,
        })  # fmt: skip
        legs = drive["high"] if drive["kind"] == "half_bridges" else [drive["pwm"]]
        slices = [rp2_chip.PWM + SLICE * (pin >> 1 & 7) for pin in legs]
        top = mem32[slices[0] + TOP]
        self._put(OUT, {rp2_turn.PWM_COMPARE: slices[0] + COMPARE, rp2_turn.PWM_TOP: top})
        if slices[1:]:
            counts = drive["dead_time_ns"] * drive.get("frequency_Hz", rp2_chip.FREQUENCY_HZ) * 2 * (top + 1)
            dead = (counts + 999999999) // 1000000000
            self._put(OUT, {rp2_turn.DEAD: dead, rp2_turn.PWM_COMPARE_2: slices[1] + COMPARE})
        else:
            self._put(OUT, {rp2_turn.SHIFT: 16 * (legs[0] & 1), rp2_turn.DIRECTION: 1 << drive["direction"]})

    def add_link_encoder(self, sensor, link):
        """An AS5047P or AS5600 on its bus, which is set up, and its part of config.json."""
        self._link_encoder = sensor
        if "i2c" in link:
            self._put(rp2_turn.LINK, {0: rp2_chip.I2C[link["i2c"]]})
        else:
            self._put(rp2_turn.LINK, {0: rp2_chip.SPI[link["spi"]], 1: 1 << link["select"]})

    def add_brake(self, brake):
        """A brake that is a Heartbeat."""
        self._put(OUT, {rp2_turn.BRAKE_AT: brake.address, rp2_turn.BRAKE_KICK: brake.kick})

    def watch_pins(self, numbers, flags=0):
        """Pins that keep the motor off (safety_pins.py), and where the flags of rp2_guard.py are, if it has one."""
        bits = [0 if number is None else 1 << number for number in numbers]
        flags = flags or self.address + 4 * rp2_turn.NO_FLAGS
        self._put(rp2_turn.PINS, dict(enumerate([sum(bits), rp2_chip.PIN_LOOK, flags] + bits)))

    def complain(self, found):
        """Raise what the kernels have found, where it is of this motor's sensors.

        Bad readings are then counted anew, so that the board, its motor off, can still be talked to.
        """
        t = self.t
        if found & rp2_turn.LOST_EDGE:
            self._encoder.check()
        if self._link_encoder and t[rp2_turn.BAD] >= rp2_turn.MOST_BAD:
            t[rp2_turn.BAD] = 0
            mem32[t[OUT + rp2_turn.KICK_AT]] = 0  # ENABLE goes first: to ask a silent sensor what it lacks takes ms
            self._link_encoder.complain(t[rp2_turn.BAD_WORD] & 0xFFFF)

    def join(self, line, receiver):
        """Take the motor's cells of the line (framing.py), which hears what this ring receives."""
        t = self.t
        t[rp2_turn.LINE] = word(addressof(line))
        line[framing.RECEIVED_AT], line[framing.RECEIVED_MASK] = word(receiver.address), RECEIVED - 1
        line[framing.NEXT] = line[framing.END] = 0
        line[framing.CUT_AT] = t[OUT + rp2_turn.KICK_AT]  # a kick of 0 lets ENABLE go

    def _put(self, at, values):
        for k, value in values.items():
            self.t[at + k] = word(value)


class FusedLine:
    """The UART's DMA, which the first motor's kernels see to; and their clock.

    Args: the motors' Fused, one or two; the tick in us; the UART's number; the DriverEnable of its line, None for none.
    """

    def __init__(self, motors, period_us, number, driver=None):
        self._motors = motors
        self._base, self._interrupts = rp2_chip.UART[number], None
        request = rp2_chip.UART_TX_REQUEST + 2 * number
        self.ring = Ring(self._base, request + 1, 1, RECEIVED)
        self._sender, self._request = rp2.DMA(), request
        self._sender_at = addressof(self._sender.registers)  # pyright: ignore[reportAttributeAccessIssue] (the stubs lack it)
        self._dog_at, self._dog_counts = rp2_chip.WATCHDOG + rp2_chip.WATCHDOG_LOAD, rp2_chip.WATCHDOG_COUNTS
        first = motors[0]
        first._put(0, {
            rp2_turn.TIMER: rp2_chip.TIMER, rp2_turn.PERIOD: period_us,
            rp2_turn.DOG: first.address + 4 * (rp2_turn.CELLS - 1), rp2_turn.BUSY: 1 << rp2_chip.DMA_BUSY,
            rp2_turn.RX_DMA: self.ring.channels[0], rp2_turn.RX_DMA_2: self.ring.channels[1],
            rp2_turn.RX_RING: self.ring.address, rp2_turn.RX_MASK: RECEIVED - 1,
            rp2_turn.TX_DMA: self._sender_at,
        })  # fmt: skip
        if driver:
            first._put(0, {rp2_turn.DRIVER_AT: driver.address, rp2_turn.BYTE_TIME: driver.byte_time})
        if motors[1:]:
            first._put(0, {rp2_turn.NEXT_MOTOR: motors[1].address})

    def join(self, place, line):
        """Give the motor at this place its cells of the line; with the last one's take over the UART, and tick."""
        self._motors[place].join(line, self.ring)
        t = self._motors[0].t
        if place:
            t[rp2_turn.LISTENER] = word(addressof(line))
        else:
            t[rp2_turn.SPEAKER] = word(addressof(line))
            self._encoded = line[framing.ENCODED_AT]
        if place < len(self._motors) - 1:
            return
        self._interrupts = mem32[self._base + INTERRUPTS]
        mem32[self._base + INTERRUPTS] = 0  # DMA gives and takes the bytes from now on
        mem32[self._base + DMA_CONTROL] = 3
        sender = self._sender
        ctrl = sender.pack_ctrl(size=0, inc_write=False, ring_size=ENCODED_BITS, ring_sel=False, treq_sel=self._request)
        sender.config(read=self._encoded, write=self._base, count=0, ctrl=ctrl, trigger=False)
        self.ring.start()
        t[rp2_turn.DUE] = word(mem32[rp2_chip.TIMER] + LATER)

    def watch(self, timeout_ms):
        """The watchdog has begun: each tick feeds it. ARM waits for this, so nothing is looked up in another file."""
        t = self._motors[0].t
        t[DOG_LOAD] = self._dog_counts * timeout_ms
        t[DOG] = self._dog_at

    def edge(self, _pin):
        """The SYNC line's interrupt, a hard one."""
        rp2_turn.note_edge(self._motors[0].address)

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


def word(number):
    """The number as a cell holds it: 32 bits, signed."""
    return ((number + 0x80000000) & 0xFFFFFFFF) - 0x80000000
