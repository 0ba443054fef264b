"""Segments of a recording: spans without gaps, and samples at which a joint moves."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy  # its submodules load on first use; each takes up to a second
from numpy.typing import NDArray

from jointbench.arrays import Array

_REST_SHARE = 0.03
"""Share of a joint's largest speed below which it may be sticking, where the Coulomb law does not hold."""


def valid_spans(valid: NDArray[np.bool_], min_length: int = 1) -> Iterator[slice]:
    """Iterate over the spans of consecutive valid samples, in order.

    Filters and differences run within a span and never across its ends, so that missing samples are not invented.

    Args:
        valid: shape (n,).
        min_length: shorter spans are left out [samples].

    Yields:
        One slice per span.

    >>> list(valid_spans(np.array([True, True, False, True]), min_length=2))
    [slice(0, 2, None)]
    """
    edges = np.flatnonzero(np.diff(np.concatenate([[False], valid, [False]]).astype(np.int8)))
    for start, stop in zip(edges[::2], edges[1::2], strict=True):
        if stop - start >= min_length:
            yield slice(int(start), int(stop))


def rest_threshold(velocity: Array) -> Array:
    """Return the speed below which each joint counts as at rest: 3 % of its largest speed in this motion.

    Args:
        velocity: [rad/s or m/s], shape (n, n_joints), n >= 1.

    Returns:
        Thresholds, same unit, shape (n_joints,).
    """
    return _REST_SHARE * np.max(np.abs(velocity), axis=0)


def moving_mask(velocity: Array, threshold: Array, guard: int = 0) -> NDArray[np.bool_]:
    """Return the samples at which each joint is faster than its threshold, also within `guard` samples around them.

    Args:
        velocity: [rad/s or m/s], shape (n, n_joints).
        threshold: [rad/s or m/s], shape (n_joints,).
        guard: samples before and after rest that count as rest too, because a filter smears rest so far.

    Returns:
        True where moving, shape (n, n_joints).
    """
    at_rest = np.abs(velocity) <= threshold
    if guard:
        at_rest = scipy.ndimage.maximum_filter1d(at_rest, 2 * guard + 1, axis=0, mode="constant", cval=0)
    return ~np.asarray(at_rest, dtype=np.bool_)
