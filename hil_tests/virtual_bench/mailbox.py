"""The mailbox of a QEMU board: the first pages of its PSRAM, a file that the board and the bench both map."""

import mmap
import struct
from pathlib import Path

from hil_tests.virtual_bench.pipe_layout import MAX_SERIAL, TICK_IN, TICK_OUT_SIZE

MEMORY_SIZE = 16 << 20  # bytes of PSRAM, at the board's address 0x21000000
# Phases: boot.py or main.py runs; both have ended, and the interpreter waits for input on the console, or is at work.
PROGRAM, PROMPT, BUSY = 1, 2, 3
_SIZE = 0x10000
_LAYOUT, _STARTS, _PHASE, _ASKED, _WATCHDOG = 0, 8, 12, 16, 24  # where words are; a tick's input bytes follow _LAYOUT
_OUTPUTS, _INPUTS = 0x100, 0x400  # a tick's messages, as they go over the pipes of a unix board
_RECEIVED = _INPUTS + (TICK_IN.fields or {})["received"][1]
_WORD = struct.Struct("<I")
_MOST_MOTORS = 2


class Mailbox:
    """The bench's side of one board's mailbox.

    The board writes the layout it speaks and how often it has started, its image the phase; the bench counts the ticks
    it asks for, and the board those it has answered.
    """

    def __init__(self, memory: Path, motors: int) -> None:
        """Map a file of MEMORY_SIZE bytes, and clear the mailbox: the board, with so many motors, has no power."""
        self._out = struct.Struct(f"<{4 * motors}i")
        with memory.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), _SIZE)
        self.clear()

    def clear(self) -> None:
        """Forget everything, as memory does without power."""
        self._map[:] = bytes(_SIZE)
        self._asked = 0

    @property
    def greeting(self) -> tuple[int, int]:
        """Layout that the board speaks, and bytes of a tick's inputs; zeros before it has started."""
        return struct.unpack_from("<2I", self._map, _LAYOUT)

    @property
    def starts(self) -> int:
        """How often the board's program has taken hold of its hardware since power on."""
        return _WORD.unpack_from(self._map, _STARTS)[0]

    @property
    def phase(self) -> int:
        """PROGRAM, PROMPT or BUSY; 0 while the image has not started."""
        return _WORD.unpack_from(self._map, _PHASE)[0]

    def forget_phase(self) -> None:
        """Let the phase be 0 until the image starts anew."""
        _WORD.pack_into(self._map, _PHASE, 0)

    @property
    def watchdog_ms(self) -> int:
        """What the board has set its watchdog to; 0 while it has none."""
        return _WORD.unpack_from(self._map, _WATCHDOG)[0]

    def ask(self, message: bytes) -> int:
        """Put a tick's inputs, with the received bytes after them, and return the byte that asks for it."""
        self._map[_INPUTS : _INPUTS + len(message)] = message
        self.take_back()
        return self._asked & 0xFF

    def ask_again(self) -> int:
        """Return another byte that asks for the same tick, in which nothing is received any more."""
        _WORD.pack_into(self._map, _RECEIVED, 0)
        self.take_back()
        return self._asked & 0xFF

    def take_back(self) -> None:
        """Make the byte that asked for the last tick mean nothing, should the board still find it."""
        self._asked += 1
        _WORD.pack_into(self._map, _ASKED, self._asked & 0xFFFFFFFF)

    @property
    def outputs(self) -> tuple[int, ...]:
        """Of each motor tick, enable, current command [mA] and number of bytes sent, as the board has left them."""
        return self._out.unpack_from(self._map, _OUTPUTS)

    def sent(self, count: int) -> bytes:
        """Return that many bytes which the board sends."""
        start = _OUTPUTS + self._out.size
        return self._map[start : start + count]

    def close(self) -> None:
        """Unmap."""
        self._map.close()


assert _OUTPUTS + _MOST_MOTORS * TICK_OUT_SIZE + MAX_SERIAL <= _INPUTS
assert _INPUTS + _MOST_MOTORS * TICK_IN.itemsize + MAX_SERIAL <= _SIZE
