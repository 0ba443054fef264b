from collections.abc import Callable

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.dynamics import inverse_dynamics, regressor
from jointbench.errors import ShapeError
from jointbench.robot import Robot, load_robot

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
