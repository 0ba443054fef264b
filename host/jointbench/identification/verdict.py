"""One verdict on a model: the worst of all that speaks about it, the condition it holds under, and what to do next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jointbench.arrays import Array
from jointbench.identification.judgement import (
    GOOD_RELATIVE_ERROR,
    GREATEST_OPTIMISM,
    POOR_RELATIVE_ERROR,
    HeldOutError,
    Verdict,
    Word,
)
from jointbench.model import BaseParameters

_NOT_NEGATIVE = ("coulomb", "viscous", "rotor_inertia")
"""Parameters that no drive has below zero: its friction would drive it, its rotor would gain speed by being braked."""

SIGNIFICANT = 3.0
"""Distance from zero in σ from which on a sign is believed: noise alone gets there once in 700 times."""


@dataclass(frozen=True)
class Part:
    """One of the verdicts that a whole one is made of.

    Attributes:
        name: of what is judged, such as "log check" or "physical consistency".
        word: on it.
        reason: why, with the figures.
        advice: what to do where the word is not good; may be empty.
    """

    name: str
    word: Word
    reason: str
    advice: str = ""

    @property
    def rank(self) -> int:
        """Rank of the verdict's word, as `Verdict.rank`."""
        return Verdict(self.name, self.word, self.reason).rank

    @classmethod
    def of(cls, name: str, verdict: Verdict, advice: str) -> Part:
        """Make a part of a verdict by another name."""
        return cls(name, verdict.word, verdict.reason, advice if verdict.rank > 1 else "")

    def __str__(self) -> str:
        return f"{self.name}: {self.word} ({self.reason})"


@dataclass(frozen=True)
class WholeVerdict:
    """The verdict on a model: that of its worst part, so that no good word stands above a contradiction.

    Attributes:
        parts: those that could be judged, causes before what follows from them, errors of torque last.
        condition: what must be right for the verdict to hold and no data of the run can show, after "if".

    >>> model = jb.fit(jb.open_run("runs/arm"))
    >>> [part.name for part in model.verdict.parts]
    ['recording', 'log check', 'physical consistency', 'parameters', 'joints']
    >>> model.verdict.word, model.verdict.is_refused
    ('identified', False)
    """

    parts: tuple[Part, ...]
    condition: str

    @property
    def worst(self) -> Part:
        """The first of the worst parts; the last one, whose reason has the errors of torque, where nothing is wrong."""
        rank = max(part.rank for part in self.parts)
        return self.parts[-1] if rank <= 1 else next(part for part in self.parts if part.rank == rank)

    @property
    def name(self) -> str:
        """Name of the part that is judged."""
        return "model"

    @property
    def word(self) -> Word:
        """The word on the worst part."""
        return self.worst.word

    @property
    def rank(self) -> int:
        """1: identified; 2: to be used with care; 3: not to be used."""
        return self.worst.rank

    @property
    def is_refused(self) -> bool:
        """Return whether the model may not be used."""
        return self.rank == 3

    @property
    def reason(self) -> str:
        """The worst part with its reason, and the names of those that are as bad."""
        worst = self.worst
        if self.rank <= 1:
            return worst.reason
        others = [part.name for part in self.parts if part.rank == worst.rank and part is not worst]
        alike = f"; no better: {', '.join(others)}" if others else ""
        return f"{worst.name}: {worst.reason}{alike}"

    @property
    def advice(self) -> str:
        """Advice on the next step; empty where nothing is wrong."""
        return self.worst.advice

    def lines(self) -> tuple[str, ...]:
        """Return the verdict for people: word and reason, what to do next, and the condition."""
        following = (f"  next: {self.advice}",) if self.advice else ()
        return (f"verdict: {self.word} ({self.reason})", *following, f"  it holds if {self.condition}")

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a file."""
        parts = [
            {"name": part.name, "word": part.word, "reason": part.reason, "advice": part.advice} for part in self.parts
        ]
        return {
            "word": self.word,
            "reason": self.reason,
            "advice": self.advice,
            "condition": self.condition,
            "parts": parts,
        }

    def __str__(self) -> str:
        return f"{self.name}: {self.word} ({self.reason})"


def condition(torque: str, is_log: bool, tolerances: str = "") -> str:
    """Return what must be right for a verdict to hold, after "if": no residual shows it, however small σ is.

    Args:
        torque: the settings', "motor" or "joint".
        is_log: whether the torques came with a log; else boards measured the currents.
        tolerances: of the calibration, in words, where every σ contains them; empty: it counts as exact.
    """
    if tolerances:
        return f"the calibration is within its tolerances, which σ contains as standard deviations: {tolerances}"
    if torque == "joint":
        source = "the gains of the joints' torque sensors are right (5 % of a gain are 5 % of its joint's parameters)"
    elif is_log:
        source = (
            "the log's torques are right, by unit, torque constants and gear ratios (5 % of a constant are 5 % of its "
            "joint's parameters)"
        )
    else:
        source = "the torque constants and gear ratios are right (5 % of a constant are 5 % of its joint's parameters)"
    return f"{source}, and so is the robot's file on zeros, link lengths and axes"


def impossible_signs(base: BaseParameters, values: Array, sigmas: Array) -> dict[str, str]:
    """Return the reason of each parameter that is below zero beyond doubt and cannot be.

    Args:
        base: what the values stand for.
        values, sigmas: of the base parameters [SI], shape (rank,).

    Returns:
        By leading name, of parameters made up of friction and rotor inertia alone, with value < -3 σ.
    """
    reasons: dict[str, str] = {}
    rows = zip(base.leading_names, base.grouping, values.tolist(), sigmas.tolist(), strict=True)
    for name, row, value, sigma in rows:
        members = [base.full_names[k].rpartition(".")[2] for k in np.flatnonzero(row)]
        if (row >= 0.0).all() and all(member in _NOT_NEGATIVE for member in members):
            reasons |= _impossible(name, value, sigma)
    return reasons


def impossible_laws(names: Sequence[str], values: Array, sigmas: Array) -> dict[str, str]:
    """Return the same of friction laws' own parameters."""
    reasons: dict[str, str] = {}
    for name, value, sigma in zip(names, values.tolist(), sigmas.tolist(), strict=True):
        if name.rpartition(".")[2] in _NOT_NEGATIVE:
            reasons |= _impossible(name, value, sigma)
    return reasons


