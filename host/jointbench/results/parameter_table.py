"""The parameters as a table: what each stands for, value ± σ, and the word on it."""

from collections import Counter

import numpy as np

from jointbench.identification import Model, Verdict
from jointbench.identification.friction import ModelFriction
from jointbench.identification.judgement import IDENTIFIED_RELATIVE_SIGMA, WEAK_RELATIVE_SIGMA
from jointbench.results.content import ParameterGroup, ParameterRow
from jointbench.results.digits import column, percent, typeset, value_and_sigma
from jointbench.results.units import parameter_unit


def parameter_groups(model: Model) -> tuple[ParameterGroup, ...]:
    """Return the parameters by the joint or coupling that they belong to, in the model's order."""
    groups: dict[str, list[ParameterRow]] = {}
    laws = model.friction
    for name, row in zip(model.names, _rows(model), strict=True):
        if laws is None or name not in laws.replaced:
            groups.setdefault(name.rpartition(".")[0], []).append(row)
    if laws is not None:
        for name, row in zip(laws.names, _law_rows(laws), strict=True):
            groups.setdefault(name.rpartition(".")[0], []).append(row)
    ordered = sorted(groups, key=lambda owner: (*model.robot.joint_names, owner).index(owner))
    return tuple(ParameterGroup(owner, tuple(groups[owner])) for owner in ordered)


def parameter_note(model: Model) -> str:
    """Say how many parameters there are of each verdict, and what the verdicts mean."""
    of_base, of_laws = _told(model)
    words = Counter(verdict.word for verdict in (*of_base, *of_laws))
    beside = f", and the {len(of_laws)} parameters of the joints' friction laws" if of_laws else ""
    return (
        f"The {len(of_base)} base parameters that the torques of this robot can tell, each for itself and for "
        f"what is lumped into it{beside}. σ is the standard error, correlation of the residuals included. "
        f"{words['identified']} are identified: σ is at most {percent(IDENTIFIED_RELATIVE_SIGMA)} of the value. "
        f"{words['weak']} are weak: at most {percent(WEAK_RELATIVE_SIGMA)}. "
        f"{words['refused']} are refused: not told from zero, or not excited at all."
    )


def shown_verdicts(model: Model) -> tuple[Verdict, ...]:
    """The word on each parameter of the table: what friction laws replace is not among them, their parameters are."""
    of_base, of_laws = _told(model)
    return (*of_base, *of_laws)


def _told(model: Model) -> tuple[tuple[Verdict, ...], tuple[Verdict, ...]]:
    """Verdicts on base parameters, and on those of friction laws."""
    laws = model.friction
    replaced, of_laws = ({}, ()) if laws is None else (laws.replaced, laws.parameter_verdicts)
    return tuple(verdict for verdict in model.parameter_verdicts if verdict.name not in replaced), tuple(of_laws)


def _rows(model: Model) -> list[ParameterRow]:
    rows: list[ParameterRow] = []
    items = zip(model.names, model.base.names, model.parameters, model.sigma, model.parameter_verdicts, strict=True)
    for name, group, value, sigma, verdict in items:
        shown, error = value_and_sigma(float(value), float(sigma))
        rows.append(
            ParameterRow(
                name=name.rpartition(".")[2],
                lumped=group.removeprefix(name).strip().replace("-", "−"),
                value=shown,
                sigma=error,
                unit=parameter_unit(model.robot, name),
                relative_sigma=_relative(float(value), float(sigma)),
                verdict=verdict.word,
                reason="" if np.isfinite(sigma) else typeset(verdict.reason),
            )
        )
    return rows


def _law_rows(laws: ModelFriction) -> list[ParameterRow]:
    """Parameters of friction laws, in place of what they stand for."""
    rows: list[ParameterRow] = []
    items = zip(laws.names, laws.parameters, laws.sigma, laws.units, laws.parameter_verdicts, strict=True)
    for name, value, sigma, unit, verdict in items:
        shown, error = value_and_sigma(float(value), float(sigma))
        joint, _, short = name.rpartition(".")
        rows.append(
            ParameterRow(
                name=short,
                lumped=f"of friction law {laws.laws.laws[joint].name}",
                value=shown,
                sigma=error,
                unit=unit,
                relative_sigma=_relative(float(value), float(sigma)),
                verdict=verdict.word,
                reason="" if np.isfinite(sigma) else typeset(verdict.reason),
            )
        )
    return rows


def _relative(value: float, sigma: float) -> str:
    """σ as per cent of the value; above 1000 % the value is nothing and the share says no more than that."""
    share = 100.0 * sigma / abs(value) if value else float("inf")
    return "> 1000" if 1000.0 < share < float("inf") else column([share])[0]
