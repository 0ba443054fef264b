"""Evidence that reports rest on: models, runs, validations, and where everything came from."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from jointbench.arrays import Array
from jointbench.excitation import Excitation
from jointbench.identification import Model, Validation
from jointbench.identification.comparison import Comparison, check_comparable, compare
from jointbench.identification.observations import observe
from jointbench.identification.settings import FitSettings
from jointbench.identification.validation import common_cutoff, fitted_runs, judging_settings
from jointbench.recording import Run
from jointbench.results.content import Answer
from jointbench.signals import Motion


@dataclass(frozen=True)
class Evidence:
    """Everything a verdict may depend on; it judges itself.

    Attributes:
        model: the model.
        fit_run: the run it was fitted to.
        validation: of the model.
        verification_run: the run of the validation.
        excitation: the motion of the fit, where one was planned.
    """

    model: Model
    fit_run: Run
    validation: Validation
    verification_run: Run
    excitation: Excitation | None

    @property
    def answer(self) -> Answer:
        """Verdict on using the model: no with a refused joint or an invalid run, with care with a poor fit."""
        rank = max(self.model.verdict.rank, self.validation.verdict.rank)
        if rank == 3 or self.invalid_runs:
            return "no"
        return "with care" if rank == 2 else "yes"

    @property
    def runs(self) -> tuple[tuple[str, Run], ...]:
        """Both runs with what they are for."""
        return ("Fit run", self.fit_run), ("Verification run", self.verification_run)

    @property
    def invalid_runs(self) -> tuple[str, ...]:
        """Runs that may not be used, and why: a ledger does not close, or too much was lost."""
        return tuple(
            f"the {name.lower()} is {run.ledger.verdict}"
            for name, run in self.runs
            if run.ledger is not None and not run.ledger.is_valid
        )

    @property
    def held_out(self) -> bool:
        """True if no sample of the verification was also fitted."""
        return not self.validation.in_sample

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences that a careful reader must know before the numbers."""
        warnings = [f"{name}: {warning}" for name, run in self.runs for warning in run.warnings]
        own = [run for run in fitted_runs(self.model) if run["sha256"] == self.fit_run.sha256]
        if any(list(run.get("edits", ())) != list(self.fit_run.edits) for run in own):
            warnings.append("The fit run was edited after the model was fitted to it: fit it again.")
        if not self.held_out:
            warnings.append("Fit and verification share samples: the errors say nothing about other motions.")
        verdict = self.validation.verdict
        warnings += [
            f"{part.name[0].upper()}{part.name[1:]}, {part.word}: {part.reason.removesuffix('.')}; {part.advice}."
            for part in verdict.parts
            if part.rank > 1 and not part.name.startswith(("joints", "held-out", "in-sample", "recording"))
        ]
        return (*warnings, *self.model.robot.warnings)


@dataclass(frozen=True, eq=False)
class PressureModel:
    """A model's zero-moment points along a stance, and the parameters that it has.

    Attributes:
        label: what the model is called.
        points: its zero-moment points [m], shape (n, 2), x and y in the base frame.
        distance: mean distance of those from the measured ones [m].
        uncorrected: mean distance from those that the sensors tell as they were calibrated [m], where that is another.
        printed: that distance as a paper prints it [m], where one does.
        parameters: its values by name [SI].
        sigmas: standard deviations of those that were estimated, by name.
    """

    label: str
    points: Array
    distance: float
    uncorrected: float | None = None
    printed: float | None = None
    parameters: Mapping[str, float] = field(default_factory=dict[str, float])
    sigmas: Mapping[str, float] = field(default_factory=dict[str, float])


@dataclass(frozen=True, eq=False)
class ComparisonEvidence:
    """Two models of one robot, or of two of a kind.

    Attributes:
        models: a and b.
        places: where each is.
        comparison: of b with a.
        run: on whose motion torques are compared; None: on random states within the robot's limits.
        time: of that motion [s], shape (n,); empty without a run.
        torques: of a and of b on it, nan in gaps [N·m or N], shape (2, n, n_joints).
    """

    models: tuple[Model, Model]
    places: tuple[Path, Path]
    comparison: Comparison
    run: Run | None
    time: Array
    torques: Array

    @classmethod
    def of(cls, a: Model, b: Model, places: tuple[Path, Path], run: Run | None = None) -> ComparisonEvidence:
        """Compare two models.

        Args:
            a, b: the models.
            places: where each is.
            run: on whose motion torques are compared, filtered at the lower of the models' cut-offs.

        Raises:
            FitError: their parameters do not stand for the same; or there is no run, and the robot has no limits to
                stay within; or the run does not suit it.
        """
        check_comparable(a, b)
        if run is None:
            return cls((a, b), places, compare(a, b), None, np.empty(0), np.empty((2, 0, a.robot.n_joints)))
        rows = observe(run, a.robot, a.base, judging_settings(a, common_cutoff((a, b))))
        there = np.flatnonzero(rows.complete)
        motion = Motion(*(values[there] for values in (rows.motion.q, rows.motion.dq, rows.motion.ddq)))
        part = slice(int(there[0]), int(there[-1]) + 1)
        torques = np.full((2, rows.n_rows, a.robot.n_joints), np.nan)
        for torque, model in zip(torques, (a, b), strict=True):
            # Of the parameters that are compared; rows are too far apart for friction that remembers.
            torque[there] = model.coulomb_viscous.predict(motion.q, motion.dq, motion.ddq)
        return cls((a, b), places, compare(a, b, motion=motion), run, rows.time[part], torques[:, part])


