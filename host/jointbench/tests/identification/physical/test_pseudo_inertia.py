import numpy as np
import pytest

from jointbench.identification.physical.pseudo_inertia import (
    as_matrix,
    as_vector,
    pseudo_inertia,
    relative_to,
    standard_parameters,
)
from jointbench.identification.physical.solvers import curvature, log_cholesky, slopes, triangle
from jointbench.model import Link
from jointbench.model.joint import as_matrix as rigid_matrix

RNG = np.random.default_rng(4)


def body_of_points(masses, points):
    """The ten parameters of point masses, from their definition."""
    inertia = np.sum([m * (p @ p * np.eye(3) - np.outer(p, p)) for m, p in zip(masses, points, strict=True)], axis=0)
    return np.concatenate([[masses.sum()], masses @ points, inertia[np.triu_indices(3)]])


def random_body(rng=RNG):
    return body_of_points(rng.uniform(0.1, 1.0, 8), 0.3 * rng.normal(size=(8, 3)))


def test_it_is_the_second_moment_of_the_density_in_homogeneous_coordinates():
    masses, points = RNG.uniform(0.1, 1.0, 7), RNG.normal(size=(7, 3))
    homogeneous = np.hstack([points, np.ones((7, 1))])
    expected = (homogeneous.T * masses) @ homogeneous
    np.testing.assert_allclose(pseudo_inertia(body_of_points(masses, points)), expected, rtol=1e-13, atol=1e-13)


def test_parameters_come_back():
    parameters = RNG.normal(size=(3, 5, 10))  # any: the map is linear
    np.testing.assert_allclose(standard_parameters(pseudo_inertia(parameters)), parameters, atol=1e-15 * 10)
    vectors = RNG.normal(size=(6, 10))
    np.testing.assert_allclose(as_vector(as_matrix(vectors)), vectors, atol=1e-15)
    np.testing.assert_allclose(np.linalg.norm(as_matrix(vectors), axis=(1, 2)), np.linalg.norm(vectors, axis=1))


@pytest.mark.parametrize("seed", range(20))
def test_its_eigenvalues_and_the_triangle_inequality_say_the_same(seed):
    """Of a link with mass: positive definite if and only if `Link` finds nothing physically wrong."""
    rng = np.random.default_rng(seed)
    axes = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    inertia = (axes * rng.uniform(0.1, 1.0, 3)) @ axes.T
    link = Link("any", 2.0, tuple(rng.normal(size=3).tolist()), rigid_matrix(inertia))
    assert link.standard_parameters is not None
    possible = np.linalg.eigvalsh(pseudo_inertia(link.standard_parameters))[0] > 0.0
    assert possible == (link.physical_fault is None)


def test_both_kinds_occur_in_the_test_above():
    faults = [np.random.default_rng(seed) for seed in range(20)]
    possible = 0
    for rng in faults:
        np.linalg.qr(rng.normal(size=(3, 3)))
        low, middle, high = np.sort(rng.uniform(0.1, 1.0, 3))
        possible += low + middle > high
    assert 0 < possible < 20


def test_a_body_relative_to_itself_is_one():
    reference = pseudo_inertia(random_body())
    np.testing.assert_allclose(
        relative_to(reference) @ as_vector(np.eye(4)), standard_parameters(reference), rtol=1e-12, atol=1e-14
    )


def test_log_cholesky_goes_round():
    matrices = pseudo_inertia(np.array([random_body() for _ in range(5)]))
    lower = triangle(log_cholesky(matrices))
    np.testing.assert_allclose(lower @ np.swapaxes(lower, 1, 2), matrices, rtol=1e-13, atol=1e-15)
    theta = RNG.normal(size=(5, 10))
    lower = triangle(theta)
    np.testing.assert_allclose(log_cholesky(lower @ np.swapaxes(lower, 1, 2)), theta, rtol=1e-9, atol=1e-9)


def test_any_numbers_are_a_body():
    lower = triangle(3.0 * RNG.normal(size=(200, 10)))
    # Beyond 1e-12 of the largest eigenvalue rounding decides.
    eigenvalues = np.linalg.eigvalsh(lower @ np.swapaxes(lower, 1, 2))
    assert (eigenvalues[:, 0] > -1e-12 * eigenvalues[:, -1]).all()
    assert (np.linalg.det(lower) > 0.0).all()


def test_its_derivatives_are_exact():
    """Against complex-free central differences of one part in 1e5, whose error is about 1e-10."""
    theta, step = 0.5 * RNG.normal(size=10), 1e-5
    weights = RNG.normal(size=(4, 4))
    weights = weights + weights.T

    def vector(numbers):
        lower = triangle(numbers)
        return as_vector(lower @ lower.T)

    def weighed_slope(numbers):
        return as_vector(weights) @ slopes(triangle(numbers))

    moves = step * np.eye(10)
    numeric = np.array([(vector(theta + move) - vector(theta - move)) / (2.0 * step) for move in moves]).T
    np.testing.assert_allclose(slopes(triangle(theta)), numeric, rtol=1e-7, atol=1e-8)
    numeric = np.array([(weighed_slope(theta + move) - weighed_slope(theta - move)) / (2.0 * step) for move in moves])
    np.testing.assert_allclose(curvature(triangle(theta), weights), numeric, rtol=1e-6, atol=1e-7)
