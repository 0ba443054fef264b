import numpy as np
import pytest

from jointbench.dynamics import base_parameters, model_columns
from jointbench.excitation import plan_excitation, random_excitation
from jointbench.excitation.assemble import motion_of, sample_times
from jointbench.excitation.basis import RestToRestBasis
from jointbench.excitation.condition import ConditionObjective
from jointbench.excitation.constraints import LimitConstraints
from jointbench.excitation.random_motion import random_weights
from jointbench.excitation.usable_limits import UsableLimits
from jointbench.robot import Robot, load_robot


def test_a_plan_is_far_better_than_chance(cobot: Robot) -> None:
    by_chance = [random_excitation(cobot, seed=seed).condition_number for seed in range(20)]

    plan = plan_excitation(cobot, seed=0, starts=1, iterations=40)

    assert plan.condition_number < 0.5 * min(by_chance)  # seen: 60 against 400


def test_the_condition_number_is_that_of_its_motion(cobot: Robot) -> None:
    excitation = random_excitation(cobot, seed=1)
    time = (np.arange(150) + 0.5) * excitation.period / 150

    columns = base_parameters(cobot).project(model_columns(cobot, *excitation.evaluate(time))[0])

    # The motion is evaluated by another sum: 1e-16 of it, times the condition number, is far below.
    assert excitation.condition_number == pytest.approx(np.linalg.cond(columns), rel=1e-9)


def test_same_seed_same_plan(cobot: Robot) -> None:
    one, same, other = (plan_excitation(cobot, samples=40, seed=s, starts=1, iterations=4) for s in (1, 1, 2))

    assert one.to_dict() == same.to_dict()
    assert one.to_dict() != other.to_dict()


def test_progress_is_told_and_never_worsens(cobot: Robot) -> None:
    seen: list[tuple[int, int, float]] = []

    plan_excitation(cobot, samples=40, starts=2, iterations=5, progress=lambda *what: seen.append(what))

    assert {start for start, _, _ in seen} == {0, 1}
    first = [condition for start, _, condition in seen if start == 0]
    assert first == sorted(first, reverse=True)


def test_a_time_limit_still_gives_a_feasible_plan(cobot: Robot) -> None:
    plan = plan_excitation(cobot, samples=40, time_limit=1e-9, starts=50, iterations=1000)

    assert all(margins.smallest > 0.0 for margins in plan.margins)


@pytest.mark.parametrize("name", ["cobot6", "tx40"])
def test_gradient_is_that_of_the_objective(name: str) -> None:
    robot = load_robot(name)
    basis = RestToRestBasis(5, 20.0)
    values = basis.evaluate(sample_times(20.0, 60))
    objective = ConditionObjective(robot, base_parameters(robot))
    rng = np.random.default_rng(0)
    weights = random_weights(robot, basis, rng)

    _, slopes = objective.value_and_gradient(motion_of(robot, values, weights))
    gradient = sum(slope.T @ phi for slope, phi in zip(slopes, values, strict=True))

    for _ in range(5):
        direction = rng.standard_normal(weights.shape)
        h = 1e-6
        ahead, behind = (
            objective.value_and_gradient(motion_of(robot, values, weights + step * direction))[0] for step in (h, -h)
        )
        # The smooth sign turns within 0.05 rad/s, so differences of 1e-5 are off by up to about 1e-5 of a slope.
        assert np.sum(gradient * direction) == pytest.approx((ahead - behind) / (2 * h), rel=1e-4, abs=1e-4)


def test_jacobian_is_that_of_the_constraints(cobot: Robot) -> None:
    basis = RestToRestBasis(5, 20.0)
    constraints = LimitConstraints(cobot, UsableLimits.of(cobot), basis.evaluate(sample_times(20.0, 200)), 10)
    rng = np.random.default_rng(0)
    weights = random_weights(cobot, basis, rng)

    values, jacobian = constraints.values_and_jacobian(weights)

    assert values.shape == (6 * 6 * 10 + 6,)
    assert values.min() >= -1e-3  # feasible on the fine grid, so on the coarse one but for rounding
    direction = rng.standard_normal(weights.shape)
    h = 1e-7  # so small that no peak moves to another sample
    ahead, behind = (constraints.values_and_jacobian(weights + step * direction)[0] for step in (h, -h))
    np.testing.assert_allclose(jacobian @ direction.ravel(), (ahead - behind) / (2 * h), atol=1e-6)


def test_basis_is_orthonormal_in_its_coefficients() -> None:
    basis = RestToRestBasis(5, 10.0)

    sine, cosine = basis.coefficients(np.eye(8))

    np.testing.assert_allclose(sine @ sine.T + cosine @ cosine.T, np.eye(8), atol=1e-14)
    np.testing.assert_allclose(sine.sum(axis=1), 0.0, atol=1e-14)
    np.testing.assert_allclose(cosine @ np.arange(1, 6), 0.0, atol=1e-14)
