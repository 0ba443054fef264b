"""Benchmarks of identification: balance by an estimate, an end by its own σ, the choice of friction laws."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hil_tests.virtual_bench.plant_file import read_plant_file
from jointbench.cli.console import Console
from jointbench.errors import FileError
from jointbench.identification.zero_moment_point import ReducedParameters
from jointbench.recording import save_samples
from jointbench.signals import Motion
from jointbench.tests.identification.friction.law_runs import law_run, loaded, stribeck
from jointbench.tests.identification.synthetic import arm
from jointbench.tests.identification.zero_moment_point.simulated_stance import (
    EVERY,
    TRUTH,
    biped,
    ground_forces,
    sway,
)
from tools.bench import balance, laws, stopping
from tools.bench.__main__ import main
from tools.bench.balance import Masses, Played, Tracking, track
from tools.bench.peers import BenchmarkFailed

ROBOT = biped()
TRUE = Masses(ReducedParameters(ROBOT).standard(TRUTH))

OUTCOME: dict[str, Any] = {
    "seconds": 2.0, "cpu_seconds": 2.0, "estimator": "wls", "laws": ["stribeck", "makkar"],
    "moving": [0.01, 0.02], "all": [0.1, 0.2],
}  # fmt: skip


def test_of_a_perfect_robot_only_wrong_masses_make_an_error() -> None:
    """A robot on rigid ground that is exactly where it was planned to be."""
    slow = sway(ROBOT, 3, 6.0)
    assert TRUE.parameters is not None
    support = ground_forces(ROBOT, ROBOT.foot("r_foot"), slow, TRUE.parameters)
    # A tick is an eighth of what boards send; what happens between two samples is not looked at.
    force = np.repeat(np.stack([support, np.zeros_like(support)], axis=1), EVERY, axis=0)
    motion = Motion(*(np.repeat(values, EVERY, axis=0) for values in (slow.q, slow.dq, slow.ddq)))
    by_file, by_truth = (track(ROBOT, motion, Played(force, motion.q), way) for way in (None, TRUE))
    # The masses were chosen for a zero-moment point that is some 35 mm off.
    assert 0.02 < by_file.error < 0.05
    # What the low-pass takes off a movement of at most 0.6 Hz, and its square.
    assert by_truth.error < 1e-3
    assert by_truth.planned_distance == pytest.approx(by_truth.distance, abs=3e-3)


def test_figures_are_of_the_distance_between_points() -> None:
    planned = np.array([[0.0, 0.0], [0.03, 0.0]])
    played = planned + np.array([[0.003, 0.004], [0.0, 0.0]])
    figures = balance.tracking(ROBOT.foot("r_foot"), planned, played)
    # The sole is 220 by 120 mm.
    assert figures.error == pytest.approx(0.0025)
    assert figures.worst == pytest.approx(0.005)
    assert figures.planned_distance == pytest.approx(0.06)
    assert figures.distance == pytest.approx(0.056)


def test_checks_can_be_red() -> None:
    before = Tracking(error=0.03, worst=0.05, planned_distance=0.05, distance=0.03)
    good = replace(before, error=0.014, distance=0.04)
    assert [check.ok for check in balance.checks([before], [good])] == [True, True]
    assert [check.ok for check in balance.checks([before], [replace(good, error=0.016)])] == [False, True]
    assert [check.ok for check in balance.checks([before], [replace(good, distance=0.02)])] == [True, False]


@pytest.mark.slow
def test_a_plant_follows_the_plan_of_its_own_masses() -> None:
    truth = read_plant_file(balance.PLANT, ROBOT)
    assert truth.base_link is not None
    links = [link.standard_parameters for link in (truth.base_link, *(joint.link for joint in truth.joints))]
    masses = Masses(np.concatenate([link for link in links if link is not None]))
    tracked = []
    for way in (None, masses):
        planned = balance.plan(ROBOT, 9.6, 5, way)
        tracked.append(track(ROBOT, planned, balance.play(ROBOT, truth, planned), way))
    assert all(check.ok for check in balance.checks(tracked[:1], tracked[1:]))
    # Servos lag and gears bend by about a millimetre of the point; cables pull it by half of one.
    assert tracked[1].error < 3e-3


@pytest.mark.slow
def test_one_identification_ends_and_is_held_against_the_truth() -> None:
    identification = stopping.identified(3)
    outcome = stopping.outcome(identification)
    assert outcome.motion <= stopping.MOST_S
    assert len(outcome.deviations) == identification.model.base.rank
    # Five standard deviations: one in two million of so many draws.
    assert np.max(np.abs(outcome.deviations)) < 5.0
    assert stopping.default_motion(identification, Console()) >= stopping.LEAST_RATIO


def test_a_worse_or_slower_choice_fails() -> None:
    def kept(**changes: Any) -> list[bool]:
        checks = laws.make_checks({"demo": {"before": OUTCOME, "now": OUTCOME | changes}})
        return [check.ok for check in checks]

    assert kept(cpu_seconds=1.0) == [True, True, True]
    assert kept(cpu_seconds=3.0) == [True, False, True]
    assert kept(cpu_seconds=6.0) == [False, False, True]
    assert kept(moving=[0.011, 0.022]) == [True, True, False]


def test_the_table_has_both_versions() -> None:
    text = laws.outcome_table({"demo": {"before": OUTCOME, "now": OUTCOME}})
    assert text.count("demo, before") == text.count("demo, now") >= 1
    assert text.count("stribeck makkar") == 2


def test_a_folder_without_recordings_and_a_commit_that_is_none_are_named(tmp_path: Path, capsys) -> None:
    with pytest.raises(FileError, match="has neither the runs excitation and verification"):
        laws.recordings(tmp_path, tmp_path)
    with pytest.raises(BenchmarkFailed, match="fetch all of it"), laws.checked_out("0" * 40, tmp_path / "before"):
        pass
    assert main(["laws"]) == 2
    assert "laws needs FOLDER" in capsys.readouterr().err


@pytest.mark.slow
def test_both_versions_are_measured_on_the_same_runs(tmp_path: Path, monkeypatch) -> None:
    """The committed version stands for the one before: it must come out with the laws of the recording."""
    robot, joints = arm(2), {"j1": stribeck(6.0, 4.0, 9.0, 0.2), "j2": loaded(5.0, 8.0, 0.08)}
    for name, seed in (("excitation", 1), ("verification", 7)):
        run = law_run(robot, joints, motion_seed=seed, noise_seed=seed, repeats=1)
        save_samples(tmp_path / name, run.samples, {"robot": "cobot6:2"})
    monkeypatch.setattr(laws, "BEFORE", "HEAD")
    options = argparse.Namespace(folder=str(tmp_path), seed=0)
    result = laws.bench(options, Console())
    assert len(result.checks) == 3
    both = result.fields["recordings"]["demo"]
    assert both["before"]["laws"] == both["now"]["laws"] == ["stribeck", "coulomb_viscous+load"]
    assert both["before"]["host"] != both["now"]["host"]
    assert not Path(both["before"]["host"]).exists()  # the work tree is gone
