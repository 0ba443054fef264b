"""Friction laws beside a model: descent of all parameters together, and fits beside laws that are known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.identification.estimators.estimator import Estimator, Problem
from jointbench.identification.friction.data import FrictionData
from jointbench.identification.friction.fit import FrictionFit
from jointbench.identification.friction.joint_laws import JointLaws, LawPoint, LawRows
from jointbench.identification.friction.model_friction import ModelFriction
from jointbench.identification.least_squares import Estimate, joint_weights
from jointbench.identification.rows import Block, Rows
from jointbench.identification.triangles import Triangles, compress
from jointbench.model import BaseParameters

STEPS = 100
_ARRIVED = 1e-2
"""Gain of a step, in units of the noise's variance, where parameters are a tenth of their σ away at most: from there
the estimator goes on."""

_FIRST_DAMPING = 1e-6

_FARTHEST = 1.0
"""Of a shape's logarithm in one step."""

_SINGULAR = 1e-10
"""Singular value of the scaled columns, relative to the largest, under which a direction is left alone."""


RowsAt = Callable[[LawPoint, NDArray[np.bool_]], Sequence[Rows]]
"""Rows made linear around a point with some of the laws' parameters held, one `Rows` for each recording."""


class Bounds(NamedTuple):
    """Bounds of the laws' parameters: least and largest values, shape (n_parameters, 2), and which are shapes."""

    values: Array
    is_shape: NDArray[np.bool_]


class Descent(NamedTuple):
    """End of a descent, and whether it arrived."""

    point: LawPoint
    arrived: bool


class _Look(NamedTuple):
    """A point with the rows around it, compressed, and its sum of squares in units of the joints' noise."""

    point: LawPoint
    triangles: Triangles
    squares: float


class _Step(NamedTuple):
    """Next point, and the fall of the sum of squares were the rows linear."""

    to: LawPoint
    gain: float


def descend(rows_at: RowsAt, start: LawPoint, bounds: Bounds, prior: Array | None = None) -> Descent:
    """Go down from a start until the weighted sum of squares falls no more.

    min over base parameters and laws' parameters, these within bounds, of Σ_j Σ_k (torque - model)² / σ_j² and the
    prior. Shapes step
    in their logarithms; after each step the base parameters are solved anew. Parameters at a bound that would have them
    beyond it stay there.

    Args:
        rows_at: gives the rows.
        start: within the bounds.
        bounds: of the laws' parameters.
        prior: rows (regressor | value) of the base parameters that are known beside the data, shape (n, n_base + 1).

    Source: the damping of Nielsen, IMM-REP-1999-05, Technical University of Denmark.
    """
    known = np.zeros((0, len(start.base) + 1)) if prior is None else prior
    at, weights = _look(rows_at, start, None, known)
    damping, growth, arrived = _FIRST_DAMPING, 2.0, False
    for _ in range(STEPS):
        step = _step(at, weights, bounds, damping, known)
        if step.gain <= _ARRIVED:
            arrived = True
            break
        tried, _ = _look(rows_at, step.to, weights, known)
        fell = at.squares - tried.squares
        if fell > 0.0:
            damping *= max(1.0 / 3.0, 1.0 - (2.0 * fell / step.gain - 1.0) ** 3)
            growth = 2.0
            weights = joint_weights(tried.triangles)
            at = tried._replace(squares=_squares(tried.triangles, tried.point, weights, known))
        else:
            damping, growth = damping * growth, growth * 2.0
    return Descent(at.point, arrived)


def at_bound(values: Array, bounds: Array) -> NDArray[np.bool_]:
    """True for values at their bound; exp(log(bound)) is not the bound to the last bit."""
    return np.any(np.isclose(values[:, None], bounds, rtol=1e-6, atol=0.0), axis=1)


def _look(rows_at: RowsAt, point: LawPoint, weights: Array | None, known: Array) -> tuple[_Look, Array]:
    triangles = compress(rows_at(point, np.zeros(len(point.laws), dtype=np.bool_)))
    weights = joint_weights(triangles) if weights is None else weights
    return _Look(point, triangles, _squares(triangles, point, weights, known)), weights


def _squares(triangles: Triangles, point: LawPoint, weights: Array, known: Array) -> float:
    """The sum of squares of the rows and of what is known beside them, at the point itself."""
    beside = known @ np.append(point.base, -1.0)
    return float(weights**2 @ triangles.squares(point.all) + beside @ beside)


