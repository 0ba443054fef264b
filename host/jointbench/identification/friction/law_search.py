"""Search for friction laws beside a model: starts, descent of all parameters together, choice by rows held out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.identification.estimators.estimator import Estimator, Problem
from jointbench.identification.friction.data import FrictionData
from jointbench.identification.friction.fit import FrictionFit, compare_laws
from jointbench.identification.friction.joint_laws import PLAIN, JointLaws, LawPoint, LawRows
from jointbench.identification.friction.law import Law
from jointbench.identification.friction.model_friction import ModelFriction
from jointbench.identification.friction.terms import SPEED_TERMS, friction_law
from jointbench.identification.friction.variable_projection import valleys, variable_projection
from jointbench.identification.judgement import FOLDS
from jointbench.identification.least_squares import Estimate, joint_weights
from jointbench.identification.rows import Block, Rows
from jointbench.identification.triangles import Triangles, compress
from jointbench.model import BaseParameters
from jointbench.signals import rest_threshold

STEPS = 100
_ARRIVED = 1e-4
"""What a step would gain, in units of the noise's variance, where parameters are some hundredth of their σ away."""

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
    """End of a descent, whether it arrived, and its deviance: less is better, by 1 for one σ of anything."""

    point: LawPoint
    arrived: bool
    deviance: float


class _Look(NamedTuple):
    """A point with the rows around it, compressed, and its sum of squares in units of the joints' noise."""

    point: LawPoint
    triangles: Triangles
    squares: float


class _Step(NamedTuple):
    """Next point, and the fall of the sum of squares were the rows linear."""

    to: LawPoint
    gain: float


def descend(rows_at: RowsAt, start: LawPoint, bounds: Bounds, steps: int = STEPS) -> Descent:
    """Go down from a start until the weighted sum of squares falls no more.

    min over base parameters and laws' parameters, these within bounds, of Σ_j Σ_k (torque - model)² / σ_j². Shapes step
    in their logarithms; after each step the base parameters are solved anew. Parameters at a bound that would have them
    beyond it stay there.

    Args:
        rows_at: gives the rows.
        start: within the bounds.
        bounds: of the laws' parameters.
        steps: to take at most.

    Source: the damping of Nielsen, IMM-REP-1999-05, Technical University of Denmark.
    """
    at, weights = _look(rows_at, start, None)
    damping, growth, arrived = _FIRST_DAMPING, 2.0, False
    for _ in range(steps):
        step = _step(at, weights, bounds, damping)
        if step.gain <= _ARRIVED:
            arrived = True
            break
        tried, _ = _look(rows_at, step.to, weights)
        fell = at.squares - tried.squares
        if fell > 0.0:
            damping *= max(1.0 / 3.0, 1.0 - (2.0 * fell / step.gain - 1.0) ** 3)
            growth = 2.0
            weights = joint_weights(tried.triangles)
            at = tried._replace(squares=_squares(tried.triangles, tried.point, weights))
        else:
            damping, growth = damping * growth, growth * 2.0
    return Descent(at.point, arrived, _deviance(at))


def at_bound(values: Array, bounds: Array) -> NDArray[np.bool_]:
    """True for values at their bound; exp(log(bound)) is not the bound to the last bit."""
    return np.any(np.isclose(values[:, None], bounds, rtol=1e-6, atol=0.0), axis=1)


def _look(rows_at: RowsAt, point: LawPoint, weights: Array | None) -> tuple[_Look, Array]:
    triangles = compress(rows_at(point, np.zeros(len(point.laws), dtype=np.bool_)))
    weights = joint_weights(triangles) if weights is None else weights
    return _Look(point, triangles, _squares(triangles, point, weights)), weights


def _squares(triangles: Triangles, point: LawPoint, weights: Array) -> float:
    """The rows' sum of squares at the point itself."""
    return float(weights**2 @ triangles.squares(point.all))


def _deviance(at: _Look) -> float:
    """Σ n ln(mean square) over the joints of all recordings: twice the likelihood's logarithm, but for its sign."""
    counts, squares = at.triangles.counts, at.triangles.squares(at.point.all)
    present = (counts > 0) & (squares > 0.0)
    return float(np.sum(counts[present] * np.log(squares[present] / counts[present])))


def _step(at: _Look, weights: Array, bounds: Bounds, damping: float) -> _Step:
    """The next point to try."""
    stack = at.triangles.stacked(weights)
    rank = len(at.point.base)
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

_SAME = 0.2
"""Of shapes' logarithms: closer together, they are of one valley."""

_MOST_OTHERS = 3


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


def away_from_rest(data: FrictionData) -> FrictionData:
    """Rows in which friction of the filtered speed is filtered friction: not those next to a reversal."""
    return data.moving(float(rest_threshold(data.velocity[:, None])[0])) if data.n_rows else data


def in_rows(law: str) -> str:
    """A law as it is fitted to such rows, with an offset beside it; one of both directions has it already."""
    return law if law.startswith("asymmetric") else f"{law}+offset"


class Starts(NamedTuple):
    """Starts of a search: the best point, other valleys of each joint's law, and bounds of the laws' parameters."""

    best: LawPoint
    others: Mapping[str, Array]
    bounds: Bounds


