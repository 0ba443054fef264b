"""Blocks of time: strength, error bars and held-out errors of least squares beside a prior."""

import numpy as np
import pytest
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.identification.blocked_least_squares import (
    BLOCKS,
    BlockedFit,
    GaussianPrior,
    block_sums,
    blocked_fit,
    body_prior,
    ridge,
)
from jointbench.identification.physical.pseudo_inertia import pseudo_inertia, reference_bodies, relative_to
from jointbench.identification.rows import RowsInMemory
from jointbench.model import base_parameters, load_robot

TRUTH = np.array([2.0, -1.0, 0.5])
FAR = GaussianPrior(np.zeros(3), 1e3 * np.eye(3), True, np.zeros(3), 1e3 * np.ones(3))
"""A prior that says nothing."""


def rows_of(noise: Array, seed: int) -> RowsInMemory:
    """Rows of two joints whose columns are slow waves, with a noise of this shape (n, 2)."""
    rng, n = np.random.default_rng(seed), len(noise)
    t, phases = np.linspace(0.0, 1.0, n), rng.uniform(0.0, 6.28, (2, 3))
    columns = np.sin(2.0 * np.pi * np.array([3.0, 5.0, 8.0]) * t[:, None, None] + phases)
    return RowsInMemory(columns, columns @ TRUTH + noise, np.ones((n, 2), dtype=np.bool_))


def coloured(seed: int, n: int = 1000, memory: float = 0.0) -> Array:
    """Noise x[k] = memory x[k-1] + white, of standard deviation 1."""
    noise = np.random.default_rng(seed).standard_normal((n, 2))
    for k in range(1, n):
        noise[k] = memory * noise[k - 1] + np.sqrt(1.0 - memory**2) * noise[k]
    return noise


def fitted(noise: Array, seed: int, prior: GaussianPrior = FAR) -> BlockedFit:
    return blocked_fit(block_sums([rows_of(noise, seed)])[0], prior)


def test_sums_and_triangles_are_those_of_all_rows() -> None:
    rows = rows_of(coloured(0), 0)
    sums, triangles = block_sums([rows, rows_of(coloured(1, n=300), 1)])
    assert set(sums.block.tolist()) == set(range(BLOCKS))
    table = np.concatenate([rows.regressor, rows.torque[:, :, None]], axis=2)
    grams, counts = sums.of_groups
    np.testing.assert_allclose(grams[0], np.einsum("njk,njl->jkl", table, table), rtol=1e-12, atol=1e-9)
    np.testing.assert_array_equal(counts, [[1000, 1000], [300, 300]])
    own = triangles.matrices[:2]
    np.testing.assert_allclose(np.swapaxes(own, 1, 2) @ own, grams[0], rtol=1e-10, atol=1e-8)


def test_ridge_is_the_closed_form() -> None:
    rng = np.random.default_rng(2)
    x, y = rng.standard_normal((20, 3)), rng.standard_normal(20)
    prior = GaussianPrior(np.ones(3), np.diag([1.0, 2.0, 3.0]), True, np.ones(3), np.ones(3))
    precision = np.diag([1.0, 1.0 / 4.0, 1.0 / 9.0])
    table = np.column_stack([x, y])
    for strength in (0.1, 10.0):
        expected = np.linalg.solve(x.T @ x + strength * precision, x.T @ y + strength * precision @ prior.mean)
        np.testing.assert_allclose(ridge(table.T @ table, prior, np.array([strength]))[0], expected, rtol=1e-12)


@pytest.mark.parametrize("memory", [0.0, 0.8])
def test_inflation_is_how_many_rows_count_as_one(memory: float) -> None:
    """(1 + a) / (1 - a) of a first-order noise against columns that are slow beside it."""
    expected = (1.0 + memory) / (1.0 - memory)
    values = [fitted(coloured(seed, memory=memory), seed).inflation for seed in range(30)]
    # 3 parameters from 20 blocks tell a variance to about 20 %, 30 fits to 4 %; it is at least 1 in each.
    assert np.mean(values) == pytest.approx(max(expected, 1.1), rel=0.15)