def _step(at: _Look, weights: Array, bounds: Bounds, damping: float, known: Array) -> _Step:
    """The next point to try."""
    rank = len(at.point.base)
    beside = np.zeros((len(known), len(at.point.all) + 1))
    beside[:, :rank], beside[:, -1] = known[:, :-1], known[:, -1]
    stack = np.vstack([at.triangles.stacked(weights), beside])
    columns, residual = stack[:, :-1], stack[:, -1] - stack[:, :-1] @ at.point.all
    base, laws = columns[:, :rank], columns[:, rank:].copy()
    laws[:, bounds.is_shape] *= at.point.laws[bounds.is_shape]
    downhill = laws.T @ residual
    low, high = bounds.values.T
    near = at_bound(at.point.laws, bounds.values)
    held = near & np.where(at.point.laws - low <= high - at.point.laws, downhill < 0.0, downhill > 0.0)
    laws[:, held] = 0.0
    scale = np.linalg.norm(np.hstack([base, laws]), axis=0)
    scale[scale == 0.0] = 1.0
    # The base parameters take what they want of each step: damping is for the laws alone.
    weight = np.zeros((laws.shape[1], len(scale)))
    weight[:, rank:] = np.sqrt(damping) * np.eye(laws.shape[1])
    scaled = np.vstack([np.hstack([base, laws]) / scale, weight])
    change = np.linalg.lstsq(scaled, np.append(residual, np.zeros(len(weight))), rcond=_SINGULAR)[0] / scale
    by_laws = change[rank:]
    is_shape = bounds.is_shape
    moved = at.point.laws + np.where(is_shape, 0.0, by_laws)
    moved[is_shape] *= np.exp(np.clip(by_laws[is_shape], -_FARTHEST, _FARTHEST))
    moved = np.clip(moved, low, high)
    taken = moved - at.point.laws
    taken[is_shape] = np.log(moved[is_shape] / at.point.laws[is_shape])
    remaining = residual - laws @ taken
    by_base = np.linalg.lstsq(base / scale[:rank], remaining, rcond=_SINGULAR)[0] / scale[:rank]
    gain = at.squares - float(np.sum((remaining - base @ by_base) ** 2))
    return _Step(LawPoint(at.point.base + by_base, moved), gain)


_MOST_ROWS = 8192
"""Of a joint, evenly spread: more change a start, or the choice of a law, by less than it matters."""


