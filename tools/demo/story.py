"""Options and results of a demo: quantities of a paper beside ours, checks, and facts for --json."""

from __future__ import annotations

import re
import statistics
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from jointbench.checks import Check
from jointbench.cli.console import Console

if TYPE_CHECKING:
    from jointbench.identification import Verdict
    from jointbench.identification.verdict import WholeVerdict


Plant = Literal["harmonic", "presliding", "ideal"]
NOT_PRINTED = "–"
"""In place of a paper's figure."""


@dataclass(frozen=True)
class Stage:
    """Folder and options of a robot's story.

    Attributes:
        out: folder of all that it writes.
        seed: of motions, and of the boards' imperfections.
        board: what emulates the boards, "unix:" or "qemu:".
        console: where it says what it does.
        command: what to type to get the same again.
        plant: physics of the joints.
        modules: how many modules of a modular robot; None for all of them.
        whole: whether all plants are played that the page of the papers shows, and not just one.
    """

    out: Path
    seed: int
    board: str
    console: Console
    command: str
    plant: Plant = "harmonic"
    modules: int | None = None
    whole: bool = False


@dataclass(frozen=True)
class PaperLine:
    """One quantity of a paper beside ours.

    Attributes:
        quantity: what it is, such as "friction R², rotation".
        paper: as printed, NOT_PRINTED where its text has none.
        ours: as measured, with its unit.
        check: what ours is held to, where there is a limit.
        theirs: the paper's own method on the same recordings, where it is not ours.
        truth: of the plant, or what bounds ours from below, such as the sensors' noise.
    """

    quantity: str
    paper: str
    ours: str
    check: Check | None = None
    theirs: str = NOT_PRINTED
    truth: str = NOT_PRINTED

    @property
    def wanted(self) -> str:
        """Limit of our value, in words; empty where it has none."""
        if self.check is None:
            return ""
        unit = f" {self.check.unit}" if self.check.unit else ""
        return f"{self.check.relation} {self.check.limit:g}{unit}"


@dataclass(frozen=True)
class Story:
    """Result of one robot's way from boards to verdict.

    Attributes:
        paper: letter of the system and source, "E · Zhang & Ding, Information and Control 52(3):292, 2023".
        lines: the paper's quantities beside ours.
        checks: further ones than those of `lines`, such as samples_lost.
        fields: facts for --json; `report`, or else `picture`, is the file to look at.
        refused: whether a verdict is no.
        assumed: what no paper prints and was chosen, a sentence each.
        verdict: the word on the model.
    """

    paper: str
    lines: tuple[PaperLine, ...]
    checks: tuple[Check, ...]
    fields: Mapping[str, Any]
    refused: bool
    assumed: tuple[str, ...] = ()
    verdict: Verdict | WholeVerdict | None = None

    @property
    def all_checks(self) -> tuple[Check, ...]:
        """Those of the lines, then the further ones."""
        return (*(line.check for line in self.lines if line.check is not None), *self.checks)

    @property
    def is_kept(self) -> bool:
        """True if neither a verdict nor a check says no."""
        return not self.refused and all(check.ok for check in self.all_checks)

    @property
    def outcome(self) -> tuple[str, ...]:
        """Closing lines: the verdict, the evidence against it, and where to look."""
        lines: list[str] = []
        if self.verdict is not None:
            against = [check.name for check in self.all_checks if not check.ok]
            if self.refused and not self.verdict.is_refused:
                against.insert(0, "something was refused, see above")
            but = f", but NO: {', '.join(against)}" if against else ""
            lines.append(f"verdict: {self.verdict.word} ({self.verdict.reason}){but}")
            lines += [f"  it holds if {condition}"] if (condition := getattr(self.verdict, "condition", "")) else []
        lines += [f"{name}: {self.fields[name]}" for name in ("report", "picture") if name in self.fields][:1]
        return tuple(lines)


PAPER_HEADS = ("quantity", "paper", "paper's method here", "ours here", "plant's truth, or bound", "wanted")
WIDTH = 80
"""Of a terminal that nobody has made wider."""

_LABEL, _UNBROKEN = 7, "\N{NO-BREAK SPACE}"


def paper_rows(lines: Sequence[PaperLine]) -> list[list[str]]:
    """A row for each line, under PAPER_HEADS."""
    return [
        [
            line.quantity, line.paper, line.theirs, line.ours, line.truth,
            line.wanted + ("" if line.check is None or line.check.ok else " NO"),
        ]
        for line in lines
    ]  # fmt: skip


