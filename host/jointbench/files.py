"""Files that a user keeps: written beside their place, put there when they are whole and on the disk."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

from jointbench.errors import FileNotWritten


def write_file(path: str | Path, content: str | bytes) -> Path:
    """Write a file whole or not at all; what was there before stays until then.

    Args:
        path: of the file; text goes into it as UTF-8.
        content: all of it.

    Returns:
        The path.

    Raises:
        FileNotWritten: the disk is full or gone, or the place may not be written.
    """
    with replacing(path) as beside:
        beside.write_bytes(content.encode() if isinstance(content, str) else content)
    return Path(path)


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Give a place beside a file to write to; what is there at the end takes the file's place, if no error came.

    The new content is on the disk before it has the file's name, and the name before this returns. What is no regular
    file, such as /dev/stdout, is written to as it is; of a link, where it leads.

    Args:
        path: of the file, whose folder is there.

    Yields:
        The path to write to, of the same suffix.

    Raises:
        FileNotWritten: the disk is full or gone, or the place may not be written; the file is as it was.
    """
    place = Path(os.path.realpath(path))
    if place.exists() and not place.is_file():
        with _named(path):
            yield place
        return
    beside = place.with_name(f".{os.getpid()}.{place.name}")
    try:
        with _named(path):
            yield beside
            with suppress(FileNotFoundError):
                beside.chmod(place.stat().st_mode & 0o777)
            sync(beside)
            beside.replace(place)
            sync(place.parent)
    finally:
        with suppress(OSError):
            beside.unlink()


def keep_earlier(path: str | Path) -> Path | None:
    """Move a file that is there to the next free name beside it, "model-1.json" for "model.json".

    Args:
        path: of what is about to be written.

    Returns:
        Where the earlier one is now, None where there was none.

    Raises:
        FileNotWritten: it cannot be moved.
    """
    path = Path(path)
    if not path.is_file():
        return None
    kept = next(place for n in count(1) if not (place := path.with_name(f"{path.stem}-{n}{path.suffix}")).exists())
    with _named(kept):
        path.rename(kept)
        sync(path.parent)  # before there is a new one: after a power cut there may be nothing else of the earlier one
    return kept


def sync(path: Path) -> None:
    """Have a file's content, or a folder's list of names, on the disk.

    Raises:
        OSError: the disk does not take it.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _named(path: str | Path) -> Iterator[None]:
    try:
        yield
    except FileNotWritten:
        raise
    except OSError as error:
        kept = "; what it held is still there" if Path(path).is_file() else ""
        raise FileNotWritten(
            f"{path} cannot be written: {error.strerror or error}{kept}; free some space, or name another place"
        ) from error
