"""Arrays: their type in the host's maths, vectors and matrices of frozen records, compiled loops, memory-mapped files.

Numba compiles on first call: importing a module with a compiled loop does not import Numba (about 1 s). Arrays in
memory-mapped files are read in chunks, so that a log of any length needs little memory.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from pathlib import Path
from typing import IO, Any, ParamSpec, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from jointbench.files import regular_file

Array = NDArray[np.float64]
Vector3 = tuple[float, float, float]
Matrix3 = tuple[Vector3, Vector3, Vector3]

IDENTITY: Matrix3 = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
"""Rotation by zero."""

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def lazy_njit(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Compile a function with `numba.njit(cache=True, nogil=True)` when it is first called.

    Args:
        function: takes arrays and scalars; everything that it calls must be supported by Numba's nopython mode.
    """

    @cache
    def machine_code() -> Callable[_Parameters, _Result]:
        from numba import njit

        return cast(Callable[_Parameters, _Result], njit(cache=True, nogil=True)(function))

    @wraps(function)
    def call(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        return machine_code()(*args, **kwargs)

    return call


CHUNK_ROWS = 1 << 16
"""Rows processed at a time where the number does not matter."""

_MAX_IN_MEMORY = 16 << 20
"""Bytes up to which an array stays in memory."""

_WRITE_BUFFER = 1 << 17
"""Bytes that are collected before they are written."""

_Item = TypeVar("_Item", bound=np.generic)

FileBytes: TypeAlias = bytes | mmap.mmap
"""Content of a file, read or mapped."""


def read_rows(values: NDArray[_Item], rows: slice | NDArray[np.intp]) -> NDArray[_Item]:
    """Return rows of an array; of a memory-mapped array a copy, after which its pages are released.

    Args:
        values: shape (n, ...).
        rows: slice or row indices.
    """
    if _mapping_of(values) is None:
        return values[rows]
    copy = np.array(values[rows])
    release_pages(values)
    return copy


def release_pages(values: NDArray[Any] | FileBytes | None) -> None:
    """Release the resident pages of a memory-mapped array or file; its content stays valid and is read again on access.

    Does nothing for an array or bytes in memory, and where the system has no madvise.
    """
    mapping = _mapping_of(values) if isinstance(values, np.ndarray) else values
    if isinstance(mapping, mmap.mmap) and hasattr(mapping, "madvise"):
        mapping.madvise(mmap.MADV_DONTNEED)


def map_file(path: Path) -> FileBytes:
    """Map a file read-only.

    Raises:
        OSError: the file cannot be read.
    """
    with regular_file(path).open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if path.stat().st_size else b""


def scratch_array(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Allocate an uninitialised array; one above 16 MiB lies in an unnamed file of the temporary folder (TMPDIR).

    The file is deleted with the array.

    Raises:
        OSError: the disk is full.
    """
    dtype = np.dtype(dtype)
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    if size <= _MAX_IN_MEMORY:
        return np.empty(shape, dtype)
    with _name_temporary_folder(), tempfile.TemporaryFile() as file:
        if hasattr(os, "posix_fallocate"):  # reports a full disk now, instead of by SIGBUS on a later write
            os.posix_fallocate(file.fileno(), 0, size)
        else:
            file.truncate(size)
        return np.frombuffer(mmap.mmap(file.fileno(), size), dtype).reshape(shape)


class AppendBuffer:
    """Growing one-dimensional array that spills to an unnamed temporary file."""

    def __init__(self, dtype: DTypeLike) -> None:
        """Create an empty buffer."""
        self._dtype = np.dtype(dtype)
        self._unwritten: list[bytes] = []
        self._unwritten_size = 0
        self._file: IO[bytes] | None = None

    def append(self, items: NDArray[Any]) -> None:
        """Append items.

        Raises:
            OSError: the disk is full.
        """
        self._unwritten.append(np.ascontiguousarray(items, self._dtype).tobytes())
        self._unwritten_size += len(self._unwritten[-1])
        if self._unwritten_size > _WRITE_BUFFER:
            self._write()

    def to_array(self) -> NDArray[Any]:
        """Return all items; nothing may be appended afterwards."""
        if self._file is None:
            return np.frombuffer(b"".join(self._unwritten), self._dtype)
        self._write()
        with _name_temporary_folder(), self._file as file:
            file.flush()
            return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), self._dtype)

    def _write(self) -> None:
        with _name_temporary_folder():
            if self._file is None:
                self._file = tempfile.TemporaryFile()
            self._file.writelines(self._unwritten)
        self._unwritten.clear()
        self._unwritten_size = 0


def chunks(n: int, length: int = CHUNK_ROWS) -> Iterator[slice]:
    """Iterate over consecutive slices of at most `length` rows that cover 0 to n."""
    for start in range(0, n, length):
        yield slice(start, min(start + length, n))


@contextmanager
def _name_temporary_folder() -> Iterator[None]:
    """Name the temporary folder in an OSError: the file is unnamed, and the folder is what a user can change."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, f"{tempfile.gettempdir()} (TMPDIR)") from error


def _mapping_of(values: NDArray[Any]) -> mmap.mmap | None:
    base: object = values
    while isinstance(base, np.ndarray):
        base = cast(object, base.base)
    if isinstance(base, memoryview):
        base = cast(object, base.obj)
    return base if isinstance(base, mmap.mmap) else None
