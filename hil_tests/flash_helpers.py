"""What the tests of flashing share: boards' files, changed firmware, and a boot of whatever lies in a folder."""

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from hil_tests.virtual_bench.emulated_board import CHECKOUT, find_interpreter
from hil_tests.virtual_bench.mailbox import read_flash
from jointbench.bench import BenchFile, BoardEntry, Connections, read_bench_file
from jointbench.bench.flash import Image, build_image, write_factory
from jointbench.bench.flash.board_files import BoardFiles, FolderFiles, ReplFiles

CONFIG = {"node": 1, "uid": "0123456789abcdef", "facts": {}}
BANNER = re.compile(r"^jointbench: slot ([ab]) runs( on trial)?: image ([0-9a-f]{64}), firmware \S+$", re.MULTILINE)


def changed_firmware(folder: Path, *lines: str) -> Path:
    """The firmware with lines added at the start of app.py, after its docstring: another image."""
    shutil.copytree(CHECKOUT / "firmware", folder, ignore=shutil.ignore_patterns("__pycache__"))
    app = folder / "jointboard" / "app.py"
    head, quotes, rest = app.read_text(encoding="utf-8").rpartition('"""\n\nimport gc')
    assert quotes
    added = "".join(f"{line}\n" for line in lines)
    app.write_text(f'{head}"""\n{added}\nimport gc{rest}', encoding="utf-8")
    return folder


def fresh_board(folder: Path, image: Image | None = None) -> FolderFiles:
    """A board's folder with the loader and an image in slot a, confirmed."""
    write_factory(folder, image or build_image("unix"), CONFIG)
    return FolderFiles(folder)


class PowerCut(Exception):
    """Ends a flash: what comes afterwards did not happen."""


class FailingFiles(FolderFiles):
    """A board's folder where the n-th change fails, none for 0.

    `how`: "before" it, "after" it, or within it: "half" of a write is there, or none of it ("empty"), and of a rename
    only that the old file is gone ("half": FAT).
    """

    def __init__(self, folder: Path, change: int, how: str, error: Callable[[], Exception] = PowerCut) -> None:
        """Use this folder; `error` makes what is raised."""
        super().__init__(folder)
        self._left, self._how, self._error = change, how, error
        self.changes: list[str] = []

    def write(self, path: str, content: bytes) -> None:
        """See BoardFiles."""
        part = {"half": content[: len(content) // 2], "empty": b""}.get(self._how)
        within = None if part is None else lambda: super(FailingFiles, self).write(path, part)
        self._change(f"write {path}", lambda: super(FailingFiles, self).write(path, content), within)

    def rename(self, old: str, new: str) -> None:
        """See BoardFiles."""
        deletes = self._how == "half" and super().sha256(new) is not None
        within = (lambda: super(FailingFiles, self).remove(new)) if deletes else None
        self._change(f"rename {old} {new}", lambda: super(FailingFiles, self).rename(old, new), within)

    def remove(self, path: str) -> None:
        """See BoardFiles."""
        self._change(f"remove {path}", lambda: super(FailingFiles, self).remove(path))

    def make_folder(self, path: str) -> None:
        """See BoardFiles."""
        self._change(f"make {path}", lambda: super(FailingFiles, self).make_folder(path))

    def _change(self, name: str, act: Callable[[], None], within: Callable[[], None] | None = None) -> None:
        self.changes.append(name)
        self._left -= 1
        if self._left == 0 and self._how != "after":
            if within:
                within()
            raise self._error()
        act()
        if self._left == 0:
            raise self._error()


@contextlib.contextmanager
def connected(file: BenchFile) -> Iterator[Connections]:
    """All lines of a bench."""
    with contextlib.closing(Connections(file)) as connections:
        yield connections


@contextlib.contextmanager
def files_at_rest(live: Path, joint: str) -> Iterator[BoardFiles]:
    """The files of a board whose program is ended, if it can be; afterwards its power is taken and given back."""
    file = read_bench_file(live)
    entry = _entry(file, joint)
    if entry.flash:
        yield FolderFiles(entry.flash)
    else:
        with connected(file) as connections:
            connections.boards[joint].greet()
            connections.boards[joint].leave_for_repl()
        with ReplFiles(entry.url, entry.baud) as files:
            yield files
    with connected(file) as connections:
        connections.restart(entry.node)


def flash_of(live: Path, joint: str) -> dict[str, bytes]:
    """All files of a board by path, without asking it."""
    folder = _entry(read_bench_file(live), joint).flash
    if folder:
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return read_flash(live.parent / "boards" / joint / "psram.bin")


def _entry(file: BenchFile, joint: str) -> BoardEntry:
    return next(entry for entry in file.boards if entry.joint == joint)


@dataclass(frozen=True)
class Boot:
    """What a board said when it started.

    Attributes:
        slot, image: that it says it runs, empty for none.
        on_trial: whether it says that this is its trial.
        status: exit status; 0 also for a board that ends at its prompt.
        console: all it said.
    """

    slot: str
    image: str
    on_trial: bool
    status: int
    console: str


def boot(folder: Path) -> Boot:
    """Start a real MicroPython on a board's folder; it runs until it would wait for the first tick of a bench."""
    command = ["/bin/sh", "-c", 'exec "$@" 3</dev/null 4>/dev/null', "sh", find_interpreter(), "-X", "heapsize=192k"]
    done = subprocess.run(
        [*command, "-c", "import boot, main"], cwd=folder, capture_output=True, text=True, timeout=60, check=False,
        stdin=subprocess.DEVNULL, env=dict(os.environ),
    )  # fmt: skip
    console = done.stdout + done.stderr
    said = BANNER.findall(console)
    slot, trial, image = said[-1] if said else ("", "", "")
    return Boot(slot, image, bool(trial), done.returncode, console)
