"""config.json of a board: read, checked against the firmware's registers, brought to this release's form, kept."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from jointbench.errors import FlashError
from jointbench.files import sync, write_file
from jointbench.flash.board_files import BoardFiles
from jointbench.flash.image import VERSION
from jointbench.flash.slots import read_json
from jointbench.foreign import json_values, text_of
from jointwire import BY_NAME

KEPT = (
    "config.json", "settings.json", "settings.old", "partner.json", "partner.old", "slot.json", "boot.py", "main.py"
)  # fmt: skip
"""What is copied to the host before anything is written."""

_FACTS = frozenset(register.name for register in BY_NAME.values() if register.access in ("ro", "persist"))
_MODULE_NAME = re.compile(r"[!-~]{1,16}")
_EXAMPLE = '{"node": 1, "facts": {"encoder.motor_counts": 4096}}'


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
            f"{where} is of node {' and '.join(repr(node) for node in known)}, this board is node "
            f"{' and '.join(map(str, strangers))}; is it the right port, and the right number (--node)?"
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
