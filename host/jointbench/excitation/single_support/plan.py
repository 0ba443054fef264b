"""Random motions on one foot, in balance as the robot's inertias predict it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from jointbench.arrays import Array
from jointbench.errors import InfeasibleExcitation
from jointbench.excitation.excitation import Excitation
from jointbench.excitation.families.basis import check_duration
from jointbench.excitation.families.splines import UniformSpline
from jointbench.excitation.limits.certificate import certify, motion_at
from jointbench.excitation.limits.motion_limits import Limit
from jointbench.excitation.limits.torque_limits import usable_limits
from jointbench.excitation.limits.workspace import Workspace
from jointbench.excitation.plan import check_seed, make_excitation
from jointbench.excitation.single_support.task import Courses, SingleSupportTask, SupportRanges, inverse_kinematics
from jointbench.model import BaseParameters, Robot, as_robot, base_parameters

KNOT_STEP = 0.032
"""Step of the played spline, a knot step of the boards [s]; with it the swing foot is level to a microradian."""

_COARSE_STEPS = 3
"""Steps that are one while balance is sought."""

_TRUNK_SHARE = 0.8
"""Motion of the centre of mass per motion of the trunk, roughly, as legs hang on it; its error costs rounds."""

_MAX_ROUNDS, _ZMP_CONVERGED = 10, 1e-4
"""Most rounds, and what they may leave of the reference [m]."""

_MIN_STEPS = 12
"""Steps of a spline."""

_WEIGHT_DECIMALS = 9
"""Decimals of weights [rad]: below what any encoder tells, and short where they are stored."""

_DEFAULT_DURATION = 95.008
"""[s]; as long as the paper's, in whole steps of the boards' knots."""

_DEFAULT_MARGIN = 0.075, 0.05
"""Default margin, lengthwise and sideways [m]: a model from drawings errs by 30 mm and more, mostly lengthwise."""

_DEFAULT_CLEARANCE = 0.01
"""Between the legs, and between the swing foot and the ground [m]."""

_SHRINKAGE, _MIN_SHARE = 0.92, 0.3
"""Factor of all ranges where a limit is broken, and the smallest share that is tried."""

_BALANCE_STEP = 8e-3
"""Between times at which balance is judged [s]: a quarter of the spline's step."""

_SAMPLES = 150


@dataclass(frozen=True, eq=False)
class BalancedMotion:
    """A motion whose zero-moment point is on its course.

    Attributes:
        basis, weights: the motion, from home [rad], weights of shape (12, basis.size).
        shift: of the trunk, as weights of the same spline [m], shape (2, basis.size).
    """

    basis: UniformSpline
    weights: Array
    shift: Array


def balance_motion(task: SingleSupportTask, courses: Courses, duration: float) -> BalancedMotion:
    """The motion on courses, with the trunk where the zero-moment point is on its own: roughly, to be judged.

    In each round the error e of the zero-moment point of all links asks for a shift c of the centre of mass by the
    cart-table model, c - (h / g) c'' = e, at rest at both ends; the trunk goes there.

    Raises:
        InfeasibleExcitation: a leg does not reach that far.
    """
    basis = UniformSpline(max(round(duration / (_COARSE_STEPS * KNOT_STEP)), _MIN_STEPS), duration)
    time = basis.nodes
    rest_window = _smoothstep(time / courses.rest) * _smoothstep((duration - time) / courses.rest)
    reference, shift = task.reference(courses, time), np.zeros((basis.size, 2))
    q = np.repeat(task.home[None], basis.size, axis=0)
    weights = np.zeros((len(task.home), basis.size))
    for _ in range(_MAX_ROUNDS):
        q = inverse_kinematics(task.robot, task.poses(courses, shift, time), q, hips_turn=task.hips_turn)
        weights = basis.through(q - task.home)
        from_home, dq, ddq = basis.displacement(weights, time)
        error = reference - task.balance(task.home + from_home, dq, ddq).points
        if np.abs(error).max() < _ZMP_CONVERGED:
            break
        trunk_shift = basis.displacement(basis.through(error, task.pendulum), time, 0)[0]
        shift += rest_window[:, None] * trunk_shift / _TRUNK_SHARE
    return BalancedMotion(basis, weights, basis.through(shift))


