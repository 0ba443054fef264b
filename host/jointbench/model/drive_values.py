"""Values of drives written into the text of a robot file, whose comments and everything else stay as they are."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from copy import deepcopy
from importlib import resources
from pathlib import Path
from typing import Any

from jointbench.errors import FileError
from jointbench.files import text_of
from jointbench.model.catalogue import library_names
from jointbench.model.variants import split_reference

_TABLE = re.compile(r"^\s*(\[\[?)\s*([\w.\s-]+?)\s*\]\]?\s*(#.*)?$")
_ENTRY = re.compile(r"^(\s*)([\w-]+)(\s*=\s*)([^#\n]*?)(\s*(?:#.*)?)$")


def robot_file_text(reference: str) -> tuple[Path | None, str]:
    """Return the path of a robot's file, None of one of the library, and its text.

    Args:
        reference: as for `load_robot`; of a part of a robot it is the whole one's file.

    Raises:
        FileError: the robot is a URDF, which has no place for values of drives.
    """
    name = split_reference(reference)[0]
    if name in library_names():
        return None, (resources.files("jointbench.model") / "library" / f"{name}.toml").read_text(encoding="utf-8")
    path = Path(name)
    if path.suffix != ".toml":
        raise FileError(
            f"{path.name} has no place for values of drives; `jointbench init {path.name}` writes a file that has"
        )
    return path, text_of(path)


def with_drive_values(
    text: str, values: Mapping[str, Mapping[str, float]], torque_limits: Mapping[str, float] | None = None
) -> str:
    """Return a robot file's text with values of joints' drives replaced, or added to their tables [joints.drive].

    Args:
        text: of the file.
        values: by joint, by key of the table.
        torque_limits: torque_Nm by joint [N·m], of those whose limit changes, too.

    Raises:
        FileError: the file writes a joint's drive in another way than as a table of its own; nothing is changed.

    >>> lines = ["[[joints]]", 'name = "j1"', "[joints.drive]", "ratio = 101 # a guess"]
    >>> with_drive_values(chr(10).join(lines), {"j1": {"ratio": 81.0}}).splitlines()[-1]
    'ratio = 81.0 # a guess'
    """
    before = tomllib.loads(text)
    wanted = deepcopy(before)
    names = [joint.get("name") for joint in before.get("joints", [])]
    limits = {name: {"torque_Nm": limit} for name, limit in (torque_limits or {}).items()}
    for name, joint in zip(names, wanted.get("joints", []), strict=True):
        joint.get("drive", {}).update(values.get(name, {}))
        joint.update(limits.get(name, {}))
    changed = _changed(text, *([dict(of.get(name, {})) for name in names] for of in (values, limits)))
    if _parsed(changed) != wanted:
        raise FileError(
            f"the drives of {', '.join(values)} are not written as tables [joints.drive] with a line for each value; "
            "write the values into the robot file by hand"
        )
    return changed


def _changed(text: str, values: list[dict[str, float]], limits: list[dict[str, float]]) -> str:
    lines: list[str] = []
    joint, left = -1, dict[str, float]()
    for line in text.splitlines():
        if header := _TABLE.match(line):
            lines = _with_added(lines, left)
            left = {}
            if header[1] == "[[" and header[2] == "joints":
                joint += 1
                left = dict(limits[joint])
            elif header[1] == "[" and header[2] == "joints.drive" and 0 <= joint < len(values):
                left = dict(values[joint])
        elif (entry := _ENTRY.match(line)) and entry[2] in left:
            line = f"{entry[1]}{entry[2]}{entry[3]}{left.pop(entry[2])!r}{entry[5]}"
        lines.append(line)
    return "\n".join(_with_added(lines, left)) + ("\n" if text.endswith("\n") else "")


def _with_added(lines: list[str], left: Mapping[str, float]) -> list[str]:
    """Add entries to the table that ends here, before the empty lines and comments that belong to the next one."""
    end = len(lines)
    while left and end and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
        end -= 1
    return [*lines[:end], *(f"{key} = {value!r}" for key, value in left.items()), *lines[end:]]


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None
