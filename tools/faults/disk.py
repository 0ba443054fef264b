"""Disks that fill or lose power while a command writes what its user keeps: one sentence, and the earlier file whole.

A disk has for certain what it was asked to keep: of a file its content when that was last synced, of a folder its
names. Of what came after, it has any part, in any order: some blocks of a file's later content, which may have any
length up to that, and some of the changes of names, each whole.
"""

from __future__ import annotations

import os
import random
import re
import resource
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from jointbench.cli.console import table
from tools.faults.cell import UnknownCell
from tools.faults.commands import COMMANDS, Store, forked_bench, in_child, one_board, typed

BLOCK = 512  # bytes, the least that disks write; many write 4096


@dataclass(frozen=True)
class Event:
    """One thing that was done.

    Attributes:
        kind: "keep" a file's content or a folder's names, "rename", "remove", "make" a folder, "write" what was left.
        place, other: paths from the folder that is watched; of a rename the old one and the new one.
        content: of a file that is kept or was left.
        note: what was known when it was done.
    """

    kind: str
    place: str
    other: str = ""
    content: bytes | None = None
    note: Any = None


@dataclass(eq=False)
class _File:
    """When it had what content, and whether the disk was asked to keep it then."""

    contents: list[tuple[int, bytes, bool]] = field(default_factory=list[tuple[int, bytes, bool]])

    def after_cut(self, at: int, rng: random.Random) -> bytes:
        """Content that a disk may have of it."""
        kept = next((content for when, content, is_kept in reversed(self.contents) if is_kept and when < at), None)
        later = next((content for when, content, _ in self.contents if when >= at), kept)
        if later is None or later == kept:
            return kept or b""
        same = len(kept) if kept and later.startswith(kept) else 0  # what is appended to stays
        found = bytearray((kept or b"")[:same] + bytes(len(later) - same))
        for start in range(same - same % BLOCK, len(later), BLOCK):
            if rng.random() < 0.5:
                here = slice(max(start, same), start + BLOCK)
                found[here] = later[here]
        return bytes(found[: rng.choice([same, rng.randint(same, len(later)), len(later)])])


@dataclass(eq=False)
class _Folder:
    """When which of its names changed (None takes one away), and when the disk was asked to keep them."""

    names: dict[str, _File | _Folder] = field(default_factory=dict[str, "_File | _Folder"])
    changes: list[tuple[int, dict[str, _File | _Folder | None]]] = field(
        default_factory=list[tuple[int, dict[str, "_File | _Folder | None"]]]
    )
    kept: list[int] = field(default_factory=lambda: [-1])

    def change(self, when: int, **change: _File | _Folder | None) -> None:
        """Change some names at once."""
        self.changes.append((when, change))
        _apply(self.names, change)

    def after_cut(self, at: int, rng: random.Random) -> dict[str, _File | _Folder]:
        """Names that a disk may have of it."""
        names: dict[str, _File | _Folder] = {}
        kept = max(when for when in self.kept if when < at)
        for when, change in self.changes:
            if when <= kept or (when <= at and rng.random() < 0.5):
                _apply(names, change)
        return names


def _apply(names: dict[str, _File | _Folder], change: dict[str, _File | _Folder | None]) -> None:
    for name, node in change.items():
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


