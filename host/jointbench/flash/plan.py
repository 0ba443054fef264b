"""From what a board holds and what it shall hold to the steps in between."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from jointbench.errors import FlashFailed
from jointbench.flash.board_files import BoardFiles
from jointbench.flash.image import FIRMWARE, MANIFEST, POINTER, Image, loader_files
from jointbench.flash.signing import KEY, NO_KEYS, SIGNATURES, Keys
from jointbench.flash.slots import Slot, Slots, files_in, pointer, read_json, read_slots
from jointbench.flash.steps import MakeFolder, Remove, Step, Write, replace

_BLOCK = 4096  # of flash: what a file or folder takes at least
_SPARE = 16 * _BLOCK  # for folders, slot.json, settings and what the file system needs for itself


@dataclass(frozen=True)
class FlashPlan:
    """What is to be done to one board.

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
        FlashFailed: the board's file system has no room, or it takes no image signed by these keys.
        OSError: the board's files cannot be read.
    """
    slots = _slots_by(files, keys)
    slot = slots.written
    notes = [f"slot {each.name}: {each.fault}" for each in slots.slots if each.image and not each.is_whole]
    steps: list[Step] = []
    contents = image.in_slot(slot.name, keys)
    there = slot.is_whole and slot.image == image.sha256
    if not there or any(files.read(path) != contents[path] for path in list(contents)[len(image.files) :]):
        steps += _empty(files, slot.name)
        steps += _fill(files, slot.name, contents)
        _check_room(files, slot.name, contents)
    if read_json(files, "config.json") != config:
        steps += replace("config.json", json.dumps(config, indent=1).encode() + b"\n")
    kept = slots.kept
    if keys.new:
        if kept:
            manifest = files.read(f"{kept.name}/{MANIFEST}") or b""
            steps += replace(f"{kept.name}/{SIGNATURES}", keys.signatures(manifest))
        steps += replace(KEY, keys.new.file)
    steps += replace(POINTER, pointer(kept.name if kept else None, slot.name))
    loader, words = _loader(files, config, image.board, firmware)
    return FlashPlan(slots, tuple(steps + loader), config, (*notes, *words))


def _slots_by(files: BoardFiles, keys: Keys) -> Slots:
    """The slots as the board's loader takes them."""
    has_key = KEY in files.names("")
    loader = files.read("main.py")
    if (has_key or keys.new) and loader is not None and POINTER.encode() in loader and KEY.encode() not in loader:
        raise FlashFailed(
            "its main.py is another release's and knows no signatures; docs/flash.md says how to replace it"
        )
    if not has_key:
        return read_slots(files)
    if keys.present is None:
        raise FlashFailed("it starts signed images only; give its key with --key FILE. Nothing was written")
    slots = read_slots(files, keys.present)
    if slots.kept is None and read_slots(files).kept is not None:
        faults = "; ".join(f"slot {slot.name}: {slot.fault}" for slot in slots.slots)
        raise FlashFailed(f"--key is not the key of this board ({faults}). Nothing was written")
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
        raise FlashFailed(
            f"its file system is full: the image needs {needed} bytes, {free} are free with slot {slot} emptied; "
            "remove what does not belong to the firmware"
        )


def _blocks(size: int) -> int:
    return max(1, -(-size // _BLOCK)) * _BLOCK


def _loader(files: BoardFiles, config: Mapping[str, Any], kind: str, firmware: Path) -> tuple[list[Step], list[str]]:
    """Steps that give a board boot.py and main.py when it has none of ours; else a word on how they differ."""
    wanted = loader_files(config, kind, firmware)
    present = files.read("main.py")
    if present is None or POINTER.encode() not in present:
        return [step for path, content in wanted.items() for step in replace(path, content)], []
    found = {path: files.read(path) for path in wanted}
    differing = [path for path, content in wanted.items() if found[path] != content]
    if not differing:
        return [], []
    notes = [
        f"{' and '.join(differing)} differ from this release's and stay: nothing could save a board from a broken one. "
        "docs/flash.md says how to replace them"
    ]
    statements = _statements(wanted["boot.py"])
    if not (found["boot.py"] or b"").startswith(statements):
        notes.append(
            "boot.py does not begin with what switches off the motor of this configuration "
            f"({statements.decode().strip()}); with the motor's power off, replace it"
        )
    return [], notes


def _statements(boot: bytes) -> bytes:
    """What stands before the first comment of a boot.py."""
    return boot.partition(b"#")[0]
