"""The flash of an RP2040 board as a file: MicroPython's image, and behind it the file system as that port makes it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from littlefs import LittleFS, LittleFSError

from hil_tests.virtual_bench.errors import BoardStartError

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
    system = LittleFS(**_GEOMETRY, disk_version=_VERSION)
    try:
        for name, content in files.items():
            if folder := name.rpartition("/")[0]:
                system.makedirs(folder, exist_ok=True)
            with system.open(name, "wb") as file:
                file.write(content)
        system.unmount()
    except LittleFSError as error:
        size, room = sum(map(len, files.values())), _BLOCK * _BLOCKS
        raise BoardStartError(f"{len(files)} files of {size} bytes do not fit a flash of {room} bytes") from error
    flash.write_bytes(image.ljust(_START, b"\xff") + bytes(system.context.buffer))


def read_flash(flash: Path) -> dict[str, bytes]:
    """Return all files of a board's flash by path.

    Raises:
        OSError: it cannot be read, or holds no file system.
    """
    system = LittleFS(**_GEOMETRY, mount=False)
    system.context.buffer = bytearray(flash.read_bytes()[_START:])
    system.mount()
    files: dict[str, bytes] = {}
    for folder, _, names in system.walk("/"):
        for name in names:
            path = f"{folder.rstrip('/')}/{name}"
            with system.open(path, "rb") as file:
                files[path.lstrip("/")] = file.read()
    return files
