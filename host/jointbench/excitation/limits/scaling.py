"""Making a motion smaller about home until it keeps its limits, and no smaller."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from jointbench.arrays import Array
from jointbench.errors import InfeasibleExcitation
from jointbench.excitation.families.basis import Basis
from jointbench.excitation.limits.certificate import certify, is_feasible, motion_at
from jointbench.excitation.limits.motion_limits import JointLimit, Limit

_KEPT = 1e-3
"""Share of the motion that may be given away so as not to search longer."""

_LEAST = 1e-3
"""Share of a motion, or of what its joint can do, that is no motion worth the name."""

_GLANCES = 256
"""Times at which a first guess of the scale is taken; the certificate then corrects it."""

_INSIDE = 1.0 - 1e-6
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
    check_home(limits, home)
    own = [limit for limit in limits if isinstance(limit, JointLimit)]
    others = [limit for limit in limits if not isinstance(limit, JointLimit)]
    weights = _each_joint(own, basis, home, weights, fill)
    return _all_together(others, basis, home, weights)


def check_home(limits: Sequence[Limit], home: Array) -> None:
    """Refuse a home at which a limit is broken, or touched, while nothing moves.

    Raises:
        InfeasibleExcitation: naming the limit, and by how much.
    """
    still = np.zeros((1, len(home)))
    for limit in limits:
        usage = limit.usage((home[None], still, still, still))[0]
        worst = int(np.argmax(usage)) if len(usage) else 0
        if len(usage) and not usage[worst] < _INSIDE:
            excess = 100.0 * (float(usage[worst]) - 1.0)
            by = "no room is left" if excess < 1e-3 else f"{excess:{'.3g' if excess < 1e3 else '.0f'}} % beyond"
            raise InfeasibleExcitation(
                f"at home, before anything moves, {limit.say(worst, float(usage[worst]))} ({by}); choose another home, "
                f"or raise the limit"
            )


def _each_joint(limits: Sequence[JointLimit], basis: Basis, home: Array, weights: Array, fill: float | None) -> Array:
    """Scale each joint by itself into its own limits, which it uses in proportion to its motion."""
    if not limits:
        return weights
    glance = motion_at(basis, home, weights, basis.grid(basis.duration / _GLANCES))
    seen = np.concatenate([limit.usage(glance).max(axis=0) for limit in limits]).reshape(-1, len(home))
    weights = weights * _scale(seen.max(axis=0), None if fill is None else 1.0)
    usage = certify(limits, basis, home, weights, _KEPT).usage.reshape(-1, len(home))
    scale = _scale(usage.max(axis=0), fill)
    weights = weights * scale
    _check_room(limits, basis.bounds(weights), usage * scale[:, 0])
    return weights


def _scale(usage: Array, fill: float | None) -> Array:
    """Factor for each joint's motion, (n_joints, 1), so that it uses at most 1, or `fill`; at rest it stays so."""
    moving = usage > 0.0
    scale = _INSIDE * (1.0 if fill is None else fill) / np.where(moving, usage, 1.0)
    return np.where(moving & ((usage > 1.0) | (fill is not None)), scale, 1.0)[:, None]


def _check_room(limits: Sequence[JointLimit], bounds: Array, usage: Array) -> None:
    """Refuse a home so near the end of a joint's range that next to nothing can move there.

    Args:
        limits: of the joints.
        bounds: of the motion's derivatives, shape (6, n_joints).
        usage: of the joints' limits, shape (2 * number of limits, n_joints).
    """
    moved = np.max([2.0 * bounds[limit.order] / (limit.up + limit.down) for limit in limits], axis=0)
    for joint in np.flatnonzero((moved < _LEAST) & (usage.max(axis=0) > 0.5)):
        worst = int(np.argmax(usage[:, joint]))
        limit, side = limits[worst // 2], worst % 2
        room = (limit.up, limit.down)[side][joint]
        raise InfeasibleExcitation(
            f"home is too near a limit to move: joint {limit.joints[joint]!r} may go only {room:.3g} "
            f"{limit.units[joint]} {('up', 'down')[side]} from there, which leaves {100.0 * moved[joint]:.2g} % of "
            f"what it can do; choose another home"
        )


def _all_together(limits: Sequence[Limit], basis: Basis, home: Array, weights: Array) -> Array:
    """Scale all joints alike: by what samples allow, then, as this is a little too much at times, until it is certain.

    Proofs are dearest where a limit is just touched, and samples nearly tell where that is.
    """
    if is_feasible(limits, basis, home, weights):
        return weights
    phi = basis.evaluate(basis.grid(basis.duration / _GLANCES), 3)

    def seems_feasible(scale: float) -> bool:
        q, dq, ddq, dddq = (scale * (each @ weights.T) for each in phi)
        return all(np.all(limit.usage((home + q, dq, ddq, dddq)) <= 1.0) for limit in limits)

    def is_certain(scale: float) -> bool:
        return is_feasible(limits, basis, home, scale * weights)

    seeming, bad = (1.0, 1.0) if seems_feasible(1.0) else _boundary(0.0, 1.0, seems_feasible)
    step = _KEPT
    scale = seeming * (1.0 - step)
    while scale >= _LEAST and not is_certain(scale):
        bad, step = scale, min(2.0 * step, 0.5)
        scale *= 1.0 - step
    if scale < _LEAST:
        raise InfeasibleExcitation(
            f"home is too near a limit to move: with {100.0 * bad:.2g} % of the motion that the joints' own limits "
            f"allow, {certify(limits, basis, home, bad * weights).nearest}; choose another home, or raise the limit"
        )
    return (scale if step == _KEPT else _boundary(scale, bad, is_certain)[0]) * weights


def _boundary(good: float, bad: float, is_good: Callable[[float], bool]) -> tuple[float, float]:
    """A good and a bad scale next to each other, by bisection, between a good one and a bad one."""
    while bad - good > _KEPT * bad and bad >= _LEAST:
        middle = 0.5 * (good + bad)
        good, bad = (middle, bad) if is_good(middle) else (good, middle)
    return good, bad
