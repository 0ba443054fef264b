"""Valid spans of a recording, resampling of uneven times onto an even grid, and values between samples."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy  # its submodules load on first use; each takes up to a second
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.errors import SignalError

_REST_SHARE = 0.03
"""Share of a joint's largest speed below which it may be sticking, where the Coulomb law does not hold."""

_MAX_STEP = 1.6
"""Longest step between neighbours [sample periods]; beyond it, a sample is missing between them."""

_GRID_TOLERANCE = 1e-9
"""Distance [sample periods] within which a grid time coincides with a sample: rounding must not lose it."""

_INTERPOLATION_POINTS = 6


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


@dataclass(frozen=True, eq=False)
class UniformSamples:
    """Values on an even time grid.

    Attributes:
        time: [s], shape (n,).
        values: nan where not valid, shape (n, n_columns).
        valid: grid times between good samples, shape (n,); the others must not be used.
        sample_period: [s].
        jitter: root mean square deviation of the original steps from the sample period, gaps excluded [s].
        n_gaps: number of gaps between the first and the last grid time.
    """

    time: Array
    values: Array
    valid: NDArray[np.bool_]
    sample_period: float
    jitter: float
    n_gaps: int


def resample(
    time: Array, values: Array, valid: NDArray[np.bool_] | None = None, *, sample_period: float | None = None
) -> UniformSamples:
    """Resample unevenly timed values onto an even grid, by a cubic spline through each span without a gap.

    Neighbours within a span are at most 1.6 sample periods apart. No value is computed across a gap or from an
    invalid sample, and a span of fewer than four samples gives none. Motion up to a tenth of the sample rate keeps
    its shape; noise near the Nyquist frequency is attenuated unevenly, so low-pass the result before judging its
    spectrum.

    Args:
        time: of each sample [s], increasing, shape (n,).
        values: shape (n, n_columns).
        valid: False for samples to ignore, shape (n,); None: use all. Rows with nan or inf are ignored in any case.
        sample_period: of the grid [s]; None: the median step.

    Returns:
        The grid from the first to the last valid sample.

    Raises:
        SignalError: fewer than four good samples, times that do not rise, or no span that is regular enough.
    """
    good = np.isfinite(values).all(axis=1) & np.isfinite(time)
    if valid is not None:
        good &= valid
    good_time, good_values = time[good], values[good]
    if len(good_time) < 4:
        raise SignalError(f"{len(good_time)} good samples are too few to resample; at least 4 are needed")
    steps = np.diff(good_time)
    if steps.min() <= 0.0:
        row = int(np.argmin(steps))
        raise SignalError(
            f"times must rise: {good_time[row + 1]:.9g} s follows {good_time[row]:.9g} s; sort or drop such rows"
        )
    period = float(np.median(steps)) if sample_period is None else sample_period
    contiguous = steps <= _MAX_STEP * period
    n_grid = 1 + int(np.floor((good_time[-1] - good_time[0]) / period + _GRID_TOLERANCE))
    grid = good_time[0] + period * np.arange(n_grid, dtype=np.float64)
    resampled = np.full((n_grid, good_values.shape[1]), np.nan)
    covered = np.zeros(n_grid, dtype=np.bool_)
    tolerance = _GRID_TOLERANCE * period
    for steps_span in valid_spans(contiguous, min_length=3):
        span = slice(steps_span.start, steps_span.stop + 1)  # n steps join n + 1 samples
        first, last = good_time[span][0], good_time[span][-1]
        inside = (grid >= first - tolerance) & (grid <= last + tolerance)
        spline = scipy.interpolate.CubicSpline(good_time[span], good_values[span], axis=0)
        resampled[inside] = spline(np.clip(grid[inside], first, last))
        covered |= inside
    if not covered.any():
        raise SignalError(
            f"no four samples in a row lie within {_MAX_STEP:g} sample periods of {period:.6g} s of each other; "
            f"the times are too irregular to resample, record with a steadier clock or give a longer sample_period"
        )
    jitter = float(np.sqrt(np.mean((steps[contiguous] - period) ** 2)))
    return UniformSamples(grid, resampled, covered, period, jitter, n_gaps=sum(1 for _ in valid_spans(~covered)))


def interpolate_samples(values: Array, index: Array) -> Array:
    """Interpolate evenly spaced samples at fractional indices, by the polynomial through the six nearest samples.

    At whole indices the samples are returned bit for bit. Half way between two samples, a sine of ten samples per cycle
    keeps 99.97 % of its amplitude, one of five samples per cycle 98.5 %.

    Args:
        values: evenly sampled without gaps, shape (n, ...), n >= 6.
        index: fractional sample index, 0 to n - 1, shape (m,).

    Returns:
        Interpolated values, shape (m, ...).

    Raises:
        SignalError: too few samples, or an index outside of them.

    Source: Lagrange fractional delay, Laakso et al., IEEE Signal Processing Magazine 13(1), 1996.
    """
    n = len(values)
    if n < _INTERPOLATION_POINTS:
        raise SignalError(f"{n} samples are too few to interpolate; at least {_INTERPOLATION_POINTS} are needed")
    if len(index) and not (index.min() >= 0.0 and index.max() <= n - 1):
        raise SignalError(
            f"sample indices from {index.min():g} to {index.max():g} must lie within the samples, 0 to {n - 1}; "
            f"shift or shorten the range, nothing is known beyond the samples"
        )
    first = np.clip(np.floor(index).astype(np.intp) - (_INTERPOLATION_POINTS // 2 - 1), 0, n - _INTERPOLATION_POINTS)
    result = np.zeros((len(index), *values.shape[1:]))
    for k, weight in enumerate(lagrange_weights(index - first, _INTERPOLATION_POINTS)):
        result += weight.reshape(-1, *(1,) * (values.ndim - 1)) * values[first + k]
    return result


def lagrange_weights(position: Array, n_points: int) -> Array:
    """Return the Lagrange basis polynomials on the nodes 0, 1 ... n_points - 1.

    w_k(x) = prod_{j != k} (x - j) / (k - j), so that sum_k w_k(x) y_k is the polynomial through the n_points samples y.

    Args:
        position: x, shape (m,).
        n_points: number of nodes.

    Returns:
        Weights, shape (n_points, m); exactly 0 and 1 at the nodes.
    """
    weights = np.ones((n_points, len(position)))
    for k in range(n_points):
        for j in range(n_points):
            if j != k:
                weights[k] *= (position - j) / (k - j)
    return weights
