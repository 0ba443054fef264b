"""Signals of which boards send a sample each few ticks, filled in between, so that what boards do each tick applies."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.memory_mapping import PIECE, give_back, part_of, pieces, scratch
from jointbench.signals import at_places, spans

_BEYOND = 3
"""Samples on each side of a place that interpolation looks at."""


def spacing(values: Array, needed: NDArray[np.bool_]) -> int:
    """Rows from one sample to the next: 1 where each row has one.

    Args:
        values: NaN where there is none, shape (n, n_joints).
        needed: joints whose values a sample needs, shape (n_joints,).
    """
    for part in pieces(len(values)):
        rows = np.flatnonzero(_known(part_of(values, part), needed))
        if len(rows) > 1:
            return int(np.diff(rows).min())
    return 1


def filled(values: Array, every: int, needed: NDArray[np.bool_]) -> Array:
    """Values in all rows between samples that each `every`-th row has, but across none that is missing.

    Args:
        values: NaN where there is none, shape (n, n_joints).
        every: rows from one sample to the next.
        needed: joints whose values a sample needs, shape (n_joints,).
    """
    whole = scratch(values.shape, np.float64)
    for part in pieces(len(values)):
        whole[part] = np.nan
        give_back(whole)
    known = np.concatenate([_known(part_of(values, part), needed) for part in pieces(len(values))])
    phase = int(np.argmax(known)) % every
    for span in spans(known[phase::every], 2 * _BEYOND):
        for start in range(span.start, span.stop - 1, max(PIECE // every, 1)):
            stop = min(start + max(PIECE // every, 1), span.stop - 1)  # the cell behind the last sample has no end
            first = min(max(start - _BEYOND, span.start), span.stop - 2 * _BEYOND)
            last = max(min(stop + _BEYOND + 1, span.stop), span.start + 2 * _BEYOND)
            rows = slice(phase + first * every, phase + (last - 1) * every + 1)
            own = np.arange(start * every, stop * every + 1)
            whole[phase + own] = at_places(part_of(values, rows)[::every], own / every - first)
            give_back(whole)
    return whole


def _known(values: Array, needed: NDArray[np.bool_]) -> NDArray[np.bool_]:
    return np.asarray((np.isfinite(values) | ~needed).all(axis=1))