class WriteLog:
    """What was done below a folder.

    Attributes:
        root: the folder.
        before: content of its files before, by path.
        events: what was done.
    """

    def __init__(self, root: Path) -> None:
        """Take note of what is there: all of it is on the disk."""
        self.root = root
        self.before = contents(root)
        self.events: list[Event] = []

    @contextmanager
    def noting(self, note: Callable[[], Any] = lambda: None) -> Iterator[None]:
        """Note what is done by this process in the context; `note` says what is to be known of each moment."""

        def add(kind: str, place: str | Path, other: str | Path = "", content: bytes | None = None) -> None:
            here, there = self._within(place), self._within(other) if other else ""
            if here is not None and there is not None:
                self.events.append(Event(kind, here, there, content, note()))

        fsync, rename, replace, unlink, mkdir = os.fsync, os.rename, os.replace, os.unlink, os.mkdir

        def noted_fsync(descriptor: int) -> None:
            path = os.readlink(f"/proc/self/fd/{descriptor}")
            is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
            add("keep", path, content=None if is_folder else Path(path).read_bytes())
            fsync(descriptor)

        def noted_rename(old: Any, new: Any, **how: Any) -> None:
            rename(old, new, **how)
            add("rename", old, new)

        def noted_replace(old: Any, new: Any, **how: Any) -> None:
            replace(old, new, **how)
            add("rename", old, new)

        def noted_unlink(path: Any, **how: Any) -> None:
            unlink(path, **how)
            add("remove", path)

        def noted_mkdir(path: Any, *mode: Any, **how: Any) -> None:
            mkdir(path, *mode, **how)
            add("make", path)

        with patch.multiple(
            os, fsync=noted_fsync, rename=noted_rename, replace=noted_replace, unlink=noted_unlink, mkdir=noted_mkdir
        ):
            yield
        for place, content in contents(self.root).items():
            self.events.append(Event("write", place, content=content, note=note()))

    def cut(self, at: int, rng: random.Random, place: Path) -> None:
        """Make what a disk may have after a power cut just before an event is over.

        Args:
            at: the event's index.
            rng: chooses among what may be.
            place: folder to create.
        """
        _make(self._replayed(), at, rng, place)

    def _replayed(self) -> _Folder:
        root = _Folder()
        for path, content in self.before.items():
            _file(root, -1, path).contents.append((-1, content, True))
        for when, event in enumerate(self.events):
            folder, name = _parent(root, when, event.place)
            match event.kind:
                case "keep" if event.content is None:
                    node = folder.names[name] if name else root
                    assert isinstance(node, _Folder)
                    node.kept.append(when)
                case "rename":
                    other, new = _parent(root, when, event.other)
                    # Within a folder it is one change, and both names never point to nothing.
                    node = folder.names[name] if name in folder.names else _file(root, when, event.place)
                    if other is folder:
                        folder.change(when, **{new: node, name: None})
                    else:
                        other.change(when, **{new: node})
                        folder.change(when, **{name: None})
                case "remove":
                    folder.change(when, **{name: None})
                case "make":
                    folder.change(when, **{name: _Folder()})
                case _:
                    assert event.content is not None
                    _file(root, when, event.place).contents.append((when, event.content, event.kind == "keep"))
        return root

    def _within(self, path: str | Path) -> str | None:
        absolute = Path(os.path.abspath(path))
        return absolute.relative_to(self.root).as_posix() if absolute.is_relative_to(self.root) else None


def contents(root: Path) -> dict[str, bytes]:
    """Content of all files below a folder, by path."""
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def _parent(root: _Folder, when: int, path: str) -> tuple[_Folder, str]:
    """Folder and name of a path; folders on the way that nobody was seen to make are made."""
    *folders, name = path.split("/")
    here = root
    for each in folders:
        if each not in here.names:
            here.change(when, **{each: _Folder()})
        below = here.names[each]
        assert isinstance(below, _Folder)
        here = below
    return here, "" if name == "." else name


def _file(root: _Folder, when: int, path: str) -> _File:
    folder, name = _parent(root, when, path)
    node = folder.names.get(name)
    if not isinstance(node, _File):
        node = _File()
        folder.change(when, **{name: node})
    return node


def _make(folder: _Folder, at: int, rng: random.Random, place: Path) -> None:
    place.mkdir(parents=True)
    for name, node in folder.after_cut(at, rng).items():
        if isinstance(node, _File):
            (place / name).write_bytes(node.after_cut(at, rng))
        else:
            _make(node, at, rng, place / name)


TROUBLES = {
    "full": r"No space left on device|File too large",
    "read_only": r"Read-only file system|Permission denied|may not be written",
    "gone": r"No such file or directory|there is no folder",
}
SIZE = 4 << 20  # bytes, of the disk
PAGE = 4096
EARLIER = b"what was there before\n" * 40


@dataclass(frozen=True)
class DiskVerdict:
    """What came of a command on a disk with a trouble.

    Attributes:
        trouble, command: by name.
        real: whether it was a file system of its own, and not only this process's limits.
        problem: what is not as it must be; empty where all is well.
        words: that its user read.
    """

    trouble: str
    command: str
    real: bool
    problem: str
    words: str

    @property
    def id(self) -> str:
        """As it is asked for."""
        return f"disk.{self.trouble}@{self.command}"

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {"id": self.id, "ok": not self.problem, **asdict(self)}


def disk_cells(names: Sequence[str] = ()) -> list[str]:
    """Every trouble with every command, as "disk.full@model", or those of some names.

    Raises:
        UnknownCell: there is none of a name; says how they are named.
    """
    cells = [f"disk.{trouble}@{command}" for trouble in TROUBLES for command in COMMANDS]
    if unknown := [name for name in names if name not in cells]:
        raise UnknownCell(
            f"there is no cell {unknown[0]!r}; a cell of the disk is disk.TROUBLE@COMMAND, with {', '.join(TROUBLES)}, "
            f"and {', '.join(COMMANDS)}"
        )
    return [cell for cell in cells if not names or cell in names]


