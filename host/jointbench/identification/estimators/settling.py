"""Iterations over parameters, until another pass would say the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

import numpy as np

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.identification.least_squares import Estimate

SETTLED = 0.1
"""Change of each parameter, in its own σ, under which another pass is not worth it: it adds a hundredth to the squared
error. Simulated joints that turn back a sample earlier or later change them by some hundredths."""


class Pass(Protocol):
    """Whatever a pass finds, an estimate among it."""

    @property
    def estimate(self) -> Estimate:
        """Of this pass."""
        ...


_Pass = TypeVar("_Pass", bound=Pass)


def iterate(
    step: Callable[[Estimate], _Pass], start: Estimate, passes: int, *, estimator: str, names: Sequence[str]
) -> tuple[_Pass, int]:
    """Make passes until no parameter changes by more than `SETTLED` of its σ.

    Args:
        step: a pass, of the estimate before it.
        start: the estimate before the first one.
        passes: at most.
        estimator: its name, for the error.
        names: of the parameters, likewise.

    Returns:
        The last pass, and how many there were.

    Raises:
        FitError: they do not settle.
    """
    last, at, change = start, 0, np.inf
    for number in range(1, passes + 1):
        found = step(last)
        change, at = largest_change(found.estimate, last.parameters)
        if change < SETTLED:
            return found, number
        last = found.estimate
    raise FitError(
        f"{estimator}: after {passes} passes {names[at]} still changes by {change:.2g} σ; allow more passes, or choose "
        f'an estimator that simulates nothing, such as "wls"'
    )


def largest_change(found: Estimate, before: Array) -> tuple[float, int]:
    """Largest difference of an estimate from other parameters, in its own σ, and of which parameter.

    Parameters that are not told, or known exactly, do not count.
    """
    sigma = np.sqrt(np.diag(found.covariance))
    counts = np.isfinite(sigma) & (sigma > 0.0)
    changes = np.abs(found.parameters - before) / np.where(counts, sigma, np.inf)
    at = int(np.argmax(changes))
    return float(changes[at]), at
