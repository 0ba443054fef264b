"""Signals of which boards send a sample each few ticks, filled in between, so that what boards do each tick applies."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.memory_mapping import CHUNK_ROWS, chunks, read_rows, release_pages, scratch_array
from jointbench.signals import interpolate_samples, valid_spans

_BEYOND = 3
"""Samples on each side of a place that interpolation looks at."""


def spacing(values: Array, needed: NDArray[np.bool_]) -> int:
    """Rows from one sample to the next: 1 where each row has one.

    Args:
        values: NaN where there is none, shape (n, n_joints).
        needed: joints whose values a sample needs, shape (n_joints,).
    """
    for part in chunks(len(values)):
        rows = np.flatnonzero(_known(read_rows(values, part), needed))
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
    whole = scratch_array(values.shape, np.float64)
    for part in chunks(len(values)):
        whole[part] = np.nan
        release_pages(whole)
    known = np.concatenate([_known(read_rows(values, part), needed) for part in chunks(len(values))])
    phase = int(np.argmax(known)) % every
    for span in valid_spans(known[phase::every], 2 * _BEYOND):
        for start in range(span.start, span.stop - 1, max(CHUNK_ROWS // every, 1)):
            stop = min(start + max(CHUNK_ROWS // every, 1), span.stop - 1)  # the cell behind the last sample has no end
            first = min(max(start - _BEYOND, span.start), span.stop - 2 * _BEYOND)
            last = max(min(stop + _BEYOND + 1, span.stop), span.start + 2 * _BEYOND)
            rows = slice(phase + first * every, phase + (last - 1) * every + 1)
            own = np.arange(start * every, stop * every + 1)
            whole[phase + own] = interpolate_samples(read_rows(values, rows)[::every], own / every - first)
            release_pages(whole)
    return whole


def _known(values: Array, needed: NDArray[np.bool_]) -> NDArray[np.bool_]:
    return np.asarray((np.isfinite(values) | ~needed).all(axis=1))
