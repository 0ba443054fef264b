"""The regressor, its normal equations and its QR."""

import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.errors import FitError, ShapeError
from jointbench.model import Robot, StreamingQR, inverse_dynamics, load_robot, normal_equations, regressor

RandomRobot = Callable[..., Robot]
RandomMotion = Callable[[Robot, int, int], tuple[Array, Array, Array]]


def test_samples_do_not_depend_on_their_neighbours(random_robot: RandomRobot, random_motion: RandomMotion) -> None:
    """The batch is worked off in chunks; a sample's rows must not tell in which."""
    robot = random_robot("RRPR", 0)
    q, dq, ddq = random_motion(robot, 1100, 0)

    together = regressor(robot, q, dq, ddq)

    for k in (0, 511, 512, 1023, 1099):
        alone = regressor(robot, q[k : k + 1], dq[k : k + 1], ddq[k : k + 1])
        np.testing.assert_allclose(together[4 * k : 4 * k + 4], alone, rtol=1e-13, atol=1e-13)


def test_out_is_filled_whatever_it_held(random_robot: RandomRobot, random_motion: RandomMotion) -> None:
    robot = random_robot("RPR", 1)
    motion = random_motion(robot, 30, 1)
    expected = regressor(robot, *motion)
    out = np.full_like(expected, 7.0)

    returned = regressor(robot, *motion, out=out)

    assert returned is out
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("out", [np.zeros((6, 61)), np.zeros((6, 60), dtype=np.float32), np.zeros((60, 6)).T])
def test_out_of_another_form_is_refused(out: Array) -> None:
    still = np.zeros((1, 6))

    with pytest.raises(ShapeError, match=r"must be C-contiguous float64 of shape \(6, 60\)"):
        regressor(load_robot("cobot6"), still, still, still, out=out)


def test_no_samples_give_no_rows() -> None:
    none = np.zeros((0, 6))

    assert regressor(load_robot("cobot6"), none, none, none).shape == (0, 60)


def test_wrong_number_of_joints_is_named() -> None:
    five = np.zeros((3, 5))

    with pytest.raises(ShapeError, match=r"q has shape \(3, 5\); robot 'cobot6' needs \(n_samples, 6\).*j1, j2"):
        regressor(load_robot("cobot6"), five, five, five)


def test_differing_sample_counts_are_named() -> None:
    with pytest.raises(ShapeError, match=r"ddq has 2 samples but q has 3"):
        regressor(load_robot("cobot6"), np.zeros((3, 6)), np.zeros((3, 6)), np.zeros((2, 6)))


def test_wrong_parameter_vector_is_named() -> None:
    still = np.zeros((1, 6))

    with pytest.raises(ShapeError, match=r"standard_parameters has shape \(59,\).*needs \(60,\)"):
        inverse_dynamics(load_robot("cobot6"), still, still, still, np.zeros(59))


# Sums of some thousand products in another order, relative to the largest: 1e-13 is seen, 1e-12 allowed.
ROUNDING = 1e-12


def plainly(robot: Robot, motion: tuple[Array, ...], weights: Array) -> tuple[Array, Array, float]:
    """The normal equations by way of W."""
    q, dq, ddq, tau = motion
    matrix, torques, weights = regressor(robot, q, dq, ddq), tau.ravel(), np.broadcast_to(weights, q.shape).ravel()
    return (matrix.T * weights) @ matrix, (matrix.T * weights) @ torques, float(torques @ (weights * torques))


@pytest.mark.parametrize("samples", [0, 1, 7, 8, 127, 128, 131, 1003])
@pytest.mark.parametrize("weighting", ["none", "by joint", "by sample"])
@pytest.mark.parametrize(("kinds", "is_tree"), [("RRRRRR", False), ("RPRRR", True)])
def test_they_are_those_of_the_regressor(
    samples: int, weighting: str, kinds: str, is_tree: bool, random_robot: RandomRobot, random_motion: RandomMotion
) -> None:
    robot = random_robot(kinds, 1, tree=is_tree)
    rng = np.random.default_rng(samples)
    motion = (*random_motion(robot, samples, 1), rng.normal(size=(samples, len(kinds))))
    shapes = {"none": None, "by joint": (len(kinds),), "by sample": (samples, len(kinds))}
    shape = shapes[weighting]
    weights = None if shape is None else rng.uniform(0.0, 2.0, shape)

    found = normal_equations(robot, *motion, weights)

    gram, right, squares = plainly(robot, motion, np.ones(1) if weights is None else weights)
    np.testing.assert_allclose(found.gram, gram, atol=ROUNDING * np.abs(gram).max(initial=0.0))
    np.testing.assert_allclose(found.right, right, atol=ROUNDING * np.abs(right).max(initial=0.0) + 1e-13)
    assert found.squares == pytest.approx(squares, rel=ROUNDING)
    assert found.rows == samples * len(kinds)
    np.testing.assert_array_equal(found.gram, found.gram.T)


