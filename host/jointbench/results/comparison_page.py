"""The report on two models: one HTML file that needs nothing else."""

import shlex

import numpy as np

from jointbench.identification import Model
from jointbench.results.comparison_content import ComparisonContent, ParameterPair, SideRow, TorquePair
from jointbench.results.comparison_evidence import ComparisonEvidence
from jointbench.results.comparison_panels import difference_panels, trace_panels
from jointbench.results.content import Fact
from jointbench.results.digits import NOT_A_NUMBER, column, fixed, percent, typeset, value_and_sigma
from jointbench.results.parameter_table import shown_verdicts
from jointbench.results.render import render
from jointbench.results.units import parameter_unit, torque_units

_MARKS = {"same": "yes", "different": "no", "cannot tell": "weak"}
_LEADS = {
    "same": "A and B say the same",
    "different": "A and B differ by more than their error bars",
    "cannot tell": "A and B are not seen to differ",
}
_UNTOLD = "not told by both"


def comparison_html(evidence: ComparisonEvidence) -> str:
    """Return the report as HTML text that refers to nothing outside itself."""
    return render("comparison.html", comparison_content(evidence))


def comparison_content(evidence: ComparisonEvidence) -> ComparisonContent:
    """Return everything the report says, in words, finished numbers and pictures."""
    found, (a, b) = evidence.comparison, evidence.models
    pairs = {name: _pair(evidence, k) for k, name in enumerate(found.names)}
    owners = dict.fromkeys(name.rpartition(".")[0] for name in found.names)
    robots = dict.fromkeys(model.robot.name for model in (a, b))
    return ComparisonContent(
        robot=" and ".join(robots),
        answer=found.answer,
        mark=_MARKS[found.answer],
        sentence=typeset(f"{_LEADS[found.answer]}: {found.reason}."),
        a=str(evidence.places[0]),
        b=str(evidence.places[1]),
        warnings=_warnings(evidence),
        facts=_facts(evidence),
        torque_note=_torque_note(evidence),
        torque_unit=torque_units(a.robot),
        torques=_torques(evidence),
        traces=trace_panels(evidence),
        different=tuple(pairs[name] for name in found.different),
        groups=tuple(
            (owner, tuple(pair for name, pair in pairs.items() if name.rpartition(".")[0] == owner)) for owner in owners
        ),
        bars=difference_panels(evidence),
        sides=_sides(evidence),
        command=f"jointbench report {' '.join(shlex.quote(str(place)) for place in evidence.places)}",
    )


def _pair(evidence: ComparisonEvidence, k: int) -> ParameterPair:
    found, name = evidence.comparison, evidence.comparison.names[k]
    values = [value_and_sigma(*map(float, each)) for each in zip(found.values[:, k], found.sigmas[:, k], strict=True)]
    told = bool(np.isfinite(found.sigma[k]))
    difference = value_and_sigma(float(found.difference[k]), float(found.sigma[k]))
    return ParameterPair(
        name=name,
        unit=_unit(evidence.models[0], name),
        a=_with_sigma(values[0]),
        b=_with_sigma(values[1]),
        difference=_with_sigma(difference),
        in_sigma=fixed(float(found.in_sigma[k]), 1) if told else NOT_A_NUMBER,
        told="differs" if name in found.different else "alike" if told else _UNTOLD,
    )


def _unit(model: Model, name: str) -> str:
    laws = model.friction
    of_laws = {} if laws is None else dict(zip(laws.names, laws.units, strict=True))
    return of_laws.get(name) or parameter_unit(model.robot, name)


def _with_sigma(pair: tuple[str, str]) -> str:
    value, sigma = pair
    return f"{value} ± {sigma}" if sigma != NOT_A_NUMBER else value


def _facts(evidence: ComparisonEvidence) -> tuple[Fact, ...]:
    found, torque = evidence.comparison, evidence.comparison.torques["all"]
    told = int(np.isfinite(found.sigma).sum())
    share = np.divide(torque.rms, torque.torque, out=np.zeros_like(torque.rms), where=torque.torque > 0.0)
    worst = int(np.argmax(share))
    return (
        Fact(f"{len(found.different)} of {told}", "parameters differ beyond their error bars"),
        Fact(percent(float(share[worst])), f"largest difference of torque ({found.joint_names[worst]})"),
        Fact(f"{found.p_value:.2g}".replace("-", "−").replace("nan", NOT_A_NUMBER), "p: how likely by chance"),
    )


def _warnings(evidence: ComparisonEvidence) -> tuple[str, ...]:
    """What a careful reader must know before the numbers."""
    warnings: list[str] = []
    if evidence.comparison.same_data:
        warnings.append(
            "Both models were fitted to a recording they share: how their errors go together is not known, so that σ "
            "of each difference is the largest possible."
        )
    for name, model in zip("AB", evidence.models, strict=True):
        if model.verdict.word == "refused":
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
    found = evidence.comparison
    rms = [_fit_rms(model.coulomb_viscous) for model in evidence.models]
    torque = column(found.torques["all"].torque.tolist())
    return tuple(
        TorquePair(
            name=name,
            fits=(rms[0][joint], rms[1][joint]),
            torque=torque[joint],
            differences=tuple(
                _with_sigma(value_and_sigma(float(each.rms[joint]), float(each.sigma[joint])))
                for each in found.torques.values()
            ),
            at_most=percent(float(found.at_most[joint])) if np.isfinite(found.at_most[joint]) else "not known",
        )
        for joint, name in enumerate(found.joint_names)
    )


def _sides(evidence: ComparisonEvidence) -> tuple[SideRow, ...]:
    """What can be said of both models beside their numbers."""
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
