"""What a limit is to the search and to the certificate: numbers that must stay at or below one."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array

Motion = tuple[Array, Array, Array, Array]
"""Position, velocity, acceleration, jerk of every joint at samples, shape (n_samples, n_joints) each."""


class Limit(Protocol):
    """A limit of one kind on all joints, points or pairs that it concerns: each is a scalar with a name.

    Both sides of a two-sided limit are scalars of their own, so that each is smooth.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """What each scalar is, such as "joint 'j2' velocity (+)"."""
        ...

    def usage(self, motion: Motion) -> Array:
        """Share of the limit that is used, at most 1 where it is kept, shape (n_samples, n_scalars)."""
        ...

    def gradient(self, motion: Motion, which: NDArray[np.int64]) -> Motion:
        """Derivatives of the usage of scalar which[k] at sample k by position, velocity, acceleration and jerk.

        Args:
            motion: at n_samples samples.
            which: index of a scalar, shape (n_samples,).
        """
        ...

    def between(self, bounds: Array, step: float) -> Array:
        """How far usage can be above the larger of two samples in between them, shape (n_scalars,).

        With f between two samples h apart: f <= larger + h²/8 max|f''|, or, if only max|f'| is known, + h/2 max|f'|.

        Args:
            bounds: largest magnitude of the derivatives 0 … 5 of position - home anywhere, shape (6, n_joints).
            step: largest time between the samples [s].
        """
        ...

    def say(self, scalar: int, usage: float) -> str:
        """What a usage means, such as "joint 'j2' velocity reaches 2.31 rad/s, 2.1 rad/s is allowed"."""
        ...


@runtime_checkable
class SpaceLimit(Limit, Protocol):
    """A limit in space, whose usage has a distance behind it."""

    def distance(self, scalar: int, usage: float) -> float:
        """Room that is left at a usage [m], below 0 where the limit is broken."""
        ...
