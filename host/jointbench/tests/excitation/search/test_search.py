"""The search from the inside out: quadratic programs, constraints, descents, one local search, many."""

import math
import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.excitation import RampedFourier, RestToRestFourier
from jointbench.excitation.limits.certificate import certify, is_feasible, motion_at
from jointbench.excitation.limits.motion_limits import joint_limits
from jointbench.excitation.limits.scaling import scale_into_limits
from jointbench.excitation.limits.torque_limits import usable_limits
from jointbench.excitation.objectives.objective import Objective
from jointbench.excitation.search.multistart import LocalOptimum, SearchBudget, local_search, multistart, worker_pool
from jointbench.excitation.search.problem import ExcitationProblem, LimitConstraints
from jointbench.excitation.search.sqp import constraint_violation, minimize_sqp, solve_qp
from jointbench.model import Robot, base_parameters
from jointbench.tests.excitation.random_robots import random_family, random_tree, random_weights


def problem_of(robot: Robot, samples: int = 60, period: float = 20.0) -> ExcitationProblem:
    objective = Objective.of(robot, base_parameters(robot))
    return ExcitationProblem(
        RestToRestFourier(5, period), np.array(robot.home), usable_limits(robot), objective, samples
    )


@pytest.mark.parametrize("seed", range(30))
def test_a_quadratic_program_meets_the_conditions_of_an_optimum(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(2, 30)), int(rng.integers(1, 80))
    root = rng.standard_normal((n, n))
    hessian, slope = root @ root.T + 0.01 * np.eye(n), 10.0 * rng.standard_normal(n)
    rows, constraints = rng.standard_normal((m, n)), rng.uniform(0.0, 1.0, m)

    found = solve_qp(hessian, slope, rows, constraints)

    assert found is not None
    step, multipliers = found
    size = np.abs(slope).max()
    # Condition numbers up to 1e4 times rounding of sums of some hundred terms, over a residual of 2e-5 at the least;
    # 8e-9 is the most that was seen of any BLAS's kernels.
    assert np.all(rows @ step <= constraints + 1e-7 * size)
    assert np.all(multipliers >= 0.0)
    np.testing.assert_allclose(hessian @ step + slope + rows.T @ multipliers, 0.0, atol=1e-7 * size)
    np.testing.assert_allclose(multipliers * (rows @ step - constraints), 0.0, atol=1e-7 * size)


def test_a_quadratic_program_without_rows_is_newtons_step() -> None:
    found = solve_qp(np.diag([2.0, 4.0]), np.array([2.0, -4.0]), np.empty((0, 2)), np.empty(0))

    assert found is not None
    np.testing.assert_allclose(found[0], [-1.0, 1.0], rtol=1e-15)
    assert found[1].shape == (0,)


def test_a_quadratic_program_in_a_box_cuts_off() -> None:
    slope = np.array([3.0, -0.5, -2.0])

    found = solve_qp(np.eye(3), slope, np.vstack([np.eye(3), -np.eye(3)]), np.ones(6))

    assert found is not None
    np.testing.assert_allclose(found[0], [-1.0, 0.5, 1.0], atol=1e-14)
    np.testing.assert_allclose(found[1], [0.0, 0.0, 1.0, 2.0, 0.0, 0.0], atol=1e-14)


@pytest.mark.parametrize(
    ("hessian", "constraints"),
    [(np.eye(1), [-1.0, -1.0]), (-np.eye(1), [1.0, 1.0])],
    ids=["x <= -1 and x >= 1", "a saddle"],
)
def test_a_quadratic_program_without_an_optimum_is_told(hessian: Array, constraints: list[float]) -> None:
    assert solve_qp(hessian, np.zeros(1), np.array([[1.0], [-1.0]]), np.array(constraints)) is None


def rosenbrock(x: Array) -> tuple[float, Array]:
    bend = x[1] - x[0] ** 2
    return 100.0 * bend**2 + (1.0 - x[0]) ** 2, np.array([-400.0 * x[0] * bend - 2.0 * (1.0 - x[0]), 200.0 * bend])


