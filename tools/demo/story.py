"""What a demo is told to do, and what comes of it: quantities of a paper beside ours, checks, and facts for --json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from jointbench.cli.console import Console
from jointbench.cli.result import Check

Plant = Literal["harmonic", "ideal"]


@dataclass(frozen=True)
class Stage:
    """Where and how a robot's story is played.

    Attributes:
        out: folder of all that it writes.
        seed: of motions, and of the boards' imperfections.
        board: what emulates the boards, "unix:" or "qemu:".
        console: where it says what it does.
        command: what to type to get the same again.
        plant: physics of the joints.
        modules: how many modules of a modular robot; None for all of them.
    """

    out: Path
    seed: int
    board: str
    console: Console
    command: str
    plant: Plant = "harmonic"
    modules: int | None = None


@dataclass(frozen=True)
class PaperLine:
    """One quantity of a paper beside ours.

    Attributes:
        quantity: what it is, such as "friction R², rotation".
        paper: as printed, "–" where it prints none.
        ours: as measured, with its unit.
        check: what ours is held to, where there is a limit.
    """

    quantity: str
    paper: str
    ours: str
    check: Check | None = None

    @property
    def wanted(self) -> str:
        """What ours is held to, in words; empty where it is held to nothing."""
        if self.check is None:
            return ""
        unit = f" {self.check.unit}" if self.check.unit else ""
        return f"{self.check.relation} {self.check.limit:g}{unit}"


@dataclass(frozen=True)
class Story:
    """What came of one robot's way from boards to verdict.

    Attributes:
        paper: letter of the system and source, "E · Zhang & Ding, Information and Control 52(3):292, 2023".
        lines: the paper's quantities beside ours.
        checks: further ones than those of `lines`, such as samples_lost.
        fields: facts for --json.
        refused: whether a verdict is no.
        assumed: what no paper prints and was chosen, a sentence each.
    """

    paper: str
    lines: tuple[PaperLine, ...]
    checks: tuple[Check, ...]
    fields: Mapping[str, Any]
    refused: bool
    assumed: tuple[str, ...] = ()

    @property
    def all_checks(self) -> tuple[Check, ...]:
        """Those of the lines, then the further ones."""
        return (*(line.check for line in self.lines if line.check is not None), *self.checks)


PAPER_HEADS = ("quantity", "paper", "ours", "wanted")


def paper_rows(lines: Sequence[PaperLine]) -> list[list[str]]:
    """A row for each line, under PAPER_HEADS."""
    return [
        [line.quantity, line.paper, line.ours, line.wanted + ("" if line.check is None or line.check.ok else " NO")]
        for line in lines
    ]


def paper_table(lines: Sequence[PaperLine]) -> str:
    """The rows for a person: aligned columns of text."""
    rows = [list(PAPER_HEADS), *paper_rows(lines)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(PAPER_HEADS))]
    rows.insert(1, ["-" * width for width in widths])
    return "\n".join(
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )
