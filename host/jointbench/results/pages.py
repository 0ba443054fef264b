"""Pages of HTML that need nothing else: a model's report, and a comparison of two models."""

import shlex
from dataclasses import dataclass

import jinja2
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.drawing import PALETTE, stack
from jointbench.identification import Model
from jointbench.model.model_columns import parameter_unit, torque_unit, torque_units
from jointbench.results.content import (
    NOT_A_NUMBER,
    Content,
    Fact,
    Panel,
    clock_table,
    column,
    fixed,
    ledger_table,
    percent,
    typeset,
    value_and_sigma,
)
from jointbench.results.evidence import ComparisonEvidence, Evidence, provenance_rows, reproduce_commands
from jointbench.results.joint_panels import (
    cutoff_panels,
    excitation_panels,
    friction_curves,
    friction_panels,
    panel_of,
    panel_style,
    residual_panels,
    spectrum_panels,
    torque_panels,
)
from jointbench.results.panels import torque_panel
from jointbench.results.summary import (
    excitation_note,
    facts,
    fit_facts,
    friction_note,
    joint_rows,
    parameter_groups,
    parameter_note,
    sentence,
    shown_verdicts,
    torque_note,
)

_ROW = 20.0
"""Height of a parameter's row [SVG units]."""
_NAMES = 112.0
"""Room for their names, left of the axis [SVG units]."""
_LINEAR = 3.0
"""σ up to which the axis is linear, and beyond which it is logarithmic: differences of 2 σ and of 200 both show."""
_AXIS_MARKS = (0.0, 2.0, 10.0, 100.0, 1000.0)

_MARKS = {"same": "yes", "different": "no", "cannot tell": "with care"}
_LEADS = {
    "same": "A and B say the same",
    "different": "A and B differ by more than their error bars",
    "cannot tell": "A and B are not seen to differ",
}
_UNTOLD = "not told by both"


def render(template: str, content: object) -> str:
    """Return a page of the look that all reports share."""
    loader = jinja2.PackageLoader("jointbench.results")
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, loader=loader)
    css, _, _ = loader.get_source(environment, "report.css")
    return environment.get_template(template).render(content=content, css=css)


def report_html(evidence: Evidence, commands: tuple[str, ...] = ()) -> str:
    """Return the report as HTML text that refers to nothing outside itself."""
    return render("report.html", report_content(evidence, commands))


def report_content(evidence: Evidence, commands: tuple[str, ...] = ()) -> Content:
    """Return everything the report says, in words, finished numbers and pictures."""
    model, validation, excitation = evidence.model, evidence.validation, evidence.excitation
    curves = friction_curves(model, evidence.verification_run)
    return Content(
        robot=model.robot.name,
        answer=evidence.answer,
        sentence=sentence(evidence),
        warnings=evidence.warnings,
        facts=facts(evidence),
        torque_unit=torque_units(model.robot),
        joints=joint_rows(model, validation),
        torque_note=torque_note(evidence),
        torques=torque_panels(model, validation),
        residuals=residual_panels(model, validation),
        spectra=spectrum_panels(model, validation),
        fit=fit_facts(evidence),
        cutoffs=cutoff_panels(model),
        parameter_note=parameter_note(model),
        parameters=parameter_groups(model),
        shares=model.calibration is not None,
        friction_note=friction_note(evidence, curves),
        friction=friction_panels(model, curves),
        ledgers=tuple(ledger_table(name, run.ledger) for name, run in evidence.runs),
        clocks=tuple(clock_table(name, run) for name, run in evidence.runs if run.clocks),
        excitation_note=excitation_note(evidence),
        excitation=excitation_panels(model.robot, excitation) if excitation else (),
        provenance=provenance_rows(evidence),
        commands=commands or reproduce_commands(evidence),
    )


@dataclass(frozen=True)
class ParameterPair:
    """One parameter in both models; `told` is "differs", "alike" or "not told by both"."""

    name: str
    unit: str
    a: str
    b: str
    difference: str
    in_sigma: str
    told: str


@dataclass(frozen=True)
class TorquePair:
    """One joint: rms error of each fit, and how far its torques differ; each difference beside what chance makes."""

    name: str
    fits: tuple[str, str]
    torque: str
    differences: tuple[str, ...]
    at_most: str


