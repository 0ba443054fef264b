"""`jointbench residual`: what a model lacks, learnt from one run and judged on others."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jointbench.cli.main import main
from jointbench.identification import fit
from jointbench.model import load_robot
from jointbench.recording import open_run, save_samples
from jointbench.tests.identification.synthetic import run_of, synthetic_run

PROVENANCE = {"robot": "cobot6:2"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two motions of the first two joints of an arm, one run in which it stands, and a model of the first motion."""
    folder, robot = tmp_path_factory.mktemp("runs"), load_robot("cobot6:2")
    for name, seed in (("own", 1), ("other", 2)):
        save_samples(folder / name, synthetic_run(robot, motion_seed=seed, noise_seed=seed).samples, PROVENANCE)
    still = np.tile(robot.home, (3000, 1))
    save_samples(folder / "still", run_of(robot, still, 0.0 * still, plan=None, repeats=0).samples, PROVENANCE)
    fit(open_run(folder / "own")).save(folder / "model.json")
    return folder


def told(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, dict[str, Any], str]:
    code = main(["residual", *map(str, arguments), "--json", "-"])
    said = capsys.readouterr()
    return code, json.loads(said.out, parse_constant=lambda word: pytest.fail(f"{word} is no JSON")), said.err


def test_both_residuals_are_told_of_each_run(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "residuals.png"

    code, found, said = told(capsys, folder / "own", folder / "other", "--picture", picture)

    assert code == 0
    assert found["learnt_from"] == "own"
    other = found["missions"]["other"]
    assert other["state"]["average_gain"] > 0.9
    assert other["state"]["verdict"] == "identified"
    assert other["polynomial"]["verdict"] == "refused"
    assert list(other["error_of_model"]) == ["j1", "j2"]
    assert "gain by time" in said
    assert picture.is_file()


def test_a_model_that_lacks_nothing_has_no_residual(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is left of the identified model is noise: nothing to learn, and the verdict says so."""
    code, found, _ = told(capsys, folder / "own", folder / "other", "--model", folder / "model.json")

    assert code == 1
    assert found["missions"]["other"]["state"]["average_gain"] < 0.1


def test_a_run_at_rest_and_runs_of_one_name_are_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["residual", str(folder / "still")]) == 2
    assert "no joint moves" in capsys.readouterr().err
    assert main(["residual", str(folder / "own"), str(folder / "own")]) == 2
    assert "two runs are named 'own'" in capsys.readouterr().err