def friction_left(parts: Sequence[Rows], base: BaseParameters, values: Array, joint: str) -> FrictionData:
    """Friction and offset of a joint: what base parameters but for these leave of its torque, where it moves.

    Speed and load are filtered as the torque is: speed is the column of the joint's viscous friction.

    Args:
        parts: rows of one recording each.
        base: what their columns stand for.
        values: of the base parameters, shape (rank,).
        joint: its name.
    """
    names = base.leading_names
    rest = values.copy()
    for end in ("viscous", "coulomb", "offset"):
        if f"{joint}.{end}" in names:
            rest[names.index(f"{joint}.{end}")] = 0.0
    viscous = names.index(f"{joint}.viscous")
    loading = np.array([not name.endswith((".viscous", ".coulomb")) for name in names])
    j = base.robot.joint_index(joint)
    blocks = [
        _of_block(block, j, viscous, rest, np.where(loading, rest, 0.0)) for part in parts for block in part.blocks()
    ]
    velocity, torque, load = np.concatenate(blocks, axis=1)
    every = slice(None, None, -(-max(len(velocity), 1) // _MOST_ROWS))
    return FrictionData(velocity[every], torque[every], load[every], in_time=True).moving()


def _of_block(block: Block, joint: int, viscous: int, rest: Array, loading: Array) -> Array:
    """Velocity, torque left and load of a joint's rows, shape (3, n)."""
    which, columns = block.of_joint(joint)
    used: NDArray[np.bool_] = block.used[:, joint]
    if not used.any():
        return np.zeros((3, 0))
    columns = columns[:, used]
    velocity = columns[np.searchsorted(which, viscous)]
    friction = block.torque[used, joint] - rest[which] @ columns
    return np.stack([velocity, friction, loading[which] @ columns])


_PASSES = 4
_SETTLED = 1e-3
"""σ: base parameters that a pass moves by less stay. Only load makes more than one pass differ."""

REASON = "held as an experiment told it"


def fit_beside(
    estimator: Estimator, problem: Problem, friction: Mapping[str, FrictionFit], plain: Estimate | None = None
) -> tuple[Estimate, ModelFriction, tuple[Problem, Estimate]]:
    """Fit base parameters to torque - law(velocity, load), the laws' parameters being known.

    The error bars are those of the noise, and of what the experiment left open of the laws:
    Σ = Σ_noise + G Σ_laws Gᵀ, with G the change of the base parameters by those of the laws.

    Args:
        estimator: one that looks at rows alone.
        problem: without laws.
        friction: by joint, such as fits to a sweep of speeds; joints without one keep Coulomb and viscous friction.
        plain: the estimator's estimate of the problem; None: made here.

    Returns:
        The estimate of all base parameters, those that a law stands for zero; the laws; and the problem beside them
        with its own estimate.

    Raises:
        FitError: a joint has no friction of its own, or a model cannot hold its law.
    """
    robot = problem.base.robot
    if unknown := [name for name in friction if name not in robot.joint_names]:
        raise FitError(
            f"friction is given for {unknown[0]!r}, but the joints of {robot.name!r} are {', '.join(robot.joint_names)}"
        )
    fits = {name: friction[name] for name in robot.joint_names if name in friction}
    laws = JointLaws(problem.base, {name: fit.law for name, fit in fits.items()})
    values = np.concatenate([fit.parameters for fit in fits.values()])
    plain = estimator(problem) if plain is None else plain
    point, held = LawPoint(plain.parameters[laws.kept], values), np.ones(len(values), dtype=np.bool_)
    estimate, beside = plain, problem
    for _ in range(_PASSES):
        beside = replace(problem, base=laws.extended_base(held), parts=_rows(problem, laws, point, held))
        estimate = estimator(beside)
        moved = np.abs(estimate.parameters - point.base)
        point = LawPoint(estimate.parameters, values)
        sigma = np.sqrt(np.diag(estimate.covariance))
        if np.all(moved[np.isfinite(sigma)] <= _SETTLED * sigma[np.isfinite(sigma)]):
            break
    known = linalg.block_diag(*(np.where(np.isfinite(fit.covariance), fit.covariance, 0.0) for fit in fits.values()))
    slope = _slope(problem, laws, point)
    kept = np.flatnonzero(laws.kept)
    covariance = np.diag(np.where(laws.kept, 0.0, np.inf))
    covariance[np.ix_(kept, kept)] = estimate.covariance + slope @ known @ slope.T
    with_base = np.zeros((laws.base.rank, len(values)))
    with_base[kept] = slope @ known
    finite = np.concatenate([np.isfinite(fit.sigma) for fit in fits.values()])
    known[~finite, ~finite] = np.inf
    model_friction = ModelFriction(
        laws=laws,
        parameters=values,
        covariance=known,
        with_base=with_base,
        at_bound=np.concatenate([fit.at_bound for fit in fits.values()]),
        speeds=_speeds(problem, fits, plain.parameters),
        reasons=dict.fromkeys(fits, REASON),
    )
    whole = replace(estimate, parameters=laws.full(point.base), covariance=covariance, prior=None)
    return whole, model_friction, (beside, estimate)


def _rows(problem: Problem, laws: JointLaws, point: LawPoint, held: NDArray[np.bool_]) -> tuple[LawRows, ...]:
    return tuple(
        LawRows(part, observations, laws, point, held)
        for part, observations in zip(problem.parts, problem.observations, strict=True)
    )


def _slope(problem: Problem, laws: JointLaws, point: LawPoint) -> Array:
    """Return the change of each base parameter per change of each of the laws' parameters, shape (n_kept, n)."""
    free = np.zeros(len(point.laws), dtype=np.bool_)
    triangles = compress(_rows(problem, laws, point, free))
    columns = triangles.stacked(joint_weights(triangles))[:, :-1]
    n = len(point.base)
    scale = triangles.scale[:n]
    solution, *_ = np.linalg.lstsq(columns[:, :n] / scale, columns[:, n:], rcond=None)
    return -np.asarray(solution, dtype=np.float64) / scale[:, None]


def _speeds(problem: Problem, fits: Mapping[str, FrictionFit], values: Array) -> dict[str, tuple[float, float]]:
    """Slowest and fastest row of each joint with a law."""
    speeds = {name: np.abs(friction_left(problem.parts, problem.base, values, name).velocity) for name in fits}
    return {name: (float(speed.min()), float(speed.max())) for name, speed in speeds.items()}
