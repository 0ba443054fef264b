"""From one motion to a local optimum: a descent on the objective's smooth stand-in, sharpened in stages."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from jointbench.arrays import Array
from jointbench.excitation.search.descent import descend
from jointbench.excitation.search.problem import Problem

Told: TypeAlias = Callable[[int, float], None]
"""Told the iterations so far and the objective: of its smooth stand-in, which is a little above the truth, the least at
any motion so far that keeps the limits or nearly does."""

_STAGES = ((4.0, 2e-3), (30.0, 5e-4))
"""Sharpness, and the fall of the log that is hardly anything there. At a good motion several small eigenvalues meet:
a blunt stand-in lifts all of them at once, and a sharp one ends where the least of them is as large as can be."""

_NEARLY_FEASIBLE = 1e-3
"""Share of the limits, all that are broken taken together, that costs next to nothing to win back."""

_SMOOTH = ("d_optimal",)
"""Objectives that need no stand-in."""


@dataclass(frozen=True, eq=False)
class Found:
    """A feasible motion.

    Attributes:
        weights: shape (n_joints, basis.size).
        value: of the objective, as it is reported; the less the better.
        iterations: that it took.
    """

    weights: Array
    value: float
    iterations: int = 0


def search_from(
    problem: Problem, first: Array, iterations: int, deadline: float = math.inf, told: Told | None = None
) -> Found:
    """Search for the local optimum that lies downhill from a feasible motion.

    Args:
        problem: what is searched.
        first: feasible weights, shape (n_joints, basis.size).
        iterations: most steps of the descent.
        deadline: time.time() [s] after which the search ends with what it has.
        told: see `Told`.

    Returns:
        The motion at the end of the descent, moved to where it is certain to keep the limits; or the first, if better.
    """
    done, start = 0, Found(first, problem.value(first))
    least = start.value

    def tell(value: float, broken: float) -> bool:
        nonlocal done, least
        done += 1
        if broken < _NEARLY_FEASIBLE:
            least = min(least, problem.objective.reported(value))
        if told is not None:
            told(done, least)
        return time.time() > deadline

    x = problem.point(first)
    stages = _STAGES[-1:] if problem.objective.name in _SMOOTH else _STAGES
    for sharpness, tolerance in stages:
        if done < iterations and time.time() < deadline:
            x, _ = descend(problem.stand_in(sharpness), problem.room, x, iterations - done, tolerance, tell)
    if not done:
        return start
    weights = problem.feasible(problem.weights(x))
    reached = Found(weights, problem.value(weights), done)
    return reached if reached.value < start.value else Found(first, start.value, done)
