"""Error bars where they are known otherwise."""

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.identification.zero_moment_point.trust_region import error_bars, starting_rows

N = 4000


def columns(rng: np.random.Generator) -> Array:
    """Slow waves, two rows at a time."""
    angle = 2.0 * np.pi * np.outer(np.arange(N) / N, rng.uniform(3.0, 40.0, 6)) + rng.uniform(0.0, 6.0, 6)
    return np.sin(angle).reshape(N, 2, 3)


def starts() -> np.ndarray:
    return starting_rows(np.linspace(0.0, 0.05 * (N - 1), N), 0.05)


def test_white_residuals_give_the_textbooks_covariance() -> None:
    rng = np.random.default_rng(0)
    jacobian = columns(rng)
    bars = error_bars(jacobian, rng.standard_normal((N, 2)), 1.0, np.zeros(3), starts())
    rows = jacobian.reshape(-1, 3)

    # Windows of a few hundred terms' products: some 5 % of chance.
    np.testing.assert_allclose(np.diag(bars.covariance), np.diag(np.linalg.inv(rows.T @ rows)), rtol=0.2)
    assert bars.inflation < 1.2


def test_residuals_that_follow_each_other_tell_less() -> None:
    """Autoregressive, 0.8 of each in the next: slow columns see (1 + 0.8)/(1 - 0.8) = 9 times the variance."""
    rng = np.random.default_rng(1)
    jacobian, noise = columns(rng), rng.standard_normal((N, 2))
    residual = np.zeros((N, 2))
    for k in range(1, N):
        residual[k] = 0.8 * residual[k - 1] + 0.6 * noise[k]
    white = error_bars(jacobian, noise, 1.0, np.zeros(3), starts())
    bars = error_bars(jacobian, residual, 1.0, np.zeros(3), starts())

    # The triangular window sees some three quarters of it, less where columns move within the correlation's time.
    assert 5.0 < np.trace(bars.covariance) / np.trace(white.covariance) < 11.0
    assert bars.inflation == pytest.approx(np.trace(bars.covariance) / np.trace(white.covariance), rel=0.3)


def test_what_only_a_prior_tells_keeps_its_sigma() -> None:
    rng = np.random.default_rng(2)
    jacobian = np.concatenate([columns(rng), np.zeros((N, 2, 1))], axis=2)
    prior = np.array([0.0, 0.0, 0.0, 2.5])  # weight of one whose σ is 1
    bars = error_bars(jacobian, rng.standard_normal((N, 2)), 1.0, prior, starts())

    assert bars.covariance[3, 3] == pytest.approx(1.0)
    np.testing.assert_allclose(bars.covariance[3, :3], 0.0, atol=1e-12)


def test_a_gap_and_another_run_start_anew() -> None:
    time = np.array([0.0, 0.05, 0.10, 0.30, 0.35, 0.0, 0.05])
    assert starting_rows(time, 0.05).tolist() == [True, False, False, True, False, True, False]
