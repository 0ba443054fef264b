"""Ridge regression: parameters drawn to zero, as much as makes held-out torque best predicted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.identification.estimators.problem import Problem
from jointbench.identification.least_squares import Estimate, joint_weights, judged
from jointbench.identification.least_squares.triangles import Triangles, compress, solve
from jointbench.identification.rows import Block, ChangedRows, Rows

_STRENGTHS = np.concatenate([[0.0], 10.0 ** np.arange(-10.0, 1.5, 0.5)])
"""Tried: none, and half decades from what changes nothing up to parameters of a tenth."""


@dataclass(frozen=True)
class Ridge:
    """argmin Σ (torque - regressor pi)² / sigma_j² + strength n Σ_i (s_i pi_i)², s_i the rms of a column in sigmas.

    Columns are standardized by that: the strength is a share of what n rows say of a parameter. It is chosen by fitting
    to 70 % of the recording and predicting the other 30 %, in blocks of time. What the motion tells well is hardly
    drawn, what it does not tell apart is shared out evenly: good to predict motion alike, but biased. The error bars
    are those of the noise alone, without that bias.

    Attributes:
        strength: None: chosen; or a number from 0.

    Source: Hoerl & Kennard, Technometrics 12(1), 1970; of robots Lu et al., Chinese J. Mechanical Engineering 37, 2024.
    """

    strength: float | None = None

    name: ClassVar[str] = "ridge"

    def __post_init__(self) -> None:
        """Refuse strengths that are none."""
        if self.strength is not None and not (np.isfinite(self.strength) and self.strength >= 0.0):
            raise FitError(f"strength = {self.strength!r} must be a number from 0, or None to have it chosen")

    def __call__(self, problem: Problem) -> Estimate:
        """Estimate the parameters."""
        triangles = compress(problem.parts)
        weights = joint_weights(triangles)
        strength, note, figures = self.strength, "", dict[str, float]()
        if strength is None:
            strength, errors = _choose(problem.parts)
            best, plain = errors[_STRENGTHS.tolist().index(strength)], errors[0]
            note = (
                f"strength {strength:.3g} of the ridge, chosen by three tenths of the time held out: their torque's "
                f"error is {best:.3%} of the torque, of plain least squares {plain:.3%}; "
            )
            figures = {"held_out_relative_error": best, "held_out_relative_error_without": plain}
        solution = solve(triangles, weights, _pull(triangles, weights, strength))
        untold = solve(triangles, weights).untold
        estimate = judged(problem.parts, triangles, weights, solution)
        covariance = estimate.covariance.copy()
        covariance[untold, :] = covariance[:, untold] = 0.0
        covariance[untold, untold] = np.inf
        note += "the error bars do not know of the bias towards zero"
        return replace(estimate, covariance=covariance, notes=(note,), figures={"strength": strength, **figures})


def _pull(triangles: Triangles, weights: Array, strength: float) -> Array:
    """Rows that draw the standardized parameters to zero, shape (p, p + 1)."""
    lengths = np.linalg.norm(triangles.stacked(weights)[:, :-1], axis=0)
    return np.sqrt(strength) * np.hstack([np.diag(lengths), np.zeros((len(lengths), 1))])


def _choose(parts: Sequence[Rows]) -> tuple[float, list[float]]:
    """The best strength, and each one's relative error of the weighted torque held out."""
    split = split_by_time(parts)
    if not split.held_out.counts.any() or split.fitted.counts.sum() <= split.fitted.matrices.shape[2]:
        raise FitError(
            f"{split.fitted.counts.sum()} rows to fit and {split.held_out.counts.sum()} held out are too few to choose "
            f"the ridge's strength; record longer, or give it, as 1e-6"
        )
    weights = joint_weights(split.fitted)
    torque = float(np.sum(split.held_out.stacked(weights)[:, -1] ** 2))
    errors: list[float] = []
    for strength in _STRENGTHS:
        found = solve(split.fitted, weights, _pull(split.fitted, weights, float(strength)))
        squares = float(weights**2 @ split.held_out.squares(found.parameters))
        errors.append(float(np.sqrt(squares / torque)) if torque > 0.0 else 0.0)
    return float(_STRENGTHS[int(np.argmin(errors))]), errors


_BLOCKS = 10
_HELD = (2, 5, 8)
"""Of ten equal blocks of time three are held out, spread over the recording: 70 % to fit, 30 % to judge."""


@dataclass(frozen=True, eq=False)
class Split:
    """The same recordings twice: rows to fit, and rows held out from that."""

    fitted: Triangles
    held_out: Triangles


def split_by_time(parts: Sequence[Rows]) -> Split:
    """Cut each recording's time into ten blocks and hold three of them out."""
    ends = [_ends(part) for part in parts]
    fitted, held = (
        compress([_Blocks(part, start, stop, which) for part, (start, stop) in zip(parts, ends, strict=True)])
        for which in (False, True)
    )
    return Split(fitted, held)


def _ends(rows: Rows) -> tuple[int, int]:
    places = [(block.start, block.stop) for block in rows.blocks()]
    return min((start for start, _ in places), default=0), max((stop for _, stop in places), default=1)


@dataclass(frozen=True, eq=False)
class _Blocks(ChangedRows):
    """The rows between two places that are held out, or the others."""

    start: int
    stop: int
    held: bool

    def blocks(self) -> Iterator[Block]:
        for block in self.rows.blocks():
            number = _BLOCKS * (np.arange(block.start, block.stop) - self.start) // max(1, self.stop - self.start)
            chosen = np.isin(number, _HELD) == self.held
            yield replace(block, used=block.used & chosen[:, None])


def leave_one_out(triangles: Triangles, part: int) -> Split:
    """Hold one recording out."""
    held = np.arange(len(triangles.counts)) // triangles.n_joints == part
    return Split(_of_groups(triangles, ~held), _of_groups(triangles, held))


def _of_groups(triangles: Triangles, groups: NDArray[np.bool_]) -> Triangles:
    """The triangles of some groups, the others empty."""
    return replace(
        triangles,
        matrices=np.where(groups[:, None, None], triangles.matrices, 0.0),
        counts=np.where(groups, triangles.counts, 0),
    )
