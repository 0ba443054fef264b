"""Planning of excitations: optimal ones, random ones for verification, sweeps of speeds for friction; their files."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from jointbench.arrays import Array
from jointbench.errors import ExcitationError, InfeasibleExcitation
from jointbench.excitation.excitation import Excitation, motion_margins, space_margins
from jointbench.excitation.families.basis import Basis, fine_times
from jointbench.excitation.families.catalogue import make_basis
from jointbench.excitation.families.speed_stairs import SpeedStairs
from jointbench.excitation.limits.certificate import motion_at
from jointbench.excitation.limits.motion_limits import USABLE_MOTION, Limit, joint_limits
from jointbench.excitation.limits.scaling import scale_into_limits
from jointbench.excitation.limits.torque_limits import USABLE_TORQUE, TorqueLimit, usable_limits
from jointbench.excitation.limits.workspace import Workspace, not_checked
from jointbench.excitation.objectives.objective import Objective
from jointbench.excitation.search.multistart import Progress, SearchBudget, multistart, worker_pool
from jointbench.excitation.search.problem import ExcitationProblem, refuse_unidentifiable
from jointbench.files import is_sealed, json_values, text_of, what_changed
from jointbench.model import BaseParameters, Robot, as_robot, base_parameters, robot_digests

DEFAULT_STARTS = 8
"""Default number of searches: seconds for an arm of six joints."""

_SAMPLES = 150
_LIMIT_USAGE_RANGE = 0.6, 1.0

_SAMPLES_PER_CHANGE = 4
"""Times looked at in the shortest change of speed: the middle, where acceleration is largest, is one of them."""

_ROUNDING = 1e-9  # of a whole number of cycles


def plan_excitation(
    robot: Robot | str | Path,
    harmonics: int | tuple[int, ...] = 5,
    period: float = 20.0,
    samples: int = 150,
    objective: str = "condition_number",
    seed: int = 0,
    time_limit: float | None = None,
    starts: int = DEFAULT_STARTS,
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
    known: ArrayLike | None = None,
    sizes: ArrayLike | None = None,
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
        robot: the robot, or what `load_robot` takes.
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
        progress: called with (start, iterations, best so far), see `Progress`.
        family: "fourier", "ramped_fourier" or "point_to_point".
        ramp: of each ramp of a ramped series [s].
        periods: how often a ramped series is repeated between its ramps.
        points: number of way points between moves.
        noise: standard deviation of each joint's torque [N·m or N], shape (n_joints,); 1 where not given.
        prior: values of full parameters by name that the robot's file does not know, or better ones (SI): torque is
            predicted from them, and "relative_sigma" is relative to them.
        emphasis: how much parameters count, such as {"coulomb": 0.5}; 1 where not given.
        known: information of earlier motions about the base parameters in units of `noise` and `samples`, which the
            plan adds to, shape (rank, rank).
        sizes: what "relative_sigma" is relative to, in place of `prior` and the robot's file, shape (rank,).
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
        ExcitationError: a setting is impossible; or the workspace does not suit the robot.
        InfeasibleExcitation: a limit is broken at home already, or the limits leave too little motion.
        NumericalError: the number of the robot's base parameters is not clear.
        MissingExtra: a scheduler is given, and Dask is not installed.
        FitError: no scheduler answers there.

    Source: Swevers et al., IEEE Trans. Robotics and Automation 13(5), 1997; Presse & Gautier, ICRA 1993.

    >>> plan = jb.plan_excitation("cobot6:2", harmonics=3, period=5.0, starts=1, iterations=5)
    >>> plan.condition_number < jb.random_excitation("cobot6:2", harmonics=3, period=5.0).condition_number
    True
    """
    robot = as_robot(robot)
    _check_search(starts, iterations, batch, seed, time_limit)
    deadline = math.inf if time_limit is None else time.time() + time_limit
    basis = make_basis(family, harmonics=harmonics, period=period, ramp=ramp, periods=periods, points=points)
    base = base_parameters(robot, drives=drives) if base is None else base
    criterion = Objective.of(
        robot, base, objective, noise=noise, prior=prior, emphasis=emphasis, known=known, sizes=sizes
    )
    check_samples(samples, basis, robot, base.rank)
    limits = (
        *usable_limits(robot, motion_share=motion_share, torque_share=torque_share, prior=prior),
        *(workspace.limits(robot) if workspace else ()),
    )
    problem = ExcitationProblem(basis, np.array(robot.home, dtype=np.float64), limits, criterion, samples)
    budget = SearchBudget(starts, iterations, batch, deadline)
    with worker_pool(workers, scheduler) as pool:
        optimum = multistart(problem, budget, seed, pool, progress)
    refuse_unidentifiable(problem, optimum.weights)
    return make_excitation(robot, base, basis, optimum.weights, samples, seed, criterion, limits)


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


