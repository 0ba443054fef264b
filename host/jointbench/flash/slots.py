"""The two slots of a board: what each holds, which one the loader starts, and which one may be written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from jointbench.flash.board_files import BoardFiles
from jointbench.flash.image import MANIFEST, NEW_SIGNATURES, POINTER, SIGNATURES, Key, image_sha256
from jointbench.foreign import json_values

SLOTS = ("a", "b")
NEW_POINTER = "slot.new"


@dataclass(frozen=True)
class Slot:
    """One slot.

    Attributes:
        name: "a" or "b".
        image: SHA-256 that its manifest says, empty without a manifest.
        board: kind that its manifest says.
        fault: why it is not whole, empty where it is.
    """

    name: str
    image: str
    board: str
    fault: str

    @property
    def is_whole(self) -> bool:
        """True if every file of its manifest lies there as the manifest says."""
        return not self.fault


@dataclass(frozen=True)
class Slots:
    """Both slots, and what slot.json says.

    Attributes:
        slots: a and b.
        confirmed: the slot to start from.
        trial: the slot to be tried at the next boot.
    """

    slots: tuple[Slot, Slot]
    confirmed: str | None
    trial: str | None

    @property
    def kept(self) -> Slot | None:
        """The slot that the loader starts when no trial is due; flashing leaves it alone. None: neither is whole."""
        ordered = sorted(self.slots, key=lambda slot: slot.name != self.confirmed)
        return next((slot for slot in ordered if slot.is_whole), None)

    @property
    def written(self) -> Slot:
        """The slot for a new image."""
        kept_slot = self.kept
        return next(slot for slot in self.slots if kept_slot is None or slot.name != kept_slot.name)


def read_slots(files: BoardFiles, key: Key | None = None) -> Slots:
    """Read slot.json and both manifests, and have every file hashed on the board.

    Args:
        files: of the board.
        key: by which a slot must be signed; None: it need not be.

    Raises:
        OSError: the board's files cannot be read.
    """
    values = read_json(files, POINTER) or read_json(files, NEW_POINTER) or {}
    confirmed, trial = (name if name in SLOTS else None for name in (values.get("slot"), values.get("trial")))
    return Slots((_slot(files, "a", key), _slot(files, "b", key)), confirmed, trial)


def pointer(confirmed: str | None, trial: str) -> bytes:
    """Content of a slot.json that has `trial` tried once."""
    return json.dumps({"slot": confirmed, "trial": trial}).encode()


def files_in(files: BoardFiles, folder: str) -> list[str]:
    """Paths of all that lies in a folder, what lies deeper first; folders end in a slash."""
    paths: list[str] = []
    for name in files.names(folder):
        path = f"{folder}/{name}"
        if name.endswith("/"):
            paths += files_in(files, path.rstrip("/"))
        paths.append(path)
    return paths


def read_json(files: BoardFiles, path: str) -> dict[str, Any] | None:
    """A file's JSON object; None where there is none."""
    try:
        values = json_values(files.read(path) or b"")
    except ValueError:
        return None
    return cast(dict[str, Any], values) if isinstance(values, dict) else None


def _slot(files: BoardFiles, name: str, key: Key | None) -> Slot:
    manifest = read_json(files, f"{name}/{MANIFEST}")
    if manifest is None:
        return Slot(name, "", "", "it has no manifest")
    image, board = str(manifest.get("image", "")), str(manifest.get("board", ""))
    hashes: dict[str, bytes] = {}
    try:
        for path, (_, expected) in manifest["files"].items():
            digest = files.sha256(f"{name}/{path}")
            if digest is None or digest != expected:
                return Slot(name, image, board, f"{path} is not what its manifest says")
            hashes[path] = bytes.fromhex(digest)
    except (KeyError, TypeError, ValueError, AttributeError):  # it is JSON, but no manifest
        return Slot(name, image, board, "its manifest is damaged")
    if image_sha256(hashes) != image or not manifest.get("firmware"):
        return Slot(name, image, board, "its manifest is damaged")
    return Slot(name, image, board, _unsigned(files, name, key, hashes) if key else "")


def _unsigned(files: BoardFiles, name: str, key: Key, hashes: Mapping[str, bytes]) -> str:
    """Reason why the loader would refuse a whole slot, empty where it would take it."""
    signatures = files.read(f"{name}/{SIGNATURES}") or files.read(f"{name}/{NEW_SIGNATURES}")
    if not key.signed(files.read(f"{name}/{MANIFEST}") or b"", signatures):
        return "it is not signed by the key given"
    code = [path for path in files_in(files, name) if path.endswith((".py", ".mpy"))]
    if strangers := [path for path in code if path.removeprefix(f"{name}/") not in hashes]:
        return f"it holds {strangers[0]}, which its manifest does not name"
    return ""
