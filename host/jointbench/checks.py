"""Checks of figures against limits, and the result of a command that people and CI read alike."""

from __future__ import annotations

import json
import math
import operator
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jointbench.files import write_file

_RELATIONS: dict[str, Callable[[float, float], bool]] = {"<=": operator.le, ">=": operator.ge, "==": operator.eq}


@dataclass(frozen=True)
class Check:
    """One figure and its limit; a figure that is not a finite number never passes."""

    name: str
    value: float
    relation: str
    limit: float
    unit: str = ""

    @property
    def ok(self) -> bool:
        """True if the figure keeps the limit."""
        return math.isfinite(self.value) and _RELATIONS[self.relation](self.value, self.limit)

    def to_dict(self) -> dict[str, Any]:
        """Return the check as plain values."""
        return {
            "name": self.name,
            "value": self.value,
            "relation": self.relation,
            "limit": self.limit,
            "unit": self.unit,
            "ok": self.ok,
        }

    def __str__(self) -> str:
        unit = f" {self.unit}" if self.unit else ""
        mark = "ok " if self.ok else "NO "
        return f"{mark} {self.name}: {self.value:.6g}{unit} (wanted {self.relation} {self.limit:g}{unit})"


@dataclass(frozen=True)
class Result:
    """Result of a command.

    Attributes:
        command: its name.
        seed: of its random numbers; None: it draws none.
        checks: figures and their limits.
        fields: further entries of the JSON frame.
        refused: the verdict is no, whatever the checks say.
        last_lines: text for a person, printed last.
    """

    command: str
    seed: int | None = None
    checks: tuple[Check, ...] = ()
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    refused: bool = False
    last_lines: Sequence[str] = ()

    @property
    def exit_code(self) -> int:
        """0, or 1 when the verdict or a check says no."""
        return 1 if self.refused or not all(check.ok for check in self.checks) else 0

    def to_dict(self, seconds: float) -> dict[str, Any]:
        """Return the JSON frame as plain values; `seconds` is how long the command took."""
        frame = {
            "command": self.command,
            "seed": self.seed,
            "seconds": round(seconds, 3),
            "checks": [check.to_dict() for check in self.checks],
        }
        return frame | dict(self.fields)

    def write(self, destination: str, seconds: float) -> None:
        """Write the frame as JSON to a file, or to standard output for "-"."""
        text = json.dumps(self.to_dict(seconds), indent=2, ensure_ascii=False, default=_plain) + "\n"
        if destination == "-":
            sys.stdout.write(text)
        else:
            write_file(destination, text)


def is_result(path: Path) -> bool:
    """Return True for a file written by `Result.write` and for an empty one: a newer result may replace it."""
    try:
        with path.open("rb") as file:
            return re.match(rb'\{\s*"command":|\Z', file.read(64)) is not None
    except OSError:
        return False


def _plain(value: Any) -> Any:
    """Convert NumPy numbers, arrays and paths, which JSON does not know."""
    return value.tolist() if hasattr(value, "tolist") else str(value)
