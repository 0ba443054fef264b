"""A Dynamixel of the X series in current control mode: a joint's drive, encoder and current sensor at a bus.

Protocol 2.0 (docs/boards.md, smart drives, has the circuit).

    FF FF FD 00  id  length, 2 bytes  instruction  parameters  CRC-16, 2 bytes

A length counts from the instruction to the CRC; after FF FF FD within the parameters stands another FD. A status has
instruction 0x55 and an error byte before its parameters.

While the motor has no power "off" is written in each tick. The servo's bus watchdog takes its torque 20 ms after the
last packet, the shortest time that it knows.
"""

from time import sleep_us

import micropython
from micropython import const

from drivers.configuration import whole
from drivers.errors import SensorFault, WiringError
from drivers.smart_drive import BUFFER, SmartDrive, crc16
from jointboard import rooms

COUNTS = const(4096)  # of its encoder in a turn of the horn

# Instructions, and registers of the control table.
READ = const(2)
WRITE = const(3)
STATUS = const(0x55)
MODEL = const(0)
RETURN_DELAY = const(9)
MODE = const(11)
CURRENT_LIMIT = const(38)
TORQUE = const(64)
STATUS_LEVEL = const(68)
WATCHDOG = const(98)
GOAL_CURRENT = const(102)
PRESENT = const(126)
PRESENT_SIZE = const(21)  # current, velocity, position, two planned ones, voltage, temperature
CURRENT_CONTROL = b"\x00"
ONLY_READS = b"\x01"  # are answered, with STATUS_LEVEL so
SHORTEST = b"\x01"  # WATCHDOG: 20 ms
ALERT = const(0x80)  # of a status's error: the servo has shut down by its own limits

# uA of a count of current, by model number: XM430-W350, W210, XM540-W270, W150, XH430-W350, W210; XL330-M288, M077;
# XC330-T181, T288, M181, M288.
UNITS_uA = {
    1020: 2690, 1030: 2690, 1120: 2690, 1130: 2690, 1000: 2690, 1010: 2690, 1200: 1000, 1190: 1000, 1210: 1000,
    1220: 1000, 1230: 1000, 1240: 1000,
}  # fmt: skip

POLYNOMIAL = const(0x18005)  # CRC-16/UMTS: "123456789" gives 0xFEE8
GOAL_AT = const(10)  # of the goal's two bytes in their packet
GOAL_CRC = const(12)
NOTHING = const(-1)  # as smart_drive.py has them; here beside a length, and an error times 256
BROKEN = const(-2)
STATUS_US = const(1500)  # it waits for up to 0.5 ms before it answers, as it comes from the factory


