"""`jointbench validate`: a word a script can act on, with every figure it rests on."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jointbench.cli.main import main
from jointbench.excitation import random_excitation
from jointbench.identification import fit, validate
from jointbench.recording import Samples, open_run, save_samples
from jointbench.robot import load_robot
from jointbench.tests.report.recordings import PERIOD_S, recorded_run

PROVENANCE = {"robot": "cobot6"}


def samples_of(seed: int) -> Samples:
    robot = load_robot("cobot6")
    return recorded_run(robot, random_excitation(robot, period=PERIOD_S, seed=seed), seed, "run").samples


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with its model, another, and one whose fourth current is only noise around a constant."""
    folder = tmp_path_factory.mktemp("runs")
    save_samples(folder / "fit", samples_of(1), PROVENANCE)
    other = samples_of(2)
    save_samples(folder / "other", other, PROVENANCE)
    assert other.motor_torque is not None
    torque = other.motor_torque.copy()
    torque[:, 3] = 10.0 + 0.05 * np.random.default_rng(0).standard_normal(len(torque))
    save_samples(folder / "deaf", dataclasses.replace(other, motor_torque=torque), PROVENANCE)
    fit(open_run(folder / "fit")).save(folder / "model.json")
    return folder


def judged(capsys: pytest.CaptureFixture[str], folder: Path, run: str) -> tuple[int, dict[str, Any], str]:
    code = main(["validate", str(folder / "model.json"), str(folder / run), "--json", "-"])
    said = capsys.readouterr()
    return code, json.loads(said.out, parse_constant=lambda word: pytest.fail(f"{word} is no JSON")), said.err


def test_a_good_model_with_its_figures(folder: Path, capsys: pytest.CaptureFixture[str]):
    code, found, said = judged(capsys, folder, "other")
    check = validate(fit(open_run(folder / "fit")), open_run(folder / "other"))
    assert (code, found["verdict"]) == (0, "identified")
    for joint, name in enumerate(check.joint_names):
        assert found["verification_r_squared"][name] == pytest.approx(check.r_squared[joint])
        assert found["verification_r_squared"][name] > 0.999
        assert found["residuals"][name]["word"] == check.whiteness.words[joint]
        assert found["torque_variation"][name] > 20.0 * found["torque_noise"][name]
        assert found["joint_verdicts"][name]["word"] == "identified"
    assert found["verification_total_relative"] == pytest.approx(check.total_relative)
    assert "R²" in said
    assert "follows from the rows before" in said
    assert found["held_out"]
    assert "fitted to samples of this run" not in said


def test_the_run_of_the_fit_is_no_other_motion(folder: Path, capsys: pytest.CaptureFixture[str]):
    _, found, said = judged(capsys, folder, "fit")
    assert not found["held_out"]
    assert "warning: the model was fitted to samples of this run" in said


def test_a_joint_below_its_noise_is_refused_in_words_and_figures(folder: Path, capsys: pytest.CaptureFixture[str]):
    code, found, said = judged(capsys, folder, "deaf")
    assert (code, found["verdict"]) == (1, "refused")
    assert found["joint_verdicts"]["j4"]["reason"].startswith("j4's current is below its noise (")
    assert found["torque_variation"]["j4"] < found["torque_noise"]["j4"]
    assert found["joint_verdicts"]["j1"]["word"] == "identified"
    assert "verdict: refused" in said
