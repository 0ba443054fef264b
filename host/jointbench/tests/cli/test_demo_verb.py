"""`jointbench demo`: from nothing to a judged model, without boards."""

import json
from pathlib import Path

import numpy as np
import pytest

import jointbench as jb
from jointbench.cli.demo import simulate
from jointbench.cli.main import main


def test_it_goes_the_whole_way_and_overwrites_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("jointbench.cli.demo.find_spec", lambda _: None)  # its report has tests of its own

    assert main(["demo", "cobot6:2", "--json", "-"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["model"] == "demo/model.json"
    assert "The model predicts the torques of a motion it was not fitted to with an error of" in said.err
    assert "pip install 'jointbench[report]'" in said.err
    assert "next: jointbench export demo/model.json --out arm.urdf" in said.err
    assert jb.validate("demo/model.json", "demo/second").verdict.word == "identified"
    assert main(["demo", "cobot6:2"]) == 2
    assert "demo exists" in capsys.readouterr().err


def test_links_are_other_than_the_file_says_and_the_same_for_all_seeds() -> None:
    robot = jb.load_robot("cobot6:2")
    motion = jb.random_excitation(robot, period=10.016, seed=1)
    first, again = (simulate(robot, motion, seed).motor_torque for seed in (1, 2))
    assert first is not None
    assert again is not None

    noise = 0.002 * robot.torque_limits
    assert np.std(first - again, axis=0) == pytest.approx(np.sqrt(2.0) * noise, rel=0.05)  # of 10016 samples: 0.7 %
    assert robot.standard_parameters is not None
    by_file = jb.inverse_dynamics(robot, *motion.evaluate([1.0]), robot.standard_parameters)
    assert abs(by_file[0, 1] - first[500, 1]) > 10.0 * noise[1]


def test_a_robot_without_inertias_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "gorobot2", "--out", str(tmp_path / "demo")]) == 2
    assert "its file needs a fixed base and inertias" in capsys.readouterr().err
    assert not (tmp_path / "demo").exists()
