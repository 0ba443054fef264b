"""The flash of an RP2040 board as a file, what the chip gave it to do, and what it holds where the power is cut.

A flash erases sectors, which sets all bits, and programs pages, which clears some. Where that is cut short, any of the
bits are done: such a place may even read as whole.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hil_tests.virtual_bench.errors import BoardStartError
from hil_tests.virtual_bench.mailbox import pack, unpack

# Of the board RPI_PICO of MicroPython 1.25: 1408 kB of its 2 MB.
_START, _BLOCK, _BLOCKS = 0xA0000, 4096, 352
_GEOMETRY: dict[str, Any] = {
    "block_size": _BLOCK, "block_count": _BLOCKS, "prog_size": 256, "read_size": 256, "lookahead_size": 32
}  # fmt: skip
_VERSION = 0x00020000  # MicroPython reads it, and makes it the newest one when it writes


def write_flash(flash: Path, firmware: Path, files: Mapping[str, bytes]) -> None:
    """Make a new flash file with this image and these files, by path from the root.

    Raises:
        BoardStartError: they do not fit.
        OSError: a file cannot be read or written.
    """
    image = firmware.read_bytes()
    if len(image) > _START:
        raise BoardStartError(f"image {firmware} has {len(image)} bytes; {_START} are before the file system")
    flash.write_bytes(image.ljust(_START, b"\xff") + pack(files, {**_GEOMETRY, "disk_version": _VERSION}))


def read_flash(flash: Path) -> dict[str, bytes]:
    """Return all files of a board's flash by path.

    Raises:
        OSError: it cannot be read, or holds no file system.
    """
    return unpack(flash.read_bytes()[_START:], _GEOMETRY)


SECTOR, PAGE = 4096, 256  # bytes, what is erased and what is programmed at once


@dataclass(frozen=True)
class FlashWrite:
    """A sector that is erased (without `data`), or a page that is programmed."""

    at: int
    data: bytes | None

    def done(self, flash: bytearray) -> None:
        """Do it."""
        if self.data is None:
            flash[self.at : self.at + SECTOR] = b"\xff" * SECTOR
        else:
            self._program(flash, self.data)

    def begun(self, flash: bytearray, rng: random.Random) -> None:
        """Do it to some of the bits."""
        if self.data is None:
            mask = rng.randbytes(SECTOR)
            found = flash[self.at : self.at + SECTOR]
            flash[self.at : self.at + SECTOR] = bytes(old | bit for old, bit in zip(found, mask, strict=True))
        else:
            mask = rng.randbytes(len(self.data))
            self._program(flash, bytes(new | bit for new, bit in zip(self.data, mask, strict=True)))

    def half_done(self, flash: bytearray) -> None:
        """Do the first half of it, and nothing to the other."""
        if self.data is None:
            flash[self.at : self.at + SECTOR // 2] = b"\xff" * (SECTOR // 2)
        else:
            self._program(flash, self.data[: len(self.data) // 2])

    def _program(self, flash: bytearray, data: bytes) -> None:
        place = slice(self.at, self.at + len(data))
        flash[place] = bytes(old & new for old, new in zip(flash[place], data, strict=True))


def read_flash_log(path: Path) -> list[FlashWrite]:
    """Return all writes of a board's log.

    Raises:
        OSError: it cannot be read.
    """
    writes: list[FlashWrite] = []
    for line in path.read_text(encoding="ascii").splitlines():
        _, at, *data = line.split()
        writes.append(FlashWrite(int(at), bytes.fromhex(data[0]) if data else None))
    return writes


def write_flash_log(path: Path, writes: Sequence[FlashWrite]) -> None:
    """Write what `read_flash_log` reads."""
    lines = [f"erase {w.at}\n" if w.data is None else f"program {w.at} {w.data.hex()}\n" for w in writes]
    path.write_text("".join(lines), encoding="ascii")


def flash_after_cut(before: bytes, writes: Sequence[FlashWrite], number: int, how: str, seed: int = 0) -> bytes:
    """Content of a flash whose power was cut when some of the writes were done.

    Args:
        before: its content before all of them.
        writes: in order.
        number: how many were done.
        how: what became of the next one: "before" it had begun, "half" of it was done, or "bits" of it, any of them.
        seed: chooses these bits.
    """
    flash = bytearray(before)
    for write in writes[:number]:
        write.done(flash)
    if how == "half":
        writes[number].half_done(flash)
    elif how == "bits":
        writes[number].begun(flash, random.Random(f"{seed} {number}"))
    return bytes(flash)