def _impossible(name: str, value: float, sigma: float) -> dict[str, str]:
    if not (np.isfinite(sigma) and value < -SIGNIFICANT * sigma):
        return {}
    times = f"{-value / sigma:.0f} σ" if sigma > 0.0 else "without any σ"
    what = "a rotor's inertia" if name.endswith("rotor_inertia") else "friction"
    return {name: f"{value:.4g} ± {sigma:.2g} is {times} below zero, and {what} cannot be"}


def parameters_part(verdicts: Sequence[Verdict], impossible: Mapping[str, str]) -> Part:
    """Judge all parameters: one whose sign cannot be refuses the model, those that are not identified do not.

    Many base parameters of a real robot are zero; that they are within 2 σ of it is no fault of the model.
    """
    counts = Counter(verdict.word for verdict in verdicts)
    listed = ", ".join(f"{counts[word]} {word}" for word in counts)
    if impossible:
        name, reason = next(iter(impossible.items()))
        more = f" (and {len(impossible) - 1} more)" if len(impossible) > 1 else ""
        joint = name.rpartition(".")[0]
        advice = (
            f"check the sign of {joint}'s torque and position, and its delay; else the model lacks something there: "
            f"try --friction choose, or a motion with more speeds"
        )
        return Part("parameters", "refused", f"{name}: {reason}{more}", advice)
    if not counts["identified"]:
        advice = "record a motion that excites the joints more: `jointbench plan ROBOT`"
        return Part("parameters", "poorly excited", f"none is identified: {listed}", advice)
    return Part("parameters", "identified", f"no sign is impossible; {listed}")


def held_out_part(names: Sequence[str], held_out: HeldOutError, judged: Sequence[bool]) -> Part | None:
    """Judge the errors on time left out of the fit by the joint that errs most there.

    Args:
        names: of the joints.
        held_out: their errors.
        judged: which of them have a torque to judge.

    Returns:
        None where no joint's error is known.
    """
    known = [j for j in range(len(names)) if judged[j] and np.isfinite(held_out.left_out[j])]
    if not known:
        return None
    optimism = held_out.optimism
    worst = max(known, key=lambda j: (_held_out_rank(held_out.left_out[j], optimism[j]), held_out.left_out[j]))
    error, times = float(held_out.left_out[worst]), float(optimism[worst])
    word: Word = ("identified", "poor fit", "refused")[_held_out_rank(error, times) - 1]
    reason = f"{names[worst]}: {error:.1%} of the torque on time left out of the fit, {times:.2g} times that of the fit"
    advice = "record a longer or richer motion; a prior of the robot's file (--estimator map) needs less of it"
    return Part("held-out error", word, reason, advice if word != "identified" else "")


def _held_out_rank(error: float, optimism: float) -> int:
    if error > POOR_RELATIVE_ERROR:
        return 3
    return 2 if error > GOOD_RELATIVE_ERROR or optimism > GREATEST_OPTIMISM else 1
