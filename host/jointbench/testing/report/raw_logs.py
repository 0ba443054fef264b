"""The raw logs of a test: kept with everything the bench wrote where it failed, removed where it passed."""

from __future__ import annotations

import contextlib
import re
import shutil
import zlib
from pathlib import Path

TESTS = "tests"
BENCH = "bench"
"""Folders of the tests in that of the run, and of the bench's logs in that of a test."""
_LOGS = ("*.log", "bench.toml", "boards/*/*.log")
_LONGEST_NAME = 120  # a file system's names end at 255 bytes
_LONGEST_LOG = 4 * 2**20  # [bytes], of which the end is kept


def folder_of(out: Path, test: str) -> Path:
    """Return the folder of a test: a name that any file system takes, another one for each test."""
    name = re.sub(r"[^\w.-]+", "_", test.rpartition("/")[2]).strip("_")
    if len(name) > _LONGEST_NAME or name != test:
        name = f"{name[:_LONGEST_NAME]}-{zlib.crc32(test.encode()):08x}"
    return out / TESTS / name


def keep(bench: Path, out: Path, test: str) -> Path | None:
    """Copy what an emulated bench has logged so far, in its folder `bench`, beside what the test wrote.

    Returns:
        The folder of the test, or None where there is nothing to keep.
    """
    folder = folder_of(out, test)
    for log in sorted({path for pattern in _LOGS for path in bench.glob(pattern)}):
        copy = folder / BENCH / log.relative_to(bench)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(_end_of(log))
    return folder if folder.is_dir() and any(folder.iterdir()) else None


def prune(out: Path, test: str) -> None:
    """Remove the folder of a test that passed, and that of all tests' when it was the last in it."""
    shutil.rmtree(folder_of(out, test), ignore_errors=True)
    with contextlib.suppress(OSError):  # others' are still in it, or it was never made
        (out / TESTS).rmdir()


def _end_of(log: Path) -> bytes:
    with log.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _LONGEST_LOG))
        return file.read()
