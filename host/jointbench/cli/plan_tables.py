"""A plan in words and columns: what each joint does of what it may, how near it comes to things, what stays weak."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping

from jointbench.cli.tables import table
from jointbench.results.digits import percent
from jointbench.results.plan_evidence import PlanEvidence, SupportEvidence, Trace, plain

_NONE = "–"
_MOST_DISTANCES = 6
_MOST_WEAK = 8
_NOTHING = 1e-6
"""Share of a limit below which a peak is rounding."""

_WIDTH = 100
"""Of sentences, in characters."""


def plan_text(evidence: PlanEvidence) -> str:
    """All of it, in parts with a blank line between."""
    return "\n\n".join("\n".join(part) for part in _parts(evidence))


def _parts(evidence: PlanEvidence) -> Iterator[list[str]]:
    yield [_position_table(evidence)]
    yield [_peaks_table(evidence)]
    if evidence.excitation.distances:
        yield [_distances_table(evidence.excitation.distances)]
    if evidence.support is None:
        yield [*_quality(evidence), *_weak(evidence)]
    else:
        yield [_foreseen_table(evidence.support), _wrapped(evidence.support.told)]
        yield [_wrapped(evidence.support.answer)]
    yield [_wrapped(evidence.answer), *([evidence.excitation.not_checked] if evidence.excitation.not_checked else [])]


def _position_table(evidence: PlanEvidence) -> str:
    """From where to where each joint goes, how much of its range and speeds it visits, how often it turns round."""
    position = evidence.traces[0]
    rows = [
        (
            margins.joint,
            _range(position.lowest[j], position.highest[j]),
            _range(*position.limits[j]),
            _percent(margins.position_coverage),
            _percent(margins.velocity_coverage),
            _NONE if margins.reversals is None else str(margins.reversals),
        )
        for j, margins in enumerate(evidence.excitation.margins)
    ]
    heads = ("joint", f"position [{position.unit}]", "allowed", "range visited", "speeds visited", "reversals")
    return table(heads, rows)


def _peaks_table(evidence: PlanEvidence) -> str:
    """Largest magnitudes against their limits."""
    traces = evidence.traces[1:]
    rows = [[name, *(_peak(trace, j) for trace in traces)] for j, name in enumerate(evidence.robot.joint_names)]
    return table(["joint", *(f"{trace.name} [{trace.unit}]" for trace in traces)], rows)


def _distances_table(distances: Mapping[str, float]) -> str:
    """The narrowest places first."""
    nearest = sorted(distances.items(), key=lambda each: each[1])
    rows = [(name, f"{1e3 * room:.1f}") for name, room in nearest[:_MOST_DISTANCES]]
    if len(nearest) > _MOST_DISTANCES:
        name, room = nearest[_MOST_DISTANCES]
        rows.append((f"{len(nearest) - _MOST_DISTANCES} more, the nearest of them {name}", f"{1e3 * room:.1f}"))
    return table(("in space", "room left [mm]"), rows)


def _foreseen_table(support: SupportEvidence) -> str:
    """What the file says of each parameter, and how well the foot's forces will tell it."""
    rows = [
        (name, f"{value:.4g}", f"{sigma:.2g}", f"{share:.1%}")
        for name, value, sigma, share in zip(
            support.names, support.values, support.sigma, support.relative_sigma, strict=True
        )
    ]
    return table(("parameter [m, kg]", "in the file", "least σ", "of it"), rows)


def _quality(evidence: PlanEvidence) -> Iterator[str]:
    plan = evidence.excitation
    if plan.objective_value not in (None, plan.condition_number):
        yield f"objective {plan.objective}: {plan.objective_value:.4g}"
    yield (
        f"condition number of the base regressor: {plan.condition_number:.1f}; "
        f"{evidence.scaled_condition_number:.1f} with all columns made one long"
    )


def _weak(evidence: PlanEvidence) -> Iterator[str]:
    head, *others = evidence.weak.words
    yield head
    for sentence in others[:_MOST_WEAK]:
        yield _wrapped(sentence, "  ")
    if len(others) > _MOST_WEAK:
        yield _wrapped(f"and {', '.join(evidence.weak.names[_MOST_WEAK:])}", "  ")
    if others and evidence.weak.judged_by == "relative_sigma":
        yield f"  (σ as of {evidence.samples} samples with independent noise; of n times as many it is 1/√n of that)"


def _wrapped(sentence: str, indent: str = "") -> str:
    return textwrap.fill(
        sentence, _WIDTH, initial_indent=indent, subsequent_indent=f"{indent}  ", break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip


def _range(low: float, high: float) -> str:
    low, high = round(low, 1) + 0.0, round(high, 1) + 0.0  # no "−0.0"
    return f"{low:.1f} … {high:.1f}".replace("-", "−")


def _peak(trace: Trace, joint: int) -> str:
    if not trace.says(joint):
        return _NONE
    limit = float(trace.limits[joint, 1])
    peak = float(trace.peak[joint])
    if not math.isfinite(limit):
        return f"{plain(peak, 3)}, no limit"
    share = float(trace.share[joint])
    return f"{plain(peak, 3) if share > _NOTHING else 0} of {plain(limit)} ({percent(share)})"


def _percent(share: float | None) -> str:
    return _NONE if share is None else f"{share:.0%}"
