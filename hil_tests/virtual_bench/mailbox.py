"""The file behind a QEMU board's PSRAM: its mailbox, which board and bench both map, and its flash.

`pack` and `unpack` are for any board's.
"""

import mmap
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from littlefs import LittleFS, LittleFSError

from hil_tests.virtual_bench.board import MAX_SERIAL, TICK_IN, TICK_OUT_SIZE
from hil_tests.virtual_bench.errors import BoardStartError

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


_START, _BLOCK, _BLOCKS = 0x100000, 4096, 256
# What MicroPython's VfsLfs2 takes unless told otherwise.
_GEOMETRY: dict[str, Any] = {
    "block_size": _BLOCK, "block_count": _BLOCKS, "read_size": 32, "prog_size": 32, "lookahead_size": 32
}  # fmt: skip


def write_flash(memory: Path, files: Mapping[str, bytes]) -> None:
    """Make a new PSRAM file whose flash holds these files, by path from the root.

    Raises:
        BoardStartError: the files do not fit the flash.
        OSError: the file cannot be written.
    """
    content = pack(files, _GEOMETRY)
    with memory.open("wb") as out:
        out.seek(_START)
        out.write(content)
        out.truncate(MEMORY_SIZE)


def read_flash(memory: Path) -> dict[str, bytes]:
    """Return all files of a board's flash by path.

    Raises:
        OSError: it cannot be read, or holds no file system.
    """
    with memory.open("rb") as file:
        file.seek(_START)
        return unpack(file.read(_BLOCK * _BLOCKS), _GEOMETRY)


def pack(files: Mapping[str, bytes], geometry: Mapping[str, Any]) -> bytes:
    """Return a file system that holds these files, by path from the root.

    Args:
        files: their contents.
        geometry: of the flash, as LittleFS takes it.

    Raises:
        BoardStartError: the files do not fit.
    """
    system = LittleFS(**geometry)
    try:
        for name, content in files.items():
            if folder := name.rpartition("/")[0]:
                system.makedirs(folder, exist_ok=True)
            with system.open(name, "wb") as file:
                file.write(content)
        system.unmount()
    except LittleFSError as error:
        size, room = sum(map(len, files.values())), geometry["block_size"] * geometry["block_count"]
        raise BoardStartError(f"{len(files)} files of {size} bytes do not fit a flash of {room} bytes") from error
    return bytes(system.context.buffer)


def unpack(data: bytes, geometry: Mapping[str, Any]) -> dict[str, bytes]:
    """Return all files of a file system by path.

    Raises:
        OSError: it holds none.
    """
    system = LittleFS(**geometry, mount=False)
    system.context.buffer = bytearray(data)
    system.mount()
    files: dict[str, bytes] = {}
    for folder, _, names in system.walk("/"):
        for name in names:
            path = f"{folder.rstrip('/')}/{name}"
            with system.open(path, "rb") as file:
                files[path.lstrip("/")] = file.read()
    return files
