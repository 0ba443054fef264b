"""What a program does to the files below a folder, in order, and what a disk may have of it after a power cut.

A disk has for certain what it was asked to keep: of a file its content when that was last synced, of a folder its
names. Of what came after, it has any part, in any order: some blocks of a file's later content, which may have any
length up to that, and some of the changes of names, each whole.
"""

from __future__ import annotations

import os
import random
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

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