def disk_table(verdicts: Sequence[DiskVerdict]) -> str:
    """A line for each trouble: a dot for each command that is well."""
    marks = {(verdict.trouble, verdict.command): "NO" if verdict.problem else "·" for verdict in verdicts}
    rows = [[f"disk.{trouble}", *(marks.get((trouble, name), "") for name in COMMANDS)] for trouble in TROUBLES]
    return table(("trouble", *COMMANDS), [row for row in rows if any(row[1:])])


def run_disk_cell(cell: str, store: Store, out: Path) -> DiskVerdict:
    """Let a command meet a disk with a trouble, and then one without, in a folder that is kept where it fails."""
    trouble, name = cell.removeprefix("disk.").split("@")
    folder, command = out / cell, COMMANDS[name]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with ExitStack() as opened:
        live = opened.enter_context(forked_bench(one_board(), 0, folder / "bench")) if command.on_bench else folder
        disk = opened.enter_context(_disk(folder / "disk"))
        act = partial(typed, command.words(store, disk.place, live))
        for file in command.files:
            if Path(file).suffix and name != "result":  # folders are made, and --json goes to a new file
                (disk.place / file).write_bytes(EARLIER)
        before, problem = contents(disk.place), ""
        # For the beginning of the only file, where that is longer.
        room = PAGE if len(command.files) == 1 and name != "result" else 0
        code = in_child(partial(disk.met, trouble, room, act), folder / "words.log")
        words = (folder / "words.log").read_text(encoding="utf-8", errors="replace")
        if trouble != "gone" or code:  # those that make folders have made this one anew, and written there
            disk.heal()
            problem = _wrong(trouble, code, words) or _changed(before, contents(disk.place), trouble)
            if not problem and in_child(act, folder / "again.log"):
                problem = "does not write when there is room again"
        if not problem and (missing := [file for file in command.files if not (disk.place / file).exists()]):
            problem = f"{missing[0]} was not written"
        last = (words.strip().splitlines() or [""])[-1]
        verdict = DiskVerdict(trouble, name, disk.real, problem, last)
    if not problem:
        shutil.rmtree(folder)
    return verdict


def _wrong(trouble: str, code: int, words: str) -> str:
    if "Traceback" in words or code not in (1, 2):
        return f"ends with exit code {code}: {words.strip()[-300:]!r}"
    last = words.strip().splitlines()[-1]
    return "" if re.search(TROUBLES[trouble], last) else f"does not say what is wrong with the disk: {last!r}"


def _changed(before: dict[str, bytes], after: dict[str, bytes], trouble: str) -> str:
    """What is not as it was before, where the disk is not gone with all that it had."""
    if trouble == "gone":
        return f"left {sorted(after)[0]}" if after else ""
    changed = [name for name in before if after.get(name) != before[name]]
    left = sorted(set(after) - set(before))
    return f"{changed[0]} is not as it was" if changed else f"left {left[0]}" if left else ""


class _Disk:
    """A small file system at a place, or where none can be made a folder."""

    def __init__(self, place: Path) -> None:
        self.place = place
        place.mkdir(parents=True)
        self.real = _mount("-t", "tmpfs", "-o", f"size={SIZE}", "jointbench-faults", str(place))

    def met(self, trouble: str, room: int, act: Callable[[], int]) -> int:
        """Do something while there is a trouble, in this process, which ends then; a full disk has so much room yet."""
        match trouble:
            case "full" if self.real:
                with (self.place / ".filler").open("wb", buffering=0) as filler:
                    with suppress(OSError):
                        while True:
                            filler.write(bytes(PAGE))
                    filler.truncate(filler.tell() - room)
            case "full":
                resource.setrlimit(resource.RLIMIT_FSIZE, (PAGE // 8, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
            case "read_only" if self.real:
                _mount("-o", "remount,ro", str(self.place))
            case "read_only":
                self.place.chmod(0o555)
            case _:
                self.close()
        return act()

    def heal(self) -> None:
        """Take the trouble away."""
        if not self.place.exists():
            self.place.mkdir()
            self.real = self.real and _mount("-t", "tmpfs", "-o", f"size={SIZE}", "jointbench-faults", str(self.place))
        if not (self.real and _mount("-o", "remount,rw", str(self.place))):
            self.place.chmod(0o755)
        (self.place / ".filler").unlink(missing_ok=True)

    def close(self) -> None:
        """Take the disk away."""
        if self.real:
            subprocess.run(["umount", "--lazy", str(self.place)], check=False, capture_output=True)
        shutil.rmtree(self.place, ignore_errors=True)


@contextmanager
def _disk(place: Path) -> Iterator[_Disk]:
    disk = _Disk(place)
    try:
        yield disk
    finally:
        disk.close()


def _mount(*words: str) -> bool:
    """Whether the system mounts; it lets only root."""
    if os.geteuid() or not shutil.which("mount"):
        return False
    return subprocess.run(["mount", *words], check=False, capture_output=True).returncode == 0
