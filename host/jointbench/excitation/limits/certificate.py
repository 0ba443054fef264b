"""The proof that a whole motion keeps its limits, between samples too; and bounds of torques from bounds of motion.

Bounds of joint torques and of their derivatives by time are carried through sums, products and rotations by jets: a
*jet* is (|a|, |a'|, |a''|, …), or anything larger. By the triangle inequality jets of sums add, and by Leibniz' rule
|(a b)^(k)| <= Σ_j C(k, j) |a^(j)| |b^(k-j)| for the product of numbers, of a number and a vector, of a matrix and a
vector, and for the dot and cross product of vectors. Directions are forgotten: the bounds exceed the truth because
joints do not all move at their fastest, at once, and in the same direction.

Source: Leibniz' rule; Moore, Kearfott & Cloud, Introduction to Interval Analysis, 2009, ch. 9.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.errors import ExcitationError
from jointbench.excitation.families.basis import Basis, displacement
from jointbench.excitation.limits.motion_limits import Limit, Motion
from jointbench.model import Joint, Robot

RESOLUTION = 2e-3
"""Share of a limit to which its use over a motion is known."""

_FIRST_SLACK = 0.1
_MIN_STEPS, _MAX_STEPS = 32, 4096
"""Steps of the first grid: as many as leave this much of a limit open between samples, within these bounds."""

_SUBDIVISION = 4
"""Parts that a step is cut into where it decides: what is left open between samples falls by 4 or by 16."""

_CHUNK_STEPS = 4096
"""Steps that are looked into at a time, so that a hundred joints and a million steps still fit into memory."""

_RELEVANT_USAGE = 0.5
"""Share of a limit below which it is enough to know that it is not used further."""

_MIN_SLACK = 1e-7
"""Share of a limit that is not looked into: what may exceed the limit by less than this counts as exceeding it."""

_SAFE_USAGE = 1.0 - 2.0 * _MIN_SLACK
"""Usage that is certain to be found feasible again, whatever the samples."""


@dataclass(frozen=True, eq=False)
class Certificate:
    """Bounds of a motion's usage of its limits at any time; it is feasible where none is above 1.

    Attributes:
        limits: that were asked for.
        names: of their scalars, all in one row.
        usage: bound of the share of each limit that is used anywhere in the motion, shape (n_scalars,).
        largest_sampled: largest share at any sample; above 0.5, usage exceeds it by `RESOLUTION` at most.
        samples: number of times at which the motion was sampled, for all limits together.
    """

    limits: tuple[Limit, ...]
    names: tuple[str, ...]
    usage: Array
    largest_sampled: Array
    samples: int

    @property
    def feasible(self) -> bool:
        """True where all limits are proved to be kept over the whole motion."""
        return bool(np.all(self.usage <= 1.0))

    @property
    def worst(self) -> str:
        """Name of the scalar with the largest usage."""
        return self.names[int(np.argmax(self.usage))] if self.names else "nothing"

    @property
    def margins(self) -> dict[str, float]:
        """Margin to each limit, as a share of it: 0 touches it, below 0 breaks it."""
        return dict(zip(self.names, (1.0 - self.usage).tolist(), strict=True))

    @property
    def nearest(self) -> str:
        """Description of the limit that the motion comes nearest to."""
        return self._describe(int(np.argmax(self.usage)))

    @property
    def violations(self) -> tuple[str, ...]:
        """A sentence for each limit that is not proved to be kept, the worst first."""
        order = np.argsort(-self.usage, kind="stable")
        return tuple(self._describe(int(scalar)) for scalar in order if not self.usage[scalar] <= 1.0)

    def _describe(self, scalar: int) -> str:
        usage = float(self.usage[scalar])
        for limit in self.limits:
            if scalar < len(limit.names):
                return limit.describe(scalar, usage)
            scalar -= len(limit.names)
        raise IndexError(scalar)


def motion_at(basis: Basis, home: Array, weights: Array, time: Array) -> Motion:
    """Position, velocity, acceleration and jerk of a motion at times [s], shape (n_times, n_joints) each."""
    away, dq, ddq, dddq = displacement(basis, weights, time, 3)
    return home + away, dq, ddq, dddq


def certify(
    limits: Sequence[Limit], basis: Basis, home: Array, weights: Array, resolution: float = RESOLUTION
) -> Certificate:
    """Bound a motion's usage of each of its limits, for certain.

    Usage is taken at samples; between two of them it exceeds the larger by `Limit.intersample_bound` at most. Where
    the largest usage is uncertain by more than `resolution`, or may be on either side of 1, samples are added.

    Args:
        limits: to keep.
        basis, home, weights: the motion, home [rad or m] of shape (n_joints,), weights (n_joints, basis.size).
        resolution: share of a limit.

    Returns:
        The certificate. It always decides; what stays within 1e-7 of a limit counts as beyond it.

    Raises:
        ExcitationError: a weight is not a finite number.
    """
    bounds = _derivative_bounds(basis, weights)
    usage_bounds = [_UsageBounds(limit, basis, home, weights, bounds).refine(resolution) for limit in limits]
    return Certificate(
        limits=tuple(limits),
        names=tuple(name for limit in limits for name in limit.names),
        usage=np.concatenate([bounds.usage for bounds in usage_bounds] or [np.empty(0)]),
        largest_sampled=np.concatenate([bounds.largest_sampled for bounds in usage_bounds] or [np.empty(0)]),
        samples=sum(bounds.samples for bounds in usage_bounds),
    )


def is_feasible(limits: Sequence[Limit], basis: Basis, home: Array, weights: Array) -> bool:
    """Prove that a motion keeps its limits, or find that it does not; faster than `certify`, which confirms it."""
    bounds = _derivative_bounds(basis, weights)
    return all(_UsageBounds(limit, basis, home, weights, bounds).is_within(_SAFE_USAGE) for limit in limits)


def _derivative_bounds(basis: Basis, weights: Array) -> Array:
    if not np.all(np.isfinite(weights)):
        joints = np.flatnonzero(~np.isfinite(weights).all(axis=1)).tolist()
        raise ExcitationError(f"weights of joints {joints} are not finite numbers; there is no such motion")
    return basis.bounds(weights)


def _distinct_phases(basis: Basis, step: float) -> list[Array]:
    """The grid of a motion in stretches that hold everything that it does, and what it repeats only once."""
    time, repeated = basis.grid(step), basis.repetition
    if repeated.times == 1:
        return [time]
    # The first stretch ends with the first time not before the end of one period.
    first_end, repetition_end = repeated.start + repeated.period, repeated.start + repeated.times * repeated.period
    phases = time[: np.searchsorted(time, first_end) + 1], time[np.searchsorted(time, repetition_end * (1.0 - 1e-12)) :]
    return [phase for phase in phases if len(phase) > 1]


class _Steps(NamedTuple):
    """Steps in time: how often they were cut, where they begin, how wide they are [s], usage at both ends of each."""

    subdivisions: int
    start: Array
    width: Array
    usage_at_start: Array
    usage_at_end: Array


class _UsageBounds:
    """Largest usage of each scalar of one limit: what was seen at samples, and what it is at most."""

    def __init__(self, limit: Limit, basis: Basis, home: Array, weights: Array, bounds: Array) -> None:
        self._limit, self._basis, self._home, self._weights, self._derivative_bounds = (
            limit,
            basis,
            home,
            weights,
            bounds,
        )
        self.largest_sampled = np.full(len(limit.names), -np.inf)
        self.usage = self.largest_sampled.copy()
        self.samples = 0
        self._max_width = 0.0
        self._slack: dict[int, Array] = {}

    def refine(self, resolution: float) -> _UsageBounds:
        """Look closer until usage is known to the resolution, and on which side of 1 it is."""

        def required() -> Array:
            resolved = np.maximum(self.largest_sampled, _RELEVANT_USAGE) + resolution * np.maximum(
                self.largest_sampled, 1.0
            )
            return np.where(self.largest_sampled <= 1.0, np.minimum(resolved, 1.0), resolved)

        self._refine_until(required, np.inf)
        return self

    def is_within(self, max_usage: float) -> bool:
        """Look closer until it is known whether all usage is within this, or seen that it is not."""
        self._refine_until(lambda: np.full_like(self.largest_sampled, max_usage), max_usage)
        return bool(np.all(self.usage <= max_usage))

    def _refine_until(self, required: Callable[[], Array], max_usage: float) -> None:
        """Subdivide steps until usage is below `required` in all; end early where a sample exceeds `max_usage`."""
        steps = self._initial_steps()
        while steps and not np.any(self.largest_sampled > max_usage):
            current = steps.pop()
            undecided = self._undecided(current, required())
            if undecided.any():
                steps += self._subdivide(current, undecided)
        self.usage = np.maximum(self.usage, self.largest_sampled)
        self.usage[np.isnan(self.usage)] = np.inf

    def _initial_steps(self) -> list[_Steps]:
        steps: list[_Steps] = []
        for time in _distinct_phases(self._basis, self._initial_step()):
            usage = self._sample(time)
            steps.append(_Steps(0, time[:-1], np.diff(time), usage[:-1], usage[1:]))
        self._max_width = max(float(part.width.max()) for part in steps)
        return steps

    def _undecided(self, steps: _Steps, required: Array) -> NDArray[np.bool_]:
        """Mask of the steps to subdivide; bounds of usage in the others are recorded."""
        if steps.subdivisions not in self._slack:
            self._slack[steps.subdivisions] = self._limit.intersample_bound(
                self._derivative_bounds, self._max_width * _SUBDIVISION**-steps.subdivisions
            )
        slack = self._slack[steps.subdivisions]
        if not np.all(np.isfinite(slack)):  # beyond all numbers: no refinement would end
            self.usage = np.full_like(self.usage, np.inf)
            return np.zeros(len(steps.width), dtype=np.bool_)
        highest = np.maximum(steps.usage_at_start, steps.usage_at_end) + slack
        undecided = np.any((highest > required) & (slack > _MIN_SLACK), axis=1)
        self.usage = np.maximum(self.usage, highest[~undecided].max(axis=0, initial=-np.inf))
        return undecided

    def _subdivide(self, steps: _Steps, undecided: NDArray[np.bool_]) -> list[_Steps]:
        """Parts of the opened steps, in portions."""
        width = steps.width[undecided] / _SUBDIVISION
        inner_times = steps.start[undecided, None] + width[:, None] * np.arange(1, _SUBDIVISION)
        usage = self._sample(inner_times.ravel()).reshape(*inner_times.shape, -1)
        usage = np.concatenate(
            [steps.usage_at_start[undecided, None], usage, steps.usage_at_end[undecided, None]], axis=1
        )
        start = np.column_stack([steps.start[undecided], inner_times]).ravel()
        usage_at_start, usage_at_end = usage[:, :-1].reshape(len(start), -1), usage[:, 1:].reshape(len(start), -1)
        columns = start, np.repeat(width, _SUBDIVISION), usage_at_start, usage_at_end
        chunks = (slice(first, first + _CHUNK_STEPS) for first in range(0, len(start), _CHUNK_STEPS))
        return [_Steps(steps.subdivisions + 1, *(column[chunk] for column in columns)) for chunk in chunks]

    def _initial_step(self) -> float:
        """Step [s] of the first grid, from how what is open between samples falls when the step is halved."""
        max_step = self._basis.duration / _MIN_STEPS
        slack, halved = (
            float(self._limit.intersample_bound(self._derivative_bounds, step).max(initial=0.0))
            for step in (max_step, max_step / 2)
        )
        if not (slack > _FIRST_SLACK and np.isfinite(slack)):
            return max_step
        order = np.log2(slack / halved)
        return max(max_step * float(_FIRST_SLACK / slack) ** (1.0 / order), self._basis.duration / _MAX_STEPS)

    def _sample(self, time: Array) -> Array:
        usage = self._limit.usage(motion_at(self._basis, self._home, self._weights, time))
        self.samples += len(time)
        self.largest_sampled = np.maximum(self.largest_sampled, usage.max(axis=0, initial=-np.inf))
        return usage


Jet = tuple[float, ...]
"""Bounds of a magnitude and of its first derivatives by time."""

_ZERO_JET: Jet = (0.0, 0.0, 0.0)


def jet_sum(*jets: Jet) -> Jet:
    """Jet of a sum, as long as the shortest."""
    return tuple(map(sum, zip(*jets, strict=False)))


def jet_multiple(factor: float, jet: Jet) -> Jet:
    """Jet of a multiple by a number that does not change."""
    return tuple(factor * bound for bound in jet)


def jet_product(a: Jet, b: Jet) -> Jet:
    """Jet of a product of any kind, as long as the shorter."""
    length = min(len(a), len(b))
    return tuple(sum(comb(k, j) * a[j] * b[k - j] for j in range(k + 1)) for k in range(length))


def rotated_jet(length: float, angular_velocity: Jet) -> Jet:
    """Jet of a vector of constant length that turns, one longer than that of its angular velocity.

    v' = ω × v, and so |v^(k+1)| <= Σ_j C(k, j) |ω^(j)| |v^(k-j)|. With length 1 it is the jet of the rotation itself.
    """
    jet = [length]
    for k in range(len(angular_velocity)):
        jet.append(sum(comb(k, j) * angular_velocity[j] * jet[k - j] for j in range(k + 1)))
    return tuple(jet)


def torque_bounds(robot: Robot, standard_parameters: Array, bounds: Array, home: Array | None = None) -> Array:
    """Largest magnitudes of the joint torques of `inverse_dynamics`, and of their first two derivatives by time.

    The recursion of Newton and Euler on jets, each body's in its own frame: there its inertia does not change, and
    what comes from its parent turns with its own joint alone.

    Args:
        robot: the kinematic tree.
        standard_parameters: ten per link in link order, shape (10 * n_links,).
        bounds: largest magnitude of the derivatives 0 … 4 (or more) of position - home, shape (5 or more, n_joints),
            as of `Basis.bounds`.
        home: [rad or m], shape (n_joints,); the robot's own where not given.

    Returns:
        Shape (3, n_joints): of the torque [N·m], its first [N·m/s] and second derivative [N·m/s²]; N, N/s, N/s² for
        prismatic joints.

    Source: Luh, Walker & Paul, J. Dyn. Sys. Meas. Control 102(2), 1980.
    """
    motions, at_home = _motions(robot, bounds, home)
    inertias = _inertias(standard_parameters)
    base = _Body(_ZERO_JET, _ZERO_JET, (float(np.linalg.norm(robot.gravity)), 0.0, 0.0), _ZERO_JET, _ZERO_JET)
    bodies: list[_Body] = []
    for i, joint in enumerate(robot.joints):
        bodies.append(_child_motion(bodies[joint.parent] if joint.parent >= 0 else base, joint, motions[i], at_home[i]))
    loads = [_inertial_load(body, *inertia) for body, inertia in zip(bodies, inertias, strict=True)]
    index, factor, _ = robot.coordinates
    torques = np.zeros((3, robot.n_joints))
    for i in range(len(bodies) - 1, -1, -1):
        joint, (force, moment) = robot.joints[i], loads[i]
        torques[:, index[i]] += np.abs(factor[i]) * np.array(moment if joint.kind == "revolute" else force)
        if joint.parent >= 0:
            force, moment = jet_product(bodies[i].turn, force), jet_product(bodies[i].turn, moment)
            carried_force, carried_moment = loads[joint.parent]
            loads[joint.parent] = (
                jet_sum(carried_force, force),
                jet_sum(carried_moment, moment, jet_product(bodies[i].arm, force)),
            )
    return torques


class _Body(NamedTuple):
    """Jets of a link's motion, three long, in its own frame.

    Attributes:
        angular_velocity, spin_rate: angular velocity and acceleration [rad/s, rad/s²].
        specific_force: acceleration of its origin less gravity [m/s²].
        turn: rotation of its frame in its parent's.
        arm: its origin in its parent's frame [m].
    """

    angular_velocity: Jet
    spin_rate: Jet
    specific_force: Jet
    turn: Jet
    arm: Jet


def _child_motion(parent: _Body, joint: Joint, motion: Jet, at_home: float) -> _Body:
    """Motion of a link whose joint's position - home has the jet `motion`, five long."""
    velocity, acceleration = motion[1:4], motion[2:5]
    is_revolute = joint.kind == "revolute"
    arm: Jet = (_length(joint, at_home), 0.0, 0.0)
    arm = arm if is_revolute else jet_sum(arm, motion)
    turn = rotated_jet(1.0, velocity[:2]) if is_revolute else (1.0, 0.0, 0.0)
    centripetal_acceleration = jet_product(parent.angular_velocity, jet_product(parent.angular_velocity, arm))
    specific_force = jet_product(
        turn, jet_sum(parent.specific_force, jet_product(parent.spin_rate, arm), centripetal_acceleration)
    )
    angular_velocity, spin_rate = jet_product(turn, parent.angular_velocity), jet_product(turn, parent.spin_rate)
    coriolis = jet_product(angular_velocity, velocity)
    if is_revolute:
        return _Body(
            jet_sum(angular_velocity, velocity), jet_sum(spin_rate, acceleration, coriolis), specific_force, turn, arm
        )
    return _Body(
        angular_velocity, spin_rate, jet_sum(specific_force, acceleration, jet_multiple(2.0, coriolis)), turn, arm
    )