def test_those_of_two_logs_add_up(random_motion: RandomMotion) -> None:
    robot = load_robot("cobot6")
    q, dq, ddq = random_motion(robot, 500, 0)
    tau = np.random.default_rng(1).normal(size=q.shape)
    whole = normal_equations(robot, q, dq, ddq, tau)
    parts = [
        normal_equations(robot, *(values[part] for values in (q, dq, ddq, tau)))
        for part in (slice(210), slice(210, None))
    ]
    both = parts[0] + parts[1]
    np.testing.assert_allclose(both.gram, whole.gram, atol=ROUNDING * np.abs(whole.gram).max())
    np.testing.assert_allclose(both.right, whole.right, atol=ROUNDING * np.abs(whole.right).max())
    assert (both.rows, both.squares) == (whole.rows, pytest.approx(whole.squares, rel=ROUNDING))


def test_memory_does_not_grow_with_the_log(random_motion: RandomMotion) -> None:
    robot = load_robot("cobot6")
    peaks = []
    for samples in (2_000, 40_000):
        q, dq, ddq = random_motion(robot, samples, 0)
        normal_equations(robot, q, dq, ddq, q)
        tracemalloc.start()
        normal_equations(robot, q, dq, ddq, q)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # Roots of the weights have no memory of their own; one double per row would be 1.8 MB.
    assert peaks[1] < peaks[0] + 50_000


@pytest.mark.parametrize("value", [-1.0, np.nan])
def test_weights_that_are_none_are_refused(value: float) -> None:
    still = np.zeros((3, 6))
    with pytest.raises(FitError, match=r"weights holds (-1|nan); each must be zero or more"):
        normal_equations(load_robot("cobot6"), still, still, still, still, np.full(6, value))


def test_wrong_shapes_are_named() -> None:
    still = np.zeros((3, 6))
    with pytest.raises(ShapeError, match=r"weights has shape \(3,\); robot 'cobot6' needs \(3, 6\), or \(6,\)"):
        normal_equations(load_robot("cobot6"), still, still, still, still, np.ones(3))
    with pytest.raises(ShapeError, match=r"tau has shape \(18,\)"):
        normal_equations(load_robot("cobot6"), still, still, still, still.ravel())


@pytest.mark.parametrize("pieces", [1, 3, 40])
def test_qr_of_pieces_is_that_of_the_whole(pieces: int) -> None:
    """Pieces of as few rows as five, of twelve columns."""
    rng = np.random.default_rng(0)
    matrix, right = rng.normal(size=(200, 12)), rng.normal(size=200)
    streaming = StreamingQR(12)
    for rows, values in zip(np.array_split(matrix, pieces), np.array_split(right, pieces), strict=True):
        streaming.add(rows, values)

    solution, residual, *_ = np.linalg.lstsq(matrix, right, rcond=None)
    np.testing.assert_allclose(np.linalg.solve(streaming.triangle, streaming.right), solution, rtol=1e-11)
    assert streaming.residual == pytest.approx(float(residual[0]), rel=1e-11)
    assert streaming.rows == 200
    np.testing.assert_allclose(streaming.triangle.T @ streaming.triangle, matrix.T @ matrix, atol=1e-11)
    np.testing.assert_array_equal(np.tril(streaming.triangle, -1), 0.0)


def test_qr_keeps_digits_that_normal_equations_lose() -> None:
    """Columns that differ by 1e-9 of their length: squared, that is beyond a double."""
    rng = np.random.default_rng(1)
    column = rng.normal(size=300)
    matrix = np.column_stack([column, column + 1e-9 * rng.normal(size=300)])
    expected = np.array([2.0, 3.0])
    streaming = StreamingQR(2)
    for rows, values in zip(np.array_split(matrix, 7), np.array_split(matrix @ expected, 7), strict=True):
        streaming.add(rows, values)
    found = np.linalg.solve(streaming.triangle, streaming.right)
    # Rounding of 1e-16 over a sine of 1e-9, times a few.
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_qr_of_a_robots_rows(random_motion: RandomMotion) -> None:
    robot = load_robot("cobot6")
    q, dq, ddq = random_motion(robot, 300, 0)
    tau = np.random.default_rng(0).normal(size=q.shape)
    streaming = StreamingQR(60)
    for part in np.array_split(np.arange(300), 4):
        streaming.add(regressor(robot, q[part], dq[part], ddq[part]), tau[part])
    equations = normal_equations(robot, q, dq, ddq, tau)
    triangle = streaming.triangle
    np.testing.assert_allclose(triangle.T @ triangle, equations.gram, atol=ROUNDING * np.abs(equations.gram).max())
    np.testing.assert_allclose(
        triangle.T @ streaming.right, equations.right, atol=1e-11 * np.abs(equations.right).max()
    )


def test_qr_refuses_other_rows() -> None:
    streaming = StreamingQR(3)
    with pytest.raises(ShapeError, match=r"rows of shape \(5, 4\) with 5 values on the right; needed are \(5, 3\)"):
        streaming.add(np.zeros((5, 4)), np.zeros(5))
    with pytest.raises(ShapeError, match=r"with 6 values on the right; needed are \(6, 3\)"):
        streaming.add(np.zeros((5, 3)), np.zeros(6))