def starts_of(laws: JointLaws, values: Array, data: Mapping[str, FrictionData]) -> Starts:
    """Each joint's law fitted by itself, by variable projection.

    Args:
        laws: of some joints.
        values: of the base parameters where friction is Coulomb's and viscous, shape (rank,).
        data: of these joints.

    Raises:
        FitError: a joint has too few rows.
    """
    best, bounds, others = [np.zeros(0)], [np.zeros((0, 2))], dict[str, Array]()
    for name, law in laws.laws.items():
        whole, rows = friction_law(in_rows(law.name)), away_from_rest(data[name])
        if rows.n_rows <= len(whole.names):
            raise FitError(
                f"joint {name!r} has {rows.n_rows} rows away from rest, and its friction law {law.name!r} needs more "
                f"than {len(whole.names)}; record more motion of it, or give it no law"
            )
        low, high = np.concatenate([law.coefficient_bounds(data[name]), law.shape_bounds(data[name])]).T
        own = [whole.names.index(parameter) for parameter in law.names]
        best.append(np.clip(variable_projection(rows, whole)[own], low, high))
        bounds.append(np.stack([low, high], axis=1))
        if len(law.shapes) > 1:
            others[name] = _apart(best[-1], np.clip(valleys(rows, whole)[:, own], low, high), law)
    point = LawPoint(values[laws.kept], np.concatenate(best))
    return Starts(point, others, Bounds(np.concatenate(bounds), laws.is_shape))


def _apart(best: Array, others: Array, law: Law) -> Array:
    """Those whose shapes differ from the best's and from each other's."""
    distinct = [best]
    for candidate in others:
        shapes = [law.split(one)[1] for one in (candidate, *distinct)]
        if all(np.any(np.abs(np.log(shapes[0] / shape)) > _SAME) for shape in shapes[1:]):
            distinct.append(candidate)
    return np.array(distinct[1 : 1 + _MOST_OTHERS]).reshape(-1, len(best))


_PASSES = 4
_SETTLED = 1e-3
"""σ: base parameters that a pass moves by less stay. Only load makes more than one pass differ."""

REASON = "held as an experiment told it"


def fit_beside(
    estimator: Estimator, problem: Problem, friction: Mapping[str, FrictionFit]
) -> tuple[Estimate, ModelFriction]:
    """Fit base parameters to torque - law(velocity, load), the laws' parameters being known.

    The error bars are those of the noise, and of what the experiment left open of the laws:
    Σ = Σ_noise + G Σ_laws Gᵀ, with G the change of the base parameters by those of the laws.

    Args:
        estimator: one that looks at rows alone.
        problem: without laws.
        friction: by joint, such as fits to a sweep of speeds; joints without one keep Coulomb and viscous friction.

    Returns:
        The estimate of all base parameters, those that a law stands for zero; and the laws.

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
    plain = estimator(problem)
    point, held = LawPoint(plain.parameters[laws.kept], values), np.ones(len(values), dtype=np.bool_)
    estimate = plain
    for _ in range(_PASSES):
        estimate = estimator(replace(problem, parts=_rows(problem, laws, point, held)))
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
    return replace(estimate, parameters=laws.full(point.base), covariance=covariance), model_friction


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


_LEAST_ROWS = 20 * FOLDS
"""Fewer, and a fold held out tells little of any law."""

_MOST_HELD_ROWS = 1000
"""Evenly spread: with more, laws that differ by less than matters would be told apart."""


class Choice(NamedTuple):
    """A law's name, and why."""

    law: str
    reason: str


def choose_law(data: FrictionData, excluded: Collection[str] = ()) -> Choice:
    """The simplest law whose error on rows it has not seen is within one standard error of the least.

    First among the laws of speed alone, then whether the load adds to it: see `compare_laws`.

    Args:
        data: friction of one joint with its offset, rows in time.
        excluded: laws that are no candidates.
    """
    if data.n_rows < _LEAST_ROWS or not data.both_directions:
        return Choice(PLAIN, f"{data.n_rows} rows are too few to choose a law by, or go one way only")
    rows = away_from_rest(data)
    rows = rows.part(np.arange(rows.n_rows) % -(-rows.n_rows // _MOST_HELD_ROWS) == 0)
    best = _best(rows, [name for name in SPEED_TERMS if name == PLAIN or name not in excluded])
    loaded = f"{best.law}+load"
    if loaded not in excluded and rows.load is not None and np.ptp(np.abs(rows.load)) > 0.0:
        with_load = _best(rows, [best.law, loaded])
        return with_load if with_load.law == loaded else best
    return best


def _best(data: FrictionData, names: Sequence[str]) -> Choice:
    """The best of some laws, the first of which is the simplest."""
    compared = compare_laws(data, [friction_law(in_rows(name)) for name in names])
    errors = dict(zip((fit.law.name for fit in compared.fits), compared.held_out_rms.tolist(), strict=True))
    chosen = next(name for name in names if in_rows(name) == compared.best_fit.law.name)
    simplest = errors[in_rows(names[0])]
    if chosen == names[0]:
        return Choice(chosen, "no other law errs less on unseen rows by more than chance")
    return Choice(chosen, f"its rms error on unseen rows is {errors[in_rows(chosen)] / simplest:.0%} of {names[0]}'s")