def random_excitation(
    robot: Robot | str | Path,
    harmonics: int | Sequence[int] = 5,
    period: float = 20.0,
    seed: int = 0,
    *,
    family: str = "fourier",
    ramp: float = 2.0,
    periods: int = 1,
    points: int = 10,
    workspace: Workspace | None = None,
    prior: Mapping[str, float] | None = None,
) -> Excitation:
    """Draw a feasible excitation at random: for verification on motion that a model was not fitted to.

    Every joint uses between 60 and 100 % of what it may use of its tightest limit, unless torque or the workspace ask
    for less: `usable_limits` says how much that is.

    Args:
        robot: the robot, or what `load_robot` takes.
        harmonics: of a Fourier series: their number, at least 2, or the chosen multiples of its base frequency.
        period: of a series, or of all moves together [s].
        seed: same seed, same motion.
        family: "fourier", "ramped_fourier" or "point_to_point".
        ramp: of each ramp of a ramped series [s].
        periods: how often a ramped series is repeated between its ramps.
        points: number of way points between moves.
        workspace: where the robot may move; anywhere where not given.
        prior: values of full parameters that torque is predicted from, as in `plan_excitation`.

    Returns:
        The excitation.

    Raises:
        ExcitationError: an unknown family, a setting that is impossible for it, an unknown parameter in `prior`, or a
            seed below 0; or the workspace does not suit the robot.
        InfeasibleExcitation: a limit is broken at home already, or next to nothing can move there.

    >>> motion = random_excitation("cobot6", period=4.0, seed=1)
    >>> q, dq, ddq = motion.evaluate(np.linspace(0.0, 4.0, 9))
    >>> q.shape, bool(np.allclose(dq[0], 0.0))
    ((9, 6), True)
    """
    robot = as_robot(robot)
    check_seed(seed)
    basis = make_basis(family, harmonics=harmonics, period=period, ramp=ramp, periods=periods, points=points)
    limits = (*usable_limits(robot, prior=prior), *(workspace.limits(robot) if workspace else ()))
    samples = max(_SAMPLES, min_samples(basis))
    rng = np.random.default_rng(seed)
    # Passive joints are held at home.
    weights = rng.standard_normal((robot.n_joints, basis.size)) * robot.modelled[:, None]
    weights = scale_into_limits(joint_limits(robot), basis, np.array(robot.home), weights, fill=1.0)
    weights *= rng.uniform(*_LIMIT_USAGE_RANGE, (robot.n_joints, 1))
    weights = scale_into_limits(limits, basis, np.array(robot.home), weights)
    return make_excitation(robot, base_parameters(robot), basis, weights, samples, seed, limits=limits)


