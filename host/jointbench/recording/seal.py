"""The seal of a run: result.json holds the SHA-256 of each of its files, and what the values in them were.

result.json is sealed itself. Whatever is changed afterwards is named, with its value where the file is TOML or JSON.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from jointbench.errors import FileNotWritten, RunError
from jointbench.files import bytes_of, json_values, regular_file, sealed_json, toml_values, write_file
from jointbench.recording.run_directory import (
    CONVERTED,
    EVENTS,
    FRAMES,
    IMPORTED,
    MAPPING,
    PROVENANCE,
    RESULT,
    ROBOT,
    ROBOT_URDF,
    SAMPLES,
    SCHEMA,
    read_result,
)

MEASURED = (FRAMES, SAMPLES, CONVERTED)
"""Files of what was measured, which nobody may edit."""

_OWN = (PROVENANCE, ROBOT, ROBOT_URDF, SCHEMA, FRAMES, EVENTS, SAMPLES, CONVERTED, MAPPING)
"""Names of a run's files; of whatever else lies in its folder, such as models and reports, the run does not depend."""

_READERS: Mapping[str, Callable[[str], Any]] = {".toml": toml_values, ".json": json_values}
_SHORT = 40  # characters of a value that is kept as it is; of a longer one there is a digest
_LONG = "sha256:"
_SHOWN = 4  # values named one by one


@dataclass(frozen=True)
class Change:
    """One file of a run that is not as it was.

    Attributes:
        file: its name.
        before, after: its SHA-256; None where there was, or is, no such file.
        values: name, value before and value now of what is different, None where there was or is none; tables that
            have come or gone stand for all that is in them.
        trouble: why its values cannot be read any more, if they cannot.
        compared: whether its values were known, and are read.
    """

    file: str
    before: str | None
    after: str | None
    values: tuple[tuple[str, Any, Any], ...] = ()
    trouble: str = ""
    compared: bool = False

    @property
    def what(self) -> str:
        """The values that are different: all that there is room for."""
        shown = [_of_value(*value) for value in self.values[:_SHOWN]]
        more = [f"and {len(self.values) - _SHOWN} more"] if len(self.values) > _SHOWN else []
        return "; ".join([*shown, *more])

    def sentence(self, made: str) -> str:
        """Say what has become of the file since the run was `made`: "recorded" or "imported"."""
        if self.before is None:
            return f"{self.file} was added after it was {made}"
        if self.after is None:
            return f"{self.file} is gone, which was there when it was {made}"
        text = f"{self.file} was changed after it was {made}"
        if self.trouble:
            return f"{text}: it can no longer be read ({self.trouble})"
        if self.values:
            return f"{text}: {self.what}"
        return f"{text}, though none of its values" if self.compared else text

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        values = [{"name": name, "before": before, "after": after} for name, before, after in self.values]
        return {"file": self.file, "before": self.before, "after": self.after, "values": values}


@dataclass(frozen=True)
class Seal:
    """The seal in result.json, held against the run's files.

    Attributes:
        made: how the run came to be: "recorded" or "imported".
        changes: files that are not as they were.
        sha256: of each file that is there.
        edits: changes that were accepted, as `accept` noted them.
    """

    made: str
    changes: tuple[Change, ...]
    sha256: Mapping[str, str]
    edits: tuple[Mapping[str, Any], ...]


def write_result(directory: Path, result: Mapping[str, Any], sha256: Mapping[str, str] | None = None) -> None:
    """Write result.json, which vouches from then on for the run's files as they are now.

    A disk that is too full for their values takes the SHA-256 alone.

    Args:
        directory: of the run, with all of its files.
        result: what else it shall hold.
        sha256: of files that need not be read again.

    Raises:
        OSError: a file cannot be read, or result.json not written.
    """
    files = {name: _noted(directory / name, (sha256 or {}).get(name)) for name in _own_files(directory)}
    try:
        write_file(directory / RESULT, sealed_json({**result, "files": files}))
    except FileNotWritten:  # as where the frames have filled it up
        short = {name: {"sha256": entry["sha256"]} for name, entry in files.items()}
        write_file(directory / RESULT, sealed_json({**result, "files": short}))


def check_seal(directory: Path, sha256: Mapping[str, str] | None = None) -> Seal | None:
    """Hold a run's files against its result.json.

    Args:
        directory: of the run.
        sha256: of files that need not be read again.

    Returns:
        The seal; None where there is no result.json, or one of before there were seals.

    Raises:
        RunError: result.json itself was changed, or it or another file cannot be read.
    """
    result = read_result(directory)
    if result is None or "files" not in result:
        return None
    noted: Mapping[str, Mapping[str, Any]] = result["files"]
    try:
        now = {name: (sha256 or {}).get(name) or file_sha256(directory / name) for name in _own_files(directory)}
    except OSError as error:
        raise RunError(f"run {directory}: {error.filename} cannot be read: {error.strerror}") from error
    changes = [
        _change(directory / name, noted.get(name), now.get(name))
        for name in _OWN
        if now.get(name) != noted.get(name, {}).get("sha256")
    ]
    made = IMPORTED if result["outcome"] == IMPORTED else "recorded"
    return Seal(made, tuple(changes), now, tuple(result.get("edits", ())))