def provenance_rows(evidence: Evidence) -> tuple[tuple[str, str], ...]:
    """Return pairs of name and value: the robot, both runs, the boards, the fit's settings, the versions."""
    model = evidence.model
    rows = [("robot", model.robot.name), ("robot's numbers", model.robot.source)]
    for name, run in evidence.runs:
        rows += [(name.lower(), str(run.path)), (f"{name.lower()}, SHA-256", run.sha256)]
    rows += [("accepted edit", edit) for edit in evidence.model.edits]
    rows += _recorded(evidence)
    rows += _boards(evidence.fit_run.provenance.get("board", []))
    rows.append(("estimator", model.estimator))
    rows += [(f"fit, {key}", text) for key, text in _plain(model.settings.to_dict())]
    rows += [(f"version of {key}", text) for key, text in _plain(model.provenance.get("versions", {}))]
    return tuple(rows)


def reproduce_commands(evidence: Evidence) -> tuple[str, ...]:
    """Return what to type to get the report again from the recordings."""
    model = evidence.model
    fit_run, verification_run = (shlex.quote(str(run.path)) for _, run in evidence.runs)
    fitted = [shlex.quote(str(run["run"])) for run in fitted_runs(model)]
    fit = f"jointbench fit {' '.join(fitted)} --together" if len(fitted) > 1 else f"jointbench fit {fit_run}"
    options = (
        f" --option {shlex.quote(f'{name}={_option(value)}')}"
        for name, value in model.options.items()
        if value is not None  # which is what no option says
    )
    fit += f" --estimator {model.estimator}{''.join(options)}"
    fit += "".join(_settings_flags(model))
    if model.friction is not None:
        laws = model.friction.laws.laws.items()
        fit += "".join(f" --friction {shlex.quote(f'{joint}={law.name}')}" for joint, law in laws)
    return (
        f"{fit} --out model.json",
        f"jointbench report model.json {fit_run} {verification_run} --out report.html",
    )


def _settings_flags(model: Model) -> Iterator[str]:
    """Settings that all runs were fitted with and not all were recorded or imported with."""
    entries = fitted_runs(model)
    used = [FitSettings.from_dict(entry["settings"]) for entry in entries]
    own = [FitSettings.from_dict(entry.get("recorded", {}).get("fit", {})) for entry in entries]
    for name in ("cutoff_Hz", "torque", "position", "interval"):
        value, *values = (getattr(settings, name) for settings in used)
        if all(another == value for another in values) and any(getattr(settings, name) != value for settings in own):
            items = value if isinstance(value, tuple) else (value,)
            yield f" --{name.replace('_', '-')} {','.join(str(item) for item in items)}"
    asked, *others = (settings.tolerances for settings in used)
    if all(other == asked for other in others) and any(settings.tolerances != asked for settings in own):
        for key, value in {"none": None}.items() if isinstance(asked, str) else (asked or {}).items():
            yield f" --tolerance {key}" if value is None else f" --tolerance {shlex.quote(f'{key}={value}')}"


def _option(value: object) -> str:
    """An estimator's option as the command line reads it."""
    return str(value).lower() if isinstance(value, bool) or value is None else str(value)


def _recorded(evidence: Evidence) -> list[tuple[str, str]]:
    """Return what the runs say of themselves: once where both say the same."""
    skip = ("robot", "version", "excitation", "sealed")
    fitted, verified = (dict(_plain(run.provenance, skip, deep=True)) for _, run in evidence.runs)
    rows: list[tuple[str, str]] = []
    for key in fitted | verified:
        if fitted.get(key) == verified.get(key):
            rows.append((f"both runs, {key}", fitted[key]))
        else:
            rows += [(f"fit run, {key}", fitted[key])] if key in fitted else []
            rows += [(f"verification run, {key}", verified[key])] if key in verified else []
    return rows


def _plain(values: Mapping[str, Any], skip: tuple[str, ...] = (), deep: bool = False) -> list[tuple[str, str]]:
    """Return the entries that are one value or a list of values; with `deep` those of tables among them as well."""
    rows: list[tuple[str, str]] = []
    for key, value in values.items():
        if key in skip:
            continue
        if isinstance(value, Mapping):
            rows += [(f"{key} {inner}", text) for inner, text in _plain(value)] if deep else []
            continue
        items = value if isinstance(value, list | tuple) else [value]
        if not any(isinstance(item, Mapping | list | tuple) for item in items):
            rows.append((key, ", ".join(_text(item) for item in items)))
    return rows


def _boards(boards: list[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Return what the boards said of themselves: once where all say the same, else by joint."""
    entries: dict[str, dict[str, str]] = {}
    for board in boards:
        for key, text in _plain(board, skip=("joint", "node")):
            entries.setdefault(key, {})[str(board["joint"])] = text
    rows: list[tuple[str, str]] = []
    for key, by_joint in entries.items():
        same = len(set(by_joint.values())) == 1 and len(by_joint) == len(boards) > 1
        listed = ", ".join(f"{joint} {text}" for joint, text in by_joint.items())
        rows.append((f"boards, {key}", next(iter(by_joint.values())) if same else listed))
    return rows


def _text(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