@pytest.mark.parametrize(
    ("radius", "optimum"),
    [(2.0, (1.0, 1.0)), (1.0, (0.786415, 0.617698))],  # the second: MATLAB's documented example of fmincon
)
@pytest.mark.parametrize("first", [(-0.5, 0.4), (-0.8, -0.61)], ids=["inside", "a little outside"])
def test_rosenbrocks_valley_within_a_circle(
    radius: float, optimum: tuple[float, float], first: tuple[float, float]
) -> None:
    def constraints(x: Array) -> tuple[Array, Array]:
        return np.array([radius**2 - x @ x]), -2.0 * x[None]

    x, steps = minimize_sqp(
        rosenbrock, constraints, np.array(first), 200, 1e-12, lambda value, constraint_violation: False
    )

    np.testing.assert_allclose(x, optimum, atol=2e-6)  # digits of the published optimum
    assert steps < 100


def test_a_descent_ends_when_it_is_told_to() -> None:
    told: list[tuple[float, float]] = []

    def tell(value: float, constraint_violation: float) -> bool:
        told.append((value, constraint_violation))
        return len(told) == 3

    _, steps = minimize_sqp(rosenbrock, lambda x: (np.empty(0), np.empty((0, 2))), np.zeros(2), 200, 0.0, tell)

    assert steps == 3
    assert [value for value, _ in told] == sorted((value for value, _ in told), reverse=True)


def test_weights_of_one_reach_a_limit_each(cobot: Robot) -> None:
    problem = problem_of(cobot)
    for joint in range(6):
        for scalars in range(problem.basis.size):
            weights = np.zeros_like(problem.weight_scale)
            weights[joint, scalars] = problem.weight_scale[joint, scalars]
            usage = [np.abs(each).max() for each in (1.0 - problem.constraints(problem.point(weights))[0],)]
            # Both look at samples of their own.
            assert max(usage) == pytest.approx(1.0, rel=0.05)


def test_the_stand_ins_gradient_is_by_the_points_that_are_searched(cobot: Robot) -> None:
    problem, rng = problem_of(cobot), np.random.default_rng(0)
    function, x = problem.smooth_objective(4.0), problem.point(problem.random(rng))
    for _ in range(3):
        direction, h = rng.standard_normal(x.shape), 1e-6
        ahead, behind = (function(x + step * direction)[0] for step in (h, -h))
        # The smooth sign turns within 0.05 rad/s, so differences of 1e-5 are off by up to about 1e-5 of a slope.
        assert function(x)[1] @ direction == pytest.approx((ahead - behind) / (2 * h), rel=1e-4, abs=1e-4)


@pytest.fixture
def weak(cobot: Robot) -> Robot:
    """Held at home by most of what its shoulder can give: of some motions, a half is worse than the whole."""
    return replace(cobot, joints=(cobot.joints[0], replace(cobot.joints[1], torque_limit=25.0), *cobot.joints[2:]))


def test_a_motion_a_little_beyond_is_moved_inside_and_keeps_its_size(weak: Robot) -> None:
    problem = problem_of(weak, samples=150)
    first = problem.random(np.random.default_rng(1))
    x, _ = minimize_sqp(
        problem.smooth_objective(30.0),
        problem.constraints,
        problem.point(first),
        60,
        1e-4,
        lambda value, constraint_violation: False,
    )
    reached = problem.weights(x)
    assert not is_feasible(problem.limits, problem.basis, problem.home, reached)

    inside = problem.feasible(reached)

    assert certify(problem.limits, problem.basis, problem.home, inside).feasible
    assert np.linalg.norm(inside - reached) < 0.02 * np.linalg.norm(reached)
    scaled = scale_into_limits(problem.limits, problem.basis, problem.home, reached)
    assert np.linalg.norm(scaled) < 0.8 * np.linalg.norm(reached)


def test_a_motion_far_beyond_is_scaled(cobot: Robot) -> None:
    problem = problem_of(cobot)
    weights = 3.0 * problem.random(np.random.default_rng(0))

    assert is_feasible(problem.limits, problem.basis, problem.home, problem.feasible(weights))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("iterations", [1, 4, 100])
def test_a_search_improves_and_stays_inside(weak: Robot, seed: int, iterations: int) -> None:
    problem = problem_of(weak)
    first = problem.random(np.random.default_rng(seed))

    found = local_search(problem, first, iterations)

    assert found.value <= problem.value(first)
    assert found.value == problem.value(found.weights)
    assert found.iterations <= iterations
    assert certify(problem.limits, problem.basis, problem.home, found.weights).feasible
    if iterations == 100:
        assert found.value < 0.4 * problem.value(first)  # seen: 80 of 400 to 900


