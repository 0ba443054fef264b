"""A board's file system as flashing needs it, and the one of a board whose flash is a folder."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path
from typing import Protocol


class BoardFiles(Protocol):
    """Files of a board whose program has ended; paths are from the root, without a leading slash.

    Every method raises OSError when the file system refuses.
    """

    def names(self, folder: str) -> list[str]:
        """Names in a folder ("" is the root), a folder's with a slash at the end; none where there is no folder."""
        ...

    def read(self, path: str) -> bytes | None:
        """Content of a file; None where there is none."""
        ...

    def sha256(self, path: str) -> str | None:
        """Hash of a file as it lies in the flash, hexadecimal; None where there is none."""
        ...

    def write(self, path: str, content: bytes) -> None:
        """Write a file, new or in place of another."""
        ...

    def rename(self, old: str, new: str) -> None:
        """Give a file another name, in place of the one that had it."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file, or an empty folder, whose path ends in a slash."""
        ...

    def make_folder(self, path: str) -> None:
        """Make a folder."""
        ...

    def free(self) -> int:
        """Bytes that can still be written."""
        ...


class FolderFiles:
    """The folder of an emulated board."""

    def __init__(self, folder: Path) -> None:
        """Use this folder."""
        self._folder = folder

    def names(self, folder: str) -> list[str]:
        """See BoardFiles."""
        path = self._folder / folder
        if not path.is_dir():
            return []
        return sorted(f"{each.name}/" if each.is_dir() else each.name for each in path.iterdir())

    def read(self, path: str) -> bytes | None:
        """See BoardFiles."""
        file = self._folder / path
        return file.read_bytes() if file.is_file() else None

    def sha256(self, path: str) -> str | None:
        """See BoardFiles."""
        content = self.read(path)
        return None if content is None else hashlib.sha256(content).hexdigest()

    def write(self, path: str, content: bytes) -> None:
        """See BoardFiles."""
        with (self._folder / path).open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())  # what is renamed afterwards must be there before its name is

    def rename(self, old: str, new: str) -> None:
        """See BoardFiles."""
        os.replace(self._folder / old, self._folder / new)

    def remove(self, path: str) -> None:
        """See BoardFiles."""
        target = self._folder / path
        if path.endswith("/"):
            target.rmdir()
        else:
            target.unlink()

    def make_folder(self, path: str) -> None:
        """See BoardFiles."""
        (self._folder / path).mkdir()

    def free(self) -> int:
        """See BoardFiles."""
        return shutil.disk_usage(self._folder).free
