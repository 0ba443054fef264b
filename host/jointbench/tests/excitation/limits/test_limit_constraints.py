import numpy as np
import pytest

from jointbench.excitation import RampedFourier, RestToRestFourier
from jointbench.excitation.limits.certificate import motion_at
from jointbench.excitation.limits.motion_limits import joint_limits
from jointbench.excitation.limits.scaling import scale_into_limits
from jointbench.excitation.limits.torque_limits import usable_limits
from jointbench.excitation.search.problem import LimitConstraints
from jointbench.robot import Robot
from jointbench.tests.excitation.random_robots import random_family, random_tree, random_weights


@pytest.mark.parametrize("seed", range(10))
def test_jacobian_is_that_of_the_values(seed: int) -> None:
    rng = np.random.default_rng(seed)
    robot = random_tree(rng, int(rng.integers(1, 8)), mimics=seed % 2 == 1)
    basis = random_family(rng)
    constraints = LimitConstraints.of(usable_limits(robot), basis, np.array(robot.home))
    weights = 0.1 * random_weights(rng, robot, basis)

    values, jacobian = constraints.values_and_jacobian(weights)

    assert jacobian.shape == (len(values), weights.size)
    direction = rng.standard_normal(weights.shape)
    h = 1e-7  # so small that hardly a peak moves to another sample
    ahead, behind = (constraints.values_and_jacobian(weights + step * direction)[0] for step in (h, -h))
    slope = (ahead - behind) / (2.0 * h)
    # Rounding of values of some tens over h; where a peak does move, the mean of two slopes.
    off = np.abs(jacobian @ direction.ravel() - slope) > 1e-5 * np.abs(slope).max()
    assert np.mean(off) < 0.01


def test_values_are_what_is_left_at_the_worst_of_each_section(cobot: Robot) -> None:
    basis, home, limits = RestToRestFourier(5, 10.0), np.array(cobot.home), usable_limits(cobot)
    weights = 0.2 * np.random.default_rng(0).standard_normal((6, basis.size))

    values = LimitConstraints.of(limits, basis, home, 40, 4).values_and_jacobian(weights)[0]

    time = (np.arange(20 * 210) + 0.5) * 10.0 / (20 * 210)  # 21 times as many, those of the constraints among them
    motion = motion_at(basis, home, weights, time)
    usage = np.concatenate([limit.usage(motion) for limit in limits], axis=1)
    dense = 1.0 - usage.reshape(20, 210, -1).max(axis=1).T
    assert np.all(values.reshape(-1, 20) >= dense - 1e-12)
    # Ten samples of a section miss little of its peak; at its ends, half a step of the steepest slope.
    assert np.max(values.reshape(-1, 20) - dense) < 0.03
    assert values.reshape(-1, 20).min(axis=1) == pytest.approx(dense.min(axis=1), abs=0.004)


def test_a_feasible_motion_leaves_something_of_all(cobot: Robot) -> None:
    basis, home, limits = RestToRestFourier(5, 10.0), np.array(cobot.home), usable_limits(cobot)
    weights = scale_into_limits(limits, basis, home, np.random.default_rng(1).standard_normal((6, basis.size)), 1.0)
    constraints = LimitConstraints.of(limits, basis, home)

    assert constraints.values_and_jacobian(weights)[0].min() >= 0.0
    assert constraints.values_and_jacobian(1.01 * weights)[0].min() < 0.0


def test_what_is_far_from_its_limit_has_a_value_but_no_row(cobot: Robot) -> None:
    basis, home, limits = RestToRestFourier(5, 10.0), np.array(cobot.home), usable_limits(cobot)
    weights = 0.2 * np.random.default_rng(2).standard_normal((6, basis.size))

    values, jacobian = LimitConstraints.of(limits, basis, home).values_and_jacobian(weights)
    same, rows = LimitConstraints.of(limits, basis, home, heeded=0.6).values_and_jacobian(weights)

    np.testing.assert_array_equal(same, values)
    near = values < 0.6
    assert 0 < np.count_nonzero(near) < 0.5 * len(values)
    np.testing.assert_allclose(rows[near], jacobian[near], rtol=1e-12, atol=1e-12)
    assert np.all(rows[~near] == 0.0)


def test_without_limits_there_are_no_constraints(cobot: Robot) -> None:
    basis = RestToRestFourier(5, 10.0)

    values, jacobian = LimitConstraints.of((), basis, np.array(cobot.home)).values_and_jacobian(np.ones((6, 8)))

    assert values.shape == (0,)
    assert jacobian.shape == (0, 48)


@pytest.mark.parametrize("ramp", [1e-3, 0.1, 2.0])
def test_a_ramp_has_sections_of_its_own_however_short_it_is(cobot: Robot, ramp: float) -> None:
    constraints = LimitConstraints.of(joint_limits(cobot), RampedFourier(5, 20.0, ramp, 3), np.array(cobot.home))

    assert constraints.sections == 4 + 20 + 4
    assert constraints.phi.shape[1] == 280


@pytest.mark.parametrize("period", [3.0, 3.1, 10.0])
def test_sections_are_equal_in_samples(cobot: Robot, period: float) -> None:
    constraints = LimitConstraints.of(joint_limits(cobot), RestToRestFourier((1, 3, 7), period), np.array(cobot.home))

    assert constraints.phi.shape[1] % constraints.sections == 0
    assert constraints.sections == 28
    assert constraints.phi.shape[1] >= 280
