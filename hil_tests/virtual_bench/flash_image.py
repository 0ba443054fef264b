"""The flash of a QEMU board: a LittleFS image in its PSRAM file, as the board's own interpreter mounts it.

`pack` and `unpack` are for any board's.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from littlefs import LittleFS, LittleFSError

from hil_tests.virtual_bench.errors import BoardStartError
from hil_tests.virtual_bench.mailbox import MEMORY_SIZE

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