def _inertial_load(
    body: _Body, mass: float, first: float, inertia_norm: float, inertia_spread: float
) -> tuple[Jet, Jet]:
    """Jets of the force and of the moment about its origin that move a link.

    f = m a + α × mc + ω × (ω × mc); n = mc × a + J α + ω × J ω, a the specific force. A multiple of the unit matrix
    in J adds to n by α alone.
    """
    centripetal = jet_product(body.angular_velocity, body.angular_velocity)
    force = jet_sum(jet_multiple(mass, body.specific_force), jet_multiple(first, jet_sum(body.spin_rate, centripetal)))
    return force, jet_sum(
        jet_multiple(first, body.specific_force),
        jet_multiple(inertia_norm, body.spin_rate),
        jet_multiple(inertia_spread, centripetal),
    )


def _motions(robot: Robot, bounds: Array, home: Array | None) -> tuple[list[Jet], list[float]]:
    """Jets of position - home of all joints, and their positions at home, also of those that follow others."""
    index, factor, _ = robot.coordinates
    home_position = np.asarray(robot.home if home is None else home, dtype=np.float64)
    jets = (bounds[:5, index] * np.abs(factor)).T.tolist()
    return [tuple(jet) for jet in jets], robot.all_positions(home_position[None])[0].tolist()


def _length(joint: Joint, at_home: float) -> float:
    """Length of the vector from the parent's origin to the joint's own at home [m]."""
    rotation, origin = joint.placement
    slide = 0.0 if joint.kind == "revolute" else at_home
    return float(np.linalg.norm(origin + slide * (rotation @ joint.axis)))


def _inertias(standard_parameters: Array) -> list[tuple[float, float, float, float]]:
    """Magnitudes of each link: |m|, |mc|, the norm of J and half the spread of its principal values."""
    links = np.reshape(standard_parameters, (-1, 10))
    principal = np.linalg.eigvalsh(links[:, [4, 5, 6, 5, 7, 8, 6, 8, 9]].reshape(-1, 3, 3))
    uneven = 0.5 * (principal[:, 2] - principal[:, 0])
    first = np.linalg.norm(links[:, 1:4], axis=1)
    columns = (np.abs(links[:, 0]), first, np.abs(principal).max(axis=1), uneven)
    return list(zip(*(column.tolist() for column in columns), strict=True))
