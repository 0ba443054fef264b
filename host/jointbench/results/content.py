"""Content of a report as its template reads it: words and finished numbers, nothing left to compute.

Numbers are text with the digits that are worth reading, in the unit of what they measure.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from jointbench.bench import BoardLedger, Ledger
from jointbench.recording import Run

NOT_A_NUMBER = "–"
"""What stands where there is no number."""


def fixed(value: float, decimals: int) -> str:
    """Return a value with this many decimals and a true minus sign; a dash for what is not finite."""
    if not math.isfinite(value):
        return NOT_A_NUMBER
    return f"{value:.{decimals}f}".replace("-", "−")


def decimals_for(value: float, digits: int) -> int:
    """Return how many decimals show this many significant digits of a value: 0.0432 to two digits needs 3."""
    if value == 0.0 or not math.isfinite(value):
        return 0
    return max(0, digits - 1 - math.floor(math.log10(abs(value))))


def column(values: Sequence[float], digits: int = 2, most: int = 4) -> list[str]:
    """Return a table's column with one number of decimals, so that its points stand above each other.

    Args:
        values: the cells; what is not finite becomes a dash.
        digits: significant digits of the smallest magnitude.
        most: never more decimals than these.
    """
    finite = [abs(value) for value in values if math.isfinite(value) and value != 0.0]
    decimals = min(most, decimals_for(min(finite), digits)) if finite else 0
    return [fixed(value, decimals) for value in values]


def percent(fraction: float) -> str:
    """Return a fraction in per cent, with at least two significant digits; the sign never starts a line by itself."""
    if not math.isfinite(fraction):
        return NOT_A_NUMBER
    value = 100.0 * fraction
    return f"{fixed(value, min(2, decimals_for(value, 2)))}\u00a0%"


def value_and_sigma(value: float, sigma: float) -> tuple[str, str]:
    """Return an estimate and its standard error, both to the error's second significant digit.

    An infinite error means that nothing is known of the value; then neither is shown. Below a millionth both are
    written with the same power of ten, as in ("1.20e−7", "0.03e−7").
    """
    if not math.isfinite(value) or math.isinf(sigma):
        return NOT_A_NUMBER, NOT_A_NUMBER
    if not sigma > 0.0:
        return f"{value:.4g}".replace("-", "−"), NOT_A_NUMBER
    decimals = decimals_for(sigma, 2)
    if decimals <= 7:
        return fixed(value, decimals), fixed(sigma, decimals)
    exponent = math.floor(math.log10(max(abs(value), sigma)))
    scale = 10.0**-exponent
    shown = decimals_for(sigma * scale, 2)
    suffix = f"e{exponent}".replace("-", "−")
    return fixed(value * scale, shown) + suffix, fixed(sigma * scale, shown) + suffix


def typeset(sentence: str) -> str:
    """Return a sentence with its per-cent signs set as in `percent`, and true minus signs before numbers."""
    return re.sub(r"(?<=\d)%", "\u00a0%", re.sub(r"(?<![\w.])-(?=\d)", "−", sentence))


def count(number: int) -> str:
    """Return a whole number in groups of three, separated by thin no-break spaces."""
    return f"{number:,}".replace(",", "\u202f")


Answer = Literal["yes", "with care", "no"]
"""Whether to use the model."""

LEDGER_HEADS = (
    "board", "frames sent", "received", "damaged", "vanished", "samples taken", "received", "in damaged frames",
    "in vanished frames", "dropped on board", "ticks missed", "closes",
)  # fmt: skip

CLOCK_HEADS = (
    "board", "offset [s]", "drift [ppm]", "residual [µs]", "bound to the host [µs]", "PINGs answered", "SYNC pulses",
)  # fmt: skip


@dataclass(frozen=True)
class Fact:
    """One number worth seeing first, with what it is."""

    value: str
    name: str


@dataclass(frozen=True)
class JointRow:
    """One joint in the table under the verdict: errors over all rows, and the relative one where it moves."""

    name: str
    fit_rms: str
    verification_rms: str
    relative: str
    relative_moving: str
    r_squared: str
    residual: str
    verdict: str
    reason: str


@dataclass(frozen=True)
class FitFact:
    """Something a reader should know of how the model was made."""

    name: str
    text: str


@dataclass(frozen=True)
class ParameterRow:
    """One base parameter: its leading name, what is lumped into it, value ± σ and how far to trust it."""

    name: str
    lumped: str
    value: str
    sigma: str
    shares: str
    unit: str
    relative_sigma: str
    verdict: str
    reason: str


@dataclass(frozen=True)
class ParameterGroup:
    """The parameters of one joint or coupling."""

    name: str
    rows: tuple[ParameterRow, ...]


@dataclass(frozen=True)
class Panel:
    """A picture with its heading; `svg` is markup made by this package, everything else is text to be escaped."""

    heading: str
    note: str
    svg: str


@dataclass(frozen=True)
class RunTable:
    """Table on one run, board by board; no heads and rows where there is nothing to list.

    Attributes:
        run: which of the runs it is.
        sentence: what the table comes to.
        heads: of the columns.
        rows: of cells; the first is a name, the others are numbers.
    """

    run: str
    sentence: str
    heads: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Content:
    """Everything a report shows, in the order it shows it.

    Attributes:
        robot: its name.
        answer: the verdict in one word.
        sentence: the verdict in one sentence.
        warnings: what a careful reader must know of the runs and the robot.
        facts: numbers worth seeing first.
        torque_unit: unit of the torques in the table of joints.
        joints: the table under the verdict.
        torque_note: what the panels of torque show and what they leave out.
        torques, residuals, spectra: panels, one per joint.
        fit: how the model was made, and what is left unexplained.
        cutoffs: panels, one per run whose cut-off was chosen by prediction.
        parameter_note: how many of each verdict, and what the words mean.
        parameters: groups of rows.
        shares: whether rows tell the shares of σ².
        friction_note: what the curves of friction show.
        friction: panels, one per joint that has friction of its own and moves.
        ledgers: of the fit's run and of the verification's.
        clocks: of those of the two whose boards have clocks of their own.
        excitation_note: what was played.
        excitation: panels, one per joint; none where no motion was planned.
        provenance: pairs of name and value.
        commands: what to type to get this report again, one per line.
    """

    robot: str
    answer: Answer
    sentence: str
    warnings: tuple[str, ...]
    facts: tuple[Fact, ...]
    torque_unit: str
    joints: tuple[JointRow, ...]
    torque_note: str
    torques: tuple[Panel, ...]
    residuals: tuple[Panel, ...]
    spectra: tuple[Panel, ...]
    fit: tuple[FitFact, ...]
    cutoffs: tuple[Panel, ...]
    parameter_note: str
    parameters: tuple[ParameterGroup, ...]
    shares: bool
    friction_note: str
    friction: tuple[Panel, ...]
    ledgers: tuple[RunTable, ...]
    clocks: tuple[RunTable, ...]
    excitation_note: str
    excitation: tuple[Panel, ...]
    provenance: tuple[tuple[str, str], ...]
    commands: tuple[str, ...]


def ledger_table(title: str, ledger: Ledger | None) -> RunTable:
    """Return the ledger of a run, or the reason why it has none."""
    if ledger is None:
        return RunTable(title, "No ledger: an imported recording says nothing of what was lost before it.")
    rows = tuple(
        (board.joint, *map(_count, _numbers(board)), "yes" if board.closes else "no") for board in ledger.boards
    )
    verdict = typeset(ledger.verdict)
    return RunTable(title, f"{verdict[0].upper()}{verdict[1:]}.", LEDGER_HEADS, rows)


def _numbers(board: BoardLedger) -> tuple[int | None, ...]:
    return (
        board.frames_sent, board.frames_received, board.frames_damaged, board.frames_vanished, board.samples_taken,
        board.samples_received, board.crc_lost, board.link_lost, board.board_dropped, board.ticks_missed,
    )  # fmt: skip


def _count(number: int | None) -> str:
    return "unknown" if number is None else count(number)


def clock_table(title: str, run: Run) -> RunTable:
    """Return what is known of the clocks of a run whose boards each have their own."""
    rows = tuple(
        (
            joint, fixed(clock.offset_us * 1e-6, 6), fixed(clock.drift_ppm, 2), fixed(clock.residual_us, 1),
            fixed(clock.bound_us, 1), count(clock.exchanges), count(clock.pulses),
        )
        for joint, clock in run.clocks.items()
    )  # fmt: skip
    joint, worst = max(run.clocks.items(), key=lambda item: item[1].residual_us)
    by = "SYNC pulses" if all(clock.pulses for clock in run.clocks.values()) else "answered PINGs"
    sentence = f"Samples of the boards were put on one timeline by {by}; the largest residual is "
    return RunTable(title, f"{sentence}{fixed(worst.residual_us, 1)}\u00a0µs ({joint}).", CLOCK_HEADS, rows)
