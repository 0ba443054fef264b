"""Planning: the feasible excitation that tells a robot's base parameters apart best."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from jointbench.dynamics import BaseParameters, base_parameters
from jointbench.errors import ExcitationError
from jointbench.excitation.assemble import assemble
from jointbench.excitation.excitation import Excitation
from jointbench.excitation.families.basis import check_seed
from jointbench.excitation.families.catalogue import make_basis
from jointbench.excitation.limits.motion_limits import USABLE_MOTION
from jointbench.excitation.limits.torque_limits import USABLE_TORQUE, usable_limits
from jointbench.excitation.limits.workspace import Workspace
from jointbench.excitation.objectives.objective import Objective
from jointbench.excitation.samples import check_samples
from jointbench.excitation.search.multistart import Effort, Progress, best_found, crew_of
from jointbench.excitation.search.problem import Problem, refuse_blind
from jointbench.robot import Robot

STARTS = 8
"""Searches where nothing else is said: seconds for an arm of six joints."""


def plan_excitation(
    robot: Robot,
    harmonics: int | tuple[int, ...] = 5,
    period: float = 20.0,
    samples: int = 150,
    objective: str = "condition_number",
    seed: int = 0,
    time_limit: float | None = None,
    starts: int = STARTS,
    iterations: int = 150,
    progress: Progress | None = None,
    *,
    family: str = "fourier",
    ramp: float = 2.0,
    periods: int = 1,
    points: int = 10,
    noise: ArrayLike | None = None,
    prior: Mapping[str, float] | None = None,
    emphasis: Mapping[str, float] | None = None,
    drives: bool = True,
    base: BaseParameters | None = None,
    workspace: Workspace | None = None,
    motion_share: float = USABLE_MOTION,
    torque_share: float = USABLE_TORQUE,
    batch: int = 4,
    workers: int = 1,
    scheduler: str | None = None,
) -> Excitation:
    """Plan the motion that an objective, such as the condition number of the base regressor, is least for.

    Searches many times for a local optimum, by sequential quadratic programming with exact gradients: first from
    random feasible motions, then from the best one so far, disturbed. What it returns is certain to keep the limits
    over the whole motion, between samples too; a limit of time or an interrupt (Ctrl-C) gives the best so far.

    Args:
        robot: the robot.
        harmonics: of a Fourier series: their number, at least 2, or the chosen multiples of its base frequency.
        period: of a series, or of all moves together [s].
        samples: of the motion at which the objective is taken.
        objective: "condition_number", "scaled_condition_number", "d_optimal", "e_optimal" or "relative_sigma", as
            `Objective` explains them.
        seed: of all that is random, at least 0; with no limit of time, same seed, same plan, whoever searches (with
            one BLAS thread each, as `./run` has it).
        time_limit: [s] after which the best so far is returned; None to run to the end.
        starts: most searches; only a limit of time makes sense of thousands.
        iterations: most steps of each.
        progress: told (start, iterations, best so far), see `Progress`.
        family: "fourier", "ramped_fourier" or "point_to_point".
        ramp: of each ramp of a ramped series [s].
        periods: how often a ramped series is repeated between its ramps.
        points: number of way points between moves.
        noise: standard deviation of each joint's torque [N·m or N], shape (n_joints,); 1 where not given.
        prior: values of full parameters by name that the robot's file does not know, or better ones (SI): torque is
            predicted from them, and "relative_sigma" is relative to them.
        emphasis: how much parameters count, such as {"coulomb": 0.5}; 1 where not given.
        drives: whether the drives' columns count beside the links'.
        base: the base parameters to tell apart; those of the robot, with or without drives, where not given.
        workspace: where the robot may move; anywhere where not given.
        motion_share: of the limits of position (as a way from home), velocity, acceleration, jerk that may be used.
        torque_share: of the torque limits that may be used, where nominal inertias predict torque.
        batch: how many searches begin from the same best motion: choose it no smaller than there are workers.
        workers: processes of this machine that search; 1 for this one alone. The first plan of a program waits some 3 s
            for them to start, which counts as time.
        scheduler: address of a Dask cluster that searches instead, such as "tcp://10.0.0.1:8786"; jointbench must be
            installed there.

    Returns:
        The best plan found.

    Raises:
        ExcitationError: a setting is impossible.
        InfeasibleExcitation: a limit is broken at home already, or the limits leave too little motion.
        UnclearRank: the robot's base parameters cannot be told.
        WorkspaceError: the workspace does not suit the robot.
        MissingExtra: a scheduler is given, and Dask is not installed.
        SchedulerUnreachable: no scheduler answers there.

    Source: Swevers et al., IEEE Trans. Robotics and Automation 13(5), 1997; Presse & Gautier, ICRA 1993.

    >>> robot = jb.load_robot("cobot6:2")
    >>> plan = jb.plan_excitation(robot, harmonics=3, period=5.0, starts=1, iterations=5)
    >>> plan.condition_number < jb.random_excitation(robot, harmonics=3, period=5.0).condition_number
    True
    """
    _check_search(starts, iterations, batch, seed, time_limit)
    deadline = math.inf if time_limit is None else time.time() + time_limit
    basis = make_basis(family, harmonics=harmonics, period=period, ramp=ramp, periods=periods, points=points)
    base = base_parameters(robot, drives=drives) if base is None else base
    criterion = Objective.of(robot, base, objective, noise=noise, prior=prior, emphasis=emphasis)
    check_samples(samples, basis, robot, base.rank)
    limits = (
        *usable_limits(robot, motion_share=motion_share, torque_share=torque_share, prior=prior),
        *(workspace.limits(robot) if workspace else ()),
    )
    problem = Problem(basis, np.array(robot.home, dtype=np.float64), limits, criterion, samples)
    effort = Effort(starts, iterations, batch, deadline)
    with crew_of(workers, scheduler) as crew:
        found = best_found(problem, effort, seed, crew, progress)
    refuse_blind(problem, found.weights)
    return assemble(robot, base, basis, found.weights, samples, seed, criterion, limits)


def _check_search(starts: int, iterations: int, batch: int, seed: int, time_limit: float | None) -> None:
    """Refuse a search with nothing to do.

    Raises:
        ExcitationError: no starts, no iterations, no time, or a seed below 0.
    """
    if min(starts, iterations, batch) < 1:
        raise ExcitationError(f"starts = {starts}, iterations = {iterations} and batch = {batch} must be at least 1")
    check_seed(seed)
    if time_limit is not None and not time_limit > 0.0:
        raise ExcitationError(f"time_limit = {time_limit:g} s must be above 0, or None for no limit")
