"""`jointbench watch`: what pushed during a recording, in words and in JSON."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from jointbench.cli.main import main
from jointbench.identification import fit
from jointbench.model import load_robot
from jointbench.recording import open_run, save_samples
from jointbench.tests.identification.synthetic import synthetic_run

ROBOT = load_robot("cobot6:3")
PUSHED_S = (3.0, 3.3)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str, str]:
    """A model, a quiet run, and one during which joint 2 was pushed by 25 N·m."""
    folder = tmp_path_factory.mktemp("runs")
    origin = {"robot": "cobot6:3"}
    quiet, other = (synthetic_run(ROBOT, motion_seed=seed, noise_seed=seed, repeats=1) for seed in (1, 2))
    model = fit(quiet, friction="coulomb_viscous").save(folder / "model.json")
    torque = np.array(other.samples.motor_torque)
    torque[slice(*(round(1000 * at) for at in PUSHED_S)), 1] += 25.0
    pushed = dataclasses.replace(other.samples, motor_torque=torque)
    still, moved = (save_samples(folder / name, run, origin) for name, run in (("q", quiet.samples), ("p", pushed)))
    return str(model), str(still), str(moved)


def test_a_push_is_said(places: tuple[str, str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", *places, "--frame", ROBOT.joints[-1].link.name, "--json", "-"]) == 0
    said = capsys.readouterr()
    told = json.loads(said.out)
    (push,) = told["pushes"]
    assert push["joint"] == "j2"
    assert push["start"] == pytest.approx(PUSHED_S[0], abs=0.05)
    assert push["end"] == pytest.approx(PUSHED_S[1], abs=0.1)
    assert len(push["force_N"]) == 3
    assert 0.0 < told["thresholds"]["j2"] < 25.0
    assert "1 push\n" in said.err
    assert "j2 feels +2" in said.err


def test_nothing_is_said_of_a_quiet_run(places: tuple[str, str, str], capsys: pytest.CaptureFixture[str]) -> None:
    model, quiet, _ = places
    assert main(["watch", model, quiet, quiet]) == 0
    assert "nothing pushed" in capsys.readouterr().out


def test_a_run_with_gaps_is_refused(places: tuple[str, str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    model, quiet, _ = places
    samples = open_run(quiet).samples
    position = np.array(samples.motor_position)
    position[500:510] = np.nan
    broken = save_samples(
        tmp_path / "gap", dataclasses.replace(samples, motor_position=position), {"robot": "cobot6:3"}
    )
    assert main(["watch", model, quiet, str(broken)]) == 2
    assert "10 samples are missing, the first at 0.5 s" in capsys.readouterr().err
