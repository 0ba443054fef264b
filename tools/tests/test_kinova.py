import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from jointbench import fit
from tools import kinova

DATA = Path(__file__).parents[3] / "shared" / "data" / "kinova_gen3"


@pytest.fixture
def data() -> Path:
    if not DATA.is_dir():
        reason = "the public recordings of a Kinova Gen3 are not in ../shared/data/kinova_gen3"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return DATA


def test_without_the_recordings_it_says_what_to_give(capsys: pytest.CaptureFixture[str]):
    assert kinova.main([]) == 2
    assert "recordings' folder is missing; give the folder that holds gen3.urdf" in capsys.readouterr().err
    assert kinova.main(["nowhere"]) == 2
    assert "nowhere is no folder" in capsys.readouterr().err


def test_a_folder_without_the_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
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
    assert {"weak", "refused"} <= set(words.values())
    assert {words[name] for name in words if name.endswith(".rotor_inertia")} == {"refused"}
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
