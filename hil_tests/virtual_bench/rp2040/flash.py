"""The flash of an RP2040 board as a file: MicroPython's image, and behind it the file system as that port makes it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hil_tests.virtual_bench.errors import BoardStartError
from hil_tests.virtual_bench.flash_image import pack, unpack

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
