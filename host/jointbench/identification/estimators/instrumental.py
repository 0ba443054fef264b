"""Instrumental variables: right where measured positions are so noisy that least squares are not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from jointbench.errors import FitError
from jointbench.identification.estimators.closed_loop import check_can_be_simulated
from jointbench.identification.estimators.instrumented_fit import InstrumentedEstimate, instrumented_fit
from jointbench.identification.estimators.paired_rows import Chosen, PairedRows
from jointbench.identification.estimators.period_halves import period_halves
from jointbench.identification.estimators.problem import Problem
from jointbench.identification.estimators.reference_motion import planned_run
from jointbench.identification.estimators.settling import SETTLED, iterate, largest_change
from jointbench.identification.estimators.simulated_run import MADE_POSSIBLE, Follower, simulate_runs
from jointbench.identification.least_squares import Estimate, least_squares
from jointbench.identification.observations import observe
from jointbench.recording.run import Run

INSTRUMENTS = ("simulated", "planned", "periods")

_WEAK = 0.5
"""Canonical correlation under which instruments cost more than twice the error bars of a combination of parameters."""


@dataclass(frozen=True)
class InstrumentalVariables:
    """For noisy positions: an estimate that errors of the measured motion do not bias.

    Instruments are the regressor of another motion at the same times, which goes with the true one and knows nothing of
    what the encoders got wrong. Noise of positions, unlike that of torque, pulls least squares to one side, as it is in
    the regressor itself, squared by the second derivative; here it only widens the error bars.

    Attributes:
        instruments: "simulated": the motion of a robot with the parameters so far, under its servo, again and again
            until they settle (IDIM-IV); along the planned motion, or the measured one where no plan is known: then
            errors slower than the servo get through. "planned": the planned motion itself. "periods": that of the
            other half of the periods of a repeated motion.
        passes: of simulation at most.
        bandwidth_Hz: of the simulated servo; None: the boards' own, else 10 Hz along a plan, and 3 cut-offs along a
            measured motion.

    Raises:
        FitError: an option that is not one of these.

    Source: Janot, Vandanjon & Gautier, A generic instrumental variable approach for industrial robot identification,
    IEEE Trans. Control Systems Technology 22(1), 2014.
    """

    instruments: str = "simulated"
    passes: int = 20
    bandwidth_Hz: float | None = None
    name: ClassVar[str] = "iv"

    def __post_init__(self) -> None:
        """Refuse options that nobody can mean."""
        if self.instruments not in INSTRUMENTS:
            words = ", ".join(map(repr, INSTRUMENTS))
            raise FitError(f"iv: instruments = {self.instruments!r} must be one of {words}")
        if self.passes < 1:
            raise FitError(f"iv: passes = {self.passes} must be 1 or more")
        if self.bandwidth_Hz is not None and not 0.0 < self.bandwidth_Hz < np.inf:
            raise FitError(f"iv: bandwidth_Hz = {self.bandwidth_Hz:g} must be a number above 0, or None")

    def __call__(self, problem: Problem) -> Estimate:
        """Estimate a problem's parameters.

        Raises:
            FitError: a run cannot give these instruments; names it and what can.
        """
        plain = least_squares(problem.parts)
        if self.instruments == "simulated":
            found, passes, words = self._by_simulation(problem)
            told = f"{words}; {passes} passes until the parameters settled within {SETTLED:g} σ"
        elif self.instruments == "planned":
            runs = [planned_run(run) for run in problem.runs]
            found, passes, told = instrumented_fit(_parts(problem, runs, [None] * len(runs))), 1, "the planned motion"
        else:
            pairs = period_halves(problem)
            found, passes, told = instrumented_fit(pairs), 1, "each half of the periods, for the other half's rows"
        moved, at = largest_change(found.estimate, plain.parameters)
        joints = problem.robot.n_joints  # halves have twice as many
        pooled = np.sqrt(np.mean(found.estimate.joint_sigma.reshape(-1, joints) ** 2, axis=0))
        notes = [
            f"instruments: {told}",
            f"smallest canonical correlation of instruments and regressor {found.correlation:.3f}",
            f"largest difference from wls {moved:.1f} σ, {problem.base.leading_names[at]}",
        ]
        if found.correlation < _WEAK:
            notes.append("the instruments are weak: they hardly know one combination of parameters; see its σ")
        figures = {
            "instruments": self.instruments, "passes": passes, "canonical_correlation": found.correlation,
            "largest_difference_from_wls_sigma": moved,
        }  # fmt: skip
        return replace(found.estimate, joint_sigma=pooled, notes=tuple(notes), figures=figures)

    def _by_simulation(self, problem: Problem) -> tuple[InstrumentedEstimate, int, str]:
        """Simulate with the last parameters and estimate with that motion, until it makes no difference."""
        check_can_be_simulated(problem.robot)
        followers = [
            Follower.of(run, observed.settings, self.bandwidth_Hz, plan_needs_servo=False)
            for run, observed in zip(problem.runs, problem.observations, strict=True)
        ]
        words = "; ".join(dict.fromkeys(follower.words for follower in followers))
        chosen = [Chosen() for _ in problem.runs]

        def one_pass(last: Estimate) -> _Pass:
            simulated = simulate_runs(problem, followers, last)
            found = instrumented_fit(_parts(problem, simulated.runs, chosen))
            return _Pass(found.estimate, found, simulated.made_possible)

        unsimulated = _parts(problem, [follower.unsimulated() for follower in followers], [None] * len(followers))
        start, names = instrumented_fit(unsimulated).estimate, problem.base.leading_names
        last, number = iterate(one_pass, start, self.passes, estimator=self.name, names=names)
        return last.found, number, words + (MADE_POSSIBLE if last.made_possible else "")


class _Pass(NamedTuple):
    """What a simulation with the parameters before gave."""

    estimate: Estimate
    found: InstrumentedEstimate
    made_possible: bool


def _parts(problem: Problem, moved: Sequence[Run], chosen: Sequence[Chosen | None]) -> list[PairedRows]:
    """The problem's parts with the rows of other motions beside them."""
    return [
        PairedRows(part, observe(run, problem.robot, problem.base, observed.settings), used)
        for part, run, observed, used in zip(problem.parts, moved, problem.observations, chosen, strict=True)
    ]
