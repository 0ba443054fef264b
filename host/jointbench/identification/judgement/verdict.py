"""The word on each parameter and joint: identified, weak, or refused with the reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array

Word = Literal["identified", "weak", "refused", "passive"]

IDENTIFIED_RELATIVE_SIGMA = 0.2
"""A parameter is identified when its σ is at most this share of its value (then it is 5 σ from zero)."""

WEAK_RELATIVE_SIGMA = 0.5
"""… weak up to this share (2 σ from zero), and beyond it not told from zero, hence refused."""

GOOD_RELATIVE_ERROR = 0.10
"""A joint's torque is explained when the error is at most this share of the torque, root mean square …"""

POOR_RELATIVE_ERROR = 0.30
"""… weakly up to this share, and beyond it the model is refused for this joint."""


_NO_MODEL = "its position is measured, and its torque has no model to judge"


@dataclass(frozen=True)
class Verdict:
    """A judgement in one word, and the figures it rests on in a sentence.

    Attributes:
        name: of the parameter or joint.
        word: "identified", "weak" or "refused"; "passive" of a joint whose torque has no model to judge.
        reason: why, with the figures.
    """

    name: str
    word: Word
    reason: str

    def __str__(self) -> str:
        return f"{self.name}: {self.word} ({self.reason})"


def judge_parameter(name: str, value: float, sigma: float, unseen: str = "") -> Verdict:
    """Judge one parameter by its value and standard deviation; `unseen` is why it has none, where that is known."""
    if not np.isfinite(sigma):
        return Verdict(name, "refused", unseen or "this motion does not excite it; plan one that moves its joints")
    relative = sigma / abs(value) if value else float("inf")
    figures = f"{value:.4g} ± {sigma:.2g}"
    if relative <= IDENTIFIED_RELATIVE_SIGMA:
        return Verdict(name, "identified", f"{figures}, relative σ {relative:.1%}")
    if relative <= WEAK_RELATIVE_SIGMA:
        return Verdict(name, "weak", f"{figures}, relative σ {relative:.0%} is above {IDENTIFIED_RELATIVE_SIGMA:.0%}")
    return Verdict(name, "refused", f"{figures} is within 2 σ of zero")


def judge_parameters(
    names: Sequence[str], values: Array, sigmas: Array, unseen: Mapping[str, str] | None = None
) -> tuple[Verdict, ...]:
    """Judge all parameters; `unseen` says of some why they have no σ, as `unseen_parameters` does."""
    why = unseen or {}
    return tuple(
        judge_parameter(name, float(value), float(sigma), why.get(name, ""))
        for name, value, sigma in zip(names, values, sigmas, strict=True)
    )


def judge_joint(
    name: str, relative_error: float, share: float, uninformative: str = "", everywhere: float = float("nan")
) -> Verdict:
    """Judge one joint.

    The word is that of the rows where it moves, as which of the others there are depends on the pauses of a motion;
    the error over all rows stands before it.

    Args:
        name: of the joint.
        relative_error: of its torque over the rows where it moves, nan without such rows.
        share: of those rows among all.
        uninformative: why its measured torque tells nothing, where it does not: no error can make up for that.
        everywhere: error of its torque over all rows, nan where that is not known.
    """
    if uninformative:
        return Verdict(name, "refused", uninformative)
    if not np.isfinite(relative_error):
        return Verdict(name, "refused", "the joint never moves away from rest in this run")
    figures = f"torque error {relative_error:.1%} of the torque over {share:.0%} of the time"
    if np.isfinite(everywhere):
        moving = f"{relative_error:.1%} where it moves ({share:.0%} of the time)"
        figures = f"torque error {everywhere:.1%} of the torque, {moving}"
    if relative_error <= GOOD_RELATIVE_ERROR:
        return Verdict(name, "identified", figures)
    if relative_error <= POOR_RELATIVE_ERROR:
        return Verdict(name, "weak", f"{figures}, above {GOOD_RELATIVE_ERROR:.0%}")
    return Verdict(name, "refused", f"{figures}, above {POOR_RELATIVE_ERROR:.0%}")


def judge_joints(
    names: tuple[str, ...],
    relative_errors: Array,
    shares: Array,
    modelled: NDArray[np.bool_] | None = None,
    reasons: Mapping[str, str] | None = None,
    everywhere: Array | None = None,
) -> tuple[Verdict, ...]:
    """Judge all joints of a robot.

    Args:
        names: of the joints.
        relative_errors, shares: as of `judge_joint`, shape (n_joints,).
        modelled: nothing is said against joints that are not (None: all are), shape (n_joints,).
        reasons: of joints whose torque tells nothing, as of `TorqueInformation.reasons`.
        everywhere: errors over all rows, where they are known, shape (n_joints,).
    """
    known = np.ones(len(names), dtype=np.bool_) if modelled is None else modelled
    why, whole = reasons or {}, np.full(len(names), np.nan) if everywhere is None else everywhere
    return tuple(
        judge_joint(name, float(error), float(share), why.get(name, ""), float(of_all))
        if is_known
        else Verdict(name, "passive", _NO_MODEL)
        for name, error, share, is_known, of_all in zip(names, relative_errors, shares, known, whole, strict=True)
    )


def judge_whole(joints: tuple[Verdict, ...], relative_errors: Array) -> Verdict:
    """Judge a whole model by its worst joint; passive ones do not count, but there must be another."""
    rank = [("passive", "identified", "weak", "refused").index(joint.word) for joint in joints]
    worst = max(range(len(joints)), key=lambda j: (rank[j], np.nan_to_num(relative_errors[j], nan=np.inf)))
    return Verdict("model", joints[worst].word, f"worst joint {joints[worst].name}: {joints[worst].reason}")
