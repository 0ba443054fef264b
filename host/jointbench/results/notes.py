"""The sentences above the pictures: what they show, and what they leave out."""

import math
from collections.abc import Sequence

from jointbench.excitation import Excitation
from jointbench.recording import Run
from jointbench.results.digits import percent
from jointbench.results.evidence import Evidence
from jointbench.results.friction_curves import FrictionCurve


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
    """What predicts where friction has memory, and what Coulomb and viscous friction would err."""
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
    """How many equal periods were played, those between the ramps of each playing counted."""
    return run.repeats * (run.excitation.basis.repetition.times if run.excitation else 1)


def _times(repeats: int) -> str:
    return {0: "not played", 1: "played once", 2: "played twice"}.get(repeats, f"played {repeats} times")
