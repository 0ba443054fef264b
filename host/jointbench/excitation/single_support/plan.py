"""Random motions on one foot, in balance as the robot's inertias predict it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from jointbench.arrays import Array
from jointbench.dynamics import BaseParameters, base_parameters
from jointbench.errors import InfeasibleExcitation, LosesBalance
from jointbench.excitation.excitation import Excitation
from jointbench.excitation.families.basis import check_duration
from jointbench.excitation.families.splines import UniformSpline
from jointbench.excitation.limits.certificate import certify, motion_at
from jointbench.excitation.limits.motion_limits import Limit
from jointbench.excitation.limits.torque_limits import usable_limits
from jointbench.excitation.limits.workspace import Workspace
from jointbench.excitation.plan import assemble, check_seed
from jointbench.excitation.single_support.task import Courses, SingleSupportTask, SupportRanges, positions_at
from jointbench.robot import Robot

STEP = 0.032
"""Of the spline that is played, a knot step of the boards [s]; with it the swing foot is level to a microradian."""

_COARSE = 3
"""Steps that are one while balance is sought."""

_TRUNK_SHARE = 0.8
"""Of the trunk's way that the centre of mass goes, roughly, as legs hang on it; what is wrong with it takes rounds."""

_ROUNDS, _BALANCED = 10, 1e-4
"""Most rounds, and what they may leave of the reference [m]."""

_FEWEST = 12
"""Steps of a spline."""

_GRAIN = 9
"""Decimals of weights [rad]: below what any encoder tells, and short where they are stored."""

DURATION = 95.008
"""[s]; as long as the paper's, in whole steps of the boards' knots."""

MARGIN = 0.075, 0.05
"""Of the sole, lengthwise and sideways [m]: a model from drawings errs by 30 mm and more, mostly lengthwise."""

CLEARANCE = 0.01
"""Between the legs, and between the swing foot and the ground [m]."""

_SMALLER, _SMALLEST = 0.92, 0.3
"""What all ranges are multiplied by where a limit is broken, and where that ends."""

_GLANCE = 8e-3
"""Between times at which balance is judged [s]: a quarter of the spline's step."""

_SAMPLES = 150


@dataclass(frozen=True, eq=False)
class Balanced:
    """A motion whose zero-moment point is on its course.

    Attributes:
        basis, weights: the motion, from home [rad], weights of shape (12, basis.size).
        shift: of the trunk, as weights of the same spline [m], shape (2, basis.size).
    """

    basis: UniformSpline
    weights: Array
    shift: Array


def balanced(task: SingleSupportTask, courses: Courses, duration: float) -> Balanced:
    """The motion on courses, with the trunk where the zero-moment point is on its own: roughly, to be judged.

    In each round the error e of the zero-moment point of all links asks for a shift c of the centre of mass by the
    cart-table model, c - (h / g) c'' = e, at rest at both ends; the trunk goes there.

    Raises:
        InfeasibleExcitation: a leg does not reach that far.
    """
    basis = UniformSpline(max(round(duration / (_COARSE * STEP)), _FEWEST), duration)
    time = basis.nodes
    fade = _risen(time / courses.rest) * _risen((duration - time) / courses.rest)
    reference, shift = task.reference(courses, time), np.zeros((basis.size, 2))
    q = np.repeat(task.home[None], basis.size, axis=0)
    weights = np.zeros((len(task.home), basis.size))
    for _ in range(_ROUNDS):
        q = positions_at(task.robot, task.poses(courses, shift, time), q, hips_turn=task.hips_turn)
        weights = basis.through(q - task.home)
        away, dq, ddq = basis.displacement(weights, time)
        error = reference - task.balance(task.home + away, dq, ddq).points
        if np.abs(error).max() < _BALANCED:
            break
        moved = basis.displacement(basis.through(error, task.pendulum), time, 0)[0]
        shift += fade[:, None] * moved / _TRUNK_SHARE
    return Balanced(basis, weights, basis.through(shift))


def refined(task: SingleSupportTask, courses: Courses, rough: Balanced) -> Balanced:
    """The same motion on the spline that is played."""
    basis = UniformSpline(max(round(rough.basis.duration / STEP), _FEWEST), rough.basis.duration)
    near, shift = (rough.basis.displacement(each, basis.nodes, 0)[0] for each in (rough.weights, rough.shift))
    poses = task.poses(courses, shift, basis.nodes)
    q = positions_at(task.robot, poses, task.home + near, hips_turn=task.hips_turn)
    return Balanced(basis, np.round(basis.through(q - task.home), _GRAIN), basis.through(shift))


