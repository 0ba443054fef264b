"""An emulated Dynamixel of the X series, from ROBOTIS' description of Protocol 2.0 and of its control table.

It answers PING, READ, WRITE, SYNC READ, SYNC WRITE and REBOOT. Its current follows its goal by the plant's law; what it
tells of current and position is what the plant's sensors had when the packet came.
"""

import struct
from collections.abc import Iterator

from hil_tests.virtual_bench.smart_drive import Present

_HEAD = b"\xff\xff\xfd\x00"
_BROADCAST = 0xFE
_PING, _READ, _WRITE, _REBOOT, _STATUS, _SYNC_READ, _SYNC_WRITE = 0x01, 0x02, 0x03, 0x08, 0x55, 0x82, 0x83
# Errors of a status.
_INSTRUCTION, _RANGE, _LENGTH, _LIMIT, _ACCESS = 0x02, 0x04, 0x05, 0x06, 0x07
_ALERT = 0x80
# Registers.
_MODEL, _FIRMWARE, _ID, _RETURN_DELAY, _MODE, _CURRENT_LIMIT = 0, 6, 7, 9, 11, 38
TORQUE, _STATUS_LEVEL, _HARDWARE_ERROR, WATCHDOG, GOAL_CURRENT = 64, 68, 70, 98, 102
_CURRENT, _VELOCITY, _POSITION, _VOLTAGE, _TEMPERATURE = 126, 128, 132, 144, 146
_SIZE, _EEPROM, _READ_ONLY = 147, 64, 120  # registers in all; below and from which on they are so
_WATCHDOG_S = 0.02  # a count of the watchdog
_BITTEN = 0xFF
_CURRENT_CONTROL = 0
_DEFAULTS = {_FIRMWARE: 46, _RETURN_DELAY: 250, _MODE: 3, _STATUS_LEVEL: 2}


