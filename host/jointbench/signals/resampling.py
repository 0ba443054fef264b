"""Samples brought onto an even grid, and values between two samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy  # each of its parts is imported where it is first used: all take a second
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.errors import SignalError
from jointbench.signals.segmentation import spans

_LONGEST_STEP = 1.6
"""Sample periods that two neighbours may lie apart; beyond, a sample is missing between them."""

_POINTS = 6


@dataclass(frozen=True, eq=False)
class Resampled:
    """Values on an even grid of times.

    Attributes:
        time: [s], shape (n,).
        values: nan where not valid, shape (n, n_columns).
        valid: grid places with good samples around them, shape (n,); the others must not be used.
        sample_period: [s].
        jitter: root mean square of what steps between neighbours differ from the sample period, gaps apart [s].
        gaps: number of stretches without samples between the first and the last grid place.
    """

    time: Array
    values: Array
    valid: NDArray[np.bool_]
    sample_period: float
    jitter: float
    gaps: int


def resample(
    time: Array, values: Array, valid: NDArray[np.bool_] | None = None, *, sample_period: float | None = None
) -> Resampled:
    """Bring samples of uneven times onto an even grid, by the cubic spline through each stretch without a gap.

    Within a stretch, neighbours lie at most 1.6 sample periods apart. Nothing is invented: no value comes from across
    a gap or from a flagged sample, and a stretch of fewer than four samples gives none. Motion up to a tenth of the
    sample rate keeps its shape; noise near half of it is weakened here and there, so filter before you trust spectra.

    Args:
        time: of each sample [s], rising, shape (n,).
        values: shape (n, n_columns).
        valid: False for flagged samples, shape (n,); None: all are good. Values that are nan or inf are flagged too.
        sample_period: of the grid [s]; None: the median step.

    Returns:
        The grid from the first to the last sample, with its flags.

    Raises:
        SignalError: fewer than four good samples, times that do not rise, or no stretch that is regular enough.
    """
    good = np.isfinite(values).all(axis=1) & np.isfinite(time)
    if valid is not None:
        good &= valid
    times, rows = time[good], values[good]
    if len(times) < 4:
        raise SignalError(f"{len(times)} good samples are too few to resample; at least 4 are needed")
    steps = np.diff(times)
    if steps.min() <= 0.0:
        row = int(np.argmin(steps))
        raise SignalError(f"times must rise: {times[row + 1]:.9g} s follows {times[row]:.9g} s; sort or drop such rows")
    period = float(np.median(steps)) if sample_period is None else sample_period
    together = steps <= _LONGEST_STEP * period
    grid = times[0] + period * np.arange(1 + int(np.floor((times[-1] - times[0]) / period + 1e-9)), dtype=np.float64)
    out = np.full((len(grid), rows.shape[1]), np.nan)
    known = np.zeros(len(grid), dtype=np.bool_)
    for part in spans(together, least=3):
        stretch = slice(part.start, part.stop + 1)
        # A grid place as good as on the last sample is on it: rounding must not cost it.
        inside = (grid >= times[stretch][0] - 1e-9 * period) & (grid <= times[stretch][-1] + 1e-9 * period)
        out[inside] = _spline(times[stretch], rows[stretch], grid[inside])
        known |= inside
    if not known.any():
        raise SignalError(
            f"no four samples in a row lie within {_LONGEST_STEP:g} sample periods of {period:.6g} s of each other; "
            f"the times are too irregular to resample, record with a steadier clock or give a longer sample_period"
        )
    jitter = float(np.sqrt(np.mean((steps[together] - period) ** 2)))
    return Resampled(grid, out, known, period, jitter, sum(1 for _ in spans(~known)))


def _spline(times: Array, rows: Array, wanted: Array) -> Array:
    spline = scipy.interpolate.CubicSpline(times, rows, axis=0)
    return np.asarray(spline(np.clip(wanted, times[0], times[-1])), dtype=np.float64)


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
