"""Curves on a terminal: two by four dots a character, each curve between the limits that it must keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jointbench.arrays import Array
from jointbench.results.plan_evidence import plain

_BLANK = 0x2800
_DOT_BITS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
"""Which bit of a character lights the dot in each of its four rows and two columns (Unicode, Braille Patterns)."""

ALPHABET = chr(_BLANK + 0xFF) + "┤│└─−°"
"""What a stream must be able to encode."""

_LEAST_WIDTH = 20


@dataclass(frozen=True, eq=False)
class Curve:
    """One curve, with its name and the limits that are the edges of its picture.

    Attributes:
        name: stands to its left.
        values: evenly spaced in time, shape (n,).
        low, high: limits.
        unit: of both.
    """

    name: str
    values: Array
    low: float
    high: float
    unit: str


def picture(curves: Sequence[Curve], duration: float, width: int = 80, height: int = 3) -> str:
    """Draw curves above each other over a common time axis.

    Args:
        curves: what to draw.
        duration: what their values span [s].
        width: of the whole picture, in characters.
        height: of each curve, in lines.
    """
    labels = [(f"{plain(curve.high)}{curve.unit}", f"{plain(curve.low)}{curve.unit}") for curve in curves]
    names = max(len(curve.name) for curve in curves)
    numbers = max(len(label) for pair in labels for label in pair)
    left = 2 + names + 2 + numbers + 2
    across = max(_LEAST_WIDTH, width - left)
    lines: list[str] = []
    for curve, (top, bottom) in zip(curves, labels, strict=True):
        for row, dots in enumerate(braille(curve.values, curve.low, curve.high, across, height)):
            edge = top if row == 0 else bottom if row == height - 1 else ""
            name = curve.name if row == 0 else ""
            lines.append(f"  {name:<{names}}  {edge:>{numbers}} {'┤' if edge else '│'}{dots}".rstrip())
    end = f" {duration:g} s"
    lines.append(" " * (left - 1) + "└" + "─" * (across - len(end)) + end)
    return "\n".join(lines)


def braille(values: Array, low: float, high: float, width: int, height: int) -> list[str]:
    """Draw one curve in lines of dots, the first line's top at `high` and the last one's bottom at `low`.

    Each column of dots is lit from the lowest to the highest value within it, and on to the column before, so that the
    line is whole; what is beyond an edge is drawn at it.
    """
    rows, columns = 4 * height, 2 * width
    level = np.clip((high - values) / (high - low) * rows, 0.0, rows - 1.0).astype(int)
    dots = np.zeros((rows, columns), dtype=np.bool_)
    ends = np.linspace(0, len(level), columns + 1)
    for column in range(columns):
        first, last = int(ends[column]), max(int(ends[column]) + 1, int(ends[column + 1]))
        part = level[max(first - 1, 0) : last]
        dots[part.min() : part.max() + 1, column] = True
    cells = dots.reshape(height, 4, width, 2)
    codes = _BLANK + np.einsum("hrwc,rc->hw", cells, _DOT_BITS)
    # A blank is a space: some fonts draw the pattern without dots as empty rings.
    return ["".join(map(chr, line)).replace(chr(_BLANK), " ") for line in codes.tolist()]
