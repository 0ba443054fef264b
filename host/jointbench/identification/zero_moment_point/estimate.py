"""What a fit to the zero-moment point found, and how well it is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jointbench.arrays import Array
from jointbench.identification.judgement.verdict import (
    GOOD_RELATIVE_ERROR,
    POOR_RELATIVE_ERROR,
    Verdict,
    judge_parameters,
)
from jointbench.identification.zero_moment_point.calibration import Calibration
from jointbench.identification.zero_moment_point.reduced_parameters import ReducedParameters
from jointbench.identification.zero_moment_point.stance import Stance
from jointbench.identification.zero_moment_point.theory import mean_distance, theoretical_point
from jointbench.robot import Robot

_AT_BOUND = 1e-6
"""Of the room between bounds: solvers stop so close to one that holds a parameter."""

_WORTH_SAYING = 0.2
"""Of the largest share in a combination of parameters."""


@dataclass(frozen=True, eq=False)
class ZmpEstimate:
    """Reduced parameters of a biped, with what is known of their error.

    Attributes:
        robot: whose file gave everything that was not estimated.
        method: "ours", "paper" or "torque".
        names, values: of the parameters, lc [m] and m [kg].
        covariance: of them, shape (p, p).
        standard_parameters: all that follows of base link and links, shape (10 * (1 + n_links),).
        parameter_verdicts: the word on each.
        verdict: the word on the whole.
        total_mass: as weighed [kg].
        samples: rows that were fitted.
        iterations: of the solver, all passes together.
        converged: whether it ended by itself.
        trace: of each iteration: norm of the step, objective, step length (or how far the solver trusted its model).
        nuisance_names, nuisance_values, nuisance_sigma: what was estimated beside them.
        notes: what a reader must know, in sentences.
    """

    robot: Robot
    method: str
    names: tuple[str, ...]
    values: Array
    covariance: Array
    standard_parameters: Array
    parameter_verdicts: tuple[Verdict, ...]
    verdict: Verdict
    total_mass: float
    samples: int
    iterations: int
    converged: bool
    trace: tuple[tuple[float, float, float], ...] = ()
    nuisance_names: tuple[str, ...] = ()
    nuisance_values: tuple[float, ...] = ()
    nuisance_sigma: tuple[float, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def sigma(self) -> Array:
        """Standard deviation of each parameter, shape (p,)."""
        return np.sqrt(np.diag(self.covariance))

    def value(self, name: str) -> float:
        """Of the parameter of this name."""
        return float(self.values[self.names.index(name)])

    def is_identified(self, name: str) -> bool:
        """Whether the parameter of this name is told well."""
        return self.parameter_verdicts[self.names.index(name)].word == "identified"

    def predict(self, stance: Stance) -> Array:
        """Theoretical zero-moment points of a stance [m], shape (n, 2)."""
        return theoretical_point(stance, self.standard_parameters)

    def distance(self, stance: Stance) -> float:
        """Mean distance between theoretical and measured zero-moment point [m]."""
        return mean_distance(stance, self.standard_parameters)

    def corrected(self, stance: Stance) -> Array:
        """Measured points of a stance of the same sensors without the errors and pulls found here [m], shape (n, 2)."""
        found = dict(zip(self.nuisance_names, self.nuisance_values, strict=True))
        nuisance = np.array([found.get(name, 0.0) for name in stance.nuisance_names])
        return Calibration(stance)(nuisance)[0][:, :2]

    def save(self, path: str | Path) -> Path:
        """Write it to a file that `load_stance_estimate` reads."""
        from jointbench.identification.zero_moment_point.estimate_file import write_estimate

        return write_estimate(self, Path(path))


def judge_reduced(reduced: ReducedParameters, values: Array, covariance: Array) -> tuple[Verdict, ...]:
    """Judge each reduced parameter by its σ; one that is held by its bound is refused, for no datum told it."""
    verdicts = judge_parameters(reduced.names, values, np.sqrt(np.diag(covariance)))
    return tuple(
        Verdict(verdict.name, "refused", f"{value:.4g} is the bound that it was not to pass") if held else verdict
        for verdict, value, held in zip(verdicts, values, at_bounds(reduced, values), strict=True)
    )


def at_bounds(reduced: ReducedParameters, values: Array) -> list[bool]:
    """Which parameters their bounds hold."""
    low, high = reduced.bounds.T
    margin = _AT_BOUND * (high - low)
    return ((values <= low + margin) | (values >= high - margin)).tolist()


def judge_stance(
    stance: Stance, residual: Array, converged: bool, parameter_verdicts: tuple[Verdict, ...] = ()
) -> Verdict:
    """Judge a fit by what it leaves of the zero-moment point's motion, as a joint's model is by its torque.

    Args:
        stance: what was fitted.
        residual: theoretical less measured point [m], shape (n, 2).
        converged: whether the solver ended by itself.
        parameter_verdicts: with one that is refused, the whole is weak at best.
    """
    distance = float(np.linalg.norm(residual, axis=1).mean())
    motion = float(np.sqrt(np.mean(np.sum((stance.measured - stance.measured.mean(axis=0)) ** 2, axis=1))))
    relative = float(np.sqrt(np.mean(np.sum(residual**2, axis=1)))) / motion if motion > 0.0 else np.inf
    figures = f"{1e3 * distance:.2f} mm off on average, {relative:.1%} of the zero-moment point's motion"
    refused = [each.name for each in parameter_verdicts if each.word == "refused"]
    if not converged:
        return Verdict("stance", "refused", f"the solver did not converge; {figures}")
    if relative > POOR_RELATIVE_ERROR:
        return Verdict("stance", "refused", f"{figures}, above {POOR_RELATIVE_ERROR:.0%}")
    if refused and len(refused) == len(parameter_verdicts):
        return Verdict("stance", "refused", f"{figures}, but no parameter is told by this motion")
    if relative > GOOD_RELATIVE_ERROR:
        return Verdict("stance", "weak", f"{figures}, above {GOOD_RELATIVE_ERROR:.0%}")
    if refused:
        return Verdict("stance", "weak", f"{figures}, but it does not tell {', '.join(refused)}")
    return Verdict("stance", "identified", figures)


def least_told(names: Sequence[str], values: Array, covariance: Array) -> str:
    """The combination of parameters, as shares of their values, that the data tell least, in words."""
    relative = covariance / np.outer(values, values)
    variances, directions = np.linalg.eigh(relative)
    direction = directions[:, -1] / np.abs(directions[:, -1]).max()
    order = np.argsort(-np.abs(direction))
    parts = [(float(direction[i]), names[i]) for i in order if abs(direction[i]) >= _WORTH_SAYING]
    text = " ".join(f"{'+' if share > 0 else '-'} {abs(share):.1f} {name}" for share, name in parts)
    return f"least told, as shares of the values: {text.removeprefix('+ ')}, σ {np.sqrt(variances[-1]):.1%}"
