"""Summary of a model: the verdict in a sentence, its numbers, its parameters, and notes on what the pictures show."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from jointbench.errors import JointbenchError
from jointbench.excitation import Excitation
from jointbench.identification import Model, Validation, Verdict
from jointbench.identification.friction import ModelFriction
from jointbench.identification.judgement import IDENTIFIED_RELATIVE_SIGMA, POORLY_EXCITED_RELATIVE_SIGMA
from jointbench.model.model_columns import parameter_unit
from jointbench.recording import Run
from jointbench.results.content import (
    Fact,
    FitFact,
    JointRow,
    ParameterGroup,
    ParameterRow,
    column,
    count,
    fixed,
    percent,
    typeset,
    value_and_sigma,
)
from jointbench.results.evidence import Evidence

if TYPE_CHECKING:
    from jointbench.results.joint_panels import FrictionCurve

_R_SQUARED_DECIMALS = 4
"""Good models differ in the third; 1.0000 is then more than anybody can measure."""

_ANSWERS = {"identified": "yes", "poor fit": "hardly", "refused": "no"}


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
        f"what is lumped into it{beside}. σ is the standard error, correlation of the residuals included. No "
        f"resampling of one motion sees a wrong structure, such as friction that the model lacks: two motions can "
        f"differ by more than their σ. "
        f"{words['identified']} are identified: σ is at most {percent(IDENTIFIED_RELATIVE_SIGMA)} of the value. "
        f"{words['poorly excited']} are poorly excited: at most {percent(POORLY_EXCITED_RELATIVE_SIGMA)}. "
        f"{words['not observable']} are not observable: they have no effect on the data. "
        f"{words['refused']} are refused: they may be zero, or are at a bound.{_calibration_note(model)}"
    )


def _calibration_note(model: Model) -> str:
    """Say what σ contains of the calibration."""
    if model.calibration is None:
        return " The calibration counts as exact: zeros, lengths, axes, torques and clock."
    words = model.calibration.words(model.robot, model.settings.torque)
    return (
        f" σ contains how well the calibration is known ({words}): beside it stand the "
        f"shares of its square that are noise, what the model lacks, and calibration."
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
    for k, (name, group, value, sigma, verdict) in enumerate(items):
        shown, error = value_and_sigma(float(value), float(sigma))
        rows.append(
            ParameterRow(
                name=name.rpartition(".")[2],
                lumped=group.removeprefix(name).strip().replace("-", "−"),
                value=shown,
                sigma=error,
                shares=_shares(model, k),
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
                shares="",
                unit=unit,
                relative_sigma=_relative(float(value), float(sigma)),
                verdict=verdict.word,
                reason="" if np.isfinite(sigma) else typeset(verdict.reason),
            )
        )
    return rows


def _shares(model: Model, parameter: int) -> str:
    """Shares of a parameter's variance in per cent: noise, model and calibration; "" where they are not known."""
    if model.calibration is None or not np.isfinite(model.sigma[parameter]):
        return ""
    return " / ".join(f"{100.0 * share:.0f}" for share in model.calibration.shares(parameter))


def _relative(value: float, sigma: float) -> str:
    """σ as per cent of the value; above 1000 % the value is nothing and the share says no more than that."""
    share = 100.0 * sigma / abs(value) if value else float("inf")
    return "> 1000" if 1000.0 < share < float("inf") else column([share])[0]


def sentence(evidence: Evidence) -> str:
    """Say how well the model predicts, on what motion, what stands against it, and how far its parameters are known."""
    words = Counter(verdict.word for verdict in shown_verdicts(evidence.model))
    known = (
        f"{words['identified']} of {words.total()} parameters are identified, "
        f"{words['poorly excited']} poorly excited, {words['not observable']} not observable, "
        f"{words['refused']} refused"
    )
    doubts = [*_doubtful_joints(evidence), *map(typeset, evidence.invalid_runs)]
    holds = typeset(evidence.validation.verdict.condition)
    return "; ".join([headline(evidence), *doubts, known]) + f". It holds if {holds}."


def headline(evidence: Evidence) -> str:
    """Say how large the error of all joints' torques together is: on the page and on the terminal alike."""
    motion = "a motion it was not fitted to" if evidence.held_out else "the motion it was fitted to"
    total = percent(evidence.validation.error_all.total_relative)
    moving = percent(evidence.validation.total_relative)
    return f"The model predicts the torques of {motion} with an error of {total}, {moving} where the joints move"


