"""Rows held out from a fit to judge it by: blocks of time, for rows beside each other say the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from jointbench.identification.least_squares.triangles import Triangles, compress
from jointbench.identification.rows import Block, ChangedRows, Rows

_BLOCKS = 10
_HELD = (2, 5, 8)
"""Of ten equal blocks of time three are held out, spread over the recording: 70 % to fit, 30 % to judge."""


@dataclass(frozen=True, eq=False)
class Split:
    """The same recordings twice: rows to fit, and rows held out from that."""

    fitted: Triangles
    held_out: Triangles


def split_by_time(parts: Sequence[Rows]) -> Split:
    """Cut each recording's time into ten blocks and hold three of them out."""
    ends = [_ends(part) for part in parts]
    fitted, held = (
        compress([_Blocks(part, start, stop, which) for part, (start, stop) in zip(parts, ends, strict=True)])
        for which in (False, True)
    )
    return Split(fitted, held)


def _ends(rows: Rows) -> tuple[int, int]:
    places = [(block.start, block.stop) for block in rows.blocks()]
    return min((start for start, _ in places), default=0), max((stop for _, stop in places), default=1)


@dataclass(frozen=True, eq=False)
class _Blocks(ChangedRows):
    """The rows between two places that are held out, or the others."""

    start: int
    stop: int
    held: bool

    def blocks(self) -> Iterator[Block]:
        for block in self.rows.blocks():
            number = _BLOCKS * (np.arange(block.start, block.stop) - self.start) // max(1, self.stop - self.start)
            chosen = np.isin(number, _HELD) == self.held
            yield replace(block, used=block.used & chosen[:, None])


def leave_one_out(triangles: Triangles, part: int) -> Split:
    """Hold one recording out."""
    held = np.arange(len(triangles.counts)) // triangles.n_joints == part
    return Split(_of_groups(triangles, ~held), _of_groups(triangles, held))


def _of_groups(triangles: Triangles, groups: NDArray[np.bool_]) -> Triangles:
    """The triangles of some groups, the others empty."""
    return replace(
        triangles,
        matrices=np.where(groups[:, None, None], triangles.matrices, 0.0),
        counts=np.where(groups, triangles.counts, 0),
    )
