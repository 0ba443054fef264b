"""Stretches of samples that nothing is missing from, and in which a joint moves."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array

_SHARE = 0.03
"""A joint slower than this share of its largest speed may be sticking: its rows are not fitted."""


def spans(valid: NDArray[np.bool_], least: int = 1) -> Iterator[slice]:
    """Stretches of consecutive valid samples, in order.

    Filters and differences run within a stretch and never across its ends, so that what is missing is not invented.

    Args:
        valid: shape (n,).
        least: shorter stretches are left out.

    Yields:
        One slice per stretch.

    >>> list(spans(np.array([True, True, False, True]), least=2))
    [slice(0, 2, None)]
    """
    edges = np.flatnonzero(np.diff(np.concatenate([[False], valid, [False]]).astype(np.int8)))
    for start, stop in zip(edges[::2], edges[1::2], strict=True):
        if stop - start >= least:
            yield slice(int(start), int(stop))


def rest_threshold(velocity: Array) -> Array:
    """Speed below which a joint counts as near rest: 3 % of its largest speed in this motion.

    Args:
        velocity: [rad/s or m/s], shape (n, n_joints), n >= 1.

    Returns:
        Thresholds, shape (n_joints,).
    """
    return _SHARE * np.max(np.abs(velocity), axis=0)


def moving(velocity: Array, threshold: Array, guard: int = 0) -> NDArray[np.bool_]:
    """Where each joint moves faster than its threshold, and did and will within `guard` samples.

    Args:
        velocity: [rad/s or m/s], shape (n, n_joints).
        threshold: [rad/s or m/s], shape (n_joints,).
        guard: samples before and after rest that count as rest too (a filter smears rest that far).

    Returns:
        Mask, shape (n, n_joints).
    """
    rest = np.abs(velocity) <= threshold
    if guard:
        padded = np.pad(np.cumsum(rest, axis=0), ((guard + 1, guard), (0, 0)), mode="edge")
        padded[: guard + 1] = 0
        rest = padded[2 * guard + 1 :] - padded[: -2 * guard - 1] > 0
    return ~rest
