"""Output error in closed loop: the parameters whose simulation has the torques that were measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from jointbench.errors import FitError
from jointbench.identification.estimators.closed_loop import check_can_be_simulated
from jointbench.identification.estimators.paired_rows import Chosen, OtherRegressor, PairedRows
from jointbench.identification.estimators.problem import Problem
from jointbench.identification.estimators.simulated_motion import (
    MADE_POSSIBLE,
    SETTLED,
    Follower,
    iterate,
    largest_change,
    simulate_runs,
)
from jointbench.identification.least_squares import Estimate, least_squares
from jointbench.identification.observations import observe
from jointbench.recording.run import Run


@dataclass(frozen=True)
class OutputError:
    """For torques alone: positions are not differentiated, and not even used where plan and servo are known (DIDIM).

    min over pi of Σ (torque - torque of a simulation with pi)² / sigma². A servo makes the simulated motion nearly the
    same whatever pi is, so that the simulated torque's derivative by pi is the regressor at the simulated motion; with
    it each Gauss-Newton step is a weighted least-squares fit of the measured torque on that regressor.

    Attributes:
        passes: at most; three or four are usual.
        bandwidth_Hz: of the simulated servo; None: the boards' own along the plan. Where that is not known, one of 3
            cut-offs along the measured motion: then errors of position slower than it get through.

    Raises:
        FitError: an option that is not one of these.

    Source: Gautier, Janot & Vandanjon, A new closed-loop output error method for parameter identification of robot
    dynamics, IEEE Trans. Control Systems Technology 21(2), 2013.
    """

    passes: int = 20
    bandwidth_Hz: float | None = None
    name: ClassVar[str] = "output_error"

    def __post_init__(self) -> None:
        """Refuse options that nobody can mean."""
        if self.passes < 1:
            raise FitError(f"output_error: passes = {self.passes} must be 1 or more")
        if self.bandwidth_Hz is not None and not 0.0 < self.bandwidth_Hz < np.inf:
            raise FitError(f"output_error: bandwidth_Hz = {self.bandwidth_Hz:g} must be a number above 0, or None")

    def __call__(self, problem: Problem) -> Estimate:
        """Estimate a problem's parameters, beginning with weighted least squares on the planned or measured motion.

        Raises:
            FitError: the robot or a run cannot be simulated, or the parameters do not settle.
        """
        check_can_be_simulated(problem.robot)
        if len({observed.settings.torque for observed in problem.observations}) > 1:
            raise FitError(
                "output_error: runs with motor torques beside runs with joint torques are not simulated by one model; "
                'fit them apart, or choose "wls"'
            )
        followers = [
            Follower.of(run, observed.settings, self.bandwidth_Hz, plan_needs_servo=True)
            for run, observed in zip(problem.runs, problem.observations, strict=True)
        ]
        chosen = [Chosen() for _ in problem.runs]

        def fitted(moved: Sequence[Run], used: Sequence[Chosen | None]) -> tuple[Estimate, list[PairedRows]]:
            rows = [
                observe(run, problem.robot, problem.base, follower.settings)
                for run, follower in zip(moved, followers, strict=True)
            ]
            pairs = [PairedRows(*each) for each in zip(problem.parts, rows, used, strict=True)]
            return least_squares([OtherRegressor(pair) for pair in pairs]), pairs

        def one_pass(last: Estimate) -> _Pass:
            simulated = simulate_runs(problem, followers, last)
            return _Pass(*fitted(simulated.runs, chosen), simulated.made_possible)

        names, plain = problem.base.leading_names, least_squares(problem.parts)
        start, _ = fitted([follower.unsimulated() for follower in followers], [None] * len(followers))
        last, number = iterate(one_pass, start, self.passes, estimator=self.name, names=names)
        moved_by, which = largest_change(last.estimate, plain.parameters)
        away = _tracking(last.pairs)
        words = "; ".join(dict.fromkeys(follower.words for follower in followers))
        words += MADE_POSSIBLE if last.made_possible else ""
        notes = (
            f"{words}; {number} passes until the parameters settled within {SETTLED:g} σ",
            f"regressors of simulated and measured motion differ by {100.0 * away:.2g} %",
            f"largest difference from wls {moved_by:.1f} σ, {names[which]}",
        )
        figures = {
            "passes": number, "regressor_difference": away, "largest_difference_from_wls_sigma": moved_by,
        }  # fmt: skip
        return replace(last.estimate, notes=notes, figures=figures)


class _Pass(NamedTuple):
    """What a simulation with the parameters before gave."""

    estimate: Estimate
    pairs: list[PairedRows]
    made_possible: bool


def _tracking(pairs: list[PairedRows]) -> float:
    """How far the simulated motion is from the measured one, as a share of the regressor, columns counting alike."""
    p = pairs[0].n_parameters
    apart, whole = np.zeros(p), np.zeros(p)
    for part in pairs:
        for pair in part.pairs():
            measured = pair.measured[pair.used]
            apart += np.sum((pair.other[pair.used] - measured) ** 2, axis=0)
            whole += np.sum(measured**2, axis=0)
    present = whole > 0.0
    return float(np.sqrt(np.mean(apart[present] / whole[present]))) if present.any() else 0.0
