"""A proposed mapping: its entries, why each, and what only the log's owner knows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from jointbench.recording.proposal.csv_columns import CsvColumns
from jointbench.recording.proposal.wrapped import wrapped

State = Literal["read", "guessed", "to fill in"]


@dataclass(frozen=True)
class Entry:
    """One entry of the mapping.

    Attributes:
        table: "" for the top, else "time", "position", "velocity", "torque" or "joint_torque".
        key, value: as they stand in the file; "?" is to be filled in.
        why: a sentence; empty where nothing needs saying.
        state: "read" in the log or told by its figures, "guessed" where something else is possible.
    """

    table: str
    key: str
    value: Any
    why: str = ""
    state: State = "read"

    @property
    def line(self) -> str:
        """The entry in TOML."""
        return f"{self.key} = {json.dumps(self.value, ensure_ascii=False)}"

    def __str__(self) -> str:
        where = f"{self.table}.{self.key}" if self.table else self.key
        value = self.value
        if isinstance(value, list):
            value = f"{value[0]} … {value[-1]}"
        mark = {"read": "", "guessed": " (guessed)", "to fill in": " (to fill in)"}[self.state]
        return f"{where} = {value}{mark}" + (f": {self.why}" if self.why else "")


@dataclass(frozen=True)
class Proposal:
    """A mapping for a log; `text` is what its file holds.

    Attributes:
        robot: name of the robot.
        about: what was looked at.
        files: tables [[files]], as keys and values.
        entries: all others.
        left_out: columns that are of no use, and why.
        alike: further files of the same columns, which the mapping serves too.
    """

    robot: str
    about: str
    files: tuple[dict[str, Any], ...]
    entries: tuple[Entry, ...]
    left_out: tuple[str, ...]
    alike: tuple[str, ...]

    @property
    def to_fill_in(self) -> tuple[Entry, ...]:
        """What nobody but the log's owner knows."""
        return tuple(entry for entry in self.entries if entry.state == "to fill in")

    @property
    def guesses(self) -> tuple[Entry, ...]:
        """What may be otherwise."""
        return tuple(entry for entry in self.entries if entry.state == "guessed")

    def lines(self) -> Iterator[str]:
        """For people: what was proposed and why, and what was left out."""
        yield f"proposed for {self.robot} from {self.about}:"
        for entry in self.entries:
            yield f"  {entry}"
        for reason in self.left_out:
            yield f"  left out {reason}"

    @property
    def text(self) -> str:
        """The mapping's file, each entry with the reason for it."""
        lines = wrapped(f"Proposed for {self.robot} from {self.about}. Look through it before you use it.")
        lines += ["version = 1", *self._table("")]
        for file in self.files:
            lines += ["", "[[files]]", *(f"{key} = {json.dumps(value)}" for key, value in file.items())]
        for table in dict.fromkeys(entry.table for entry in self.entries if entry.table):
            lines += ["", f"[{table}]", *self._table(table)]
        if self.left_out:
            lines += ["", "# Left out:"]
            for reason in self.left_out:
                lines += wrapped(reason, "#   ")
        return "\n".join(lines) + "\n"

    def _table(self, name: str) -> list[str]:
        lines: list[str] = []
        for entry in self.entries:
            if entry.table != name:
                continue
            said = {"read": "", "guessed": "GUESSED: ", "to fill in": "FILL IN: "}[entry.state]
            lines += wrapped(said + entry.why) if entry.why else []
            lines.append(entry.line)
        return lines


def columns_entries(
    table: str, file: CsvColumns, names: tuple[str, ...], why: str, state: State = "read"
) -> list[Entry]:
    """The columns of a channel, after the file they are in where there are several."""
    entry = Entry(table, "columns", list(names), why, state)
    return [entry] if file.label is None else [Entry(table, "file", file.label), entry]
