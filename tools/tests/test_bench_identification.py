"""What `./run bench identification` measures is what it says, and its limits can be missed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from jointbench.dynamics import base_parameters
from jointbench.identification import fit
from jointbench.recording import open_run
from tools.bench.identification import APART, CONDITION_APART, LONG_MINUTES, SHORT_MINUTES, make_checks, race
from tools.bench.identification_memory import (
    imported_log,
    in_own_process,
    many_rows,
    recorded_log,
    true_parameters,
)
from tools.bench.peers import BenchmarkFailed


@pytest.mark.parametrize("minutes", [0.25, pytest.param(0.75, marks=pytest.mark.slow)])
@pytest.mark.parametrize("make", [imported_log, recorded_log])
def test_logs_hold_the_motion_that_they_are_made_of(tmp_path: Path, make, minutes: float) -> None:
    """From the log's directory to its model, which has the parameters that made the log."""
    run = open_run(make(tmp_path / "run", minutes, seed=3))
    assert run.samples.n_samples == pytest.approx(60_000 * minutes, abs=64)
    assert run.samples.valid.all()
    model = fit(run)
    truth = base_parameters(run.robot).group(true_parameters(run.robot, 3))
    # Friction turns over within a sample, and the delay is known only as far as it is told: a little more than noise.
    assert np.sqrt(np.mean(((model.parameters - truth) / model.sigma) ** 2)) < 2.0
    assert model.error.total_relative < 0.02


def test_many_rows_are_solved_as_numpy_solves_them() -> None:
    rows, truth = many_rows(seed=1, samples=6000)
    raced = race(rows, truth, rounds=1)
    assert (raced.rows, raced.columns) == (36_000, 61)
    assert raced.apart <= APART
    assert raced.condition_apart <= CONDITION_APART
    assert 0.5 < raced.off < 1.6  # 61 correlated deviations


def test_every_limit_can_be_missed() -> None:
    rows, truth = many_rows(seed=1, samples=6000)
    raced = replace(race(rows, truth, rounds=1), rows=600_000, seconds=[0.1])
    short = {"samples": 600_000, "resident_MB": 280.0, "total_relative": 0.01}
    long = {**short, "samples": 3_600_000, "resident_MB": 290.0}
    good = make_checks(raced, {"resident_MB": 280.0}, {"imported": {SHORT_MINUTES: short, LONG_MINUTES: long}})
    assert all(check.ok for check in good)
    bad = make_checks(
        replace(raced, rows=1, columns=1, seconds=[1.0], apart=1.0, condition_apart=1.0),
        {"resident_MB": 400.0},
        {"imported": {SHORT_MINUTES: short, LONG_MINUTES: {"samples": 1, "resident_MB": 400.0, "total_relative": 1.0}}},
    )
    assert not any(check.ok for check in bad)


def test_a_process_that_fails_is_named() -> None:
    with pytest.raises(BenchmarkFailed, match=r"(?s)'fit' ended with 1: .*/nowhere is not a run"):
        in_own_process("fit", "/nowhere")
