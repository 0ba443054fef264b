"""How good the information about parameters is: one number each, the less the better, and its derivative.

A criterion takes the eigenvalues and eigenvectors of the information matrix G = VᵀV. The best motions are where several
small eigenvalues meet, and there the smallest has no derivative; so each criterion has a smooth stand-in, in which the
largest of some x becomes (Σ x^p)^(1/p): never less than the largest, the closer the larger the *sharpness* p is, and
the largest itself for p = inf.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jointbench.arrays import Array

Criterion = Callable[[Array, Array, Array, float], tuple[float, Array]]
"""Called as criterion(eigenvalues, eigenvectors, units, sharpness): its value, and the derivative by G, symmetric.

Eigenvalues are above zero, shape (n,); eigenvectors are the columns, shape (n, n). Parameters are in the units with
which they were decomposed; those of d_optimal and worst_sigma become 1 / units, shape (n,), times as large.
"""


def condition(values: Array, vectors: Array, units: Array, sharpness: float) -> tuple[float, Array]:
    """Log of the condition number of V, ½ log(largest / smallest)."""
    top, of_top = log_largest(np.log(values), sharpness)
    bottom, of_bottom = log_largest(-np.log(values), sharpness)
    return 0.5 * (top + bottom), spectral(vectors, 0.5 * (of_top - of_bottom) / values)


def d_optimal(values: Array, vectors: Array, units: Array, sharpness: float) -> tuple[float, Array]:
    """-log det G for each parameter: twice the log of the mean radius of the confidence ellipsoid. It is smooth."""
    value = 2.0 * np.log(units).mean() - np.log(values).mean()
    return float(value), spectral(vectors, -1.0 / (len(values) * values))


def e_optimal(values: Array, vectors: Array, units: Array, sharpness: float) -> tuple[float, Array]:
    """-log of the smallest eigenvalue: the log of the variance of the worst combination of parameters."""
    value, shares = log_largest(-np.log(values), sharpness)
    return value, spectral(vectors, -shares / values)


def worst_sigma(values: Array, vectors: Array, units: Array, sharpness: float) -> tuple[float, Array]:
    """Log of the largest standard deviation of a parameter, ½ log max diag G⁻¹."""
    inverse = spectral(vectors, 1.0 / values)
    variances = np.diag(inverse)
    value, shares = log_largest(2.0 * np.log(units) + np.log(variances), sharpness)
    return 0.5 * value, -0.5 * (inverse * (shares / variances)) @ inverse


def log_largest(logs: Array, sharpness: float) -> tuple[float, Array]:
    """Log of the largest of some numbers, or of (Σ x^p)^(1/p), of their logs; and its derivative by the logs."""
    largest = logs.max()
    if np.isinf(sharpness):
        shares = np.zeros_like(logs)
        shares[logs.argmax()] = 1.0
        return float(largest), shares
    # What is under e^-700 of the largest counts as nothing: exp would underflow.
    powers = np.exp(np.maximum(sharpness * (logs - largest), -700.0))
    return float(largest + np.log(powers.sum()) / sharpness), powers / powers.sum()


def spectral(vectors: Array, values: Array) -> Array:
    """The symmetric matrix of these eigenvectors and eigenvalues."""
    return (vectors * values) @ vectors.T
