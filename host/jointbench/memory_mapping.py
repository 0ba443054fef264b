"""Arrays that lie in a file: read part by part, a log of any length takes little memory."""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from jointbench.foreign import regular_file

_IN_MEMORY = 16 << 20
"""Bytes up to which an array is not worth a file."""

PIECE = 1 << 16
"""Rows that are worked on at a time where any number would do."""

_WAITING = 1 << 17
"""Bytes that wait to be written together."""

_Item = TypeVar("_Item", bound=np.generic)

FileBytes: TypeAlias = bytes | mmap.mmap
"""A file's content: all of it, or what is looked at."""


def part_of(values: NDArray[_Item], part: slice | NDArray[np.intp]) -> NDArray[_Item]:
    """Rows of an array; of one that lies in a file a copy, after which no page of the file is in memory any more."""
    if _map_of(values) is None:
        return values[part]
    rows = np.array(values[part])
    give_back(values)
    return rows


def give_back(values: NDArray[Any] | None) -> None:
    """Let go of the pages of a file that an array lies in, once they are read or written; the array stays as it is."""
    mapped = None if values is None else _map_of(values)
    if mapped is not None:
        let_go(mapped)


def let_go(data: FileBytes) -> None:
    """Let go of the pages of a file that were looked at."""
    if isinstance(data, mmap.mmap) and hasattr(data, "madvise"):  # systems without it let go by themselves, but later
        data.madvise(mmap.MADV_DONTNEED)


def file_bytes(path: Path) -> FileBytes:
    """A file's bytes, read from the disk when they are looked at.

    Raises:
        OSError: it cannot be read.
    """
    with regular_file(path).open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if path.stat().st_size else b""


def scratch(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """A new array; a large one lies in a file without a name, where the system has its temporary files (TMPDIR).

    The file is gone when the array is.

    Raises:
        OSError: the disk has no room for it.
    """
    kind = np.dtype(dtype)
    size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    if size <= _IN_MEMORY:
        return np.empty(shape, kind)
    with _named_place(), tempfile.TemporaryFile() as file:
        if hasattr(os, "posix_fallocate"):  # a full disk is told now, and not by a signal when it is written to
            os.posix_fallocate(file.fileno(), 0, size)
        else:
            file.truncate(size)
        return np.frombuffer(mmap.mmap(file.fileno(), size), kind).reshape(shape)


class Spool:
    """A row of items that grows at its end; much of it lies in a file without a name."""

    def __init__(self, dtype: DTypeLike) -> None:
        """None yet."""
        self._kind = np.dtype(dtype)
        self._waiting: list[bytes] = []
        self._size = 0
        self._file: IO[bytes] | None = None

    def append(self, items: NDArray[Any]) -> None:
        """Put items behind those before.

        Raises:
            OSError: the disk takes no more.
        """
        self._waiting.append(np.ascontiguousarray(items, self._kind).tobytes())
        self._size += len(self._waiting[-1])
        if self._size > _WAITING:
            self._write()

    def all(self) -> NDArray[Any]:
        """All items; nothing may be appended any more."""
        if self._file is None:
            return np.frombuffer(b"".join(self._waiting), self._kind)
        self._write()
        with _named_place(), self._file as file:
            file.flush()
            return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), self._kind)

    def _write(self) -> None:
        with _named_place():
            if self._file is None:
                self._file = tempfile.TemporaryFile()
            self._file.writelines(self._waiting)
        self._waiting.clear()
        self._size = 0


def pieces(n: int, length: int = PIECE) -> Iterator[slice]:
    """Slices of at most `length` rows that follow each other from 0 to n."""
    for start in range(0, n, length):
        yield slice(start, min(start + length, n))


@contextmanager
def _named_place() -> Iterator[None]:
    """A file without a name tells of a full disk without a place; the folder is what a user can change."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, f"{tempfile.gettempdir()} (TMPDIR)") from error


def _map_of(values: NDArray[Any]) -> mmap.mmap | None:
    base: object = values
    while isinstance(base, np.ndarray):
        base = cast(object, base.base)
    if isinstance(base, memoryview):
        base = cast(object, base.obj)
    return base if isinstance(base, mmap.mmap) else None