class Dynamixel(SmartDrive):
    """Raises WiringError or SensorFault when at the bus there is no servo that could be a joint's."""

    def __init__(self, bus, config):
        self.node = node = whole(config, "drive.id", 0, 252, 1)
        super().__init__(bus, config, "Dynamixel %d" % node)
        self._answer = rooms.buffer(BUFFER)
        self._is_on = False
        ask = packet(node, READ, PRESENT, bytes((PRESENT_SIZE, 0)))
        # A servo that lost its supply for a moment has forgotten its watchdog: it is told again at each switching on.
        start = packet(node, WRITE, WATCHDOG, SHORTEST) + packet(node, WRITE, STATUS_LEVEL, ONLY_READS)
        start += packet(node, WRITE, TORQUE, b"\x01")
        goal = packet(node, WRITE, GOAL_CURRENT, b"\0\0")
        self._go = rooms.buffer(len(goal) + len(ask))
        self._go[:] = goal + ask
        self._rest = packet(node, WRITE, TORQUE, b"\0") + ask
        self._again = packet(node, WRITE, STATUS_LEVEL, ONLY_READS)
        self._start = start + goal  # with a goal of 0
        self._set_up(config)

    def _set_up(self, config):
        node = self.node
        self._write(TORQUE, b"\0")
        model = self._read(MODEL, 2)
        number = model[0] | model[1] << 8
        self.unit_uA = unit = whole(config, "drive.unit_uA", 500, 10000, UNITS_uA.get(number, 0))
        if not unit:
            raise WiringError(
                "config.json: the Dynamixel %d is model %d, which is not known to control its current; known are %s. "
                "If it does, give drive.unit_uA, what a count of its present current is by its manual"
                % (node, number, ", ".join([str(one) for one in sorted(UNITS_uA)]))
            )
        if self._read(MODE, 1) != CURRENT_CONTROL:
            self._write(MODE, CURRENT_CONTROL)
            if self._read(MODE, 1) != CURRENT_CONTROL:
                raise WiringError(
                    "Dynamixel %d, model %d, does not take operating mode 0, current control" % (node, number)
                )
        if self._read(RETURN_DELAY, 1) != b"\0":
            self._write(RETURN_DELAY, b"\0")
        self._write(STATUS_LEVEL, ONLY_READS)
        self._write(WATCHDOG, b"\0")  # which forgets that it bit
        self._write(WATCHDOG, SHORTEST)
        limit = self._read(CURRENT_LIMIT, 2)
        self.limit = limit[0] | limit[1] << 8  # a goal beyond it is not taken at all
        self._gain = (1000 << 15) // unit
        self._read(PRESENT, PRESENT_SIZE)
        present(self.kept, self._answer)

    @property
    def facts(self):
        """Registers that say what its counts are, and what it can give."""
        more = {"voltage.scale": 100000, "temperature.scale": 1000000, "temperature.zero": -273}
        return self.facts_of(COUNTS, 1000 * self.unit_uA, self.limit * self.unit_uA // 1000, **more)

    def command(self, current_mA):
        if not self._is_on:
            self._is_on = True
            self.asked = False  # in this tick there is no time for it: the last values stand
            self.bus.write(self._start, len(self._start))
            return
        set_goal(self._go, current_mA, self._gain, self.limit)
        self.asked = True
        self.bus.write(self._go, len(self._go))

    def off(self):
        self._is_on = False
        if self.failed:  # after a loss of its supply it answers writes, too, while the board goes on to talk
            self.failed = self.asked = False
            self.bus.write(self._again, len(self._again))
            return
        self.asked = True
        self.bus.write(self._rest, len(self._rest))

    def take(self, count):
        found = take(self.received, count, self.node, self._answer)
        if found != PRESENT_SIZE:
            return found if found else BROKEN
        present(self.kept, self._answer)
        return 0

    def explain(self, found):
        if found & ALERT << 8:
            return "it has shut itself down, its register 70 says why; status"
        return "a status of %d bytes with error %d" % (found & 0xFF, found >> 8)

    def _read(self, register, size):
        """Raises SensorFault when no answer comes."""
        data = packet(self.node, READ, register, bytes((size, 0)))
        for _ in range(3):
            self.bus.write(data, len(data))
            found = self.wait()
            if found == size or (not found and size == PRESENT_SIZE):
                return bytes(self._answer[:size])
        raise SensorFault(
            "%s does not answer: check its supply, its id, its baud rate and the wires at drive.tx and drive.rx"
            % self.name
        )

    def _write(self, register, value):
        data = packet(self.node, WRITE, register, value)
        self.bus.write(data, len(data))
        sleep_us(STATUS_US)
        self.look()  # the status of a servo that answers writes, too


def packet(node, instruction, register, parameters):
    """An instruction's bytes. The parameters of those here have no FF FF FD that would need stuffing."""
    body = bytes((0xFF, 0xFF, 0xFD, 0, node, len(parameters) + 5, 0, instruction, register, 0)) + parameters
    crc = crc16(body, 0, len(body), POLYNOMIAL)
    return body + bytes((crc & 0xFF, crc >> 8))


@micropython.viper
def set_goal(_go, current_mA: int, gain: int, limit: int):
    """Write a goal current and its CRC into the packet that begins there."""
    go = ptr8(_go)
    count = (current_mA * gain + 0x4000) >> 15
    if count > limit:
        count = limit
    if count < 0 - limit:
        count = 0 - limit
    go[GOAL_AT] = count
    go[GOAL_AT + 1] = count >> 8
    crc = int(crc16(_go, 0, GOAL_CRC, POLYNOMIAL))
    go[GOAL_CRC] = crc
    go[GOAL_CRC + 1] = crc >> 8


@micropython.viper
def take(_data, count: int, node: int, _answer) -> int:
    """The newest whole status of this servo among received bytes: its length, and its error times 256; its parameters.

    What a half-duplex bus echoes are instructions, which are passed over. NOTHING where no status begins, BROKEN where
    it does not end, or its CRC is wrong.
    """
    data = ptr8(_data)
    answer = ptr8(_answer)
    found = NOTHING
    k = 0
    while k + 8 <= count:
        if (data[k] ^ 0xFF) | (data[k + 1] ^ 0xFF) | (data[k + 2] ^ 0xFD) | data[k + 3]:
            k += 1
            continue
        end = k + 7 + (data[k + 5] | data[k + 6] << 8)
        if data[k + 7] != STATUS or data[k + 4] != node:
            k += 8
            continue
        if end > count or end < k + 11:
            return BROKEN
        crc = int(crc16(_data, k, end - 2, POLYNOMIAL))
        if crc != (data[end - 2] | data[end - 1] << 8):
            found = BROKEN
            k += 8
            continue
        found = 0
        at = k + 9
        while at < end - 2:
            answer[found] = data[at]
            found += 1
            if found >= 3 and data[at] == 0xFD and data[at - 1] == 0xFF and data[at - 2] == 0xFF:
                at += 1  # the stuffed byte
            at += 1
        found |= data[k + 8] << 8
        k = end
    return found


@micropython.viper
def present(_kept, _answer):
    """Current, position, voltage and temperature out of the registers from PRESENT on."""
    kept = ptr32(_kept)
    told = ptr8(_answer)
    current = told[0] | told[1] << 8
    kept[0] = current - ((current & 0x8000) << 1)
    kept[1] = told[6] | told[7] << 8 | told[8] << 16 | told[9] << 24
    kept[2] = kept[1] & (COUNTS - 1)
    kept[3] = told[18] | told[19] << 8
    kept[4] = told[20]