def plan_speed_sweep(
    robot: Robot,
    joints: Sequence[str],
    pose: ArrayLike | None = None,
    *,
    workspace: Workspace | None = None,
    **settings: Any,
) -> Excitation:
    """Plan steady speeds of some joints together, in both directions over the same positions; the others hold still.

    The joints go up from where the way they need lies in the middle of their position limits; `friction_of_run` tells
    friction from a recording of it. Gravity cancels between the directions. Friction that grows with the load does not:
    choose a pose in which gravity turns none of these joints, such as an arm that hangs for joints that rotate about
    upright axes.

    Args:
        robot: its limits; of each only the usable share is used.
        joints: names of those that move; of a differential's two only one, as the motors would stand still in turn.
        pose: of all joints, where the others stay [rad], shape (n_joints,); the robot's home where not given.
        workspace: where the robot may move; anywhere where not given.
        settings: of `SpeedStairs`, where not its own: `first`, `step`, `n_speeds`, `hold`, `change`; `reach` and
            `acceleration` are as much as all of these joints have.

    Raises:
        RobotError: the robot has no such joint.
        ExcitationError: no joint is named, a setting is impossible, or a speed finds no room within position limits; or
            the workspace does not suit the robot.
        InfeasibleExcitation: a limit would be broken: of speed, of torque where it can be predicted, or in space.
    """
    if not joints:
        raise ExcitationError(f"no joint is named to sweep; the joints are {', '.join(robot.joint_names)}")
    moving = np.zeros(robot.n_joints)
    moving[[robot.joint_index(name) for name in joints]] = 1.0
    is_moving = moving > 0.0
    low, high = robot.position_limits.T
    # In the middle of its limits a way w begins at a distance from the far one of which it may use its share.
    range_for_way = USABLE_MOTION / (2.0 - USABLE_MOTION) * (high - low)
    reach, acceleration = (
        float(range_for_way[is_moving].min()),
        USABLE_MOTION * float(robot.acceleration_limits[is_moving].min()),
    )
    stairs_settings: dict[str, Any] = {"reach": reach, "acceleration": acceleration, **settings}
    stairs = SpeedStairs(**stairs_settings)
    start = np.array(robot.home if pose is None else pose, dtype=np.float64)
    start[is_moving] = (0.5 * (low + high - _excursion(stairs)))[is_moving]
    robot_at_start = replace(robot, home=tuple(start.tolist()))
    weights = moving[:, None]
    limits = (*usable_limits(robot_at_start), *(workspace.limits(robot_at_start) if workspace else ()))
    motion = motion_at(stairs, start, weights, stairs.grid(stairs.change / _SAMPLES_PER_CHANGE))
    for limit in limits:
        usage = limit.usage(motion).max(axis=0)
        worst = int(np.argmax(usage))
        if usage[worst] > 1.0 + 1e-9:
            raise InfeasibleExcitation(
                f"{limit.describe(worst, float(usage[worst]))}; sweep fewer speeds, or slower ones"
            )
    return make_excitation(robot_at_start, base_parameters(robot), stairs, weights, _SAMPLES, 0, limits=limits)


def _excursion(stairs: SpeedStairs) -> float:
    """Largest excursion from home [rad]."""
    positions: Array = stairs.evaluate(stairs.grid(stairs.change), 0)[0]
    return float(positions.max())


def check_samples(samples: int, basis: Basis, robot: Robot, n_parameters: int) -> None:
    """Refuse fewer equations than parameters, and samples that jump over a motion's swings.

    Args:
        samples: at how many times the regressor is taken.
        basis: of the motion.
        robot: the robot; joints that are not modelled give no equations.
        n_parameters: base parameters.

    Raises:
        ExcitationError: too few samples.
    """
    modelled = max(int(robot.modelled.sum()), 1)
    if samples * modelled < n_parameters:
        raise ExcitationError(
            f"samples = {samples} gives {samples * modelled} equations for {n_parameters} base parameters; "
            f"at least {-(-n_parameters // modelled)} samples are needed, 150 is usual"
        )
    min_required = min_samples(basis)
    if samples < min_required:
        raise ExcitationError(
            f"samples = {samples} jump over swings of {basis.description}; at least {min_required} are needed"
        )


