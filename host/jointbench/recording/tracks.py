"""What came of each channel, on the board's own ticks: block by block as it was sent, maybe in a file."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from jointbench.memory_mapping import AppendBuffer, read_rows, release_pages


@dataclass(frozen=True, eq=False)
class Ticks:
    """Ticks of evenly spaced blocks, in the order they came; neighbours may lie apart, or be late.

    Attributes:
        first: of each block, shape (n_blocks,).
        counts: how many each has, shape (n_blocks,).
        steps: from one to the next in each block, shape (n_blocks,).
    """

    first: NDArray[np.int64]
    counts: NDArray[np.int64]
    steps: NDArray[np.int64]

    @classmethod
    def of(cls, ticks: NDArray[np.int64], every: int = 1) -> Ticks:
        """Single ticks, due each `every` ticks."""
        return cls(ticks, np.ones_like(ticks), np.full_like(ticks, every))

    def __len__(self) -> int:
        return int(self._ends[-1])

    def all(self) -> NDArray[np.int64]:
        """Every one of them."""
        return self._expanded(slice(None))

    @cached_property
    def span(self) -> tuple[int, int]:
        """The lowest and the highest of them; there must be one."""
        first, counts, steps = self._heads(slice(None))
        some = counts > 0
        return int(first[some].min()), int((first + (counts - 1) * steps)[some].max())

    @cached_property
    def every(self) -> int:
        """Spacing of the closest."""
        return int(read_rows(self.steps, slice(None)).min())

    def between(self, low: int, high: int) -> tuple[NDArray[np.int64], NDArray[np.bool_], slice]:
        """Ticks from `low` up to but without `high`, of a stretch of blocks that holds them all.

        Returns:
            The ticks of those blocks, which of them are within, and where they are among all ticks.
        """
        first, counts, steps = self._heads(slice(None))
        blocks = np.flatnonzero((first < high) & (first + (counts - 1) * steps >= low))
        if not len(blocks):
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.bool_), slice(0, 0)
        part = slice(int(blocks[0]), int(blocks[-1]) + 1)
        ticks = self._expanded(part)
        return ticks, (ticks >= low) & (ticks < high), slice(int(self._ends[part.start]), int(self._ends[part.stop]))

    @cached_property
    def _ends(self) -> NDArray[np.int64]:
        """Where blocks begin among all ticks, and the end, shape (n_blocks + 1,)."""
        return np.concatenate([[0], np.cumsum(read_rows(self.counts, slice(None)))])

    def _heads(self, blocks: slice) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        return read_rows(self.first, blocks), read_rows(self.counts, blocks), read_rows(self.steps, blocks)

    def _expanded(self, blocks: slice) -> NDArray[np.int64]:
        first, counts, steps = self._heads(blocks)
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        return np.repeat(first, counts) + within * np.repeat(steps, counts)


@dataclass(frozen=True, eq=False)
class Track:
    """Values of one channel, raw, at its ticks; `late` are those at ticks whose samples were taken after them.

    `has_gaps` where NaN stands for values that were told before.
    """

    ticks: Ticks
    values: NDArray[np.generic]
    late: Track | None = None
    has_gaps: bool = False

    def between(self, low: int, high: int) -> tuple[NDArray[np.int64], NDArray[np.generic]]:
        """Ticks from `low` up to but without `high`, in the order they came, and the values at them."""
        ticks, within, place = self.ticks.between(low, high)
        ticks, values = ticks[within], read_rows(self.values, place)[within]
        if self.late is None:
            return ticks, values
        late_ticks, late_values = self.late.between(low, high)
        return np.concatenate([ticks, late_ticks]), np.concatenate([values, late_values])


class TrackSpool:
    """A track that grows block by block."""

    def __init__(self) -> None:
        """No block yet."""
        self._heads = AppendBuffer(np.int64)  # one for all three: each may hold a file open
        self._values: AppendBuffer | None = None

    def append(self, ticks: Ticks, values: NDArray[np.generic] | None = None) -> None:
        """Put blocks behind those before; all with values, or none."""
        self._heads.append(np.stack([ticks.first, ticks.counts, ticks.steps], axis=1))
        if values is not None:
            if self._values is None:
                self._values = AppendBuffer(values.dtype)
            self._values.append(values)

    def ticks(self) -> Ticks:
        """The ticks of all blocks."""
        return Ticks(*self._heads.to_array().reshape(-1, 3).T)

    def track(self) -> Track:
        """All of it, where it has values."""
        ticks = self.ticks()
        values = np.empty(0) if self._values is None else self._values.to_array()
        release_pages(values)
        return Track(ticks, values, has_gaps=self._values is not None and values.dtype.kind == "f")
