"""config.json of a board: read, checked against the firmware's registers, brought to this release's form, kept."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from jointbench.errors import FlashError
from jointbench.flash.board_files import BoardFiles
from jointbench.flash.image import VERSION
from jointbench.flash.slots import read_json
from jointwire import BY_NAME

KEPT = ("config.json", "settings.json", "settings.old", "slot.json", "boot.py", "main.py")
"""What is copied to the host before anything is written."""

_FACTS = frozenset(register.name for register in BY_NAME.values() if register.access in ("ro", "persist"))
_EXAMPLE = '{"node": 1, "facts": {"encoder.motor_counts": 4096}}'


def read_config(files: BoardFiles, given: Path | None, node: int) -> dict[str, Any]:
    """The configuration that a board shall have: what it has, or the file that is given for it.

    Old and new firmware read the same file, as the way back must stay open: it is added to, and nothing is taken away.

    Raises:
        FlashError: neither is there, it is no configuration, of another node, or names facts that are no registers.
    """
    if given is not None:
        try:
            config: Any = json.loads(given.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise FlashError(f"configuration {given} cannot be read: {error}") from error
        where = str(given)
    else:
        config, where = read_json(files, "config.json"), "its config.json"
    if not isinstance(config, dict):
        raise FlashError(f"{where} holds no configuration; give one with --config FILE, such as {_EXAMPLE}")
    config = cast(dict[str, Any], config)
    facts: Any = config.get("facts", {})
    unknown = sorted(set(cast(Mapping[str, Any], facts)) - _FACTS) if isinstance(facts, Mapping) else ["facts"]
    if unknown:
        raise FlashError(
            f"{where}: fact {unknown[0]!r} is none of this firmware's, which would stop at it; correct it first, with "
            f"--config FILE. It knows {', '.join(sorted(_FACTS))}"
        )
    if config.get("node", node) != node:
        raise FlashError(f"{where} is of node {config['node']}, this board is node {node}; is it the right port?")
    return {"version": VERSION, "node": node, "facts": {}, **config}


def keep(files: BoardFiles, folder: Path, uid: str) -> Path:
    """Copy a board's own files to the host, in a folder of its UID and the time; nothing else is ever put on a board.

    Calibration (settings.json) stays where it is: it is this board's, by UID, and no tool writes it.

    Raises:
        FlashError: the folder cannot be written.
        OSError: the board's files cannot be read.
    """
    found = {name: content for name in KEPT if (content := files.read(name)) is not None}
    place = folder / (uid or "without-uid") / f"{datetime.now(UTC):%Y-%m-%dT%H%M%S.%fZ}"
    try:
        place.mkdir(parents=True)
        for name, content in found.items():
            (place / name).write_bytes(content)
    except OSError as error:
        raise FlashError(f"backup {place} cannot be written: {error.strerror}; name another place") from error
    return place
