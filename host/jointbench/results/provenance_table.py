"""Where everything came from: runs, hashes, seeds, versions, and what to type to get it again."""

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from jointbench.identification import Model
from jointbench.identification.estimators.estimator import DEFAULT
from jointbench.identification.settings import FitSettings
from jointbench.results.evidence import Evidence, fitted_runs


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
    """What to type to get the report again from the recordings."""
    model = evidence.model
    fit_run, verification_run = (shlex.quote(str(run.path)) for _, run in evidence.runs)
    fitted = [shlex.quote(str(run["run"])) for run in fitted_runs(model)]
    fit = f"jointbench fit {' '.join(fitted)} --together" if len(fitted) > 1 else f"jointbench fit {fit_run}"
    if model.estimator != DEFAULT:
        options = (f" --option {shlex.quote(f'{name}={_option(value)}')}" for name, value in model.options.items())
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
        value, *others = (getattr(settings, name) for settings in used)
        if all(other == value for other in others) and any(getattr(settings, name) != value for settings in own):
            items = value if isinstance(value, tuple) else (value,)
            yield f" --{name.replace('_', '-')} {','.join(str(item) for item in items)}"


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
    told: dict[str, dict[str, str]] = {}
    for board in boards:
        for key, text in _plain(board, skip=("joint", "node")):
            told.setdefault(key, {})[str(board["joint"])] = text
    rows: list[tuple[str, str]] = []
    for key, by_joint in told.items():
        same = len(set(by_joint.values())) == 1 and len(by_joint) == len(boards) > 1
        listed = ", ".join(f"{joint} {text}" for joint, text in by_joint.items())
        rows.append((f"boards, {key}", next(iter(by_joint.values())) if same else listed))
    return rows


def _text(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