def refuse_changes(directory: Path, seal: Seal) -> None:
    """Refuse a run that was changed.

    Raises:
        RunError: names each file, its values where they can be told, and what to do.
    """
    if seal.changes:
        what = "; ".join(change.sentence(seal.made) for change in seal.changes)
        raise RunError(f"run {directory}: {what}; {advice(directory, seal.changes)}")


def advice(directory: Path, changes: Iterable[Change]) -> str:
    """Return what to do about files that were changed."""
    measured = [change.file for change in changes if change.file in MEASURED]
    if measured:
        return (
            f"take {' and '.join(measured)} from a copy: what was measured is never edited; `jointbench doctor "
            f"{directory}` says what can still be read"
        )
    return f'take it from a copy, or, if it was meant, note it: `jointbench accept {directory} --reason "..."`'


def edit_sentence(edit: Mapping[str, Any]) -> str:
    """An accepted edit in one sentence.

    >>> edit_sentence({"date": "2026-05-04", "files": [{"file": "run.toml", "what": "repeats = 3, was 2"}]})
    'edited, and accepted on 2026-05-04: run.toml (repeats = 3, was 2)'
    """
    files = ", ".join(each["file"] + (f" ({each['what']})" if each["what"] else "") for each in edit["files"])
    reason = f", {edit['reason']}" if edit.get("reason") else ""
    return f"edited, and accepted on {edit['date']}{reason}: {files}"


def file_sha256(path: Path) -> str:
    """SHA-256 of a file, hexadecimal.

    Raises:
        OSError: it cannot be read, or is a pipe or a device.
    """
    with regular_file(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _own_files(directory: Path) -> list[str]:
    return [name for name in _OWN if (directory / name).is_file()]


def _noted(path: Path, sha256: str | None) -> dict[str, Any]:
    """Return the entry of a file: its SHA-256 and, where it has some, its values by name."""
    entry = {"sha256": sha256 or file_sha256(path)}
    if path.suffix not in _READERS:
        return entry
    try:
        return {**entry, "values": _values(path)}
    except ValueError:  # a file that its reader will refuse, and that is the run's all the same
        return entry


def _values(path: Path) -> dict[str, Any]:
    """Values of a TOML or JSON file by dotted name.

    Raises:
        ValueError: it is none.
    """
    return {name: _kept(value) for name, value in _flat(_READERS[path.suffix](bytes_of(path).decode()), "")}


def _flat(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, item in cast(dict[str, Any], value).items():
            yield from _flat(item, f"{name}.{key}" if name else key)
    elif isinstance(value, list) and value and all(isinstance(item, dict) for item in cast(list[Any], value)):
        tables = cast(list[dict[str, Any]], value)
        names = [str(table.get("name", table.get("joint", number))) for number, table in enumerate(tables, 1)]
        unique = len(set(names)) == len(names)
        if unique:
            yield name, names  # their order is a value, too
        for number, table in enumerate(tables, 1):
            yield from _flat(table, f"{name}.{names[number - 1] if unique else number}")
    else:
        yield name, value


def _kept(value: Any) -> Any:
    """A short value as it is, else its digest."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    if len(text) > _SHORT:
        return _LONG + hashlib.sha256(text.encode()).hexdigest()[:16]
    return value if isinstance(value, str | int | float) and text not in ("NaN", "Infinity", "-Infinity") else text


def _change(path: Path, before: Mapping[str, Any] | None, after: str | None) -> Change:
    values: tuple[tuple[str, Any, Any], ...] = ()
    trouble, compared = "", before is not None and after is not None and "values" in before
    if before is not None and compared:
        try:
            values = _different(before["values"], _values(path))
        except ValueError as error:
            trouble = str(error)
    return Change(path.name, before["sha256"] if before else None, after, values, trouble, compared)


def _different(before: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[tuple[str, Any, Any], ...]:
    both = [name for name in before if name in now and json.dumps(before[name]) != json.dumps(now[name])]
    changed = [(name, before[name], now[name]) for name in both]
    gone = [(name, value, None) for name, value in _whole_tables(before, now)]
    new = [(name, None, value) for name, value in _whole_tables(now, before)]
    return (*changed, *gone, *new)


def _whole_tables(there: Mapping[str, Any], other: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return what only one of two has: by value, or all of a table of which the other has nothing."""
    known = {prefix for name in other for prefix in _prefixes(name)}
    tables: dict[str, list[str]] = {}
    for name in there:
        if name not in other:
            whole = next((prefix for prefix in _prefixes(name) if prefix not in known), name)
            tables.setdefault(whole, []).append(name)
    return [(whole, there[names[0]] if names == [whole] else f"{len(names)} values") for whole, names in tables.items()]


def _prefixes(name: str) -> Iterator[str]:
    parts = name.split(".")
    return (".".join(parts[:count]) for count in range(1, len(parts) + 1))


def _of_value(name: str, before: Any, after: Any) -> str:
    if after is None:
        return f"{name} is gone, was {_shown(before)}"
    if before is None:
        return f"{name} = {_shown(after)} is new"
    if _shown(before) == _shown(after):
        return f"{name} is another"
    return f"{name} = {_shown(after)}, was {_shown(before)}"


def _shown(value: Any) -> str:
    return "long" if isinstance(value, str) and value.startswith(_LONG) else str(value)
