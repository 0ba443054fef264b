"""The sentences above the pictures: what they show, and what they leave out."""

from jointbench.report.digits import percent
from jointbench.report.evidence import Evidence


def torque_note(evidence: Evidence) -> str:
    """Say which motion is shown, how it was filtered, and which of its rows count."""
    validation, settings = evidence.validation, evidence.model.settings
    shares = validation.error.share
    low, high = percent(float(shares.min())), percent(float(shares.max()))
    span = low if low == high else f"{low} to {high}"
    repeats = evidence.verification_run.repeats
    averaged = f", the mean of its {repeats} periods" if settings.average_periods and repeats > 1 else ""
    return (
        f"The motion of run “{evidence.verification_run.path.name}”{averaged}. Both torques went through the same "
        f"low-pass at {settings.cutoff_Hz:.3g} Hz. Errors count where a joint moves ({span} of the time); "
        f"the table of joints also has those with rest included."
    )


def excitation_note(evidence: Evidence) -> str:
    """Say what was played, how well it conditions the fit, and what it left of the limits."""
    excitation = evidence.excitation
    if excitation is None:
        return "No planned motion comes with this recording; the condition number is that of what was recorded."
    tightest = min(excitation.margins, key=lambda margins: margins.smallest)
    return (
        f"Fourier series of {excitation.harmonics} harmonics, period {excitation.period:g} s, seed {excitation.seed}, "
        f"{_times(evidence.fit_run.repeats)}. Condition number as planned {excitation.condition_number:.3g}, as "
        f"fitted {evidence.model.condition_number:.3g}. The least margin to any limit, torque included, is "
        f"{percent(tightest.smallest)} ({tightest.joint})."
    )


def _times(repeats: int) -> str:
    return {0: "not played", 1: "played once", 2: "played twice"}.get(repeats, f"played {repeats} times")
