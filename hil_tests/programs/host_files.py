"""The files of the host's current folder as this board's file system, for a board inside QEMU.

Semihosting carries them: call(operation, its arguments' address) is a breakpoint instruction, which QEMU carries out
(Arm: Semihosting for AArch32 and AArch64, 2022; RISC-V Semihosting, 2024). One call costs the host
a system call; the guest's clock does not see it. Folders cannot be listed: semihosting has no such operation.
"""

import io
import struct

import uctypes
from micropython import const
from semihosting import call

OPEN = const(0x01)
CLOSE = const(0x02)
WRITE = const(0x05)
READ = const(0x06)
SEEK = const(0x0A)
LENGTH = const(0x0C)
REMOVE = const(0x0E)
RENAME = const(0x0F)
MODES = {"r": 0, "rb": 1, "r+": 2, "r+b": 3, "w": 4, "wb": 5, "w+": 6, "w+b": 7, "a": 8, "ab": 9}
ENOENT = const(2)
EIO = const(5)


def ask(operation, *words):
    block = struct.pack("<%di" % len(words), *words)
    return call(operation, uctypes.addressof(block))


def open_path(path, mode):
    name = path.lstrip("/").encode() or b"."
    text = name + b"\0"
    return ask(OPEN, uctypes.addressof(text), MODES[mode], len(name))


class File(io.IOBase):
    """A file of the host."""

    def __init__(self, path, mode):
        self._text = "b" not in mode
        self._handle = open_path(path, mode)
        if self._handle < 0:
            raise OSError(ENOENT)

    def readinto(self, buffer, count=-1):
        size = len(buffer) if count < 0 else min(count, len(buffer))
        return size - ask(READ, self._handle, uctypes.addressof(buffer), size) if size else 0

    def read(self, count=-1):
        if count < 0:
            count = ask(LENGTH, self._handle)
        data = bytearray(count)
        data = bytes(memoryview(data)[: self.readinto(data)])
        return data.decode() if self._text else data

    def write(self, data, count=-1):
        if isinstance(data, str):
            data = data.encode()
        size = len(data) if count < 0 else min(count, len(data))
        if size and ask(WRITE, self._handle, uctypes.addressof(data), size):
            raise OSError(EIO)
        return size

    def seek(self, place):
        ask(SEEK, self._handle, place)
        return place

    def flush(self):
        pass

    def close(self):
        if self._handle >= 0:
            ask(CLOSE, self._handle)
            self._handle = -1

    def ioctl(self, request, _argument):
        if request == 4:  # close
            self.close()
            return 0
        return 512 if request == 11 else -1  # bytes to read at a time when a module is imported

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class HostFiles:
    """The file system MicroPython mounts."""

    def mount(self, _read_only, _make):
        pass

    def umount(self):
        pass

    def chdir(self, path):
        if path.strip("/"):
            raise OSError(ENOENT)

    def getcwd(self):
        return "/"

    def open(self, path, mode):
        return File(path, mode)

    def stat(self, path):
        handle = open_path(path, "rb")
        if handle < 0:
            raise OSError(ENOENT)
        size, first = ask(LENGTH, handle), bytearray(1)
        folder = size > 0 and ask(READ, handle, uctypes.addressof(first), 1) != 0  # it has a size, but nothing to read
        ask(CLOSE, handle)
        return (0x4000 if folder else 0x8000, 0, 0, 0, 0, 0, size, 0, 0, 0)

    def remove(self, path):
        name = path.lstrip("/").encode() + b"\0"
        if ask(REMOVE, uctypes.addressof(name), len(name) - 1):
            raise OSError(ENOENT)

    def rename(self, old, new):
        old, new = old.lstrip("/").encode() + b"\0", new.lstrip("/").encode() + b"\0"
        if ask(RENAME, uctypes.addressof(old), len(old) - 1, uctypes.addressof(new), len(new) - 1):
            raise OSError(ENOENT)
