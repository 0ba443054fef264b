"""From what a board holds and what it shall hold to the steps in between."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from jointbench.errors import FlashFailed
from jointbench.flash.board_files import BoardFiles
from jointbench.flash.image import FIRMWARE, POINTER, Image, loader_files
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


def plan_flash(files: BoardFiles, image: Image, config: Mapping[str, Any], firmware: Path = FIRMWARE) -> FlashPlan:
    """Plan the steps; nothing is written.

    First the slot that is not kept is emptied, its manifest before all: from then on it counts as broken. Then it is
    filled, the manifest last: from then on it counts as whole. One rename makes its trial due. The slot that is kept
    stays as it is throughout.

    Args:
        files: of the board.
        image: for the board.
        config: what config.json shall hold.
        firmware: where the loader comes from.

    Raises:
        FlashFailed: the board's file system has no room.
        OSError: the board's files cannot be read.
    """
    slots = read_slots(files)
    slot = slots.written
    notes = [f"slot {each.name}: {each.fault}" for each in slots.slots if each.image and not each.is_whole]
    steps: list[Step] = []
    if not (slot.is_whole and slot.image == image.sha256):
        steps += _empty(files, slot.name)
        steps += _fill(files, slot.name, image)
        _check_room(files, slot.name, image)
    if read_json(files, "config.json") != config:
        steps += replace("config.json", json.dumps(config, indent=1).encode() + b"\n")
    kept = slots.kept
    steps += replace(POINTER, pointer(kept.name if kept else None, slot.name))
    loader, words = _loader(files, config, image.board, firmware)
    return FlashPlan(slots, tuple(steps + loader), config, (*notes, *words))


def _empty(files: BoardFiles, slot: str) -> list[Step]:
    """Remove what lies in a slot, its manifest first."""
    paths = sorted(files_in(files, slot), key=lambda path: path != f"{slot}/manifest.json")
    return [Remove(path) for path in paths]


def _fill(files: BoardFiles, slot: str, image: Image) -> list[Step]:
    contents = image.in_slot(slot)
    folders = sorted({str(parent) for path in contents for parent in PurePosixPath(path).parents} - {"."})
    there = {slot} if f"{slot}/" in files.names("") else set[str]()
    made: list[Step] = [MakeFolder(folder) for folder in folders if folder not in there]
    return made + [Write(path, content) for path, content in contents.items()]


def _check_room(files: BoardFiles, slot: str, image: Image) -> None:
    """Refuse before anything is written what would not fit: whatever lies in the slot now will be gone."""
    needed = _SPARE + sum(_blocks(len(content)) for content in image.in_slot(slot).values())
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