@dataclass(frozen=True)
class SideRow:
    """One thing that can be said of both models."""

    name: str
    a: str
    b: str

    @property
    def same(self) -> bool:
        """True if both say the same."""
        return self.a == self.b


@dataclass(frozen=True)
class ComparisonContent:
    """Everything a report on two models shows, in the order it shows it.

    Attributes:
        robot: its name.
        answer: same, different or cannot tell.
        mark: what the answer looks like: yes, no or with care.
        sentence: the answer in one sentence.
        a, b: where the models are.
        warnings: what a careful reader must know.
        facts: numbers worth seeing first.
        torque_note: on what motion torques were compared.
        torque_unit: of the table of torques.
        torques: the table, one row a joint.
        traces: panels of torque over time; none where there is no motion.
        different: the parameters that differ, the surest first.
        groups: owner and rows of all parameters.
        bars: panels of the differences in σ.
        sides: what else can be said of both.
        command: what to type to get this report again.
    """

    robot: str
    answer: str
    mark: str
    sentence: str
    a: str
    b: str
    warnings: tuple[str, ...]
    facts: tuple[Fact, ...]
    torque_note: str
    torque_unit: str
    torques: tuple[TorquePair, ...]
    traces: tuple[Panel, ...]
    different: tuple[ParameterPair, ...]
    groups: tuple[tuple[str, tuple[ParameterPair, ...]], ...]
    bars: tuple[Panel, ...]
    sides: tuple[SideRow, ...]
    command: str


def trace_panels(evidence: ComparisonEvidence) -> tuple[Panel, ...]:
    """Return both models' torque of each joint over the motion."""
    robot, torque = evidence.models[0].robot, evidence.comparison.torques["all"]
    panels: list[Panel] = []
    if evidence.time.size:
        with panel_style():
            for joint, name in enumerate(robot.joint_names):
                unit = torque_unit(robot, joint)
                figure = torque_panel(evidence.time, evidence.torques[0, :, joint], evidence.torques[1, :, joint], unit)
                note = f"apart by {torque.rms[joint]:.2g} {unit} rms"
                panels.append(panel_of(figure, f"trace-{joint}", name, note, "torque of A and of B"))
    return tuple(panels)


def difference_panels(evidence: ComparisonEvidence) -> tuple[Panel, ...]:
    """Return the differences in σ of the parameters that both models tell, by the joint or coupling they belong to."""
    comparison = evidence.comparison
    judged = [k for k in range(len(comparison.names)) if np.isfinite(comparison.sigma[k])]
    owners = dict.fromkeys(comparison.names[k].rpartition(".")[0] for k in judged)
    reach = max([4.0, *(1.3 * abs(float(comparison.in_sigma[k])) for k in judged)])
    panels: list[Panel] = []
    with panel_style():
        for number, owner in enumerate(owners):
            mine = [k for k in judged if comparison.names[k].rpartition(".")[0] == owner]
            differ = np.array([comparison.names[k] in comparison.different for k in mine], dtype=np.bool_)
            names = tuple(comparison.names[k].rpartition(".")[2] for k in mine)
            figure = difference_panel(names, np.array([comparison.in_sigma[k] for k in mine]), differ, reach)
            count = int(differ.sum())
            note = f"{count} of {len(mine)} differ" if count else f"none of {len(mine)} differs"
            panels.append(panel_of(figure, f"difference-{number}", owner, note, "B less A in σ of the difference"))
    return tuple(panels)


