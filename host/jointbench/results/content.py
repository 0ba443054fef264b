"""What a report says, as the template reads it: words and finished numbers, nothing left to compute."""

from dataclasses import dataclass
from typing import Literal

Answer = Literal["yes", "weak", "no"]
"""Whether to use the model: yes, with care, or no."""


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
    """What there is to say of one run, board by board; no heads and rows where there is nothing to list.

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
        parameter_note: how many of each verdict, and what the words mean.
        parameters: groups of rows.
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
    parameter_note: str
    parameters: tuple[ParameterGroup, ...]
    friction_note: str
    friction: tuple[Panel, ...]
    ledgers: tuple[RunTable, ...]
    clocks: tuple[RunTable, ...]
    excitation_note: str
    excitation: tuple[Panel, ...]
    provenance: tuple[tuple[str, str], ...]
    commands: tuple[str, ...]
