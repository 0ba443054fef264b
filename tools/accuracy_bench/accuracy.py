"""What many trials together say of an estimator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jointbench.arrays import Array
from tools.accuracy_bench.trial import Trial


@dataclass(frozen=True)
class Accuracy:
    """Errors of some recordings, together.

    Attributes:
        recordings: how many.
        times_bound: root mean square of error / Cramér–Rao bound over parameters and recordings.
        times_bound_all: the same with the bound over all moments, which counts what a fit leaves out as lost.
        times_sigma: root mean square of error / σ: 1 where error bars are right.
        covered: share of the intervals ± 2 σ that hold the truth; one without an end holds nothing.
        impossible: recordings whose standard parameters are not physically possible.
    """

    recordings: int
    times_bound: float
    times_bound_all: float
    times_sigma: float
    covered: float
    impossible: int

    @classmethod
    def of(cls, trials: Sequence[Trial]) -> Accuracy:
        """Of at least one trial."""
        error, sigma = (np.array([getattr(trial, name) for trial in trials]) for name in ("error", "sigma"))
        bound, bound_all = (np.array([getattr(trial, name) for trial in trials]) for name in ("bound", "bound_all"))
        return cls(
            recordings=len(trials),
            times_bound=_rms(error / bound),
            times_bound_all=_rms(error / bound_all),
            times_sigma=_rms(error / sigma),
            covered=float(np.mean(_held(error, sigma))),
            impossible=sum(bool(trial.faults) for trial in trials),
        )


@dataclass(frozen=True)
class ParameterAccuracy:
    """One parameter over all recordings; figures as in `Accuracy`.

    Attributes:
        name: of the parameter.
        relative_bound: Cramér–Rao bound as a share of the true value.
        bias: mean error / bound.
    """

    name: str
    relative_bound: float
    times_bound: float
    times_bound_all: float
    bias: float
    times_sigma: float
    covered: float

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return dict(vars(self))


def by_parameter(trials: Sequence[Trial]) -> list[ParameterAccuracy]:
    """Each parameter by itself, in the model's order."""
    table: list[ParameterAccuracy] = []
    for k, name in enumerate(trials[0].names):
        truth, error, sigma, bound, bound_all = (
            np.array([getattr(trial, field)[k] for trial in trials])
            for field in ("truth", "error", "sigma", "bound", "bound_all")
        )
        table.append(
            ParameterAccuracy(
                name=name,
                relative_bound=float(np.median(bound / np.abs(truth))),
                times_bound=_rms(error / bound),
                times_bound_all=_rms(error / bound_all),
                bias=float(np.mean(error / bound)),
                times_sigma=_rms(error / sigma),
                covered=float(np.mean(_held(error, sigma))),
            )
        )
    return table


def _held(error: Array, sigma: Array) -> Array:
    return np.asarray((np.abs(error) <= 2.0 * sigma) & np.isfinite(sigma), dtype=np.float64)


def _rms(values: Array) -> float:
    return float(np.sqrt(np.mean(np.square(values))))
