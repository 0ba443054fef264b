"""The estimators by name; each is imported when it is asked for."""

from __future__ import annotations

import dataclasses
import numbers
import re
from collections.abc import Mapping
from importlib import import_module
from typing import Any, ClassVar, NamedTuple, Protocol, cast

from jointbench.errors import FitError
from jointbench.identification.estimators.problem import Problem
from jointbench.identification.least_squares import Estimate

DEFAULT = "wls"


class Estimator(Protocol):
    """A frozen record whose fields are its options; called with a problem, it estimates."""

    name: ClassVar[str]

    def __call__(self, problem: Problem) -> Estimate:
        """Estimate the parameters."""
        ...


class _Entry(NamedTuple):
    module: str
    record: str
    sentence: str


_KINDS: dict[str, tuple[type, str]] = {
    "int": (numbers.Integral, "a whole number"),
    "float": (numbers.Real, "a number"),
    "str": (str, "a word"),
    "Literal": (str, "a word"),
    "PriorName": (str, "a word"),
    "None": (type(None), "None"),
}
"""What an option's annotation lets its value be."""

_ROOM = "jointbench.identification.estimators"

_KNOWN = {
    "wls": _Entry("linear", "WeightedLeastSquares", "each joint weighted by its own noise; the default"),
    "ols": _Entry("linear", "OrdinaryLeastSquares", "all torques weighted alike, for comparison"),
    "irls": _Entry("linear", "RobustLeastSquares", "rows far off count less: for torques with gross errors"),
    "ridge": _Entry("ridge", "Ridge", "parameters drawn to zero as held-out blocks of time advise: for poor motion"),
    "bayes": _Entry("priors", "Bayes", "weighed against the robot file's parameters, by how well these are known"),
    "physical": _Entry("physical", "Physical", "the nearest parameters that bodies can have, by matrix inequalities"),
    "physical_log_cholesky": _Entry(
        "physical", "PhysicalLogCholesky", "the same by Newton's method on log-Cholesky numbers"
    ),
    "iv": _Entry("instrumental", "InstrumentalVariables", "right where noise in positions biases least squares"),
    "output_error": _Entry(
        "output_error", "OutputError", "a closed-loop simulation's torque against the measured one (DIDIM)"
    ),
}

ESTIMATORS = tuple(_KNOWN)


def make_estimator(estimator: str | Estimator = DEFAULT, options: Mapping[str, Any] | None = None) -> Estimator:
    """The estimator of this name, with options by name; or the given one itself.

    Raises:
        FitError: there is no such estimator, it has no such option, or a value is not allowed.
    """
    if not isinstance(estimator, str):
        if options:
            raise FitError(f"options {', '.join(options)} are for an estimator by name; give them to the record itself")
        return estimator
    if estimator not in _KNOWN:
        raise FitError(f"estimator {estimator!r} is not known; the estimators are {', '.join(ESTIMATORS)}")
    record = _record(estimator)
    known = {field.name: str(field.type) for field in dataclasses.fields(cast(Any, record))}
    for option, value in (options or {}).items():
        if option not in known:
            has = f"its options are {', '.join(known)}" if known else "it has none"
            raise FitError(f"estimator {estimator!r} has no option {option!r}; {has}")
        _check_kind(estimator, option, value, known[option])
    return record(**(options or {}))


def estimator_options(estimator: Estimator) -> dict[str, Any]:
    """An estimator's options as plain values by name."""
    return dataclasses.asdict(cast(Any, estimator))


def estimator_help() -> str:
    """One line for each estimator."""
    return "\n".join(f"{name}: {entry.sentence}" for name, entry in _KNOWN.items())


def _check_kind(estimator: str, option: str, value: object, annotation: str) -> None:
    """Refuse a word for a number and the like; what numbers and words may be is for the record to say."""
    kinds = [_KINDS[word] for word in re.findall(r"\w+", annotation) if word in _KINDS]
    if isinstance(value, bool) or not isinstance(value, tuple(kind for kind, _ in kinds)):
        words = " or ".join(dict.fromkeys(word for _, word in kinds))
        raise FitError(f"option {option} = {value!r} of estimator {estimator!r} must be {words}")


def _record(name: str) -> type[Estimator]:
    entry = _KNOWN[name]
    return cast(type[Estimator], getattr(import_module(f"{_ROOM}.{entry.module}"), entry.record))
