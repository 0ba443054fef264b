"""The verdict first: one sentence, four numbers and a row per joint."""

from collections import Counter

from jointbench.identification import Model, Validation
from jointbench.results.content import Fact, JointRow
from jointbench.results.digits import column, count, fixed, percent, typeset
from jointbench.results.evidence import Evidence
from jointbench.results.parameter_table import shown_verdicts

_R_SQUARED_DECIMALS = 4
"""Good models differ in the third; 1.0000 is then more than anybody can measure."""


def sentence(evidence: Evidence) -> str:
    """Say how well the model predicts, on what motion, what stands against it, and how far its parameters are known."""
    words = Counter(verdict.word for verdict in shown_verdicts(evidence.model))
    known = (
        f"{words['identified']} of {words.total()} parameters are identified, "
        f"{words['weak']} weak, {words['refused']} refused"
    )
    doubts = [*_doubtful_joints(evidence), *map(typeset, evidence.invalid_runs)]
    return "; ".join([headline(evidence), *doubts, known]) + "."


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
    """Name the joints that are refused or weak, on verification or already in the fit."""
    names: dict[str, list[str]] = {"refused": [], "weak": []}
    pairs = zip(evidence.model.joint_verdicts, evidence.validation.joint_verdicts, strict=True)
    for fitted, verified in pairs:
        words = {fitted.word, verified.word}
        if not words <= {"identified", "passive"}:
            names["refused" if "refused" in words else "weak"].append(verified.name)
    return [
        f"{', '.join(joints)} {'is' if len(joints) == 1 else 'are'} {word}" for word, joints in names.items() if joints
    ]