def test_no_time_leaves_the_first_motion(cobot: Robot) -> None:
    problem = problem_of(cobot)
    first = problem.random(np.random.default_rng(0))

    found = local_search(problem, first, 100, deadline=time.time() - 1.0)

    np.testing.assert_array_equal(found.weights, first)
    assert found.iterations == 0


def test_what_is_told_during_a_search_was_nearly_found(cobot: Robot) -> None:
    problem = problem_of(cobot)
    told: list[float] = []

    found = local_search(
        problem, problem.random(np.random.default_rng(0)), 100, callback=lambda _, value: told.append(value)
    )

    assert told == sorted(told, reverse=True)
    assert len(told) == found.iterations
    # The stand-in is above the truth by the 60th root of how many eigenvalues count; limits cost 0.1 % or so.
    assert 0.99 * found.value < told[-1] < 1.1 * found.value


class Script:
    """A crew that finds what it is told to, and notes what it was asked for."""

    def __init__(self, values: list[float], interrupt_at: int | None = None) -> None:
        self.values, self.interrupt_at = values, interrupt_at
        self.arounds: list[Array | None] = []

    def __call__(self, searches, told) -> Iterator[tuple[int, LocalOptimum]]:
        first = len(self.arounds)
        self.arounds += [search.args[3] for search in searches]
        for index in reversed(range(len(searches))):  # whoever is ready first
            if first + index == self.interrupt_at:
                raise KeyboardInterrupt
            value = self.values[first + index]
            yield index, LocalOptimum(np.full((6, 8), value), value)


def test_each_batch_begins_from_the_best_of_all_before(cobot: Robot) -> None:
    crew = Script([5.0, 3.0, 4.0, 3.0, 9.0, 2.0])
    told: list[tuple[int, int, float]] = []

    best = multistart(problem_of(cobot), SearchBudget(6, 10, batch=2), 0, crew, lambda *what: told.append(what))

    assert best.value == 2.0
    assert [None if around is None else around[0, 0] for around in crew.arounds] == [None, None, 3.0, 3.0, 3.0, 3.0]
    assert [start for start, _, _ in told] == [1, 0, 3, 2, 5, 4]
    assert [value for _, _, value in told] == [3.0, 3.0, 3.0, 3.0, 2.0, 2.0]


def test_an_interrupt_gives_the_best_so_far(cobot: Robot) -> None:
    assert multistart(problem_of(cobot), SearchBudget(4, 10, batch=2), 0, Script([5.0, 3.0, 1.0, 4.0], 2)).value == 3.0
    with pytest.raises(KeyboardInterrupt):
        multistart(problem_of(cobot), SearchBudget(4, 10, batch=2), 0, Script([5.0, 3.0, 1.0, 4.0], 1))


def test_a_deadline_ends_after_what_is_under_way(cobot: Robot) -> None:
    crew = Script([5.0, 3.0, 1.0])

    assert multistart(problem_of(cobot), SearchBudget(3, 10, batch=2, deadline=0.0), 0, crew).value == 3.0


def test_disturbed_motions_are_feasible_and_others(cobot: Robot) -> None:
    problem, rng = problem_of(cobot), np.random.default_rng(0)
    weights = problem.random(rng)

    others = [problem.perturbed(weights, rng) for _ in range(4)]

    for other in others:
        assert is_feasible(problem.limits, problem.basis, problem.home, other)
        likeness = np.sum(weights * other) / np.linalg.norm(weights) / np.linalg.norm(other)
        assert 0.3 < likeness < 0.98  # neither a motion of its own nor the same: 1 / hypot(1, 0.8) is 0.78


def test_better_with_more_searches(cobot: Robot) -> None:
    problem = problem_of(cobot)
    with worker_pool() as crew:
        one, eight = (multistart(problem, SearchBudget(starts, 20), 0, crew).value for starts in (1, 8))

    assert eight <= one
    assert math.isfinite(eight)


def test_nothing_broken_costs_nothing() -> None:
    assert constraint_violation(np.array([0.5, 0.0])) == 0.0
    assert constraint_violation(np.array([0.5, -0.25, -0.5])) == 0.75


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
    same, rows = LimitConstraints.of(limits, basis, home, active_threshold=0.6).values_and_jacobian(weights)

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