def _risen(share: Array) -> Array:
    """From 0 at 0 to 1 at 1, smooth to the second derivative."""
    x = np.clip(share, 0.0, 1.0)
    return x**3 * (10.0 - 15.0 * x + 6.0 * x**2)


def plan_single_support(
    robot: Robot,
    duration: float = DURATION,
    seed: int = 0,
    *,
    foot: str | None = None,
    margin: tuple[float, float] = MARGIN,
    zmp_offset: tuple[float, float] = (0.0, 0.0),
    parameters: Array | None = None,
    ranges: SupportRanges | None = None,
    pace: float = 0.3,
    rest: float = 1.0,
    clearance: float = CLEARANCE,
    hips_turn: bool = True,
    base: BaseParameters | None = None,
) -> Excitation:
    """Draw a random motion on one foot: trunk and swing foot anywhere in their ranges, the zero-moment point as well.

    Heights, turns and the swing foot follow random courses; the trunk goes where the zero-moment point of all links is
    on its own random course inside the sole. The cart-table model is solved for it over the whole motion at once, which
    is preview control that sees all of it, and again for what is left of the error of all links' zero-moment point.

    Args:
        robot: on a floating base, its support foot, with capsules; a chain of two legs of six joints.
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
        UnknownFoot: the robot has no such foot.
        LosesBalance: the foot is not the base, or the zero-moment point leaves the margin, as at home already.
        InfeasibleExcitation: the robot is no such chain, or a limit is broken, however small the motion.
        UnknownInertia, WorkspaceError: the robot's file does not tell its inertias, or has no capsules.

    Source: Kajita et al., Biped walking pattern generation by using preview control of zero-moment point, ICRA 2003;
    random bounded motions on one foot as in Wu & Gao, J. Harbin Institute of Technology 53(7), 2021.

    >>> motion = jb.plan_single_support(jb.load_robot("gorobot2"), duration=4.0)
    >>> motion.support.foot, motion.support.room > 0.0  # between the zero-moment point and the margin
    ('r_foot', True)
    """
    check_seed(seed)
    for name, value, usual in (("duration", duration, "95 s"), ("pace", pace, "0.3 s"), ("rest", rest, "1 s")):
        check_duration(name, value, f"{usual} is usual")
    task = SingleSupportTask(robot, foot or base_foot(robot), margin, zmp_offset, parameters, hips_turn)
    ends = task.ends(ranges or SupportRanges())
    courses = Courses.drawn(np.random.default_rng(seed), ends, duration, rest, pace)
    limits = (*usable_limits(robot), *support_workspace(robot, task.foot, clearance).limits(robot))
    basis, weights = _feasible(task, courses, limits, duration)
    motion = assemble(robot, base or base_parameters(robot), basis, weights, _SAMPLES, seed, limits=limits)
    time = basis.grid(_GLANCE)
    balance = task.balance(*motion.evaluate(time))
    balance.refuse_fall(margin, time)
    return replace(motion, support=balance.support(margin, zmp_offset))


def base_foot(robot: Robot) -> str:
    """Name of the foot that is the robot's base.

    Raises:
        LosesBalance: there is none.
    """
    if robot.base_foot is None:
        raise LosesBalance(
            f"robot {robot.name!r} has no foot for a base; motions on one foot are for a biped on its foot"
        )
    return robot.base_foot.name


def support_workspace(robot: Robot, foot: str, clearance: float = CLEARANCE) -> Workspace:
    """Where a robot on one foot may move: clear of itself, and all but that foot above the ground.

    Raises:
        UnknownFoot: the robot has no such foot.
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
        smaller = courses.shrunk(share)
        try:
            found = balanced(task, smaller, duration)
            fault = _seen(task, found, limits)
            if fault is None:
                found = refined(task, smaller, found)
                proof = certify(limits, found.basis, task.home, found.weights)
                if proof.feasible:
                    return found.basis, found.weights
                fault = proof.violations[0]
        except InfeasibleExcitation as error:
            fault = str(error)
        share *= _SMALLER
        if share < _SMALLEST:
            raise InfeasibleExcitation(
                f"with {share / _SMALLER:.0%} of its ranges the motion of robot {task.robot.name!r} still breaks a "
                f"limit: {fault}; choose a home farther from it, a slower pace, or smaller ranges"
            )


def _seen(task: SingleSupportTask, found: Balanced, limits: Sequence[Limit]) -> str | None:
    """A limit that is broken at a node already, which is soon told; None where none is."""
    motion = motion_at(found.basis, task.home, found.weights, found.basis.nodes)
    for limit in limits:
        usage = limit.usage(motion).max(axis=0)
        worst = int(usage.argmax())
        if usage[worst] > 1.0:
            return limit.say(worst, float(usage[worst]))
    return None
