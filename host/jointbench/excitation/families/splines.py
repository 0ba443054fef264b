"""Piecewise polynomial motions: septic pieces, moves from point to point, uniform quintic splines.

A septic piece leads from one state (position to jerk) to another. Of its eight Bernstein coefficients the first four
follow from the state at its beginning, the last four from that at its end; the polynomial lies between the smallest and
the largest of them, so that the coefficients bound it.

Source: Farouki, The Bernstein polynomial basis: a centennial retrospective, CAGD 29(6), 2012.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from math import comb, factorial

import numpy as np
import scipy  # its submodules load on first use; each takes up to a second
from scipy.linalg import solveh_banded

from jointbench.arrays import Array
from jointbench.errors import ExcitationError
from jointbench.excitation.families.basis import (
    HIGHEST_DERIVATIVE,
    MAX_ORDER,
    Repetition,
    check_duration,
    check_order,
    grid_between,
    times_between,
)

_SEPTIC_DEGREE = 7

_SUBDIVISIONS = 4
"""Number of halvings of a piece before its coefficients are taken as bounds: 16 parts are within a few percent."""

_QUINTIC_DEGREE = HIGHEST_DERIVATIVE
_N_COEFFICIENTS = _QUINTIC_DEGREE + 1
"""Steps that one spline covers, and splines that are not zero in one step."""

_MOST_STEPS = 20_000


def coefficients_at_start(length: float) -> Array:
    """Matrix (4, 4) from position, velocity, acceleration and jerk at the beginning to the first four coefficients.

    P_j = Σ_k C(j, k) (7 - k)!/7! T^k q^(k). At the end it is the same from the last coefficient backwards, with -T.

    Args:
        length: T [s]; negative for the state at the end.
    """
    return np.array(
        [[comb(j, k) * factorial(7 - k) / factorial(7) * length**k for k in range(4)] for j in range(4)],
        dtype=np.float64,
    )


def septic_values(share: Array, length: float, order: int) -> tuple[Array, ...]:
    """Values, and the first `order` derivatives, of the polynomials of which one coefficient is 1 and the others 0.

    Args:
        share: time since the beginning over the length, shape (n_times,).
        length: of the piece [s].
        order: of the last derivative.

    Returns:
        Shape (n_times, 8) each.
    """
    rising, falling = (np.vander(x, _SEPTIC_DEGREE + 1, increasing=True) for x in (share, 1.0 - share))
    values: list[Array] = []
    for k in range(order + 1):
        degree = _SEPTIC_DEGREE - k
        # Bernstein polynomials C(n, i) x^i (1 - x)^(n - i)
        bernstein = _binomials(degree) * rising[:, : degree + 1] * falling[:, degree::-1]
        values.append(bernstein @ (_differences(k) / length**k))
    return tuple(values)


def septic_bounds(coefficients: Array, length: float) -> Array:
    """Bounds of the magnitudes of the derivatives 0 to 5 of polynomials, never too low, shape (6, n).

    Args:
        coefficients: shape (8, n).
        length: of the piece [s].
    """
    bounds = [
        np.abs(_subdivision(_SEPTIC_DEGREE - k) @ (_differences(k) @ coefficients)).max(axis=(0, 1)) / length**k
        for k in range(HIGHEST_DERIVATIVE + 1)
    ]
    return np.stack(bounds)


@cache
def _binomials(degree: int) -> Array:
    return np.array([comb(degree, i) for i in range(degree + 1)], dtype=np.float64)


@cache
def _differences(order: int) -> Array:
    """Matrix from coefficients to those of the derivative of this order over a piece of length 1, (8 - order, 8)."""
    matrix = np.eye(_SEPTIC_DEGREE + 1)
    for degree in range(_SEPTIC_DEGREE, _SEPTIC_DEGREE - order, -1):
        matrix = degree * np.diff(matrix, axis=0)
    return matrix


@cache
def _subdivision(degree: int) -> Array:
    """Matrices from coefficients to those of equal parts (de Casteljau), (n_parts, degree + 1, degree + 1)."""
    first_half = np.array([[comb(j, i) / 2.0**j for i in range(degree + 1)] for j in range(degree + 1)])
    second_half = first_half[::-1, ::-1]
    matrices = np.eye(degree + 1)[None]
    for _ in range(_SUBDIVISIONS):
        matrices = np.concatenate([first_half @ matrices, second_half @ matrices])
    return matrices


@dataclass(frozen=True)
class PointToPoint:
    """Moves of equal duration through way points, each at rest (velocity, acceleration and jerk 0) at both its ends.

    q(t) = home + p_k + (p_{k+1} - p_k) s(x), s(x) = 35x⁴ - 84x⁵ + 70x⁶ - 20x⁷, x from 0 to 1 within each move; p_0 and
    the last p are 0. The weights are the way points between, from home [rad].

    Attributes:
        points: number of free way points, at least 1; there is one move more.
        segment: how long each move takes [s].

    Raises:
        ExcitationError: no points or too many, or a segment that is no duration.

    Source: the polynomial of least degree with these ends, as in Biagiotti & Melchiorri, Trajectory Planning for
        Automatic Machines and Robots, Springer 2008, sec. 2.1.6.
    """

    points: int
    segment: float

    def __post_init__(self) -> None:
        """Refuse impossible moves."""
        if not 1 <= self.points <= MAX_ORDER:
            raise ExcitationError(
                f"points = {self.points}: at least 1 way point is needed, and at most {MAX_ORDER}; 10 is usual"
            )
        check_duration("segment", self.segment, "a move of 2 s is usual")

    @property
    def size(self) -> int:
        """Number of free weights per joint."""
        return self.points

    @property
    def duration(self) -> float:
        """Duration of all moves [s]."""
        return (self.points + 1) * self.segment

    @property
    def fastest_cycle(self) -> float:
        """A move [s]: within it the acceleration goes to and fro once."""
        return self.segment

    @property
    def repetition(self) -> Repetition:
        """The whole motion, once."""
        return Repetition(0.0, self.duration, 1)

    @property
    def description(self) -> str:
        """The family and its settings in words."""
        return f"moves through {self.points} way points, {self.segment:g} s each"

    def evaluate(self, time: Array, order: int = 2) -> tuple[Array, ...]:
        """Values of phi and its first `order` derivatives at times [s], shape (n_times, size) each."""
        check_order(order)
        time = np.asarray(time, dtype=np.float64) % self.duration
        move = np.minimum((time / self.segment).astype(np.intp), self.points)
        rows = np.arange(len(time))
        values: list[Array] = []
        for derivative in septic_values(time / self.segment - move, self.segment, order):
            # Columns 0 and the last are home, before the first move and after the last one.
            phi = np.zeros((len(time), self.points + 2))
            phi[rows, move] = derivative[:, :4].sum(axis=1)
            phi[rows, move + 1] = derivative[:, 4:].sum(axis=1)
            values.append(phi[:, 1:-1])
        return tuple(values)

    def grid(self, step: float) -> Array:
        """Times [s] from 0 to the duration, at most `step` apart, the ends of all moves among them."""
        return grid_between(self._ends, step)

    def bounds(self, weights: Array) -> Array:
        """Bounds of the derivatives 0 to 5 of q - home, shape (6, n_joints): the largest over all moves."""
        n_joints = len(weights)
        way = np.hstack([np.zeros((n_joints, 1)), weights, np.zeros((n_joints, 1))])
        coefficients = np.repeat(np.stack([way[:, :-1], way[:, 1:]]), 4, axis=0)
        bounds = septic_bounds(coefficients.reshape(8, -1), self.segment)
        return bounds.reshape(len(bounds), n_joints, -1).max(axis=2)

    def sample_times(self, samples: int) -> Array:
        """Times [s] spread over the moves, none of them at a way point."""
        return times_between(self._ends, samples)

    @property
    def _ends(self) -> list[float]:
        """Times at which the motion is at rest, home first and last [s]."""
        return [self.segment * end for end in range(self.points + 2)]


@dataclass(frozen=True)
class UniformSpline:
    """Cardinal splines of degree 5: q(t) = home + sum of w_k B(t / h - k), h = duration / steps, k = 0 … steps - 6.

    B covers six steps and lies with its first four derivatives at rest at its ends, so each motion begins and ends at
    rest in all of these. Each weight acts on 6 h alone, and between the smallest and the largest of six weights that
    follow each other lies all of q - home in the step that they share.

    Attributes:
        steps: into which the duration is cut, at least 6.
        duration: [s].

    Raises:
        ExcitationError: too few steps or too many, or a duration that is none.

    Source: Schoenberg, Cardinal Spline Interpolation, SIAM 1973; Farin, Curves and Surfaces for CAGD, ch. 8.
    """

    steps: int
    duration: float

    def __post_init__(self) -> None:
        """Refuse impossible splines."""
        if not _N_COEFFICIENTS <= self.steps <= _MOST_STEPS:
            raise ExcitationError(
                f"steps = {self.steps}: a spline needs at least {_N_COEFFICIENTS}, and at most {_MOST_STEPS}"
            )
        check_duration("duration", self.duration, "95 s is usual")

    @property
    def size(self) -> int:
        """Number of free weights per joint."""
        return self.steps - _QUINTIC_DEGREE

    @property
    def step(self) -> float:
        """Length of each step, h [s]."""
        return self.duration / self.steps

    @property
    def fastest_cycle(self) -> float:
        """Cycle of weights of alternating sign [s]."""
        return 2.0 * self.step

    @property
    def repetition(self) -> Repetition:
        """The whole motion, once."""
        return Repetition(0.0, self.duration, 1)

    @property
    def description(self) -> str:
        """The family and its settings in words."""
        return f"a smooth course of {self.duration:g} s, a spline of {self.steps} steps"

    @property
    def nodes(self) -> Array:
        """Times at which one spline each is largest [s], shape (size,): `through` gives the values there."""
        return self.step * (np.arange(self.size, dtype=np.float64) + 0.5 * _N_COEFFICIENTS)

    def through(self, values: Array, pendulum: float = 0.0) -> Array:
        """Weights, shape (n_joints, size), of the motion x = q - home with x - pendulum x'' = values at the nodes.

        Args:
            values: shape (size, n_joints).
            pendulum: [s²], at least 0; 0 for the motion that goes through the values.
        """
        # B and B'' where it is largest, one and two steps from there.
        values_at_node, curvature_at_node = (
            np.array([66.0, 26.0, 1.0]) / 120.0,
            np.array([-6.0, 2.0, 1.0]) / (6.0 * self.step**2),
        )
        bands = np.repeat((values_at_node - pendulum * curvature_at_node)[::-1, None], self.size, axis=1)
        return np.ascontiguousarray(solveh_banded(bands, values).T)

    def evaluate(self, time: Array, order: int = 2) -> tuple[Array, ...]:
        """Values of phi and its first `order` derivatives at times [s], shape (n_times, size) each."""
        return self.displacement(np.eye(self.size), time, order)

    def displacement(self, weights: Array, time: Array, order: int = 2) -> tuple[Array, ...]:
        """Way from home and its first `order` derivatives, shape (n_times, n_joints) each.

        It is phi(t) @ weights, without the splines that are zero at these times: nearly all are.

        Args:
            weights: shape (n_joints, size).
            time: [s], shape (n_times,).
            order: of the last derivative, 0 to 5.
        """
        check_order(order)
        position = (np.asarray(time, dtype=np.float64) % self.duration) / self.step
        piece = np.minimum(position.astype(np.intp), self.steps - 1)
        powers = np.vander(position - piece, _N_COEFFICIENTS, increasing=True)
        padded = np.pad(weights.T, ((_QUINTIC_DEGREE, _QUINTIC_DEGREE), (0, 0)))
        active_weights = padded[piece[:, None] + np.arange(_N_COEFFICIENTS)]
        return tuple(
            np.einsum("nk,nkj->nj", powers @ (_piece_polynomials(k) / self.step**k), active_weights)
            for k in range(order + 1)
        )

    def grid(self, step: float) -> Array:
        """Times [s] from 0 to the duration, at most `step` apart, all ends of steps among them."""
        if not step > 0.0:
            raise ExcitationError(f"step = {step:g} s between times must be above 0")
        return np.linspace(0.0, self.duration, self.steps * math.ceil(self.step / step) + 1)

    def bounds(self, weights: Array) -> Array:
        """Bounds of the derivatives 0 to 5 of q - home, shape (6, n_joints): their largest control point."""
        control = np.pad(weights, ((0, 0), (_QUINTIC_DEGREE, _QUINTIC_DEGREE)))
        return np.stack(
            [np.abs(np.diff(control, k, axis=1)).max(axis=1) / self.step**k for k in range(HIGHEST_DERIVATIVE + 1)]
        )

    def sample_times(self, samples: int) -> Array:
        """Times [s] spread over it evenly, from half a sample after its beginning."""
        return (np.arange(samples, dtype=np.float64) + 0.5) * (self.duration / max(samples, 1))


@cache
def _piece_polynomials(order: int) -> Array:
    """Derivatives by the share x of a step of the six splines that act in it, shape (6 powers of x, 6 splines)."""
    basis_spline = scipy.interpolate.BSpline.basis_element(np.arange(_N_COEFFICIENTS + 1.0))
    # The spline that began j steps ago is in its piece j: Taylor's series about where that begins.
    matrix = np.zeros((_N_COEFFICIENTS, _N_COEFFICIENTS))
    for spline in range(_N_COEFFICIENTS):
        age = _QUINTIC_DEGREE - spline
        for power in range(_N_COEFFICIENTS - order):
            value = float(
                basis_spline.derivative(power + order)(age + 1e-12 if power + order == _QUINTIC_DEGREE else age)
            )
            matrix[power, spline] = value / float(np.prod(np.arange(1, power + 1), dtype=np.float64))
    return matrix
