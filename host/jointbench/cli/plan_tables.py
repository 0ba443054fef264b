"""A plan in words, columns and dots: each joint beside its limits, what it comes near, what it excites poorly."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jointbench.arrays import Array
from jointbench.cli.console import table
from jointbench.results import PlanEvidence, SupportEvidence, Trace, percent, plain

_BLANK = 0x2800
_DOT_BITS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
"""Which bit of a character lights the dot in each of its four rows and two columns (Unicode, Braille Patterns)."""

ALPHABET = chr(_BLANK + 0xFF) + "┤│└─−°"
"""What a stream must be able to encode."""

_LEAST_WIDTH = 20

_NONE = "–"
_MOST_DISTANCES = 6
_MOST_WEAK = 8
_NOTHING = 1e-6
"""Share of a limit below which a peak is rounding."""

_WIDTH = 80
"""Of sentences, in characters."""


@dataclass(frozen=True, eq=False)
class Curve:
    """One curve, with its name and the limits that are the edges of its picture.

    Attributes:
        name: stands to its left.
        values: evenly spaced in time, shape (n,).
        low, high: limits.
        unit: of both.
    """

    name: str
    values: Array
    low: float
    high: float
    unit: str


def braille_plot(curves: Sequence[Curve], duration: float, width: int = 80, height: int = 3) -> str:
    """Draw curves above each other over a common time axis.

    Args:
        curves: what to draw.
        duration: what their values span [s].
        width: of the whole picture, in characters.
        height: of each curve, in lines.
    """
    labels = [(f"{plain(curve.high)}{curve.unit}", f"{plain(curve.low)}{curve.unit}") for curve in curves]
    names = max(len(curve.name) for curve in curves)
    numbers = max(len(label) for pair in labels for label in pair)
    indent = 2 + names + 2 + numbers + 2
    across = max(_LEAST_WIDTH, width - indent)
    lines: list[str] = []
    for curve, (top, bottom) in zip(curves, labels, strict=True):
        for row, dots in enumerate(braille(curve.values, curve.low, curve.high, across, height)):
            edge = top if row == 0 else bottom if row == height - 1 else ""
            name = curve.name if row == 0 else ""
            lines.append(f"  {name:<{names}}  {edge:>{numbers}} {'┤' if edge else '│'}{dots}".rstrip())
    end = f" {duration:g} s"
    lines.append(" " * (indent - 1) + "└" + "─" * (across - len(end)) + end)
    return "\n".join(lines)


def braille(values: Array, low: float, high: float, width: int, height: int) -> list[str]:
    """Draw one curve in lines of dots, the first line's top at `high` and the last one's bottom at `low`.

    Each column of dots is lit from the lowest to the highest value within it, and on to the column before, so that the
    line is whole; what is beyond an edge is drawn at it.
    """
    rows, columns = 4 * height, 2 * width
    level = np.clip((high - values) / (high - low) * rows, 0.0, rows - 1.0).astype(int)
    dots = np.zeros((rows, columns), dtype=np.bool_)
    ends = np.linspace(0, len(level), columns + 1)
    for column in range(columns):
        first, last = int(ends[column]), max(int(ends[column]) + 1, int(ends[column + 1]))
        part = level[max(first - 1, 0) : last]
        dots[part.min() : part.max() + 1, column] = True
    cells = dots.reshape(height, 4, width, 2)
    codes = _BLANK + np.einsum("hrwc,rc->hw", cells, _DOT_BITS)
    # A blank is a space: some fonts draw the pattern without dots as empty rings.
    return ["".join(map(chr, line)).replace(chr(_BLANK), " ") for line in codes.tolist()]


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
    """Return where each joint goes from and to, how much of range and speeds it visits, how often it turns round."""
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
    heads = ("joint", f"position [{position.unit}]", "allowed", "range used", "speeds used", "reversals")
    return table(heads, rows)


def _peaks_table(evidence: PlanEvidence) -> str:
    """Largest magnitudes against their limits."""
    traces = evidence.traces[1:]
    rows = [[name, *(_peak(trace, j) for trace in traces)] for j, name in enumerate(evidence.robot.joint_names)]
    return table(["joint", *(f"{trace.name} [{trace.unit}]" for trace in traces)], rows)


def _distances_table(distances: Mapping[str, float]) -> str:
    """The narrowest places first."""
    nearest = sorted(distances.items(), key=lambda item: item[1])
    rows = [(name, f"{1e3 * room:.1f}") for name, room in nearest[:_MOST_DISTANCES]]
    if len(nearest) > _MOST_DISTANCES:
        name, room = nearest[_MOST_DISTANCES]
        rows.append((f"{len(nearest) - _MOST_DISTANCES} more, the nearest of them {name}", f"{1e3 * room:.1f}"))
    return table(("in space", "room left [mm]"), rows)


def _foreseen_table(support: SupportEvidence) -> str:
    """Return what the file says of each parameter, and how well the foot's forces will tell it."""
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
    head, *sentences = evidence.weak.words
    yield head
    for sentence in sentences[:_MOST_WEAK]:
        yield _wrapped(sentence, "  ")
    if len(sentences) > _MOST_WEAK:
        yield _wrapped(f"and {', '.join(evidence.weak.names[_MOST_WEAK:])}", "  ")
    if sentences and evidence.weak.judged_by == "relative_sigma":
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
