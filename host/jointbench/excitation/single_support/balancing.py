"""Where the trunk must be for the zero-moment point of all links to follow its course."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointbench.arrays import Array
from jointbench.excitation.families.splines import UniformSpline
from jointbench.excitation.single_support.postures import positions_at
from jointbench.excitation.single_support.ranges import Courses
from jointbench.excitation.single_support.task import SingleSupportTask

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
