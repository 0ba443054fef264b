"""The plan to flash a board: steps on its files as data, to be printed, counted and carried out, and their result."""

from __future__ import annotations

import errno
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from jointbench.bench.flash.board_files import BoardFiles
from jointbench.bench.flash.image import (
    FIRMWARE,
    KEY,
    MANIFEST,
    NO_KEYS,
    POINTER,
    SIGNATURES,
    Image,
    Keys,
    loader_files,
)
from jointbench.bench.flash.slots import Slot, Slots, files_in, pointer, read_json, read_slots
from jointbench.errors import FlashError

StepDone = Callable[[int, int, str], None]
"""Called before each step with its number, how many there are, and what it does."""
_BLOCK = 4096  # of flash: what a file or folder takes at least
_SPARE = 16 * _BLOCK  # for folders, slot.json, settings and what the file system needs for itself


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
            FlashError: the board holds something else.
        """
        files.write(self.path, self.content)
        digest, written = files.sha256(self.path), hashlib.sha256(self.content).hexdigest()
        if digest != written:
            holds = "no such file" if digest is None else f"one that hashes to {digest[:16]}"
            raise FlashError(
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
        FlashError: the board cannot be written, or holds something else than was written.
    """
    for number, step in enumerate(steps, start=1):
        if progress:
            progress(number, len(steps), str(step))
        try:
            step.carry_out(files)
        except OSError as error:
            full = error.errno == errno.ENOSPC
            reason = "its file system is full; remove what does not belong to the firmware" if full else str(error)
            raise FlashError(f"step {number} of {len(steps)}, {step}: {reason}") from error


def replace(path: str, content: bytes) -> list[Step]:
    """Steps that put a file in place of another, so that at every moment there is a whole one."""
    new = f"{path.rpartition('.')[0]}.new"
    return [Write(new, content), Rename(new, path)]


Outcome = Literal["updated", "already", "planned", "reverted", "silent"]

_MEANING: dict[Outcome, str] = {
    "updated": "runs the new image, confirmed",
    "already": "runs this image already",
    "planned": "would be written; nothing was",
    "reverted": "runs the image it ran before: the new one failed its trial",
    "silent": "does not answer; take its power and give it back, and it starts the image it ran before",
}


@dataclass(frozen=True)
class FlashReport:
    """One board's part of `jointbench flash`.

    Attributes:
        joint, node: which board; of one with two motors both joints, and the first one's node.
        board: its kind.
        uid: of its microcontroller.
        outcome: see `text`.
        slot: that was or would be written, empty for none.
        before, image: SHA-256 of what ran before (empty where nobody answered) and of what was to run.
        firmware: version of the image.
        files, size: of the image, and bytes of them all.
        interpreter: that answered at the prompt, empty for an emulated board whose flash is a folder.
        backup: where its own files were copied to, None for nowhere.
        steps: what was or would be done to its files.
        notes: what the user should know.
    """

    joint: str
    node: int
    board: str
    uid: str
    outcome: Outcome
    slot: str
    before: str
    image: str
    firmware: str
    files: int
    size: int
    interpreter: str
    backup: Path | None
    steps: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """True if the board runs the requested image, or none was requested."""
        return self.outcome in ("updated", "already", "planned")

    @property
    def text(self) -> str:
        """The outcome in a line."""
        where = f", slot {self.slot}" if self.slot else ""
        return (
            f"{self.joint} (node {self.node}, {self.board}{where}): {_MEANING[self.outcome]}; "
            f"firmware {self.firmware}, image {self.image[:16]}, {self.files} files, {self.size} bytes"
        )

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values."""
        return {**asdict(self), "backup": str(self.backup) if self.backup else None, "ok": self.ok}


@dataclass(frozen=True)
class FlashPlan:
    """Steps to flash one board.

    Attributes:
        slots: as they were found.
        steps: to carry out, in this order; the last but the loader's makes the trial due.
        config: what config.json will hold.
        notes: what the user should know.
    """

    slots: Slots
    steps: Sequence[Step]
    config: Mapping[str, Any]
    notes: tuple[str, ...]

    @property
    def slot(self) -> Slot:
        """The slot that the image goes to."""
        return self.slots.written


def plan_flash(
    files: BoardFiles, image: Image, config: Mapping[str, Any], firmware: Path = FIRMWARE, keys: Keys = NO_KEYS
) -> FlashPlan:
    """Plan the steps; nothing is written.

    First the slot that is not kept is emptied, its manifest before all: from then on it counts as broken. Then it is
    filled, the manifest last: from then on it counts as whole. One rename makes its trial due. The slot that is kept
    stays as it is throughout; where the board's key changes, it is signed by the new one too before that is there.

    Args:
        files: of the board.
        image: for the board.
        config: what config.json shall hold.
        firmware: where the loader comes from.
        keys: what the image is signed with, and the key that the board shall have.

    Raises:
        FlashError: the board's file system has no room, or it takes no image signed by these keys.
        OSError: the board's files cannot be read.
    """
    slots = _slots_by(files, keys)
    slot = slots.written
    notes = [f"slot {each.name}: {each.fault}" for each in slots.slots if each.image and not each.is_whole]
    steps: list[Step] = []
    contents = image.in_slot(slot.name, keys)
    is_there = slot.is_whole and slot.image == image.sha256
    if not is_there or any(files.read(path) != contents[path] for path in list(contents)[len(image.files) :]):
        steps += _empty(files, slot.name)
        steps += _fill(files, slot.name, contents)
        _check_room(files, slot.name, contents)
    if read_json(files, "config.json") != config:
        steps += replace("config.json", json.dumps(config, indent=1).encode() + b"\n")
    kept_slot = slots.kept
    if keys.new:
        if kept_slot:
            manifest = files.read(f"{kept_slot.name}/{MANIFEST}") or b""
            steps += replace(f"{kept_slot.name}/{SIGNATURES}", keys.signatures(manifest))
        steps += replace(KEY, keys.new.file)
    steps += replace(POINTER, pointer(kept_slot.name if kept_slot else None, slot.name))
    loader, words = _loader(files, config, image.board, firmware)
    return FlashPlan(slots, tuple(steps + loader), config, (*notes, *words))


def _slots_by(files: BoardFiles, keys: Keys) -> Slots:
    """The slots as the board's loader takes them."""
    has_key = KEY in files.names("")
    loader = files.read("main.py")
    if (has_key or keys.new) and loader is not None and POINTER.encode() in loader and KEY.encode() not in loader:
        raise FlashError(
            "its main.py is another release's and knows no signatures; docs/flash.md says how to replace it"
        )
    if not has_key:
        return read_slots(files)
    if keys.present is None:
        raise FlashError("it starts signed images only; give its key with --key FILE. Nothing was written")
    slots = read_slots(files, keys.present)
    if slots.kept is None and read_slots(files).kept is not None:
        faults = "; ".join(f"slot {slot.name}: {slot.fault}" for slot in slots.slots)
        raise FlashError(f"--key is not the key of this board ({faults}). Nothing was written")
    return slots


