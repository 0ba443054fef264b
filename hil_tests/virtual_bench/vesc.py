"""An emulated VESC at a UART: of its packets SET_CURRENT and GET_VALUES_SELECTIVE, as its firmware has them."""

import struct
from binascii import crc_hqx

from hil_tests.virtual_bench.smart_drive import Present

COUNTS = 36000  # of a turn, as what sees it counts positions
_SET_CURRENT, _GET_SELECTIVE = 6, 50
_START, _END = 2, 3
_FIELDS = {  # by the bits of a mask: how each value is packed
    1: ">h", 5: ">i", 8: ">h", 15: ">B", 16: ">i",
}  # fmt: skip


class Vesc:
    """One drive, its encoder at the joint.

    Attributes:
        fault: its fault code, 0 for none; while it has one, its motor has no current.
        asked: current that it was asked for last [A].
    """

    def __init__(self, timeout: float = 0.02) -> None:
        """Without commands for `timeout` [s], a setting of the drive, its motor has no current."""
        self.fault = 0
        self.asked = 0.0
        self._timeout, self._idle = timeout, 0.0
        self._present = Present(0.0, 0, 0.0, 0.0)
        self._unread = b""

    def see(self, present: Present) -> None:
        """Let its sensors have these values."""
        self._present = present

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self._idle += seconds
        if self._idle > self._timeout:
            self.asked = 0.0

    def outputs(self, enable: int) -> tuple[int, float]:
        """Its motor's power is switched by the board's ENABLE; the current that it is asked for [A]."""
        return enable, 0.0 if self.fault else self.asked

    def hear(self, data: bytes) -> bytes:
        """Take bytes, and return its answers: of a full-duplex line."""
        data, answers = self._unread + data, b""
        while (start := data.find(_START)) >= 0:
            data = data[start:]
            if len(data) < 2 or len(data) < data[1] + 5:
                break
            size = data[1]
            payload, crc, end = data[2 : 2 + size], data[2 + size : 4 + size], data[4 + size]
            if end == _END and struct.unpack(">H", crc)[0] == crc_hqx(payload, 0):
                answers += self._answer(payload)
                data = data[5 + size :]
            else:
                data = data[1:]
        self._unread = data[-512:]
        return answers

    def _answer(self, payload: bytes) -> bytes:
        if payload[0] == _SET_CURRENT:
            self.asked = 1e-3 * struct.unpack(">i", payload[1:5])[0]
            self._idle = 0.0
        if payload[0] != _GET_SELECTIVE:
            return b""
        mask = struct.unpack(">I", payload[1:5])[0]
        present = self._present
        degrees = present.position % COUNTS * 360.0 / COUNTS
        values = {
            1: round(10.0 * present.temperature), 5: round(100.0 * present.current), 8: round(10.0 * present.supply),
            15: self.fault, 16: round(1e6 * degrees),
        }  # fmt: skip
        chosen = [bit for bit in _FIELDS if mask >> bit & 1]
        return packet(payload[:5] + b"".join(struct.pack(_FIELDS[bit], values[bit]) for bit in chosen))


def packet(payload: bytes) -> bytes:
    """A short packet around a payload."""
    return struct.pack("BB", _START, len(payload)) + payload + struct.pack(">HB", crc_hqx(payload, 0), _END)
