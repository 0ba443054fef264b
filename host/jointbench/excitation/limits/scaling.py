"""Scaling of a motion about home until it keeps its limits, and no further."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from jointbench.arrays import Array
from jointbench.errors import InfeasibleExcitation
from jointbench.excitation.families.basis import Basis
from jointbench.excitation.limits.certificate import certify, is_feasible, motion_at
from jointbench.excitation.limits.motion_limits import JointLimit, Limit

_SCALE_TOLERANCE = 1e-3
"""Share of the motion that may be given away so as not to search longer."""

_MIN_MOTION = 1e-3
"""Share of a motion, or of what its joint can do, that is no motion worth the name."""

_COARSE_SAMPLES = 256
"""Times at which a first guess of the scale is taken; the certificate then corrects it."""

_TOUCHING = 1.0 - 1e-6
"""Share of a limit that counts as touching it, and that joints are scaled to: certificates tell such a difference."""


def scale_into_limits(
    limits: Sequence[Limit], basis: Basis, home: Array, weights: Array, fill: float | None = None
) -> Array:
    """Scale a motion about home until it is certain to keep all limits, keeping as much of it as possible.

    Each joint is scaled by itself until it keeps its own limits; then, where others are broken still, all joints
    together. At home itself all limits are kept, so small motions keep them.

    Args:
        limits: to keep.
        basis: of the motion.
        home: [rad or m], shape (n_joints,).
        weights: shape (n_joints, basis.size).
        fill: where given, joints are also scaled up, to this share of the tightest of their own limits.

    Returns:
        The scaled weights, shape as weights; `certify` finds them feasible. At least 99.9 % of what the limits allow
        in this direction, where usage grows with the motion.

    Raises:
        InfeasibleExcitation: a limit is broken at home, or next to nothing is left of the motion.
    """
    check_home_usage(limits, home)
    joint_limits = [limit for limit in limits if isinstance(limit, JointLimit)]
    other_limits = [limit for limit in limits if not isinstance(limit, JointLimit)]
    weights = _scale_joints(joint_limits, basis, home, weights, fill)
    return _scale_together(other_limits, basis, home, weights)


def check_home_usage(limits: Sequence[Limit], home: Array) -> None:
    """Refuse a home at which a limit is broken, or touched, while nothing moves.

    Raises:
        InfeasibleExcitation: naming the limit, and by how much.
    """
    rest = np.zeros((1, len(home)))
    for limit in limits:
        usage = limit.usage((home[None], rest, rest, rest))[0]
        worst = int(np.argmax(usage)) if len(usage) else 0
        if len(usage) and not usage[worst] < _TOUCHING:
            excess = 100.0 * (float(usage[worst]) - 1.0)
            by = "no room is left" if excess < 1e-3 else f"{excess:{'.3g' if excess < 1e3 else '.0f'}} % beyond"
            raise InfeasibleExcitation(
                f"at home, before anything moves, {limit.describe(worst, float(usage[worst]))} ({by}); choose another "
                f"home, or raise the limit"
            )


def _scale_joints(limits: Sequence[JointLimit], basis: Basis, home: Array, weights: Array, fill: float | None) -> Array:
    """Scale each joint by itself into its own limits, which it uses in proportion to its motion."""
    if not limits:
        return weights
    coarse_motion = motion_at(basis, home, weights, basis.grid(basis.duration / _COARSE_SAMPLES))
    largest_sampled = np.concatenate([limit.usage(coarse_motion).max(axis=0) for limit in limits]).reshape(
        -1, len(home)
    )
    weights = weights * _joint_scales(largest_sampled.max(axis=0), None if fill is None else 1.0)
    usage = certify(limits, basis, home, weights, _SCALE_TOLERANCE).usage.reshape(-1, len(home))
    scale = _joint_scales(usage.max(axis=0), fill)
    weights = weights * scale
    _check_range(limits, basis.bounds(weights), usage * scale[:, 0])
    return weights


def _joint_scales(usage: Array, fill: float | None) -> Array:
    """Factor for each joint's motion, (n_joints, 1), so that it uses at most 1, or `fill`; at rest it stays so."""
    moving = usage > 0.0
    scale = _TOUCHING * (1.0 if fill is None else fill) / np.where(moving, usage, 1.0)
    return np.where(moving & ((usage > 1.0) | (fill is not None)), scale, 1.0)[:, None]


def _check_range(limits: Sequence[JointLimit], bounds: Array, usage: Array) -> None:
    """Refuse a home so near the end of a joint's range that next to nothing can move there.

    Args:
        limits: of the joints.
        bounds: of the motion's derivatives, shape (6, n_joints).
        usage: of the joints' limits, shape (2 * number of limits, n_joints).
    """
    used_range = np.max([2.0 * bounds[limit.order] / (limit.up + limit.down) for limit in limits], axis=0)
    for joint in np.flatnonzero((used_range < _MIN_MOTION) & (usage.max(axis=0) > 0.5)):
        worst = int(np.argmax(usage[:, joint]))
        limit, side = limits[worst // 2], worst % 2
        range_left = (limit.up, limit.down)[side][joint]
        raise InfeasibleExcitation(
            f"home is too near a limit to move: joint {limit.joints[joint]!r} may go only {range_left:.3g} "
            f"{limit.units[joint]} {('up', 'down')[side]} from there, which leaves {100.0 * used_range[joint]:.2g} % "
            f"of what it can do; choose another home"
        )


def _scale_together(limits: Sequence[Limit], basis: Basis, home: Array, weights: Array) -> Array:
    """Scale all joints alike: by what samples allow, then, as this is a little too much at times, until it is certain.

    Proofs are dearest where a limit is just touched, and samples nearly tell where that is.
    """
    if is_feasible(limits, basis, home, weights):
        return weights
    phi = basis.evaluate(basis.grid(basis.duration / _COARSE_SAMPLES), 3)

    def seems_feasible(scale: float) -> bool:
        q, dq, ddq, dddq = (scale * (derivative @ weights.T) for derivative in phi)
        return all(np.all(limit.usage((home + q, dq, ddq, dddq)) <= 1.0) for limit in limits)

    def is_certain(scale: float) -> bool:
        return is_feasible(limits, basis, home, scale * weights)

    sampled_scale, infeasible = (1.0, 1.0) if seems_feasible(1.0) else _bisect(0.0, 1.0, seems_feasible)
    step = _SCALE_TOLERANCE
    scale = sampled_scale * (1.0 - step)
    while scale >= _MIN_MOTION and not is_certain(scale):
        infeasible, step = scale, min(2.0 * step, 0.5)
        scale *= 1.0 - step
    if scale < _MIN_MOTION:
        raise InfeasibleExcitation(
            f"home is too near a limit to move: with {100.0 * infeasible:.2g} % of the motion that the joints' own "
            f"limits allow, {certify(limits, basis, home, infeasible * weights).nearest}; choose another home, or "
            f"raise the limit"
        )
    return (scale if step == _SCALE_TOLERANCE else _bisect(scale, infeasible, is_certain)[0]) * weights


def _bisect(feasible: float, infeasible: float, is_feasible_scale: Callable[[float], bool]) -> tuple[float, float]:
    """A good and a bad scale next to each other, by bisection, between a good one and a bad one."""
    while infeasible - feasible > _SCALE_TOLERANCE * infeasible and infeasible >= _MIN_MOTION:
        middle = 0.5 * (feasible + infeasible)
        feasible, infeasible = (middle, infeasible) if is_feasible_scale(middle) else (feasible, middle)
    return feasible, infeasible
