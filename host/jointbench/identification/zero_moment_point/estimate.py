"""An estimate by the zero-moment point: values, error bars, verdicts, and its file."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from jointbench.arrays import Array
from jointbench.errors import FileError
from jointbench.files import is_sealed, json_values, sealed_json, text_of, what_changed, write_file
from jointbench.identification.judgement import (
    GOOD_RELATIVE_ERROR,
    POOR_RELATIVE_ERROR,
    Verdict,
    judge_parameters,
)
from jointbench.identification.model_file import floats, frozen, plain, robot_from, robot_values
from jointbench.identification.zero_moment_point.reduced_parameters import (
    ReducedParameters,
    mean_distance,
    theoretical_point,
)
from jointbench.identification.zero_moment_point.stance import Calibration, Stance
from jointbench.model import Robot

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
        """Return the value of the parameter of this name."""
        return float(self.values[self.names.index(name)])

    def is_identified(self, name: str) -> bool:
        """Return whether the parameter of this name is told well."""
        return self.parameter_verdicts[self.names.index(name)].word == "identified"

    def predict(self, stance: Stance) -> Array:
        """Theoretical zero-moment points of a stance [m], shape (n, 2)."""
        return theoretical_point(stance, self.standard_parameters)

    def distance(self, stance: Stance) -> float:
        """Mean distance between theoretical and measured zero-moment point [m]."""
        return mean_distance(stance, self.standard_parameters)

    def corrected(self, stance: Stance) -> Array:
        """Measured points of a stance of the same sensors without the errors and pulls found here [m], shape (n, 2)."""
        values = dict(zip(self.nuisance_names, self.nuisance_values, strict=True))
        nuisance = np.array([values.get(name, 0.0) for name in stance.nuisance_names])
        return Calibration(stance)(nuisance)[0][:, :2]

    def save(self, path: str | Path) -> Path:
        """Write it to a file that `load_stance_estimate` reads."""
        return write_estimate(self, Path(path))


def judge_reduced(reduced: ReducedParameters, values: Array, covariance: Array) -> tuple[Verdict, ...]:
    """Judge each reduced parameter by its σ; one that is held by its bound is refused, for no datum told it."""
    verdicts = judge_parameters(reduced.names, values, np.sqrt(np.diag(covariance)))
    return tuple(
        Verdict(verdict.name, "refused", f"{value:.4g} is the bound that it was not to pass") if held else verdict
        for verdict, value, held in zip(verdicts, values, at_bounds(reduced, values), strict=True)
    )


def at_bounds(reduced: ReducedParameters, values: Array) -> list[bool]:
    """Return True for parameters that are held by their bounds."""
    low, high = reduced.bounds.T
    margin = _AT_BOUND * (high - low)
    return ((values <= low + margin) | (values >= high - margin)).tolist()


_UNTOLD = "but it does not tell"


def judge_stance(
    stance: Stance, residual: Array, converged: bool, parameter_verdicts: tuple[Verdict, ...] = ()
) -> Verdict:
    """Judge a fit by what it leaves of the zero-moment point's motion, as a joint's model is by its torque.

    Args:
        stance: what was fitted.
        residual: theoretical less measured point [m], shape (n, 2).
        converged: whether the solver ended by itself.
        parameter_verdicts: with one that is refused, the whole is poorly excited at best.
    """
    distance = float(np.linalg.norm(residual, axis=1).mean())
    motion = float(np.sqrt(np.mean(np.sum((stance.measured - stance.measured.mean(axis=0)) ** 2, axis=1))))
    relative = float(np.sqrt(np.mean(np.sum(residual**2, axis=1)))) / motion if motion > 0.0 else np.inf
    figures = f"{1e3 * distance:.2f} mm off on average, {relative:.1%} of the zero-moment point's motion"
    refused = [verdict.name for verdict in parameter_verdicts if verdict.is_refused]
    if not converged:
        return Verdict("stance", "refused", f"the solver did not converge; {figures}")
    if relative > POOR_RELATIVE_ERROR:
        return Verdict("stance", "refused", f"{figures}, above {POOR_RELATIVE_ERROR:.0%}")
    if refused and len(refused) == len(parameter_verdicts):
        return Verdict("stance", "refused", f"{figures}, but no parameter is told by this motion")
    if relative > GOOD_RELATIVE_ERROR:
        return Verdict("stance", "poor fit", f"{figures}, above {GOOD_RELATIVE_ERROR:.0%}")
    if refused:
        return Verdict("stance", "poorly excited", f"{figures}, {_UNTOLD} {', '.join(refused)}")
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


FORMAT = "jointbench stance estimate"
VERSION = 2
_READ = (1, 2)
"""Version 1 had no digest."""


def write_estimate(estimate: ZmpEstimate, path: Path) -> Path:
    """Write an estimate; numbers that are not finite become null."""
    fields = {field.name: getattr(estimate, field.name) for field in dataclasses.fields(estimate)}
    values = {"format": FORMAT, "version": VERSION} | fields
    values |= {
        "parameter_verdicts": [dataclasses.asdict(verdict) for verdict in estimate.parameter_verdicts],
        "verdict": dataclasses.asdict(estimate.verdict),
        "robot": robot_values(estimate.robot),
    }
    return write_file(path, sealed_json(plain(values)))


def load_stance_estimate(path: str | Path) -> ZmpEstimate:
    """Read an estimate that `ZmpEstimate.save` wrote.

    Raises:
        FileError: the file cannot be read, or is none.
    """
    path = Path(path)
    again = "give one that `jointbench stance` wrote, or fit the runs again"
    try:
        text = text_of(path)
        values: Any = json_values(text)
    except OSError as error:
        raise FileError(f"estimate {path} cannot be read: {error.strerror or error}; {again}") from error
    except ValueError as error:
        raise FileError(f"estimate {path} is no JSON ({error}); {again}") from error
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise FileError(f'{path} is no estimate of a stance: "format" is not {FORMAT!r}; {again}')
    if values.get("version") not in _READ:
        known = ", ".join(map(str, _READ))
        raise FileError(f"estimate {path} has version {values.get('version')!r}; this release reads {known}; {again}")
    if (values["version"] > 1 or is_sealed(text)) and (changed := what_changed(text, cast(dict[str, Any], values))):
        raise FileError(f"estimate {path} {changed}; {again}")
    try:
        return _estimate(cast(dict[str, Any], values))
    except FileError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise FileError(f"estimate {path} is damaged: {type(error).__name__} {error}; {again}") from error


def _estimate(values: dict[str, Any]) -> ZmpEstimate:
    fields = {field.name: values[field.name] for field in dataclasses.fields(ZmpEstimate)}
    weak = "poorly excited" if _UNTOLD in values["verdict"]["reason"] else "poor fit"
    parts: dict[str, Any] = {
        "robot": robot_from(values["robot"]),
        "values": floats(values["values"], np.nan),
        "covariance": floats(values["covariance"], np.inf),
        "standard_parameters": floats(values["standard_parameters"], np.nan),
        "parameter_verdicts": tuple(
            Verdict.from_dict(verdict, "poorly excited") for verdict in values["parameter_verdicts"]
        ),
        "verdict": Verdict.from_dict(values["verdict"], weak),
        "trace": tuple(map(tuple, floats(values["trace"], np.nan).tolist())),
    }
    size = len(values["names"])
    if parts["values"].shape != (size,) or parts["covariance"].shape != (size, size):
        raise TypeError(f"values and covariance are not of its {size} names")
    return ZmpEstimate(**frozen(fields) | parts)
