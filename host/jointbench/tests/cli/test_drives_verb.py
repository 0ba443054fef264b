"""`jointbench drives`: what it tells of harmonic joints, and what it says of a run without torque sensors."""

import dataclasses
import json

import pytest

from jointbench.cli.main import main
from jointbench.recording import Run, save_samples
from jointbench.tests.identification.drives.simulated_joints import STIFF, recording


def saved(run: Run, path) -> str:
    return str(save_samples(path, run.samples, {"robot": "cobot6:3"}))


@pytest.fixture(scope="module")
def recorded() -> Run:
    return recording(seed=1)


def test_gears_are_told_and_judged_on_another_motion(recorded, tmp_path, capsys):
    fitted, other = saved(recorded, tmp_path / "first"), saved(recording(seed=2, motion_seed=4), tmp_path / "other")
    assert main(["drives", fitted, "--verify", other, "--json", "-"]) == 0

    said = capsys.readouterr()
    told = json.loads(said.out)
    assert told["load"] == "motor"
    assert told["parameters"]["j2.load_friction"]["word"] == "identified"
    assert told["parameters"]["j2.load_friction"]["reason"] in said.err
    assert set(told["rms"]) == {"first", "other"}
    for ways in told["rms"].values():
        for rows in ("all", "moving"):
            assert ways["exact"][rows]["j2"] < ways["simplified"][rows]["j2"]
            assert ways["memory"][rows]["j2"] < ways["simplified"][rows]["j2"]
    assert "friction of j2 turns its sign by" in said.err
    assert told["friction_with_memory"]["j2"]["weights"]
    left_out = [each for each in told["parameters"].values() if each["word"] == "refused" and each["value"] == 0.0]
    assert left_out
    assert {each["sigma"] for each in left_out} == {None}  # not 0: nothing is known to be that well
    value = float(told["parameters"]["j2.coulomb"]["reason"].split()[0])
    assert value == pytest.approx(STIFF[1, 1], rel=0.05)


def test_a_run_without_torque_sensors_is_refused_in_one_sentence(recorded, tmp_path, capsys):
    blind = dataclasses.replace(recorded, samples=dataclasses.replace(recorded.samples, joint_torque=None))
    assert main(["drives", saved(blind, tmp_path / "blind")]) == 2
    assert "torque sensor" in capsys.readouterr().err
