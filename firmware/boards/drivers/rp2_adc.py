"""ADC by DMA, round robin: 16 samples of each input a tick, spread evenly over it, at no cost to the processor.

The inputs are converted one after the other: within a tick one is 1/16 tick / inputs behind the one before. 4 inputs at
1 kHz are 64 000 conversions a second; the ADC makes 500 000. Erratum RP2040-E11: uneven steps at four codes.
"""

from array import array

from machine import ADC, Pin, mem32
import micropython
from micropython import const

from drivers import rp2_chip
from drivers.analog import ROLES, check_roles
from drivers.errors import SensorFault, WiringError
from drivers.rp2_ring import Ring

CLOCK_HZ = const(48000000)
FASTEST = const(96)  # clocks of a conversion
ROUNDS = const(16)
FIRST_PIN = const(26)

# Registers, and bits of theirs.
CS = const(0x00)
ENABLE = const(1)
RUN = const(8)
READY = const(0x100)
FCS = const(0x08)
FIFO = const(0x0C)
DIV = const(0x10)
FIFO_ON = const(0x01000009)  # EN, DREQ_EN, request at one value
OVERFLOW = const(0x800)  # stays set until 1 is written
LEVEL = const(0xF0000)

# The words of `state` that `latest` reads.
RING = const(0)
FIRST_DMA = const(1)
SECOND_DMA = const(2)
BUSY = const(3)
SLOTS = const(4)  # inputs converted
ROLE_SLOTS = const(5)  # then the place of each role in the round, -1 where it has none


class RoundRobinAdc:
    """Args: the pins by role ({"current": 26, "torque": 27, …}), of each motor; the tick in us."""

    def __init__(self, motors, period_us):
        inputs = []
        for pins in motors:
            check_roles(pins)
            inputs += [pins[role] - FIRST_PIN for role in ROLES if role in pins]
        if len(set(inputs)) < len(inputs) or not all(0 <= k <= 3 for k in inputs):
            said = " and ".join([str(pins) for pins in motors])
            raise WiringError("config.json: analog pins are %s; they must differ and be of 26 to 29" % said)
        for k in inputs:
            ADC(Pin(FIRST_PIN + k))
        for k in range(4):  # the ring's size is a power of 2: three inputs take a fourth along
            if len(inputs) == 3 and k not in inputs:
                inputs.append(k)
        inputs.sort()
        conversions = ROUNDS * len(inputs)
        cycles = CLOCK_HZ // 1000000 * period_us * 256 // conversions
        if not FASTEST << 8 <= cycles < 1 << 24:
            raise WiringError("config.json: %d inputs in a tick of %d us: the ADC cannot" % (len(inputs), period_us))
        size = 2 * conversions * 2  # two ticks
        self._ring = Ring(rp2_chip.ADC + FIFO, rp2_chip.ADC_REQUEST, 2, size)
        self._states = []
        for pins in motors:
            slots = [inputs.index(pins[role] - FIRST_PIN) if role in pins else -1 for role in ROLES]
            words = [self._ring.address] + self._ring.channels + [rp2_chip.DMA_BUSY, len(inputs)] + slots
            self._states.append(array("I", [word & 0xFFFFFFFF for word in words]))
        self.rate_Hz = 1000000 * ROUNDS // period_us
        self._fcs = rp2_chip.ADC + FCS
        self._spare = False
        mem32[rp2_chip.ADC + CS] = ENABLE  # it may still be running from before a soft reset
        while not mem32[rp2_chip.ADC + CS] & READY:
            pass
        while mem32[self._fcs] & LEVEL:
            mem32[rp2_chip.ADC + FIFO]
        mem32[rp2_chip.ADC + DIV] = cycles - 256
        mem32[self._fcs] = FIFO_ON | OVERFLOW
        self._ring.start()
        mem32[rp2_chip.ADC + CS] = ENABLE | RUN | inputs[0] << 12 | sum(1 << k for k in inputs) << 16

    def measure(self, inputs, motor=0):
        """A motor's last 16 samples of current and torque, its newest of supply and temperature."""
        if latest(self._states[motor], inputs, self._fcs) & OVERFLOW:
            self.complain()

    def complain(self):
        """A sample was lost, and nothing tells the inputs apart any more until the board's reset."""
        self._spare = not self._spare
        if not self._spare:  # a tick between two errors, or the board, its motor off, could tell nobody
            return
        raise SensorFault("ADC: a sample was lost, so the inputs are no longer told apart; reset the board")

    def cells(self, motor=0):
        """For rp2_turn.py: ring, two DMA channels, FCS, inputs in a round, each role's place in it."""
        state = self._states[motor]
        return [state[RING], state[FIRST_DMA], state[SECOND_DMA], self._fcs] + list(state[SLOTS:])


@micropython.viper
def latest(_state, _inputs, fcs: int) -> int:
    state = ptr32(_state)
    inputs = ptr32(_inputs)
    dma = ptr32(state[FIRST_DMA])
    if not (dma[3] >> state[BUSY]) & 1:
        dma = ptr32(state[SECOND_DMA])
    slots = state[SLOTS]
    mask = (slots << 5) - 1  # samples in the ring, less 1
    written = (dma[1] - state[RING]) >> 1
    start = written - written % slots - (slots << 4)  # 16 whole rounds back
    ring = ptr16(state[RING])
    blocks = ptr16(_inputs)
    role = 0
    while role < 2:
        slot = state[ROLE_SLOTS + role]
        if slot >= 0:
            at = start + slot
            k = 0
            while k < 16:
                blocks[16 + (role << 4) + k] = ring[at & mask]
                at += slots
                k += 1
        role += 1
    while role < 4:
        slot = state[ROLE_SLOTS + role]
        if slot >= 0:
            inputs[4 + role] = ring[(start + 15 * slots + slot) & mask]
        role += 1
    return ptr32(fcs)[0]