def _empty(files: BoardFiles, slot: str) -> list[Step]:
    """Remove what lies in a slot, its manifest first."""
    paths = sorted(files_in(files, slot), key=lambda path: path != f"{slot}/manifest.json")
    return [Remove(path) for path in paths]


def _fill(files: BoardFiles, slot: str, contents: Mapping[str, bytes]) -> list[Step]:
    folders = sorted({str(parent) for path in contents for parent in PurePosixPath(path).parents} - {"."})
    there = {slot} if f"{slot}/" in files.names("") else set[str]()
    made: list[Step] = [MakeFolder(folder) for folder in folders if folder not in there]
    return made + [Write(path, content) for path, content in contents.items()]


def _check_room(files: BoardFiles, slot: str, contents: Mapping[str, bytes]) -> None:
    """Refuse before anything is written what would not fit: whatever lies in the slot now will be gone."""
    needed = _SPARE + sum(_blocks(len(content)) for content in contents.values())
    freed = sum(_blocks(0 if path.endswith("/") else len(files.read(path) or b"")) for path in files_in(files, slot))
    free = files.free() + freed
    if needed > free:
        raise FlashError(
            f"its file system is full: the image needs {needed} bytes, {free} are free with slot {slot} emptied; "
            "remove what does not belong to the firmware"
        )


def _blocks(size: int) -> int:
    return max(1, -(-size // _BLOCK)) * _BLOCK


def _loader(files: BoardFiles, config: Mapping[str, Any], kind: str, firmware: Path) -> tuple[list[Step], list[str]]:
    """Steps that give a board boot.py and main.py when it has none of ours; else a word on how they differ."""
    requested = loader_files(config, kind, firmware)
    present = files.read("main.py")
    if present is None or POINTER.encode() not in present:
        return [step for path, content in requested.items() for step in replace(path, content)], []
    held = {path: files.read(path) for path in requested}
    differing = [path for path, content in requested.items() if held[path] != content]
    if not differing:
        return [], []
    notes = [
        f"{' and '.join(differing)} differ from this release's and stay: nothing could save a board from a broken one. "
        "docs/flash.md says how to replace them"
    ]
    statements = _statements(requested["boot.py"])
    if not (held["boot.py"] or b"").startswith(statements):
        notes.append(
            "boot.py does not begin with what switches off the motor of this configuration "
            f"({statements.decode().strip()}); with the motor's power off, replace it"
        )
    return [], notes


def _statements(boot: bytes) -> bytes:
    """Statements before the first comment of a boot.py."""
    return boot.partition(b"#")[0]
