"""Judged models, made once for every test of the report."""

import dataclasses

import numpy as np
import pytest

from jointbench.identification import fit, validate
from jointbench.model import load_robot
from jointbench.recording import Run

from .recordings import Example, judged_example


@pytest.fixture(scope="session")
def example() -> Example:
    """Of cobot6."""
    return judged_example(load_robot("cobot6"))


@pytest.fixture(scope="session")
def two_joints() -> Example:
    """Of two joints, whose pictures are soon drawn."""
    return judged_example(load_robot("modular7:2"))


@pytest.fixture(scope="session")
def imported(two_joints: Example) -> Example:
    """The same without what an imported recording lacks: ledger, excitation, repeats, boards."""

    def strip(run: Run) -> Run:
        samples = dataclasses.replace(run.samples, play_tick=np.full(run.samples.n_samples, -1))
        provenance = {"version": 1, "robot": run.robot.name}
        return dataclasses.replace(run, samples=samples, ledger=None, excitation=None, repeats=0, provenance=provenance)

    fit_run, verification_run = strip(two_joints.fit_run), strip(two_joints.verification_run)
    model = fit(fit_run)
    return Example(model, fit_run, validate(model, verification_run), verification_run)
