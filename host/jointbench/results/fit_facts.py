"""How the model was made, in sentences: estimator, delay, outliers, what is left over, whether a robot can be so."""

from collections.abc import Iterator

from jointbench.errors import JointbenchError
from jointbench.identification import Model
from jointbench.results.content import FitFact
from jointbench.results.digits import typeset
from jointbench.results.evidence import Evidence

_ANSWERS = {"identified": "yes", "weak": "hardly", "refused": "no"}


def fit_facts(evidence: Evidence) -> tuple[FitFact, ...]:
    """Return what a reader should know of the fit, the most telling first."""
    model, validation = evidence.model, evidence.validation
    names, checked = model.robot.joint_names, validation.joint_names
    facts = [
        FitFact("Estimator", _estimator(model)),
        *_delays(model),
        FitFact("Physically possible", _sentence(_physical(model))),
        FitFact("Residuals of the fit", _sentence(model.whiteness.sentence(names))),
        FitFact("Residuals of the verification", _sentence(validation.whiteness.sentence(checked, held_out=True))),
        FitFact("Outliers", _outliers(model)),
        *(FitFact("Note", _sentence(note)) for note in model.notes),
    ]
    return tuple(facts)


def _estimator(model: Model) -> str:
    """Its name, with the options and what it found on its way."""
    items = {**model.options, **model.figures}
    listed = ", ".join(f"{name} {_plain(value)}" for name, value in items.items() if not isinstance(value, dict | list))
    return typeset(f"{model.estimator} ({listed})" if listed else model.estimator)


def _physical(model: Model) -> str:
    """Whether a robot can have these parameters."""
    try:
        verdict = model.physical.verdict
    except JointbenchError as error:
        return f"not known: {error}"
    return f"{_ANSWERS[verdict.word]}: {verdict.reason}"


def _delays(model: Model) -> Iterator[FitFact]:
    for k, delay in enumerate(model.delays):
        which = f" in run {k + 1}" if len(model.delays) > 1 else ""
        taken = "not told by this motion and taken as none: " if delay.source == "not told" else ""
        yield FitFact(f"Delay{which}", _sentence(taken + delay.reason))


def _outliers(model: Model) -> str:
    """How many samples the averages over periods left out, joint by joint."""
    names, n = model.robot.joint_names, model.robot.n_joints
    counts = model.outliers.tolist()
    found = [
        f"{name} {what} {count}"
        for what, part in (("position", counts[:n]), ("torque", counts[n:]))
        for name, count in zip(names, part, strict=True)
        if count
    ]
    return f"Samples left out of the average over periods: {', '.join(found)}." if found else "No sample was left out."


def _sentence(text: str) -> str:
    """A reason as a sentence by itself."""
    return typeset(text[:1].upper() + text[1:].removesuffix(".") + ".")


def _plain(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