def paper_text(lines: Sequence[PaperLine]) -> str:
    """The rows for a person, the paper's above ours: side by side they would be wider than WIDTH."""
    text: list[str] = []
    for quantity, paper, theirs, ours, truth, wanted in paper_rows(lines):
        text.append(_filled(quantity, "  ", "    "))
        label = " " * (4 + _LABEL)
        limit = f"wanted {wanted}".replace(" ", _UNBROKEN)
        said = {"paper": paper, "method": theirs, "ours": f"{ours}; {limit}" if wanted else ours, "truth": truth}
        text += [_filled(words, f"    {name:{_LABEL}}", label) for name, words in said.items() if words != NOT_PRINTED]
    return "\n".join(text)


def _filled(text: str, first: str, further: str) -> str:
    filled = textwrap.fill(text, WIDTH, initial_indent=first, subsequent_indent=further, break_on_hyphens=False)
    return filled.replace(_UNBROKEN, " ")


_NUMBER = re.compile(r"[−+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?")


def merged_cell(cells: Sequence[str]) -> str:
    """One cell that stands for those of several seeds.

    Where cells differ in their figures alone, each figure becomes "median [least … largest]"; where they differ in
    words, too, each wording is there with how many seeds it is of.

    Args:
        cells: of one line and column, one a seed.
    """
    if len(set(cells)) == 1:
        return cells[0]
    frames = [_NUMBER.sub("\0", cell) for cell in cells]
    parts: list[str] = []
    for frame in dict.fromkeys(frames):
        of_frame = [cell for cell, each in zip(cells, frames, strict=True) if each == frame]
        figures = list(zip(*(_NUMBER.findall(cell) for cell in of_frame), strict=True))
        spread = iter([_spread(each) for each in figures])
        text = re.sub("\0", lambda _, spread=spread: next(spread), frame)
        parts.append(text if len(of_frame) == len(cells) else f"{text} ({len(of_frame)} of {len(cells)} seeds)")
    return "; ".join(parts)


def _spread(figures: Sequence[str]) -> str:
    """Median, least and largest, with the decimals that they have."""
    if len(set(figures)) == 1:
        return figures[0]
    values = [float(figure.replace("−", "-")) for figure in figures]
    decimals = max(len(figure.partition("e")[0].partition(".")[2]) for figure in figures)
    exponent = any("e" in figure for figure in figures)
    sign = "+" if any(figure.startswith("+") for figure in figures) else ""
    shown = [
        (f"{value:{sign}.{decimals}{'e' if exponent else 'f'}}").replace("-", "−")
        for value in (statistics.median(values), min(values), max(values))
    ]
    return f"{shown[0]} [{shown[1]} … {shown[2]}]"


def merged_check(checks: Sequence[Check]) -> Check:
    """The check of the seed that is farthest on its wrong side, or nearest to it."""
    first = checks[0]
    if first.relation == ">=":
        return min(checks, key=lambda check: check.value)
    if first.relation == "<=":
        return max(checks, key=lambda check: check.value)
    return max(checks, key=lambda check: abs(check.value - check.limit))


def merged(stories: Sequence[Story]) -> Story:
    """One story of several seeds; what is kept is kept by all of them.

    Lines are put together by their quantity, and by their order where several have the same words; one that not every
    seed has stands for those that have it, and says so.

    Args:
        stories: of one robot, in the order of the seeds; at least one.
    """
    if len(stories) == 1:
        return stories[0]
    by_quantity: dict[tuple[str, int], list[PaperLine]] = {}
    for story in stories:
        seen = Counter[str]()
        for line in story.lines:
            by_quantity.setdefault((line.quantity, seen[line.quantity]), []).append(line)
            seen[line.quantity] += 1
    lines = tuple(_merged_line(same, len(stories)) for same in by_quantity.values())
    names = list(dict.fromkeys(check.name for story in stories for check in story.checks))
    checks = tuple(
        merged_check([check for story in stories for check in story.checks if check.name == name]) for name in names
    )
    worst = next((story for story in stories if not story.is_kept), stories[0])
    return replace(worst, lines=lines, checks=checks, refused=any(story.refused for story in stories))


def _merged_line(lines: Sequence[PaperLine], n_seeds: int) -> PaperLine:
    checks = [line.check for line in lines if line.check is not None]
    missing = "" if len(lines) == n_seeds else f" ({len(lines)} of {n_seeds} seeds)"
    broken = sum(not check.ok for check in checks)
    return replace(
        lines[0],
        paper=merged_cell([line.paper for line in lines]),
        theirs=merged_cell([line.theirs for line in lines]),
        ours=merged_cell([line.ours for line in lines])
        + missing
        + (f"; not kept by {broken} of {n_seeds} seeds" if broken else ""),
        truth=merged_cell([line.truth for line in lines]) or NOT_PRINTED,
        check=merged_check(checks) if checks else None,
    )
