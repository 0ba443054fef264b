"""What flashing does to a board's files, one step after the other, as data: printed, counted, carried out."""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from jointbench.errors import FlashFailed
from jointbench.flash.board_files import BoardFiles

StepDone = Callable[[int, int, str], None]
"""Called before each step with its number, how many there are, and what it does."""


@dataclass(frozen=True)
class MakeFolder:
    """Make a folder."""

    path: str

    def __str__(self) -> str:
        return f"make folder {self.path}"

    def carry_out(self, files: BoardFiles) -> None:
        """Do it."""
        files.make_folder(self.path)


@dataclass(frozen=True)
class Remove:
    """Remove a file, or an empty folder."""

    path: str

    def __str__(self) -> str:
        return f"remove {self.path}"

    def carry_out(self, files: BoardFiles) -> None:
        """Do it."""
        files.remove(self.path)


@dataclass(frozen=True)
class Write:
    """Write a file, and have the board hash what lies in its flash."""

    path: str
    content: bytes = field(repr=False)

    def __str__(self) -> str:
        return f"write {self.path}, {len(self.content)} bytes, and hash it on the board"

    def carry_out(self, files: BoardFiles) -> None:
        """Do it.

        Raises:
            FlashFailed: the board holds something else.
        """
        files.write(self.path, self.content)
        found, written = files.sha256(self.path), hashlib.sha256(self.content).hexdigest()
        if found != written:
            holds = "no such file" if found is None else f"one that hashes to {found[:16]}"
            raise FlashFailed(
                f"{self.path} was written ({written[:16]}), but the board holds {holds}: its flash may be worn out or "
                "its line disturbed; try again"
            )


@dataclass(frozen=True)
class Rename:
    """Give a file the name of another, which is the one moment at which the other ends."""

    old: str
    new: str

    def __str__(self) -> str:
        return f"rename {self.old} to {self.new}"

    def carry_out(self, files: BoardFiles) -> None:
        """Do it."""
        files.rename(self.old, self.new)


Step = MakeFolder | Remove | Write | Rename


def carry_out(steps: Sequence[Step], files: BoardFiles, progress: StepDone | None = None) -> None:
    """Carry out steps in their order; the first that fails ends it.

    Raises:
        FlashFailed: the board cannot be written, or holds something else than was written.
    """
    for number, step in enumerate(steps, start=1):
        if progress:
            progress(number, len(steps), str(step))
        try:
            step.carry_out(files)
        except FlashFailed:
            raise
        except OSError as error:
            full = error.errno == errno.ENOSPC
            reason = "its file system is full; remove what does not belong to the firmware" if full else str(error)
            raise FlashFailed(f"step {number} of {len(steps)}, {step}: {reason}") from error


def replace(path: str, content: bytes) -> list[Step]:
    """Steps that put a file in place of another, so that at every moment there is a whole one."""
    new = f"{path.rpartition('.')[0]}.new"
    return [Write(new, content), Rename(new, path)]