def min_samples(basis: Basis) -> int:
    """More than two for each cycle of what is sampled: so few could all meet it where it passes its middle.

    Source: Shannon, Communication in the presence of noise, Proc. IRE 37(1), 1949.
    """
    cycles = basis.repetition.period / basis.fastest_cycle
    return math.floor(2.0 * cycles + _ROUNDING) + 1


def make_excitation(
    robot: Robot,
    base: BaseParameters,
    basis: Basis,
    weights: Array,
    samples: int,
    seed: int,
    objective: Objective | None = None,
    limits: Sequence[Limit] = (),
) -> Excitation:
    """Make the excitation of the given weights, shape (n_joints, basis.size).

    Args:
        robot, base: the robot, and the base parameters of which the condition number is.
        basis, weights: the motion.
        samples: at how many times the regressor is taken.
        seed: that it came from.
        objective: what it is the best found for; None for a motion drawn at random.
        limits: those in space say their distances, that of torque predicts it.

    Raises:
        ExcitationError: the motion makes no torque.
    """
    home = np.array(robot.home, dtype=np.float64)
    q, dq, ddq, _ = motion_at(basis, home, weights, basis.sample_times(samples))
    fine_motion = motion_at(basis, home, weights, fine_times(basis))
    return Excitation(
        robot_name=robot.name,
        basis=basis,
        home=home,
        weights=weights,
        condition_number=Objective.of(robot, base, "condition_number").value((q, dq, ddq)),
        margins=motion_margins(
            robot, *fine_motion, next((limit for limit in limits if isinstance(limit, TorqueLimit)), None)
        ),
        seed=seed,
        objective=None if objective is None else objective.name,
        objective_value=None if objective is None else objective.value((q, dq, ddq)),
        distances=space_margins(limits, fine_motion),
        digests=robot_digests(robot),
        not_checked=not_checked(robot, limits),
    )


def check_seed(seed: int) -> None:
    """Refuse a seed that is negative.

    Raises:
        ExcitationError: below 0.
    """
    if seed < 0:
        raise ExcitationError(f"seed = {seed} must be 0 or above")


def load_excitation(path: str | Path) -> Excitation:
    """Read a motion that `jointbench plan` or `Excitation.save` wrote.

    Args:
        path: of the file.

    Raises:
        ExcitationError: there is no such file, it holds no plan, or was changed after it was written.

    >>> path = jb.random_excitation(jb.load_robot("cobot6:2"), period=4.0, seed=1).save("motion.json")
    >>> jb.load_excitation(path).robot_name
    'cobot6:2'
    """
    try:
        text = text_of(Path(path))
        values: Any = json_values(text)
    except FileNotFoundError:
        raise ExcitationError(f"no plan at {path}; make one with `jointbench plan ROBOT --out {path}`") from None
    except (OSError, ValueError) as error:
        raise ExcitationError(
            f"plan {path} cannot be read: {error}; give the JSON that `jointbench plan` wrote"
        ) from error
    if isinstance(values, dict) and is_sealed(text) and (changed := what_changed(text, cast(dict[str, Any], values))):
        raise ExcitationError(f"plan {path} {changed}; make one anew with `jointbench plan`")
    try:
        return Excitation.from_dict(values)
    except ExcitationError as error:
        raise ExcitationError(f"plan {path}: {error}; make one anew with `jointbench plan`") from error


def as_excitation(motion: Excitation | str | Path) -> Excitation:
    """Return a motion as it is, or read the file whose path is given.

    Raises:
        ExcitationError: as `load_excitation`; or it is neither a motion nor a path.
    """
    if isinstance(motion, Excitation):
        return motion
    if not isinstance(motion, (str, Path)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ExcitationError(f"{type(motion).__name__} is given as a motion; give a plan, or its file")
    return load_excitation(motion)