def difference_panel(names: tuple[str, ...], in_sigma: Array, differ: NDArray[np.bool_], reach: float) -> Figure:
    """Draw a row for each parameter: B less A in σ, between lines at two σ; filled where it differs for sure.

    Args:
        names: of the parameters, from the top down.
        in_sigma: of the same, shape (n,).
        differ: which differ for sure, shape (n,).
        reach: where the axis ends [σ].
    """
    figure, (axes,) = stack([_ROW * len(names)], left=_NAMES)
    rows = np.arange(len(names))
    axes.set_xscale("symlog", linthresh=_LINEAR, linscale=1.0)
    axes.set_xlim(-reach, reach)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.axvline(0.0, color=PALETTE.rule, linewidth=0.8)
    for bound in (-2.0, 2.0):
        axes.axvline(bound, color=PALETTE.limit, linewidth=1.0, dashes=(4, 3))
    axes.hlines(rows, 0.0, in_sigma, color=PALETTE.measured, linewidth=1.2, alpha=0.6)
    axes.plot(in_sigma[~differ], rows[~differ], "o", color=PALETTE.measured, markersize=5.0, markerfacecolor="none")
    axes.plot(in_sigma[differ], rows[differ], "o", color=PALETTE.predicted, markersize=6.0)
    axes.set_yticks(rows, list(names))
    axes.grid(visible=False)
    marks = [mark for mark in _AXIS_MARKS if mark <= reach]
    marks = [*(-mark for mark in reversed(marks) if mark), *marks]
    labels = [f"{mark:g}".replace("-", "−") for mark in marks]
    axes.set_xticks(marks, [*labels[:-1], f"{labels[-1]} σ"], minor=False)
    axes.xaxis.set_minor_locator(NullLocator())
    return figure


def comparison_html(evidence: ComparisonEvidence) -> str:
    """Return the report as HTML text that refers to nothing outside itself."""
    return render("comparison.html", comparison_content(evidence))


def comparison_content(evidence: ComparisonEvidence) -> ComparisonContent:
    """Return everything the report says, in words, finished numbers and pictures."""
    comparison, (a, b) = evidence.comparison, evidence.models
    pairs = {name: _pair(evidence, k) for k, name in enumerate(comparison.names)}
    owners = dict.fromkeys(name.rpartition(".")[0] for name in comparison.names)
    robots = dict.fromkeys(model.robot.name for model in (a, b))
    return ComparisonContent(
        robot=" and ".join(robots),
        answer=comparison.answer,
        mark=_MARKS[comparison.answer],
        sentence=typeset(f"{_LEADS[comparison.answer]}: {comparison.reason}."),
        a=str(evidence.places[0]),
        b=str(evidence.places[1]),
        warnings=_warnings(evidence),
        facts=_facts(evidence),
        torque_note=_torque_note(evidence),
        torque_unit=torque_units(a.robot),
        torques=_torques(evidence),
        traces=trace_panels(evidence),
        different=tuple(pairs[name] for name in comparison.different),
        groups=tuple(
            (owner, tuple(pair for name, pair in pairs.items() if name.rpartition(".")[0] == owner)) for owner in owners
        ),
        bars=difference_panels(evidence),
        sides=_sides(evidence),
        command=f"jointbench report {' '.join(shlex.quote(str(place)) for place in evidence.places)}",
    )


def _pair(evidence: ComparisonEvidence, k: int) -> ParameterPair:
    comparison, name = evidence.comparison, evidence.comparison.names[k]
    values = [
        value_and_sigma(*map(float, pair))
        for pair in zip(comparison.values[:, k], comparison.sigmas[:, k], strict=True)
    ]
    is_told = bool(np.isfinite(comparison.sigma[k]))
    difference = value_and_sigma(float(comparison.difference[k]), float(comparison.sigma[k]))
    return ParameterPair(
        name=name,
        unit=_unit(evidence.models[0], name),
        a=_with_sigma(values[0]),
        b=_with_sigma(values[1]),
        difference=_with_sigma(difference),
        in_sigma=fixed(float(comparison.in_sigma[k]), 1) if is_told else NOT_A_NUMBER,
        told="differs" if name in comparison.different else "alike" if is_told else _UNTOLD,
    )


def _unit(model: Model, name: str) -> str:
    laws = model.friction
    of_laws = {} if laws is None else dict(zip(laws.names, laws.units, strict=True))
    return of_laws.get(name) or parameter_unit(model.robot, name)


def _with_sigma(pair: tuple[str, str]) -> str:
    value, sigma = pair
    return f"{value} ± {sigma}" if sigma != NOT_A_NUMBER else value


