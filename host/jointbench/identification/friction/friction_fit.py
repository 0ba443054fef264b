"""A fitted friction law: parameters with error bars, how well they explain, and the word on each."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.identification.friction.data import FrictionData
from jointbench.identification.friction.law import Law
from jointbench.identification.judgement.verdict import Verdict, judge_joint, judge_parameter

_UNTOLD = "these rows do not tell it: friction is the same for other values"


@dataclass(frozen=True, eq=False)
class FrictionFit:
    """A law's parameters for one joint.

    Attributes:
        law: what was fitted.
        method: "variable_projection" or "particle_swarm".
        parameters: in the order of `law.names`, SI, shape (p,).
        covariance: of the parameters, shape (p, p); an infinite variance where the data cannot tell one.
        at_bound: which parameters are at a bound of theirs, shape (p,).
        rms: error of the torque, root mean square [N·m or N].
        r_squared: 1 - Σ error² / Σ (torque - its mean)².
        relative: rms error over rms torque.
        n_rows: rows fitted.
        lags: for how many rows errors count as correlated; 0 where each row is its own measurement.
    """

    law: Law
    method: str
    parameters: Array
    covariance: Array
    at_bound: NDArray[np.bool_]
    rms: float
    r_squared: float
    relative: float
    n_rows: int
    lags: int

    @property
    def sigma(self) -> Array:
        """Standard deviation of each parameter, infinite where not told, shape (p,)."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def bic(self) -> float:
        """Bayesian information criterion n ln(rms²) + p ln n: the least explains best.

        It supposes that rows err independently of each other. Source: Schwarz, Annals of Statistics 6(2), 1978.
        """
        least = max(self.rms, np.finfo(np.float64).tiny)
        return 2.0 * self.n_rows * math.log(least) + len(self.parameters) * math.log(self.n_rows)

    @cached_property
    def parameter_verdicts(self) -> tuple[Verdict, ...]:
        """The word on each parameter."""
        rows = zip(self.law.names, self.parameters.tolist(), self.sigma.tolist(), self.at_bound.tolist(), strict=True)
        return tuple(_judge(*row) for row in rows)

    @property
    def verdict(self) -> Verdict:
        """The word on the law as a whole, from its error on the rows it was fitted to."""
        word = judge_joint(self.law.name, self.relative, 1.0).word
        figures = f"torque error {self.relative:.1%} of the torque, R² {self.r_squared:.4f}, {self.n_rows} rows"
        return Verdict(self.law.name, word, figures)

    def value(self, name: str) -> float:
        """Value of the parameter of this name [SI].

        Raises:
            FitError: the law has no such parameter.
        """
        if name not in self.law.names:
            raise FitError(f"friction law {self.law.name!r} has no {name!r}; it has {', '.join(self.law.names)}")
        return float(self.parameters[self.law.names.index(name)])

    def torque(self, data: FrictionData) -> Array:
        """Friction at the data's velocities, loads and temperatures [N·m or N], shape (n,)."""
        return self.law.torque(data, self.parameters)


def _judge(name: str, value: float, sigma: float, at_bound: bool) -> Verdict:
    if at_bound:
        return Verdict(name, "refused", f"at its bound {value:.4g}: the data would have it beyond")
    if not math.isfinite(sigma):
        return Verdict(name, "refused", _UNTOLD)
    return judge_parameter(name, value, sigma)