def refine_motion(task: SingleSupportTask, courses: Courses, rough: BalancedMotion) -> BalancedMotion:
    """Return the motion on the spline that is played."""
    basis = UniformSpline(max(round(rough.basis.duration / KNOT_STEP), _MIN_STEPS), rough.basis.duration)
    rough_joints, shift = (
        rough.basis.displacement(weights, basis.nodes, 0)[0] for weights in (rough.weights, rough.shift)
    )
    poses = task.poses(courses, shift, basis.nodes)
    q = inverse_kinematics(task.robot, poses, task.home + rough_joints, hips_turn=task.hips_turn)
    return BalancedMotion(basis, np.round(basis.through(q - task.home), _WEIGHT_DECIMALS), basis.through(shift))


def _smoothstep(share: Array) -> Array:
    """Quintic step from 0 at 0 to 1 at 1, smooth to the second derivative."""
    x = np.clip(share, 0.0, 1.0)
    return x**3 * (10.0 - 15.0 * x + 6.0 * x**2)


def plan_single_support(
    robot: Robot | str | Path,
    duration: float = _DEFAULT_DURATION,
    seed: int = 0,
    *,
    foot: str | None = None,
    margin: tuple[float, float] = _DEFAULT_MARGIN,
    zmp_offset: tuple[float, float] = (0.0, 0.0),
    parameters: Array | None = None,
    ranges: SupportRanges | None = None,
    pace: float = 0.3,
    rest: float = 1.0,
    clearance: float = _DEFAULT_CLEARANCE,
    hips_turn: bool = True,
    base: BaseParameters | None = None,
) -> Excitation:
    """Draw a random motion on one foot: trunk and swing foot anywhere in their ranges, the zero-moment point as well.

    Heights, turns and the swing foot follow random courses; the trunk goes where the zero-moment point of all links is
    on its own random course inside the sole. The cart-table model is solved for it over the whole motion at once, which
    is preview control that sees all of it, and again for what is left of the error of all links' zero-moment point.

    Args:
        robot: on a floating base, its support foot, with capsules; a chain of two legs of six joints; or what
            `load_robot` takes.
        duration: [s]; for boards a whole multiple of 0.032 s.
        seed: same seed, same motion.
        foot: name of the support foot; the one that is the base where not given.
        margin: what the predicted zero-moment point keeps free of the sole, lengthwise and sideways [m].
        zmp_offset: measured less predicted zero-moment point standing at home, forward and left [m].
        parameters: to predict with, ten of the base's link, then ten per link; the robot's own where not given.
        ranges: how far all goes; those of `SupportRanges` where not given. They shrink where a limit would break.
        pace: from one place of a random course to the next [s].
        rest: of the courses at home, at either end [s]; the trunk leans some tenths of a second ahead of them.
        clearance: between legs, and between the swing foot and the ground [m].
        hips_turn: whether the joints move that turn the legs about the trunk's upright; in the paper they stood still,
            and what is left of trunk_yaw and foot_turn is then what comes of the other joints.
        base: the base parameters of which the plan tells a condition number; the robot's where not given.

    Returns:
        The motion, with `support` that says how it stands.

    Raises:
        ExcitationError: a setting is impossible.
        RobotError: the robot has no such foot.
        InfeasibleExcitation: the foot is not the base, or the zero-moment point leaves the margin, as at home already;
            or the robot is no such chain, or a limit is broken, however small the motion.
        RobotError, ExcitationError: the robot's file does not tell its inertias, or has no capsules.

    Source: Kajita et al., Biped walking pattern generation by using preview control of zero-moment point, ICRA 2003;
    random bounded motions on one foot as in Wu & Gao, J. Harbin Institute of Technology 53(7), 2021.

    >>> motion = jb.plan_single_support("gorobot2", duration=4.0)
    >>> motion.support.foot, motion.support.room > 0.0  # between the zero-moment point and the margin
    ('r_foot', True)
    """
    robot = as_robot(robot)
    check_seed(seed)
    for name, value, usual in (("duration", duration, "95 s"), ("pace", pace, "0.3 s"), ("rest", rest, "1 s")):
        check_duration(name, value, f"{usual} is usual")
    task = SingleSupportTask(robot, foot or base_foot(robot), margin, zmp_offset, parameters, hips_turn)
    ends = task.ends(ranges or SupportRanges())
    courses = Courses.random(np.random.default_rng(seed), ends, duration, rest, pace)
    limits = (*usable_limits(robot), *support_workspace(robot, task.foot, clearance).limits(robot))
    basis, weights = _feasible(task, courses, limits, duration)
    motion = make_excitation(robot, base or base_parameters(robot), basis, weights, _SAMPLES, seed, limits=limits)
    time = basis.grid(_BALANCE_STEP)
    balance = task.balance(*motion.evaluate(time))
    balance.refuse_fall(margin, time)
    support = balance.support(margin, zmp_offset)
    if parameters is not None:
        support = replace(support, standard_parameters=tuple(parameters.tolist()))
    return replace(motion, support=support)


