"""A board's own state: its two slots, which one the loader starts and which may be written, and its configuration."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from jointbench.bench.flash.board_files import BoardFiles
from jointbench.bench.flash.image import MANIFEST, NEW_SIGNATURES, POINTER, SIGNATURES, VERSION, Key, image_sha256
from jointbench.errors import FlashError
from jointbench.files import json_values, sync, text_of, write_file
from jointwire import BY_NAME

SLOTS = ("a", "b")
NEW_POINTER = "slot.new"
KEPT = (
    "config.json", "settings.json", "settings.old", "partner.json", "partner.old", "slot.json", "boot.py", "main.py"
)  # fmt: skip
"""What is copied to the host before anything is written."""
_FACTS = frozenset(register.name for register in BY_NAME.values() if register.access in ("ro", "persist"))
_MODULE_NAME = re.compile(r"[!-~]{1,16}")
_EXAMPLE = '{"node": 1, "facts": {"encoder.motor_counts": 4096}}'


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


def read_config(files: BoardFiles, given: Path | None, *nodes: int) -> dict[str, Any]:
    """The configuration that a board shall have: what it has, or the file that is given for it.

    Old and new firmware read the same file, as the way back must stay open: it is added to, and nothing is taken away.

    Args:
        files: of the board.
        given: a file of the host that shall take the place of what is there.
        nodes: of the board, one for each of its motors.

    Raises:
        FlashError: neither is there, it is no configuration, of another node, or names facts that are no registers.
    """
    if given is not None:
        return given_config(given, *nodes)
    return _checked(read_json(files, "config.json"), "its config.json", nodes)


def given_config(path: Path, *nodes: int) -> dict[str, Any]:
    """The configuration in a file of the host; no board is asked.

    Raises:
        FlashError: as `read_config`.
    """
    try:
        config: Any = json_values(text_of(path))
    except (OSError, ValueError) as error:
        raise FlashError(f"configuration {path} cannot be read: {error}") from error
    return _checked(config, str(path), nodes)


def _checked(config: Any, where: str, nodes: tuple[int, ...]) -> dict[str, Any]:
    if not isinstance(config, dict):
        raise FlashError(f"{where} holds no configuration; give one with --config FILE, such as {_EXAMPLE}")
    config = cast(dict[str, Any], config)
    motors = [config]
    if "partner" in config:
        if not isinstance(config["partner"], dict):
            raise FlashError(
                f"{where}: partner is {config['partner']!r}; it must be as {_EXAMPLE}, of the second motor"
            )
        motors.append(cast(dict[str, Any], config["partner"]))
    for motor in motors:
        _check_facts(motor.get("facts", {}), where)
        _check_module(motor.get("module"), where)
    known = [motor.get("node", nodes[0]) for motor in motors]
    if strangers := [node for node in nodes if node not in known]:
        raise FlashError(
            f"{where} belongs to node {' and '.join(repr(node) for node in known)}, and this board is node "
            f"{' and '.join(map(str, strangers))}; check the port and the number (--node)"
        )
    return {"version": VERSION, "node": nodes[0], "facts": {}, **config}


def _check_facts(facts: Any, where: str) -> None:
    if not isinstance(facts, Mapping):
        raise FlashError(f"{where}: facts is {facts!r}; it must be a table of names and numbers, such as {_EXAMPLE}")
    for name, value in cast(Mapping[str, Any], facts).items():
        if name not in _FACTS:
            raise FlashError(
                f"{where}: fact {name!r} is none of this firmware's, which would stop at it; correct it first, with "
                f"--config FILE. It knows {', '.join(sorted(_FACTS))}"
            )
        if type(value) is not int or not -(2**31) <= value < 2**31:
            raise FlashError(
                f"{where}: fact {name!r} is {value!r}, and the firmware would stop at it; it must be a whole number "
                "of 32 bits. Correct it first, with --config FILE"
            )


def _check_module(module: Any, where: str) -> None:
    """Refuse what the firmware would stop at: the module that a board is built into has a type and a serial number."""
    if module is None:
        return
    entries = cast(Mapping[str, Any], module) if isinstance(module, Mapping) else {}
    if set(entries) != {"type", "serial"} or not all(
        isinstance(name, str) and _MODULE_NAME.fullmatch(name) for name in entries.values()
    ):
        raise FlashError(
            f'{where}: module is {module!r}; it must be such as {{"type": "type2.fork", "serial": "M2-0017"}}, each of '
            "1 to 16 ASCII characters without spaces"
        )


def keep(files: BoardFiles, folder: Path, uid: str) -> Path:
    """Copy a board's own files to the host, in a folder of its UID and the time; nothing else is ever put on a board.

    The folder appears with all of them, or not at all.

    Calibration (settings.json) stays where it is: it is this board's, by UID, and no tool writes it.

    Raises:
        FlashError: the folder cannot be written.
        OSError: the board's files cannot be read.
    """
    contents = {name: content for name in KEPT if (content := files.read(name)) is not None}
    board_folder = re.sub(r"[^\w-]", "-", uid) or "without-uid"  # a board's config.json may say anything
    place = folder / board_folder / f"{datetime.now(UTC):%Y-%m-%dT%H%M%S.%fZ}"
    unfinished = place.with_name(f".{place.name}")
    try:
        unfinished.mkdir(parents=True)
        for name, content in contents.items():
            write_file(unfinished / name, content)
        unfinished.rename(place)
        sync(place.parent)
    except OSError as error:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise FlashError(f"backup {place} cannot be written: {error}; name another place") from error
    return place
