"""A log cut into stretches that are worked on one at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jointbench.signals import LowPass

SAMPLES = 8192
"""Of a stretch, without what it needs of its neighbours: a six-axis arm's columns of them take some 15 MB."""

_MEMORIES = 4
"""A stretch is that many times as long as the filter remembers, or most of the work would be done twice."""


@dataclass(frozen=True)
class Stretch:
    """Some rows of a part of the log that has no gap.

    Attributes:
        part: the samples of the whole part.
        own: those of the stretch; together the stretches of a part are the part.
        rows: the rows among them that are away from the part's ends; sample = row * stride.
        stride: samples from row to row.
    """

    part: slice
    own: slice
    rows: slice
    stride: int

    @property
    def n_rows(self) -> int:
        """How many rows it has."""
        return self.rows.stop - self.rows.start

    def around(self, margin: int) -> slice:
        """Its samples and `margin` more on both sides, as far as the part goes."""
        return slice(max(self.part.start, self.own.start - margin), min(self.part.stop, self.own.stop + margin))

    def places(self, span: slice) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
        """Where its rows are among the samples of a span."""
        return self.stride * np.arange(self.rows.start, self.rows.stop) - span.start


def cut(parts: Sequence[slice], low_pass: LowPass, most: int | None = None) -> list[Stretch]:
    """Cut parts without gaps into stretches of whole rows.

    Args:
        parts: samples from..to each.
        low_pass: tells how far from an end rows are, and how many samples lie between them.
        most: samples of a stretch; None: `SAMPLES`, or more where the filter remembers long.
    """
    stride, settling = low_pass.stride, low_pass.settling
    length = max(1, (most or max(SAMPLES, _MEMORIES * low_pass.memory)) // stride)
    found: list[Stretch] = []
    for part in parts:
        first, end = -(-(part.start + settling) // stride), -(-(part.stop - settling) // stride)
        starts = range(first, max(end, first + 1), length)
        for start in starts:
            stop = min(start + length, end)
            own = slice(
                part.start if start == first else start * stride, part.stop if start == starts[-1] else stop * stride
            )
            found.append(Stretch(part, own, slice(start, max(start, stop)), stride))
    return found


def spread(stretches: Sequence[Stretch], rows: int) -> list[Stretch]:
    """As many of the stretches as have so many rows together, at least one, evenly over the log; all if they have not.

    Each has about as many rows as the others, so that their number tells how many to take.
    """
    total = sum(stretch.n_rows for stretch in stretches)
    if total <= rows:
        return list(stretches)
    count = max(1, int(len(stretches) * rows / total))
    return [stretches[int((k + 0.5) * len(stretches) / count)] for k in range(count)]