def test_error_bars_cover_the_truth_where_noise_has_a_memory() -> None:
    inside, white = list[NDArray[np.bool_]](), list[NDArray[np.bool_]]()
    for seed in range(60):
        fit = fitted(coloured(seed, memory=0.9), seed)
        away = np.abs(fit.parameters - TRUTH)
        inside.append(away < 2.0 * np.sqrt(np.diag(fit.covariance())))
        gram = fit.blocks.sum(axis=0)[:-1, :-1]
        white.append(away < 2.0 * np.sqrt(np.diag(np.linalg.inv(gram))))
    # Of 180 parameters, three correlated ones at a time, 2 σ hold 95 ± 2.5 %; rows that count as independent hold half.
    assert np.mean(inside) > 0.88
    assert np.mean(white) < 0.7


def test_covariance_is_one() -> None:
    """Of full rank, though few blocks make it, so that distances from an estimate can be told."""
    covariance = fitted(coloured(3, memory=0.9), 3).covariance()
    np.testing.assert_allclose(covariance, covariance.T)
    assert np.linalg.eigvalsh(covariance)[0] > 0.0


def test_a_prior_of_balls_is_as_strong_as_it_predicts() -> None:
    """Noise that says nothing is held down to the prior's zero; a signal is not."""
    balls = GaussianPrior(np.zeros(3), np.eye(3), False, np.zeros(3), np.ones(3))
    rows = rows_of(coloured(5, memory=0.95), 5)
    nothing = RowsInMemory(rows.regressor, coloured(5, memory=0.95), rows.used)
    weak = blocked_fit(block_sums([rows])[0], balls)
    strong = blocked_fit(block_sums([nothing])[0], balls)
    assert weak.strength < 1.0 < strong.strength


def test_a_quarter_that_moves_otherwise_is_seen_by_the_others() -> None:
    """An offset in one quarter of the time: parameters fitted without it miss it."""
    noise = 0.01 * coloured(6)
    rows = rows_of(noise, 6)
    bent = rows.torque.copy()
    bent[:250] = rows.regressor[:250] @ np.array([3.0, -1.0, 0.5])
    fit = blocked_fit(block_sums([RowsInMemory(rows.regressor, bent, rows.used)])[0], FAR)
    np.testing.assert_allclose(fit.quarters[0], TRUTH, atol=0.02)  # noise of 0.01 over some 500 rows' worth
    assert abs(fit.parameters[0] - 2.0) > 0.15


def test_links_are_held_by_the_second_order_of_the_log_det_divergence() -> None:
    robot = load_robot("cobot6")
    base = base_parameters(robot)
    ones = np.ones(robot.n_joints)
    prior = body_prior(base, ones, np.ones((robot.n_joints, base.rank)))
    assert prior.is_nominal
    assert robot.standard_parameters is not None
    bodies = reference_bodies(robot)
    link = bodies.links[2]
    own = slice(10 * link, 10 * link + 10)
    reference, step = bodies.matrices[2], np.zeros(10)
    step[0], step[4], step[7], step[9] = 1e-3, 1e-4, 2e-4, 1e-4
    moved = reference + pseudo_inertia(step)
    ratio = np.linalg.solve(reference, moved)
    divergence = np.trace(ratio) - np.log(np.linalg.det(ratio)) - 4.0
    away = np.linalg.solve(relative_to(reference), step)
    # The next order is as large as the step relative to the body, some 1e-3 … 1e-2.
    assert 0.5 * away @ away == pytest.approx(divergence, rel=0.05)
    np.testing.assert_allclose(
        prior.sigma_of_all[own] ** 2, 2.0 * np.sum(relative_to(reference) ** 2, axis=1), rtol=1e-9
    )