class Dynamixel:
    """One servo: its registers, and what it answers.

    Attributes:
        unit: current of a count [A].
    """

    def __init__(self, number: int, model: int = 1020, unit: float = 2.69e-3, current_limit: int = 1193) -> None:
        """As it comes from the factory: servo `number`, in position control, its torque off."""
        self.number, self.unit = number, unit
        self._memory = bytearray(_SIZE)
        self._model, self._limit = model, current_limit
        self._eeprom()
        self._power_on()
        self._idle = 0.0
        self._unread = b""

    def _eeprom(self) -> None:
        struct.pack_into("<H", self._memory, _MODEL, self._model)
        struct.pack_into("<H", self._memory, _CURRENT_LIMIT, self._limit)
        self._memory[_ID] = self.number
        for register, value in _DEFAULTS.items():
            self._memory[register] = value

    def _power_on(self) -> None:
        self._memory[_EEPROM:] = bytes(_SIZE - _EEPROM)
        self._memory[_STATUS_LEVEL] = _DEFAULTS[_STATUS_LEVEL]

    def lose_supply(self) -> None:
        """Its supply goes for a moment: registers above the EEPROM are those of a start."""
        self._power_on()

    def shut_down(self, reason: int) -> None:
        """Take the torque by its own limits, as bits of register 70 say why, until it is started anew."""
        self._memory[TORQUE], self._memory[_HARDWARE_ERROR] = 0, reason

    def __getitem__(self, register: int) -> int:
        """A register's byte."""
        return self._memory[register]

    @property
    def torque_is_on(self) -> bool:
        """Whether its motor has power."""
        return bool(self._memory[TORQUE])

    @property
    def goal_current(self) -> float:
        """What its current loop is asked for [A]: 0 in another mode than current control."""
        if not self.torque_is_on or self._memory[_MODE] != _CURRENT_CONTROL:
            return 0.0
        return struct.unpack_from("<h", self._memory, GOAL_CURRENT)[0] * self.unit

    def outputs(self, _enable: int) -> tuple[int, float]:
        """Whether its motor has power, and the current that it is asked for [A]."""
        return int(self.torque_is_on), self.goal_current

    def see(self, present: Present) -> None:
        """Let its sensors have these values."""
        struct.pack_into("<hii", self._memory, _CURRENT, round(present.current / self.unit), 0, present.position)
        struct.pack_into("<HB", self._memory, _VOLTAGE, round(10.0 * present.supply), round(present.temperature))

    def wait(self, seconds: float) -> None:
        """Let time pass: the bus watchdog bites when no packet came for as long as it is set to."""
        self._idle += seconds
        limit = self._memory[WATCHDOG]
        if 0 < limit < _BITTEN and self._idle > limit * _WATCHDOG_S:
            self._memory[WATCHDOG] = _BITTEN
            struct.pack_into("<h", self._memory, GOAL_CURRENT, 0)

    def hear(self, data: bytes) -> bytes:
        """Take the bytes of a burst from the bus, and return what it puts there in answer.

        The bus is half duplex: an answer within the burst meets the rest of it, and neither arrives whole.
        """
        *whole, self._unread = _packets(self._unread + data)
        for packet in whole:
            if answer := self._answer(packet):
                return answer if packet is whole[-1] else answer[:-1]
        return b""

    def _answer(self, packet: bytes) -> bytes:
        number, instruction, parameters = packet[4], packet[7], unstuffed(packet[8:-2])
        if instruction == _STATUS:
            return b""
        self._idle = 0.0
        if instruction == _SYNC_READ:
            start, size = struct.unpack_from("<HH", parameters)
            return self._read(start, size) if self.number in parameters[4:] else b""
        if instruction == _SYNC_WRITE:
            start, size = struct.unpack_from("<HH", parameters)
            for at in range(4, len(parameters), size + 1):
                if parameters[at] == self.number:
                    self._write(start, parameters[at + 1 : at + 1 + size])
            return b""
        if number not in (self.number, _BROADCAST):
            return b""
        if instruction == _PING:
            return self._status(0, self._memory[_MODEL : _MODEL + 2] + self._memory[_FIRMWARE : _FIRMWARE + 1])
        if instruction == _READ:
            start, size = struct.unpack("<HH", parameters)
            return self._read(start, size)
        level = self._memory[_STATUS_LEVEL]
        if instruction == _WRITE:
            error = self._write(struct.unpack_from("<H", parameters)[0], parameters[2:])
        elif instruction == _REBOOT:
            error = 0
            self._power_on()
        else:
            error = _INSTRUCTION
        return self._status(error) if level > 1 and number != _BROADCAST else b""

    def _read(self, start: int, size: int) -> bytes:
        if start + size > _SIZE:
            return self._status(_ACCESS)
        return self._status(0, self._memory[start : start + size])

    def _write(self, start: int, value: bytes) -> int:
        """The error that a status would have."""
        memory = self._memory
        if start + len(value) > _READ_ONLY or start in (_MODEL, _FIRMWARE, _HARDWARE_ERROR):
            return _ACCESS
        if start < _EEPROM and memory[TORQUE]:
            return _ACCESS
        if start == GOAL_CURRENT:
            if len(value) != 2:
                return _LENGTH
            limit = struct.unpack_from("<H", memory, _CURRENT_LIMIT)[0]
            if abs(struct.unpack("<h", value)[0]) > limit:
                return _LIMIT
            if memory[WATCHDOG] == _BITTEN:
                return _RANGE
        if start == TORQUE and value[0] and memory[_HARDWARE_ERROR]:
            return _ACCESS
        if start == TORQUE and value[0] > memory[TORQUE]:
            struct.pack_into("<h", memory, GOAL_CURRENT, 0)
        memory[start : start + len(value)] = value
        if start <= _ID < start + len(value):
            self.number = memory[_ID]
        return 0

    def _status(self, error: int, parameters: bytes | bytearray = b"") -> bytes:
        if self._memory[_HARDWARE_ERROR]:
            error |= _ALERT
        body = stuffed(parameters)
        packet = _HEAD + struct.pack("<BHBB", self.number, len(body) + 4, _STATUS, error) + body
        return packet + struct.pack("<H", crc16(packet))


def _packets(data: bytes) -> Iterator[bytes]:
    """Whole packets with a right CRC, and last what may be the beginning of another one."""
    while (start := data.find(_HEAD)) >= 0:
        data = data[start:]
        if len(data) < 7:
            break
        size = 7 + struct.unpack_from("<H", data, 5)[0]
        if len(data) < size:
            break
        packet, rest = data[:size], data[size:]
        if struct.unpack("<H", packet[-2:])[0] == crc16(packet[:-2]):
            yield packet
            data = rest
        else:
            data = data[len(_HEAD) :]
    yield data[-1024:]


def stuffed(parameters: bytes | bytearray) -> bytes:
    """Another FD behind each FF FF FD, which would begin a packet."""
    return bytes(parameters).replace(_HEAD[:3], _HEAD[:3] + b"\xfd")


def unstuffed(parameters: bytes) -> bytes:
    """The inverse of `stuffed`."""
    return parameters.replace(_HEAD[:3] + b"\xfd", _HEAD[:3])


def crc16(data: bytes) -> int:
    """CRC-16/UMTS: polynomial 0x8005, start 0, not reflected."""
    crc = 0
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1) ^ (0x8005 if crc & 0x8000 else 0)
        crc &= 0xFFFF
    return crc
