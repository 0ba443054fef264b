"""Planning: the feasible excitation that tells a robot's base parameters apart best."""

import contextlib
import functools
import math
import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np
from scipy.optimize import minimize

from jointbench.dynamics import base_parameters
from jointbench.excitation.assemble import assemble, motion_of, sample_times
from jointbench.excitation.basis import RestToRestBasis
from jointbench.excitation.condition import ConditionObjective
from jointbench.excitation.constraints import LimitConstraints
from jointbench.excitation.fourier import FourierExcitation
from jointbench.excitation.random_motion import random_weights
from jointbench.excitation.settings import check_samples, check_search, check_series
from jointbench.excitation.usable_limits import UsableLimits, scale_into_limits
from jointbench.robot import Array, Robot

_GRID_PER_CYCLE = 40
"""Samples per cycle of the highest harmonic at which the optimiser watches the limits. A peak between two of them
is missed by at most 1 - cos(π/40) = 0.3 %, which the final scaling on the fine grid takes back."""

_SECTIONS_PER_CYCLE = 4
"""Sections of a cycle of the highest harmonic in which each limit is watched by itself: no two peaks share one."""

_NEARLY_FEASIBLE = -0.01
"""Share of a limit by which an iterate may break it and still be kept: the final scaling takes that back."""

_T = TypeVar("_T")

Progress = Callable[[int, int, float], None]
"""Called as progress(start, iteration, condition_number) after every iteration."""


def plan_excitation(
    robot: Robot,
    harmonics: int = 5,
    period: float = 20.0,
    samples: int = 150,
    objective: str = "condition_number",
    seed: int = 0,
    time_limit: float | None = None,
    starts: int = 2,
    iterations: int = 60,
    progress: Progress | None = None,
) -> FourierExcitation:
    """Plan the excitation whose base regressor, with the drives' columns, has the least condition number.

    Minimises log cond W_b over the Fourier series that start and end at rest at home, by sequential quadratic
    programming from random feasible starts. What it returns is inside the usable limits on a 1 ms grid: 95 % of
    the robot's position, velocity and acceleration limits, and 80 % of the torque limits where nominal inertias
    predict torque.

    Args:
        robot: the robot.
        harmonics: of the Fourier series, at least 2.
        period: [s].
        samples: of one period at which the condition number is taken.
        objective: "condition_number".
        seed: of the random starts; with no time limit, same seed, same plan.
        time_limit: [s] after which the best so far is returned; None to run to the end.
        starts: number of random starts.
        iterations: most iterations per start.
        progress: told the condition number after every iteration.

    Returns:
        The best plan found.

    Raises:
        ExcitationError: a setting is impossible.
        InfeasibleExcitation: a joint cannot hold the robot at home within its usable torque.
        UnclearRank: the robot's base parameters cannot be told.

    Source: Swevers et al., IEEE Trans. Robotics and Automation 13(5), 1997; Presse & Gautier, ICRA 1993.
    """
    check_series(harmonics, period)
    check_search(objective, starts, iterations, time_limit)
    base = base_parameters(robot)
    check_samples(samples, robot.n_joints, base.rank)
    limits = UsableLimits.of(robot)
    basis = RestToRestBasis(harmonics, period)
    deadline = math.inf if time_limit is None else time.monotonic() + time_limit
    search = _Search(robot, basis, limits, ConditionObjective(robot, base), samples)
    rng = np.random.default_rng(seed)
    plans: list[FourierExcitation] = []
    for start in range(starts):
        first = random_weights(robot, basis, rng)
        reached = search.run(first, iterations, deadline, functools.partial(progress, start) if progress else None)
        feasible = scale_into_limits(robot, limits, basis, reached)
        plans.append(assemble(robot, base, basis, feasible, samples, seed))
        if time.monotonic() > deadline:
            break
    return min(plans, key=lambda plan: plan.condition_number)


class _OutOfTime(Exception):
    """Raised inside the optimiser to leave it."""


class _Search:
    """One optimisation problem as SLSQP asks for it, each point computed once."""

    def __init__(
        self, robot: Robot, basis: RestToRestBasis, limits: UsableLimits, objective: ConditionObjective, samples: int
    ) -> None:
        grid = sample_times(basis.period, _GRID_PER_CYCLE * basis.harmonics)
        constraints = LimitConstraints(robot, limits, basis.evaluate(grid), _SECTIONS_PER_CYCLE * basis.harmonics)
        sampled = basis.evaluate(sample_times(basis.period, samples))
        # Weights in units of the velocity limit: of one size for fast and slow joints.
        self._unit = limits.velocity[:, None] * np.ones((1, basis.size))

        def value(x: Array) -> tuple[float, Array]:
            motion = motion_of(robot, sampled, x.reshape(self._unit.shape) * self._unit)
            log_condition, slopes = objective.value_and_gradient(motion)
            gradient = sum(slope.T @ phi for slope, phi in zip(slopes, sampled, strict=True))
            return log_condition, (gradient * self._unit).ravel()

        def margins(x: Array) -> tuple[Array, Array]:
            values, jacobian = constraints.values_and_jacobian(x.reshape(self._unit.shape) * self._unit)
            return values, jacobian * self._unit.ravel()

        self._value = _once(value)
        self._margins = _once(margins)

    def run(
        self, first: Array, iterations: int, deadline: float, progress: Callable[[int, float], None] | None
    ) -> Array:
        """Best nearly feasible weights of all iterates from the feasible `first`, shape as `first`."""
        x_first = (first / self._unit).ravel()
        best = (self._value(x_first)[0], first)
        iteration = 0

        def keep(x: Array) -> None:
            nonlocal best, iteration
            iteration += 1
            log_condition = self._value(x)[0]
            if log_condition < best[0] and self._margins(x)[0].min() >= _NEARLY_FEASIBLE:
                best = (log_condition, x.reshape(first.shape) * self._unit)
            if progress is not None:
                progress(iteration, math.exp(best[0]))
            if time.monotonic() > deadline:
                raise _OutOfTime

        with contextlib.suppress(_OutOfTime):
            minimize(
                lambda x: self._value(x)[0],
                x_first,
                jac=lambda x: self._value(x)[1],
                constraints={
                    "type": "ineq",
                    "fun": lambda x: self._margins(x)[0],
                    "jac": lambda x: self._margins(x)[1],
                },
                method="SLSQP",
                callback=keep,
                options={"maxiter": iterations, "ftol": 1e-5},
            )
        return best[1]


def _once(function: Callable[[Array], _T]) -> Callable[[Array], _T]:
    """Remember the last point: SLSQP asks for a value and its derivatives in separate calls."""
    last: tuple[bytes, _T] | None = None

    def remembered(x: Array) -> _T:
        nonlocal last
        key = x.tobytes()
        if last is None or last[0] != key:
            last = (key, function(x))
        return last[1]

    return remembered