def facts(evidence: Evidence) -> tuple[Fact, ...]:
    """Return the numbers worth seeing first."""
    model = evidence.model
    words = [verdict.word for verdict in shown_verdicts(model)]
    ledgers = [run.ledger for _, run in evidence.runs if run.ledger is not None]
    numbers = [
        Fact(percent(evidence.validation.error_all.total_relative), "torque error on verification, all samples"),
        Fact(percent(evidence.validation.total_relative), "torque error where the joints move"),
        Fact(f"{words.count('identified')} of {len(words)}", "parameters identified"),
        Fact(f"{model.condition_number:.3g}", "condition number of the fit"),
    ]
    if ledgers:
        numbers.append(Fact(count(sum(ledger.samples_lost for ledger in ledgers)), "samples lost"))
    return tuple(numbers)


def joint_rows(model: Model, validation: Validation) -> tuple[JointRow, ...]:
    """Return the table under the verdict; reasons stand where a joint is not identified."""
    return tuple(
        JointRow(
            name=verdict.name,
            fit_rms=fit_rms,
            verification_rms=rms,
            relative=relative,
            relative_moving=relative_moving,
            r_squared=r_squared,
            residual=residual,
            verdict=verdict.word,
            reason="" if verdict.word == "identified" else typeset(verdict.reason),
        )
        for verdict, fit_rms, rms, relative, relative_moving, r_squared, residual in zip(
            validation.joint_verdicts,
            column(model.error_all.rms.tolist()),
            column(validation.error_all.rms.tolist()),
            column((100.0 * validation.error_all.relative).tolist()),
            column((100.0 * validation.relative).tolist()),
            (fixed(value, _R_SQUARED_DECIMALS) for value in validation.r_squared.tolist()),
            validation.whiteness.words,
            strict=True,
        )
    )


def _doubtful_joints(evidence: Evidence) -> list[str]:
    """Name the joints that are refused or fit poorly, on verification or already in the fit."""
    refused: list[str] = []
    poor: list[str] = []
    pairs = zip(evidence.model.joint_verdicts, evidence.validation.joint_verdicts, strict=True)
    for fitted, verified in pairs:
        rank = max(fitted.rank, verified.rank)
        if rank > 1:
            (refused if rank == 3 else poor).append(verified.name)
    one = [f"{', '.join(refused)} {'is' if len(refused) == 1 else 'are'} refused"] if refused else []
    return [*one, *([f"{', '.join(poor)} fit{'s' if len(poor) == 1 else ''} poorly"] if poor else [])]


def torque_note(evidence: Evidence) -> str:
    """Say which motion is shown, how it was filtered, and which of its rows count."""
    validation, settings = evidence.validation, evidence.model.settings
    shares = validation.error.share[validation.modelled]
    low, high = percent(float(shares.min())), percent(float(shares.max()))
    span = low if low == high else f"{low} to {high}"
    periods = _periods(evidence.verification_run)
    averaged = f", the mean of its {periods} periods" if settings.average_periods and periods > 1 else ""
    return (
        f"The motion of run “{evidence.verification_run.path.name}”{averaged}. Both torques went through the same "
        f"low-pass at {settings.cutoff_Hz:.3g} Hz. The fit and its verdict count where a joint moves "
        f"({span} of the time); the table of joints has the errors over all rows first, then those where it moves."
        f"{_memory(evidence)}"
    )


def _memory(evidence: Evidence) -> str:
    """Return what predicts where friction has memory, and what Coulomb and viscous friction would err."""
    memory, plain = evidence.model.memory, evidence.validation.coulomb_viscous
    if memory is None or plain is None:
        return ""
    return (
        f" Predicted with friction with memory of {', '.join(axis.name for axis, _ in memory.axes)}; with Coulomb and "
        f"viscous friction, beside which parameters and curves of friction below are, the error of all joints is "
        f"{percent(plain.all.total_relative)} over all rows and {percent(plain.moving.total_relative)} where they move."
    )


