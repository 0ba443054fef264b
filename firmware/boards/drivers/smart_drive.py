"""What smart drives have in common: at a bus, motor, encoder, current sensor and current loop are one device.

After each tick's work the board writes the current and asks for what the drive measured; the next tick's sample takes
the answer: it is of up to a tick before, current and position alike. A tick allocates nothing unless answers fail.
"""

from array import array
from time import sleep_us

import micropython
from micropython import const

from drivers.failures import Failures
from jointboard import rooms

CHANNELS = const(0x873)  # bits of the fact board.channels: no torque, and no encoder beside the motor's
ZERO = const(2048)  # of a converter whose 16 samples a tick's inputs would have
TOP = const(4095)
BUFFER = const(256)  # bytes of the bus, each way
WHOLE = const(0)  # what take() finds: an answer, none, one that is not whole, or more, which the drive explains
NOTHING = const(-1)
BROKEN = const(-2)
ANSWER_US = const(20000)  # that a drive is waited for at boot
LOOK_US = const(250)


class SmartDrive:
    """measure(inputs) of all sensors, and apply(outputs); a drive of one make adds the four methods that raise here.

    Args: the bus, with any(), readinto(into, most) and write(data, count); config.json; its name in messages.
    """

    def __init__(self, bus, config, name):
        self.bus, self.name = bus, name
        self.received = rooms.buffer(BUFFER)
        self.kept = array("i", [0] * 5)
        self.asked = self.failed = False
        self._most_mA = config.get("facts", {}).get("hard.current", 32000)
        self._failures = Failures(name)

    def facts_of(self, counts, step_nA, limit_mA, **more):
        """Registers that say what its counts are, and what it can give: of a current's count, of an encoder's turn."""
        facts = {
            "board.channels": CHANNELS, "current.scale": step_nA // 16, "current.zero": 0, "drive.ratio": 1000,
            "encoder.motor_counts": counts, "encoder.link_counts": counts, "encoder.capture_clock": 0,
            "hard.current": min(self._most_mA, limit_mA),
        }  # fmt: skip
        facts.update(more)
        return facts

    def command(self, current_mA):
        """Ask for a current, and for what is measured."""
        raise NotImplementedError

    def off(self):
        """Let the motor go, and ask for what is measured."""
        raise NotImplementedError

    def take(self, count):
        """Put what an answer in the `count` bytes of `received` says into `kept`; WHOLE, or what was found instead.

        `kept`: current and position in counts, position within a turn, supply and temperature.
        """
        raise NotImplementedError

    def explain(self, found):
        """Words for what take() found that is none of WHOLE, NOTHING and BROKEN."""
        raise NotImplementedError

    def apply(self, outputs):
        """Of a board without an ENABLE of its own: all that a tick's outputs ask for."""
        if word(outputs, 1):
            self.command(word(outputs, 2))
        else:
            self.off()

    def measure(self, inputs):
        """Put what the drive told since the last tick; the values before stand in for what did not come whole.

        Raises SensorFault when three answers in a row did not.
        """
        found = self.look()
        if self.asked:
            self.asked = False
            if found == WHOLE:
                self._failures.none()
            else:
                self.failed = True
                if found == NOTHING:
                    self._failures.one("no answer", 0)
                elif found == BROKEN:
                    self._failures.one("no whole answer", 0)
                else:
                    self._failures.one(self.explain(found), found)
        show(inputs, self.kept)

    def look(self):
        """What take() finds in the bytes that came since the last look."""
        count = self.bus.any()
        if count:
            count = self.bus.readinto(self.received, min(count, BUFFER)) or 0
        return self.take(count)

    def wait(self):
        """The same for the answer to what was just asked, at boot."""
        for _ in range(ANSWER_US // LOOK_US):
            found = self.look()
            if found != NOTHING:
                return found
            sleep_us(LOOK_US)
        return NOTHING


def smart_drive(bus, config):
    """The drive of config.json at its bus."""
    if config["drive"]["kind"] == "vesc":
        from drivers.vesc import Vesc

        return Vesc(bus, config)
    from drivers.dynamixel import Dynamixel

    return Dynamixel(bus, config)


@micropython.viper
def crc16(_data, start: int, end: int, polynomial: int) -> int:
    """Of the bytes from start to end; not reflected, start 0; the polynomial with its highest bit, 0x1xxxx."""
    data = ptr8(_data)
    crc = 0
    k = start
    while k < end:
        crc ^= data[k] << 8
        bit = 0
        while bit < 8:
            crc = crc << 1
            if crc & 0x10000:
                crc ^= polynomial
            bit += 1
        k += 1
    return crc


@micropython.viper
def word(_block, index: int) -> int:
    block = ptr32(_block)
    return block[index]


@micropython.viper
def show(_inputs, _kept):
    """Put what is kept where a tick looks for encoders, a converter's samples, supply and temperature."""
    words = ptr32(_inputs)
    samples = ptr16(_inputs)
    kept = ptr32(_kept)
    count = ZERO + kept[0]
    if count < 0:
        count = 0
    if count > TOP:
        count = TOP
    k = 16
    while k < 32:
        samples[k] = count
        samples[k + 16] = ZERO
        k += 1
    words[4] = kept[1] & 0xFFFF
    words[5] = kept[2]
    words[6] = kept[3]
    words[7] = kept[4]
