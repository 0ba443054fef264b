"""Values between two samples."""

import numpy as np

from jointbench.arrays import Array
from jointbench.errors import SignalError

_POINTS = 6


def at_places(values: Array, places: Array) -> Array:
    """Values at fractional places of a row of samples, along the polynomial through the six nearest of them.

    At whole places the samples come back as they are, to the bit. A sine with ten samples a cycle keeps 99.97 % of its
    amplitude half way between two of them, one with five 98.5 %.

    Args:
        values: evenly spaced, without gaps, shape (n, ...), n >= 6.
        places: counted in samples from the first, within 0..n-1, shape (m,).

    Returns:
        Interpolated values, shape (m, ...).

    Raises:
        SignalError: too few samples, or a place outside of them.

    Source: Lagrange's formula; as a fractional delay in Laakso et al., IEEE Signal Processing Magazine 13(1), 1996.
    """
    n = len(values)
    if n < _POINTS:
        raise SignalError(f"{n} samples are too few to interpolate between; at least {_POINTS} are needed")
    if len(places) and not (places.min() >= 0.0 and places.max() <= n - 1):
        raise SignalError(
            f"places from {places.min():g} to {places.max():g} must lie within the samples, 0 to {n - 1}; "
            f"nothing is known beyond them"
        )
    first = np.clip(np.floor(places).astype(np.intp) - (_POINTS // 2 - 1), 0, n - _POINTS)
    offset = places - first
    result = np.zeros((len(places), *values.shape[1:]))
    for k in range(_POINTS):
        weight = np.ones(len(places))
        for other in range(_POINTS):
            if other != k:
                weight *= (offset - other) / (k - other)
        result += weight.reshape(-1, *(1,) * (values.ndim - 1)) * values[first + k]
    return result
