"""Stories of one robot over several seeds as one: each figure in a cell with its median and its spread."""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from dataclasses import replace

from jointbench.checks import Check
from tools.demo.story import NOT_PRINTED, PaperLine, Story

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

    Lines are put together by their quantity; one that not every seed has stands for those that have it, and says so.

    Args:
        stories: of one robot, in the order of the seeds; at least one.
    """
    if len(stories) == 1:
        return stories[0]
    quantities = list(dict.fromkeys(line.quantity for story in stories for line in story.lines))
    lines = tuple(
        _merged_line([line for story in stories for line in story.lines if line.quantity == quantity], len(stories))
        for quantity in quantities
    )
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
