"""A VESC as a joint's drive, encoder and current sensor, by its own packets over a UART.

    02  length  payload  CRC-16, most significant byte first  03

Each tick sends SET_CURRENT and asks for GET_VALUES_SELECTIVE: temperature of the motor, mean of the current iq since it
was asked before, supply, fault code and position. The position is that of its encoder, divided as its settings say
("PID position angle division"): so that it is the joint's. No current lets the motor go. Its timeout without commands
is one of its settings as well: docs/boards.md.
"""

import micropython
from micropython import const

from drivers.errors import SensorFault
from drivers.smart_drive import SmartDrive, crc16
from jointboard import rooms

COUNTS = const(36000)  # a turn of the joint, as its position comes in millionths of a degree
STEP_nA = const(10000000)  # its currents come in hundredths of an ampere
MOST_mA = const(20000)  # that a tick's converter samples can show of them
POLYNOMIAL = const(0x11021)  # CRC-16/XMODEM: "123456789" gives 0x31C3
START = const(2)
END = const(3)
SET_CURRENT = const(6)
GET_SELECTIVE = const(50)
MASK = const(0x18122)  # temperature of the motor, iq, supply, fault, position
SIZE = const(18)  # payload that is answered
GOAL_AT = const(3)  # of the goal's four bytes in their packet
NOTHING = const(-1)
BROKEN = const(-2)


class Vesc(SmartDrive):
    """Raises SensorFault when none answers."""

    def __init__(self, bus, config):
        super().__init__(bus, config, "VESC")
        ask = packet(bytes((GET_SELECTIVE, MASK >> 24 & 255, MASK >> 16 & 255, MASK >> 8 & 255, MASK & 255)))
        goal = packet(bytes((SET_CURRENT, 0, 0, 0, 0)))
        self._rest = goal + ask
        self._go = rooms.buffer(len(self._rest))
        self._go[:] = self._rest
        for _ in range(3):
            self.off()
            if self.wait() >= 0:
                break
        else:
            raise SensorFault(
                "VESC does not answer: check its supply, its baud rate (UART app), the wires at drive.tx and drive.rx, "
                "and that its firmware is 3.39 or newer"
            )
        self.kept[1] = self.kept[2]
        self.facts = self.facts_of(
            COUNTS,
            STEP_nA,
            MOST_mA,
            **{"voltage.scale": 100000, "temperature.scale": 100000, "temperature.zero": -2732},
        )

    def command(self, current_mA):
        set_goal(self._go, current_mA)
        self.asked = True
        self.bus.write(self._go, len(self._go))

    def off(self):
        self.asked = True
        self.bus.write(self._rest, len(self._rest))

    def take(self, count):
        return take(self.received, count, self.kept)

    def explain(self, found):
        return "it has stopped by a fault of its own, see mc_fault_code; code"


def packet(payload):
    crc = crc16(payload, 0, len(payload), POLYNOMIAL)
    return bytes((START, len(payload))) + payload + bytes((crc >> 8, crc & 255, END))


@micropython.viper
def set_goal(_go, current_mA: int):
    """Write a current and its CRC into the packet that begins there."""
    go = ptr8(_go)
    go[GOAL_AT] = current_mA >> 24
    go[GOAL_AT + 1] = current_mA >> 16
    go[GOAL_AT + 2] = current_mA >> 8
    go[GOAL_AT + 3] = current_mA
    crc = int(crc16(_go, 2, GOAL_AT + 4, POLYNOMIAL))
    go[GOAL_AT + 4] = crc >> 8
    go[GOAL_AT + 5] = crc


@micropython.viper
def take(_data, count: int, _kept) -> int:
    """The newest whole answer among received bytes into what is kept; its fault code, 0 for none."""
    data = ptr8(_data)
    kept = ptr32(_kept)
    found = NOTHING
    k = 0
    while k + 3 <= count:
        if data[k] != START or data[k + 1] != SIZE or data[k + 2] != GET_SELECTIVE:
            k += 1
            continue
        end = k + SIZE + 5
        if end > count:
            return BROKEN
        crc = int(crc16(_data, k + 2, k + 2 + SIZE, POLYNOMIAL))
        if crc != (data[end - 3] << 8 | data[end - 2]) or data[end - 1] != END:
            found = BROKEN
            k += 1
            continue
        at = k + 7  # behind the command and the mask
        warmth = data[at] << 8 | data[at + 1]
        kept[4] = warmth - ((warmth & 0x8000) << 1)
        kept[0] = data[at + 2] << 24 | data[at + 3] << 16 | data[at + 4] << 8 | data[at + 5]
        kept[3] = data[at + 6] << 8 | data[at + 7]
        found = data[at + 8]
        position = data[at + 9] << 24 | data[at + 10] << 16 | data[at + 11] << 8 | data[at + 12]
        count_now = position // 10000
        if count_now >= COUNTS:
            count_now -= COUNTS
        moved = count_now - kept[2]
        if moved > COUNTS >> 1:
            moved -= COUNTS
        if moved < 0 - (COUNTS >> 1):
            moved += COUNTS
        kept[1] = kept[1] + moved
        kept[2] = count_now
        k = end
    return found
