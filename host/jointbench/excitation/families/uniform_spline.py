"""Splines of degree 5 over equal steps, from rest to rest: motions that follow any smooth course."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.interpolate import BSpline
from scipy.linalg import solveh_banded

from jointbench.arrays import Array
from jointbench.errors import ExcitationError
from jointbench.excitation.families.basis import HIGHEST_DERIVATIVE, Repetition, check_order
from jointbench.excitation.settings import check_duration

_DEGREE = HIGHEST_DERIVATIVE
_PIECES = _DEGREE + 1
"""Steps that one spline covers, and splines that are not zero in one step."""

_MOST_STEPS = 20_000


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
        """Refuse what has no spline."""
        if not _PIECES <= self.steps <= _MOST_STEPS:
            raise ExcitationError(f"steps = {self.steps}: a spline needs at least {_PIECES}, and at most {_MOST_STEPS}")
        check_duration("duration", self.duration, "95 s is usual")

    @property
    def size(self) -> int:
        """Number of free weights per joint."""
        return self.steps - _DEGREE

    @property
    def step(self) -> float:
        """Of each step, h [s]."""
        return self.duration / self.steps

    @property
    def fastest_cycle(self) -> float:
        """What weights of alternating sign would make [s]."""
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
        return self.step * (np.arange(self.size, dtype=np.float64) + 0.5 * _PIECES)

    def through(self, values: Array, pendulum: float = 0.0) -> Array:
        """Weights, shape (n_joints, size), of the motion x = q - home with x - pendulum x'' = values at the nodes.

        Args:
            values: shape (size, n_joints).
            pendulum: [s²], at least 0; 0 for the motion that goes through the values.
        """
        # B and B'' where it is largest, one and two steps from there.
        here, bent = np.array([66.0, 26.0, 1.0]) / 120.0, np.array([-6.0, 2.0, 1.0]) / (6.0 * self.step**2)
        bands = np.repeat((here - pendulum * bent)[::-1, None], self.size, axis=1)
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
        place = (np.asarray(time, dtype=np.float64) % self.duration) / self.step
        piece = np.minimum(place.astype(np.intp), self.steps - 1)
        within = np.vander(place - piece, _PIECES, increasing=True)
        padded = np.pad(weights.T, ((_DEGREE, _DEGREE), (0, 0)))
        acting = padded[piece[:, None] + np.arange(_PIECES)]
        return tuple(np.einsum("nk,nkj->nj", within @ (_pieces(k) / self.step**k), acting) for k in range(order + 1))

    def grid(self, step: float) -> Array:
        """Times [s] from 0 to the duration, at most `step` apart, all ends of steps among them."""
        if not step > 0.0:
            raise ExcitationError(f"step = {step:g} s between times must be above 0")
        return np.linspace(0.0, self.duration, self.steps * math.ceil(self.step / step) + 1)

    def bounds(self, weights: Array) -> Array:
        """Bounds of the derivatives 0 to 5 of q - home, shape (6, n_joints): their largest control point."""
        control = np.pad(weights, ((0, 0), (_DEGREE, _DEGREE)))
        return np.stack(
            [np.abs(np.diff(control, k, axis=1)).max(axis=1) / self.step**k for k in range(HIGHEST_DERIVATIVE + 1)]
        )

    def sample_times(self, samples: int) -> Array:
        """Times [s] spread over it evenly, from half a sample after its beginning."""
        return (np.arange(samples, dtype=np.float64) + 0.5) * (self.duration / max(samples, 1))


@cache
def _pieces(order: int) -> Array:
    """Derivatives by the share x of a step of the six splines that act in it, shape (6 powers of x, 6 splines)."""
    whole = BSpline.basis_element(np.arange(_PIECES + 1.0))
    # The spline that began j steps ago is in its piece j: Taylor's series about where that begins.
    matrix = np.zeros((_PIECES, _PIECES))
    for spline in range(_PIECES):
        began = _DEGREE - spline
        for power in range(_PIECES - order):
            value = float(whole.derivative(power + order)(began + 1e-12 if power + order == _DEGREE else began))
            matrix[power, spline] = value / float(np.prod(np.arange(1, power + 1), dtype=np.float64))
    return matrix
