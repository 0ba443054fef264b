"""What a report rests on: a model, the run it was fitted to, and its validation on another."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from jointbench.excitation import Excitation
from jointbench.identification import Model, Validation
from jointbench.recording import Run
from jointbench.results.content import Answer


def fitted_runs(model: Model) -> list[dict[str, Any]]:
    """What a model says of each run it was fitted to: "run", "sha256", "settings"."""
    several = model.provenance.get("runs")
    return list(several) if several else [{"settings": model.settings.to_dict(), **model.provenance}]


@dataclass(frozen=True)
class Evidence:
    """Everything a verdict may depend on; it judges itself.

    Attributes:
        model: the model.
        fit_run: the run it was fitted to.
        validation: of the model.
        verification_run: the run of the validation.
        excitation: the motion of the fit, where one was planned.
    """

    model: Model
    fit_run: Run
    validation: Validation
    verification_run: Run
    excitation: Excitation | None

    @property
    def answer(self) -> Answer:
        """Whether to use the model: no where a joint is refused or a run is invalid, weak where a joint is weak."""
        words = {self.model.verdict.word, self.validation.verdict.word}
        if "refused" in words or self.invalid_runs:
            return "no"
        return "weak" if "weak" in words else "yes"

    @property
    def runs(self) -> tuple[tuple[str, Run], ...]:
        """Both runs with what they are for."""
        return ("Fit run", self.fit_run), ("Verification run", self.verification_run)

    @property
    def invalid_runs(self) -> tuple[str, ...]:
        """Which run may not be used, and why: its ledger does not close, or too much was lost."""
        return tuple(
            f"the {name.lower()} is {run.ledger.verdict}"
            for name, run in self.runs
            if run.ledger is not None and not run.ledger.is_valid
        )

    @property
    def held_out(self) -> bool:
        """Whether no sample of the verification was also fitted."""
        time = self.validation.time[self.validation.complete]
        for run in fitted_runs(self.model):
            if run["sha256"] != self.verification_run.sha256:
                continue
            first, last = run["settings"].get("interval") or (-np.inf, np.inf)
            if np.any((time >= first) & (time <= last)):
                return False
        return True

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a careful reader must know before the numbers."""
        found = [f"{name}: {warning}" for name, run in self.runs for warning in run.warnings]
        own = [run for run in fitted_runs(self.model) if run["sha256"] == self.fit_run.sha256]
        if any(list(run.get("edits", ())) != list(self.fit_run.edits) for run in own):
            found.append("The fit run was edited after the model was fitted to it: fit it again.")
        if not self.held_out:
            found.append("Fit and verification share samples: the errors say nothing about other motions.")
        if self.model.physical_verdict.word == "refused":
            found.append(f"Physically possible parameters: {self.model.physical_verdict.reason}.")
        return (*found, *self.model.robot.warnings)
