"""Archives of arrays: what was written comes back, lies in the file, and damage is seen."""

import errno
import mmap
import os
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

from jointbench.memory_mapping import AppendBuffer, chunks, read_rows, scratch_array
from jointbench.recording.samples import read_npz, write_npz

RNG = np.random.default_rng(0)
ARRAYS = {
    "values": RNG.standard_normal((1000, 6)),
    "flags": RNG.random((1000, 6)) < 0.5,
    "names": np.array(["j1", "gelenk_ö"]),
    "period": np.array(1e-3),
    "across": np.asfortranarray(RNG.standard_normal((30, 4))),
    "none": np.empty((0, 3)),
}


@pytest.mark.parametrize("write", [write_npz, lambda path, arrays: np.savez(path, **arrays),
                                   lambda path, arrays: np.savez_compressed(path, **arrays)])  # fmt: skip
def test_it_comes_back_and_numpy_reads_it_too(tmp_path: Path, write):
    path = tmp_path / "arrays.npz"
    write(path, ARRAYS)
    with np.load(path) as archive:
        for found in (read_npz(path), archive):
            assert sorted(found) == sorted(ARRAYS)
            for name, values in ARRAYS.items():
                np.testing.assert_array_equal(found[name], values)
                assert found[name].dtype == values.dtype


def test_arrays_lie_in_the_file_where_a_processor_likes_them(tmp_path: Path):
    path = tmp_path / "arrays.npz"
    write_npz(path, ARRAYS)
    found = read_npz(path)
    assert isinstance(base_of(found["values"]), mmap.mmap)
    assert not found["values"].flags.writeable
    assert all(found[name].ctypes.data % 64 == 0 for name in ("values", "flags"))
    again = tmp_path / "again.npz"
    write_npz(again, found)
    assert again.read_bytes() == path.read_bytes()


def base_of(values):
    while isinstance(values, np.ndarray):
        values = values.base
    return values.obj if isinstance(values, memoryview) else values


@pytest.mark.parametrize("at", [0.3, 0.5, 0.9])
def test_a_damaged_byte_is_seen(tmp_path: Path, at: float):
    path = tmp_path / "arrays.npz"
    write_npz(path, {"values": ARRAYS["values"]})
    data = bytearray(path.read_bytes())
    data[int(at * len(data))] ^= 1
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"values\.npy in it is damaged"):
        read_npz(path)


@pytest.mark.parametrize(("offset", "value"), [(8, 1), (10, 8), (10, 14), (10, 99)])
def test_a_damaged_word_on_how_it_is_packed_is_seen(tmp_path: Path, offset: int, value: int):
    """In the archive's own list: encrypted, deflated, LZMA, or a method that nobody knows; it is none of these."""
    path = tmp_path / "arrays.npz"
    write_npz(path, ARRAYS)
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\x01\x02") + offset] = value
    path.write_bytes(data)
    with pytest.raises((ValueError, OSError, EOFError, zipfile.BadZipFile), match=r"."):
        read_npz(path)


def test_objects_are_not_loaded(tmp_path: Path):
    path = tmp_path / "arrays.npz"
    np.savez(path, bad=np.array([{}], dtype=object))
    with pytest.raises(ValueError, match="Python objects"):
        read_npz(path)


@pytest.mark.parametrize("rows", [10, 500_000])  # in memory, and in a file
def test_scratch_arrays_hold_what_is_written_part_by_part(rows: int):
    values = scratch_array((rows, 6), np.float64)
    assert isinstance(base_of(values), mmap.mmap) == (rows > 10)
    for part in chunks(rows, 70_000):
        values[part] = np.arange(part.start, part.stop)[:, None]
        read_rows(values, slice(0, 1))  # its pages are given back
    total = sum(float(read_rows(values, part).sum()) for part in chunks(rows))
    assert total == 6 * rows * (rows - 1) / 2
    np.testing.assert_array_equal(read_rows(values, np.array([rows - 1, 0]))[:, 0], [rows - 1, 0])


def test_a_full_disk_is_named_with_the_folder_to_change(monkeypatch: pytest.MonkeyPatch):
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))  # as the system raises it of a file without a name

    def raises(*_: object) -> None:
        raise full

    monkeypatch.setattr(tempfile, "TemporaryFile", raises)
    with pytest.raises(OSError, match=r"No space left .*\(TMPDIR\)") as told:
        scratch_array((500_000, 6), np.float64)
    assert told.value.filename.startswith(tempfile.gettempdir())
    with pytest.raises(OSError, match=r"\(TMPDIR\)"):
        AppendBuffer(np.float64).append(np.zeros(500_000))


def test_a_header_that_names_more_than_there_is_memory_for_is_damage(tmp_path: Path):
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000000,), }"
    member = b"\x93NUMPY\x01\x00" + (len(header) + 1).to_bytes(2, "little") + header + b"\n" + b"\0" * 80
    for kind, words in ((zipfile.ZIP_DEFLATED, "more than there is memory for"), (zipfile.ZIP_STORED, "buffer")):
        with zipfile.ZipFile(tmp_path / "arrays.npz", "w", kind) as archive:
            archive.writestr("values.npy", member)
        with pytest.raises(ValueError, match=words):
            read_npz(tmp_path / "arrays.npz")
