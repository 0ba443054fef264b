"""The folder of a running bench, which one bench at a time may use."""

import fcntl
from pathlib import Path
from typing import IO

from hil_tests.virtual_bench.errors import BenchError


def claim_folder(folder: Path) -> IO[bytes]:
    """Make a folder and lock it.

    Returns:
        The lock: held until it is closed or the process ends, however it ends.

    Raises:
        BenchError: another bench uses the folder, or it cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / "lock").open("wb")
    except OSError as error:
        raise BenchError(f"folder {folder} cannot be written: {error.strerror}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.close()
        raise BenchError(f"folder {folder} is in use by another bench; end that one or choose another --out") from error
    return lock
