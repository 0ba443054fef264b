"""Tests of several parameters at once, honest about their number and about how well their σ are known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from jointbench.arrays import Array

_DEPENDENT = 1e-10
"""Eigenvalue of a correlation matrix, relative to the largest, under which a combination carries no test."""


def holm(p_values: Array) -> Array:
    """Probabilities corrected for their number: those at most α name wrongly anything at all with probability α.

    Args:
        p_values: of each test, nan where there is none, shape (n,).

    Returns:
        Corrected, never below the given ones, nan where there is none, shape (n,).

    Source: Holm, Scandinavian J. Statistics 6(2), 1979.

    >>> holm(np.array([0.01, 0.04, np.nan, 0.03])).tolist()
    [0.03, 0.06, nan, 0.06]
    """
    order = np.argsort(p_values)  # nan last
    count = int(np.isfinite(p_values).sum())
    corrected = np.full(len(p_values), np.nan)
    steps = p_values[order[:count]] * np.arange(count, 0, -1)
    corrected[order[:count]] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return corrected


@dataclass(frozen=True)
class JointTest:
    """Whether several differences are all zero.

    Attributes:
        chi_square: Σ of the squares of their independent combinations, each by its σ.
        freedom: how many combinations there are.
        p_value: how likely equal parameters are at least that far apart; nan where the σ rest on too few rows.
    """

    chi_square: float
    freedom: int
    p_value: float


def joint_test(difference: Array, covariances: tuple[Array, ...], effective_rows: tuple[float, ...]) -> JointTest:
    """Test that a difference is zero, its covariance being the sum of estimated ones.

    T² = dᵀ (Σ S_i)⁻¹ d, and T² (ν - r + 1) / (ν r) is F(r, ν - r + 1) for r parameters and covariances known as from ν
    independent rows.

    Args:
        difference: shape (r,).
        covariances: whose sum is that of the difference, shape (r, r) each.
        effective_rows: how many independent rows each covariance is worth.

    Source: Hotelling, Ann. Math. Statist. 2(3), 1931; ν as Nel & van der Merwe, Comm. Statist. 15(12), 1986.
    """
    total = sum(covariances, np.zeros((len(difference), len(difference))))
    scale = np.sqrt(np.diag(total))
    scale[scale == 0.0] = 1.0
    if not len(difference):
        return JointTest(0.0, 0, float("nan"))
    values, vectors = np.linalg.eigh(total / np.outer(scale, scale))
    kept = values > _DEPENDENT * values[-1]
    whitening = (vectors[:, kept] / np.sqrt(values[kept])).T / scale
    chi_square, r = float(np.sum((whitening @ difference) ** 2)), int(kept.sum())
    parts = [whitening @ covariance @ whitening.T for covariance in covariances]
    spread = sum(
        (np.sum(part * part.T) + np.trace(part) ** 2) / rows for part, rows in zip(parts, effective_rows, strict=True)
    )
    freedom = (r + r**2) / float(spread)
    below = freedom - r + 1.0
    p_value = float(special.fdtrc(r, below, chi_square * below / (freedom * r))) if below > 0.0 else float("nan")
    return JointTest(chi_square, r, p_value)


def single_tests(difference: Array, variances: tuple[Array, ...], effective_rows: tuple[float, ...]) -> Array:
    """Probability that equal parameters are at least that far apart, each for itself; nan where σ is infinite.

    Args:
        difference: shape (n,).
        variances: whose sum is that of the difference, shape (n,) each.
        effective_rows: how many independent rows each is worth.

    Source: Welch, Biometrika 34(1-2), 1947, for the degrees of freedom of Student's t.
    """
    total = sum(variances, np.zeros(len(difference)))
    told = np.isfinite(total) & (total > 0.0)
    p_values = np.full(len(difference), np.nan)
    parts = sum(variance[told] ** 2 / rows for variance, rows in zip(variances, effective_rows, strict=True))
    freedom = total[told] ** 2 / parts
    p_values[told] = 2.0 * special.stdtr(freedom, -np.abs(difference[told]) / np.sqrt(total[told]))
    return p_values