def _facts(evidence: ComparisonEvidence) -> tuple[Fact, ...]:
    comparison, torque = evidence.comparison, evidence.comparison.torques["all"]
    n_told = int(np.isfinite(comparison.sigma).sum())
    share = np.divide(torque.rms, torque.torque, out=np.zeros_like(torque.rms), where=torque.torque > 0.0)
    worst = int(np.argmax(share))
    return (
        Fact(f"{len(comparison.different)} of {n_told}", "parameters differ beyond their error bars"),
        Fact(percent(float(share[worst])), f"largest difference of torque ({comparison.joint_names[worst]})"),
        Fact(f"{comparison.p_value:.2g}".replace("-", "−").replace("nan", NOT_A_NUMBER), "p: how likely by chance"),
    )


def _warnings(evidence: ComparisonEvidence) -> tuple[str, ...]:
    """Return what a careful reader must know before the numbers."""
    warnings: list[str] = []
    if evidence.comparison.same_data:
        warnings.append(
            "Both models were fitted to a recording they share: how their errors go together is not known, so that σ "
            "of each difference is the largest possible."
        )
    for name, model in zip("AB", evidence.models, strict=True):
        if model.verdict.is_refused:
            warnings.append(typeset(f"Model {name} is refused by its own fit: {model.verdict.reason}."))
    return tuple(warnings)


def _torque_note(evidence: ComparisonEvidence) -> str:
    motion = (
        f"on the motion of run “{evidence.run.path.name}”, filtered as for the fit of A"
        if evidence.run is not None
        else "at random states within the robot's limits"
    )
    return (
        f"What each model says of the torque {motion}. Each difference stands beside what chance alone would make of "
        f"it (±); “at most” is the largest difference as a share of the torque, with 95\u00a0% probability. Parts may "
        f"differ by more than all of it, where errors of parameters cancel."
    )


def _fit_rms(model: Model) -> list[str]:
    """Error of each joint's torque over all rows, and where it moves, of the parameters that are compared."""
    both = column([*model.error_all.rms.tolist(), *model.error.rms.tolist()])
    n = model.robot.n_joints
    return [f"{everywhere} ({moving})" for everywhere, moving in zip(both[:n], both[n:], strict=True)]


def _torques(evidence: ComparisonEvidence) -> tuple[TorquePair, ...]:
    comparison = evidence.comparison
    rms = [_fit_rms(model.coulomb_viscous) for model in evidence.models]
    torque = column(comparison.torques["all"].torque.tolist())
    return tuple(
        TorquePair(
            name=name,
            fits=(rms[0][joint], rms[1][joint]),
            torque=torque[joint],
            differences=tuple(
                _with_sigma(value_and_sigma(float(difference.rms[joint]), float(difference.sigma[joint])))
                for difference in comparison.torques.values()
            ),
            at_most=percent(float(comparison.at_most[joint]))
            if np.isfinite(comparison.at_most[joint])
            else "not known",
        )
        for joint, name in enumerate(comparison.joint_names)
    )


def _sides(evidence: ComparisonEvidence) -> tuple[SideRow, ...]:
    """Return what can be said of both models beside their numbers."""
    a, b = (dict(_told(model)) for model in evidence.models)
    return tuple(SideRow(name, a.get(name, NOT_A_NUMBER), b.get(name, NOT_A_NUMBER)) for name in a | b)


def _told(model: Model) -> list[tuple[str, str]]:
    words = [verdict.word for verdict in shown_verdicts(model)]
    runs = model.provenance.get("runs") or [model.provenance]
    settings = model.settings.to_dict()
    laws = {} if model.friction is None else model.friction.laws.laws
    return [
        ("verdict of the fit", typeset(f"{model.verdict.word}: {model.verdict.reason}")),
        ("parameters identified", f"{words.count('identified')} of {len(words)}"),
        ("condition number", f"{model.condition_number:.3g}"),
        ("estimator", model.estimator),
        *([("friction laws", ", ".join(f"{joint} {law.name}" for joint, law in laws.items()))] if laws else []),
        ("fitted to", ", ".join(str(run.get("run", NOT_A_NUMBER)) for run in runs)),
        ("SHA-256", ", ".join(str(run.get("sha256", NOT_A_NUMBER)) for run in runs)),
        *([("edited runs", "; ".join(model.edits))] if model.edits else []),
        ("low-pass", f"{settings.get('cutoff_Hz', float('nan')):.4g} Hz"),
        *((f"version of {name}", str(version)) for name, version in model.provenance.get("versions", {}).items()),
    ]
