"""`./run tx40` and `./run kinova`: what public recordings of arms say."""

import json
import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from jointbench import fit
from tools import kinova, tx40

DATA = Path(__file__).parents[3] / "shared" / "data" / "staubli_tx40"


def test_without_the_recording_it_says_what_to_give(capsys: pytest.CaptureFixture[str]):
    assert tx40.main([]) == 2
    assert "recording's folder is missing; give the folder that holds pos_read_data.csv" in capsys.readouterr().err
    assert tx40.main(["nowhere"]) == 2
    assert "nowhere is no folder" in capsys.readouterr().err


def test_a_folder_without_the_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert tx40.main([str(tmp_path), "--out", str(tmp_path / "run")]) == 2
    assert "pos_read_data.csv cannot be read" in capsys.readouterr().err


def test_the_published_values_are_complete():
    published = tx40.read_published()
    assert len(published) == 4 * 6 + 3
    assert published["j6.coulomb"] == 0.282
    assert tx40.limit("j6.coulomb") == 20.0
    assert tx40.limit("wrist.coulomb") == 6.0


@pytest.mark.slow
def test_the_recording_gives_the_published_values(tmp_path: Path):
    if not DATA.is_dir():
        reason = "the public TX40 recording is not in ../shared/data/staubli_tx40"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    code = tx40.main([str(DATA), "--out", str(tmp_path / "run"), "--json", str(tmp_path / "result.json")])
    result = json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))
    assert len(result["checks"]) == 6 + 6 + 3 + 4
    assert {"command", "seed", "seconds", "checks"} <= set(result)
    assert code == 0, [check for check in result["checks"] if not check["ok"]]
    # Both parts tell the same delay, as parts of a recording should: to four deviations, a delay being one parameter.
    assert abs(result["held_out_delay_s"] - result["delay_s"]) < 4.0 * result["delay_sigma_s"]
    assert result["total_relative"] < result["total_relative_without_delay"]
    errors = result["errors"]
    for what in ("whole recording", "held out"):
        plain = errors[f"{what}, Coulomb and viscous friction"]
        assert errors[what]["all"] < 0.7 * plain["all"]
        assert errors[what]["moving"] < plain["moving"]


@pytest.mark.slow
def test_a_check_can_fail(tmp_path: Path):
    if not DATA.is_dir():
        pytest.skip("the public TX40 recording is not in ../shared/data/staubli_tx40")
    from jointbench import FitSettings, fit
    from jointbench.identification.delay import given_delay
    from jointbench.recording import import_csv

    run = import_csv("tx40", tmp_path / "run", data=DATA)
    model = fit(run, settings=FitSettings(delay=0.0), friction="coulomb_viscous")
    wrong = {name: 1.5 * value for name, value in tx40.read_published().items()}
    assert not all(check.ok for check in tx40.published_checks(model, wrong))
    delay = given_delay(np.zeros(6), "as if there were none")
    held_out: Any = SimpleNamespace(error_all=SimpleNamespace(total_relative=0.2))
    # Without friction that remembers the whole recording's error is 10.7 %, too.
    assert [check.ok for check in tx40.torque_checks(model, held_out, delay)] == [False, True, False, False]


KINOVA_DATA = Path(__file__).parents[3] / "shared" / "data" / "kinova_gen3"


@pytest.fixture
def data() -> Path:
    if not KINOVA_DATA.is_dir():
        reason = "the public recordings of a Kinova Gen3 are not in ../shared/data/kinova_gen3"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return KINOVA_DATA


def test_without_the_recordings_it_says_what_to_give(capsys: pytest.CaptureFixture[str]):
    assert kinova.main([]) == 2
    assert "recordings' folder is missing; give the folder that holds gen3.urdf" in capsys.readouterr().err
    assert kinova.main(["nowhere"]) == 2
    assert "nowhere is no folder" in capsys.readouterr().err


def test_kinova_a_folder_without_the_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert kinova.main([str(tmp_path)]) == 2
    assert "RecordTrajectory_quadratic.csv: there is no such file" in capsys.readouterr().err


def test_sensors_are_predicted_better_than_by_the_vendors_model(data: Path, tmp_path: Path):
    out = tmp_path / "gen3"
    code = kinova.main([str(data), "--out", str(out), "--json", str(tmp_path / "result.json")])
    result = json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))

    assert code == 0, [check for check in result["checks"] if not check["ok"]]
    assert len(result["checks"]) == 5
    assert {"command", "seed", "seconds", "checks"} <= set(result)
    assert (out / "model.json").is_file()
    ours, vendor, file = (np.array(result[f"{whose}_rms_Nm"]) for whose in ("test", "vendor", "robot_file"))
    assert np.linalg.norm(ours) < np.linalg.norm(vendor) < np.linalg.norm(file)
    # Few and short motions: much is not told, and that is said of it. What turns before the sensor is nothing it feels.
    words = {name: parameter["verdict"] for name, parameter in result["parameters"].items()}
    assert {"poorly excited", "not observable", "refused"} <= set(words.values())
    assert {words[name] for name in words if name.endswith(".rotor_inertia")} == {"not observable"}
    assert not {words[name] for name in result["estimator"]["figures"]["told_by_prior"]} & {"identified"}
    assert any("joint_1's torque sensor does not vary" in note for note in result["notes"])


def test_the_checks_can_fail(data: Path, tmp_path: Path):
    runs = {name: kinova.imported(name, data, tmp_path) for name in ("opti_traj_testing1", kinova.TEST)}
    model = kinova.trained([runs["opti_traj_testing1"]])
    errors = kinova.judge(model, runs[kinova.TEST], data)
    none = kinova.Errors(2.0 * errors.vendor, errors.vendor + 0.1, errors.file)

    impossible = replace(model, parameters=-model.parameters)

    assert [check.ok for check in kinova.checks_of(impossible, none)] == [False, False, False, True, False]


@pytest.mark.slow
def test_the_mappings_cut_off_is_the_one_that_the_training_logs_choose(data: Path, tmp_path: Path):
    runs = {name: kinova.imported(name, data, tmp_path) for name in kinova.TRAINING}
    compared = kinova.cutoffs_compared(runs)
    chosen = {kinova.run_settings(run).cutoff_Hz for run in runs.values()}

    assert chosen == {min(compared, key=lambda cutoff: compared[cutoff])}


@pytest.mark.slow
def test_the_priors_weight_is_the_one_that_the_training_logs_choose(data: Path, tmp_path: Path):
    runs = [kinova.imported(name, data, tmp_path) for name in kinova.TRAINING]
    chosen = fit(runs, estimator=kinova.ESTIMATOR, options={"weight": "held_out"})

    assert chosen.figures["weight"] == kinova.OPTIONS["weight"]
