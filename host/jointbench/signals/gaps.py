"""Stretches of samples that nothing is missing from."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray


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
