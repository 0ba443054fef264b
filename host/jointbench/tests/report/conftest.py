"""A judged model of cobot6, made once for every test of the report."""

import dataclasses

import numpy as np
import pytest

from jointbench.excitation import random_excitation
from jointbench.identification import fit, validate
from jointbench.recording import Run
from jointbench.robot import load_robot

from .recordings import PERIOD_S, Example, recorded_run


@pytest.fixture(scope="session")
def example() -> Example:
    robot = load_robot("cobot6")
    fit_run = recorded_run(robot, random_excitation(robot, period=PERIOD_S, seed=1), 11, "fit")
    verification_run = recorded_run(robot, random_excitation(robot, period=PERIOD_S, seed=2), 12, "verification")
    model = fit(fit_run)
    return Example(model, fit_run, validate(model, verification_run), verification_run)


@pytest.fixture(scope="session")
def imported(example: Example) -> Example:
    """The same without what an imported recording lacks: ledger, excitation, repeats, boards."""

    def strip(run: Run) -> Run:
        samples = dataclasses.replace(run.samples, play_tick=np.full(run.samples.n_samples, -1))
        provenance = {"version": 1, "robot": run.robot.name}
        return dataclasses.replace(run, samples=samples, ledger=None, excitation=None, repeats=0, provenance=provenance)

    fit_run, verification_run = strip(example.fit_run), strip(example.verification_run)
    model = fit(fit_run)
    return Example(model, fit_run, validate(model, verification_run), verification_run)