def friction_note(evidence: Evidence, curves: Sequence[FrictionCurve]) -> str:
    """Say what the curves of friction show, and of which joints there is none."""
    shown = {curve.joint for curve in curves}
    names = evidence.model.base.robot.joint_names
    missing = [label for label, name in zip(evidence.model.robot.joint_names, names, strict=True) if name not in shown]
    none = f" There is none of {', '.join(missing)}, with no friction of their own or no motion." if missing else ""
    return (
        f"What the torque of run “{evidence.verification_run.path.name}” leaves when all but friction and offset is "
        f"taken away, over speed: the median of the rows at each speed, and the middle 80\u00a0% of them. The line is "
        f"the model's friction with its offset, the band ±\u00a02\u00a0σ.{none}"
    )


def excitation_note(evidence: Evidence) -> str:
    """Say what was played, how well it conditions the fit, and what it left of the limits."""
    excitation = evidence.excitation
    if excitation is None:
        return "No planned motion comes with this recording; the condition number is that of what was recorded."
    description, tightest = excitation.basis.description, excitation.tightest
    planned = "" if math.isnan(excitation.condition_number) else f"as planned {excitation.condition_number:.3g}, "
    return (
        f"{description[0].upper()}{description[1:]}, seed {excitation.seed}, {_times(evidence.fit_run.repeats)}. "
        f"Condition number {planned}as fitted {evidence.model.condition_number:.3g}. "
        f"The least margin to any limit, torque included, is {percent(tightest.smallest)} ({tightest.joint})."
        f"{_unchecked(excitation)}"
    )


def _unchecked(excitation: Excitation) -> str:
    return f" Planned with {excitation.not_checked}." if excitation.not_checked else ""


def _periods(run: Run) -> int:
    """Return how many equal periods were played, those between the ramps of each playing counted."""
    return run.repeats * (run.excitation.basis.repetition.times if run.excitation else 1)


def _times(repeats: int) -> str:
    return {0: "not played", 1: "played once", 2: "played twice"}.get(repeats, f"played {repeats} times")


def fit_facts(evidence: Evidence) -> tuple[FitFact, ...]:
    """Return what a reader should know of the fit, the most telling first."""
    model, validation = evidence.model, evidence.validation
    names, checked = model.robot.joint_names, validation.joint_names
    verdict = validation.verdict
    facts = [
        *(
            FitFact(f"{part.name[0].upper()}{part.name[1:]}", typeset(f"{part.word}: {part.reason}"))
            for part in verdict.parts
        ),
        FitFact("Estimator", _estimator(model)),
        *_delays(model),
        FitFact("Physically possible", _as_sentence(_physical(model))),
        FitFact("Residuals of the fit", _as_sentence(model.whiteness.sentence(names))),
        FitFact(
            "Residuals of the verification",
            _as_sentence(validation.whiteness.sentence(checked, held_out=evidence.held_out)),
        ),
        FitFact("Outliers", _outliers(model)),
        *(FitFact("Note", _as_sentence(note)) for note in model.notes),
    ]
    return tuple(facts)


def _estimator(model: Model) -> str:
    """Its name, with the options and what it found on its way."""
    items = {**model.options, **model.figures}
    listed = ", ".join(
        f"{name} {_figure(value)}" for name, value in items.items() if not isinstance(value, dict | list)
    )
    return typeset(f"{model.estimator} ({listed})" if listed else model.estimator)


def _physical(model: Model) -> str:
    """Return whether a robot can have these parameters."""
    try:
        verdict = model.physical.verdict
    except JointbenchError as error:
        return f"not known: {error}"
    return f"{_ANSWERS[verdict.word]}: {verdict.reason}"


def _delays(model: Model) -> Iterator[FitFact]:
    for k, delay in enumerate(model.delays):
        which = f" in run {k + 1}" if len(model.delays) > 1 else ""
        taken = "not told by this motion and taken as none: " if delay.source == "not told" else ""
        yield FitFact(f"Delay{which}", _as_sentence(taken + delay.reason))


def _outliers(model: Model) -> str:
    """Return how many samples the averages over periods left out, joint by joint."""
    names, n = model.robot.joint_names, model.robot.n_joints
    counts = model.outliers.tolist()
    outliers = [
        f"{name} {what} {count}"
        for what, part in (("position", counts[:n]), ("torque", counts[n:]))
        for name, count in zip(names, part, strict=True)
        if count
    ]
    return (
        f"Samples left out of the average over periods: {', '.join(outliers)}."
        if outliers
        else "No sample was left out."
    )


def _as_sentence(text: str) -> str:
    """A reason as a sentence by itself."""
    return typeset(text[:1].upper() + text[1:].removesuffix(".") + ".")


def _figure(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
