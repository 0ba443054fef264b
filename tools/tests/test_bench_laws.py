"""`./run bench laws`: what it measures, and that a worse version is seen as such."""

import argparse
from pathlib import Path
from typing import Any

import pytest

from jointbench.cli.console import Console
from jointbench.errors import FileError
from jointbench.recording import save_samples
from jointbench.tests.identification.friction.law_runs import law_run, loaded, stribeck
from jointbench.tests.identification.synthetic import arm
from tools.bench import laws
from tools.bench.__main__ import main
from tools.bench.peers import BenchmarkFailed

OUTCOME: dict[str, Any] = {
    "seconds": 2.0, "cpu_seconds": 2.0, "estimator": "wls", "laws": ["stribeck", "makkar"],
    "moving": [0.01, 0.02], "all": [0.1, 0.2],
}  # fmt: skip


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
