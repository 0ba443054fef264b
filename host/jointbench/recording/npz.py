"""Archives of arrays (.npz) whose arrays are looked at in the file instead of being loaded."""

from __future__ import annotations

import lzma
import struct
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from jointbench.files import replacing
from jointbench.foreign import regular_file
from jointbench.memory_mapping import chunks, map_file, read_rows

_ALIGNED = 64
_LOCAL_HEADER = struct.Struct("<26xHH")  # of a file in a zip archive: the lengths of its name and of what is extra
_ZIP64 = 20  # bytes that zipfile itself adds to what is extra
_PADDING = struct.Struct("<HH")  # kind and length of an extra field; 0xD935 is the kind others align by
_PADDING_KIND = 0xD935


def write_npz(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays as `numpy.savez` would, uncompressed, each where a processor likes to read it.

    Arrays that lie in files themselves are copied piece by piece. The same arrays give the same bytes.

    Raises:
        FileNotWritten: it cannot be written; what was there is as it was.
    """
    with (
        replacing(path) as unfinished,
        unfinished.open("wb") as file,
        zipfile.ZipFile(file, "w") as archive,
    ):
        for name, values in arrays.items():
            info = zipfile.ZipInfo(f"{name}.npy")
            start = file.tell() + 30 + len(info.filename.encode()) + _ZIP64 + _PADDING.size
            padding = -start % _ALIGNED
            info.extra = _PADDING.pack(_PADDING_KIND, padding) + bytes(padding)
            with archive.open(info, "w", force_zip64=True) as member:
                _write_array(member, values)


def read_npz(path: Path) -> dict[str, NDArray[Any]]:
    """Arrays of an archive by name: those stored as `write_npz` does it lie in the file, compressed ones are loaded.

    Raises:
        OSError, ValueError, EOFError, zipfile.BadZipFile: it is damaged, or holds something else.
    """
    try:
        return _arrays_of(path)
    except (zlib.error, lzma.LZMAError, RuntimeError) as error:  # what stands for another compression, or a password
        raise ValueError(f"it is damaged ({error})") from error
    except MemoryError as error:  # a header may name any shape
        raise ValueError(f"it says to hold more than there is memory for ({error})") from error


def _arrays_of(path: Path) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {}
    with zipfile.ZipFile(regular_file(path)) as archive:
        if (damaged := archive.testzip()) is not None:
            raise ValueError(f"{damaged} in it is damaged")
        mapped = map_file(path)
        for info in archive.infolist():
            name = info.filename.removesuffix(".npy")
            with archive.open(info) as member:
                if info.compress_type != zipfile.ZIP_STORED:
                    arrays[name] = npy.read_array(member, allow_pickle=False)
                    continue
                shape, in_columns, kind = _read_header(member)
                lengths = _LOCAL_HEADER.unpack_from(mapped, info.header_offset)
                start = info.header_offset + _LOCAL_HEADER.size + sum(lengths) + member.tell()
            count = int(np.prod(shape, dtype=np.int64))
            flat = np.frombuffer(mapped, kind, count, start) if count else np.empty(0, kind)
            arrays[name] = flat.reshape(shape, order="F" if in_columns else "C")
    return arrays


def _write_array(member: IO[bytes], values: NDArray[Any]) -> None:
    header = {"descr": npy.dtype_to_descr(values.dtype), "fortran_order": False, "shape": values.shape}
    npy.write_array_header_1_0(member, header)
    if values.ndim == 0:
        member.write(values.tobytes())
        return
    for part in chunks(len(values)):
        member.write(np.ascontiguousarray(read_rows(values, part)).data)


def _read_header(member: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = npy.read_magic(member)
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, in_columns, kind = read(member)
    if kind.hasobject:
        raise ValueError("it holds Python objects, which are never loaded")
    return shape, in_columns, kind
