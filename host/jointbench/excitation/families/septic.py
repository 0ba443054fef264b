"""Polynomials of degree 7 from one state (position to jerk) to another, by their Bernstein coefficients.

The first four coefficients are those of the state it begins in, the last four those of the state it ends in; between
its smallest and its largest coefficient lies the whole polynomial, so that coefficients bound it.

Source: Farouki, The Bernstein polynomial basis: a centennial retrospective, CAGD 29(6), 2012.
"""

from functools import cache
from math import comb, factorial

import numpy as np

from jointbench.arrays import Array
from jointbench.excitation.families.basis import HIGHEST_DERIVATIVE

_DEGREE = 7

_HALVINGS = 4
"""How often a piece is halved before its coefficients are taken as bounds: 16 parts come within a few percent."""


def coefficients_at_start(length: float) -> Array:
    """Matrix (4, 4) from position, velocity, acceleration and jerk at the beginning to the first four coefficients.

    P_j = Σ_k C(j, k) (7 - k)!/7! T^k q^(k). At the end it is the same from the last coefficient backwards, with -T.

    Args:
        length: T [s]; negative for the state at the end.
    """
    return np.array(
        [[comb(j, k) * factorial(7 - k) / factorial(7) * length**k for k in range(4)] for j in range(4)],
        dtype=np.float64,
    )


def septic_values(share: Array, length: float, order: int) -> tuple[Array, ...]:
    """Values, and the first `order` derivatives, of the polynomials of which one coefficient is 1 and the others 0.

    Args:
        share: time since the beginning over the length, shape (n_times,).
        length: of the piece [s].
        order: of the last derivative.

    Returns:
        Shape (n_times, 8) each.
    """
    rising, falling = (np.vander(x, _DEGREE + 1, increasing=True) for x in (share, 1.0 - share))
    values: list[Array] = []
    for k in range(order + 1):
        degree = _DEGREE - k
        # Bernstein polynomials C(n, i) x^i (1 - x)^(n - i)
        bernstein = _binomials(degree) * rising[:, : degree + 1] * falling[:, degree::-1]
        values.append(bernstein @ (_differences(k) / length**k))
    return tuple(values)


def septic_bounds(coefficients: Array, length: float) -> Array:
    """Bounds of the magnitudes of the derivatives 0 to 5 of polynomials, never too low, shape (6, n).

    Args:
        coefficients: shape (8, n).
        length: of the piece [s].
    """
    bounds = [
        np.abs(_parts(_DEGREE - k) @ (_differences(k) @ coefficients)).max(axis=(0, 1)) / length**k
        for k in range(HIGHEST_DERIVATIVE + 1)
    ]
    return np.stack(bounds)


@cache
def _binomials(degree: int) -> Array:
    return np.array([comb(degree, i) for i in range(degree + 1)], dtype=np.float64)


@cache
def _differences(order: int) -> Array:
    """From coefficients to those of the derivative of this order over a piece of length 1, (8 - order, 8)."""
    matrix = np.eye(_DEGREE + 1)
    for degree in range(_DEGREE, _DEGREE - order, -1):
        matrix = degree * np.diff(matrix, axis=0)
    return matrix


@cache
def _parts(degree: int) -> Array:
    """From coefficients to those of equal parts of the polynomial (de Casteljau), (n_parts, degree + 1, degree + 1)."""
    left = np.array([[comb(j, i) / 2.0**j for i in range(degree + 1)] for j in range(degree + 1)])
    right = left[::-1, ::-1]
    parts = np.eye(degree + 1)[None]
    for _ in range(_HALVINGS):
        parts = np.concatenate([left @ parts, right @ parts])
    return parts