def base_foot(robot: Robot) -> str:
    """Name of the foot that is the robot's base.

    Raises:
        InfeasibleExcitation: there is none.
    """
    if robot.base_foot is None:
        raise InfeasibleExcitation(
            f"robot {robot.name!r} has no foot for a base; motions on one foot are for a biped on its foot"
        )
    return robot.base_foot.name


def support_workspace(robot: Robot, foot: str, clearance: float = _DEFAULT_CLEARANCE) -> Workspace:
    """Workspace of a robot on one foot: clear of itself, and all but that foot above the ground.

    Raises:
        RobotError: the robot has no such foot.
    """
    sole = robot.foot(foot)
    ground = float(sole.origin @ sole.axes[:, 2])
    return Workspace(table_height=ground + clearance, clearance=clearance)


def _feasible(
    task: SingleSupportTask, courses: Courses, limits: Sequence[Limit], duration: float
) -> tuple[UniformSpline, Array]:
    """The motion on courses that are as large as the limits allow.

    Raises:
        InfeasibleExcitation: none is, with what stands in its way.
    """
    share = 1.0
    while True:
        scaled_courses = courses.scaled(share)
        try:
            motion_found = balance_motion(task, scaled_courses, duration)
            violation = _violation_at_nodes(task, motion_found, limits)
            if violation is None:
                motion_found = refine_motion(task, scaled_courses, motion_found)
                certificate = certify(limits, motion_found.basis, task.home, motion_found.weights)
                if certificate.feasible:
                    return motion_found.basis, motion_found.weights
                violation = certificate.violations[0]
        except InfeasibleExcitation as error:
            violation = str(error)
        share *= _SHRINKAGE
        if share < _MIN_SHARE:
            raise InfeasibleExcitation(
                f"with {share / _SHRINKAGE:.0%} of its ranges the motion of robot {task.robot.name!r} still breaks a "
                f"limit: {violation}; choose a home farther from it, a slower pace, or smaller ranges"
            )


def _violation_at_nodes(task: SingleSupportTask, motion_found: BalancedMotion, limits: Sequence[Limit]) -> str | None:
    """Describe a limit that is broken at a node, a cheap check; None where none is."""
    motion = motion_at(motion_found.basis, task.home, motion_found.weights, motion_found.basis.nodes)
    for limit in limits:
        usage = limit.usage(motion).max(axis=0)
        worst = int(usage.argmax())
        if usage[worst] > 1.0:
            return limit.describe(worst, float(usage[worst]))
    return None
