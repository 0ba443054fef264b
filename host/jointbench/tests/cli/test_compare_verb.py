"""`jointbench compare`: the tables, the sentence, the exit code, and everything as JSON."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jointbench.cli.main import main
from jointbench.identification import Model, fit
from jointbench.recording import open_run
from jointbench.tests.identification.synthetic import arm, synthetic_run
from jointbench.tests.identification.test_fleet import ARM, NAMES, make_run, true_parameters


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Runs of one arm, of the same once more, and of one with a tenth more friction, each with its model."""
    folder = tmp_path_factory.mktemp("runs")
    truth = true_parameters(1)[0]
    rough = truth.copy()
    rough[NAMES.index("j2.viscous")] *= 1.1
    places: dict[str, Path] = {}
    for seed, (name, parameters) in enumerate({"arm": truth, "again": truth, "rough": rough}.items()):
        places[name] = make_run(folder / name, parameters, seed)
        model_of(places[name]).save(places[name] / "model.json")
    return places


def model_of(place: Path) -> Model:
    return fit(open_run(place), ARM)


def compared(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, dict[str, Any], str]:
    code = main(["compare", *map(str, arguments), "--json", "-"])
    said = capsys.readouterr()
    return code, json.loads(said.out) if said.out else {}, said.err


def test_the_same_arm_twice(places: dict[str, Path], capsys: pytest.CaptureFixture[str]):
    code, found, said = compared(capsys, places["arm"], places["again"] / "model.json")
    assert code == 0
    assert found["verdict"] == "same"
    assert found["different"] == []
    assert found["motion"] == str(places["arm"])
    assert any(line.startswith("same: χ² ") for line in said.splitlines())


def test_more_friction_is_named_with_its_torque(places: dict[str, Path], capsys: pytest.CaptureFixture[str]):
    code, found, said = compared(capsys, places["arm"], places["rough"])
    assert code == 1
    assert found["verdict"] == "different"
    assert found["different"] == ["j2.viscous"]
    parameter = found["parameters"]["j2.viscous"]
    assert parameter["b"] / parameter["a"] == pytest.approx(1.1, abs=0.01)
    assert parameter["difference"] == pytest.approx(parameter["b"] - parameter["a"])
    assert parameter["p_value"] < 1e-3
    torque = found["torque"]["j2"]["difference"]
    assert torque["links"]["rms"] < 3.0 * torque["links"]["sigma"]  # what chance makes of it
    assert torque["friction"]["rms"] > 20.0 * torque["friction"]["sigma"]
    (row,) = [line for line in said.splitlines() if line.endswith("differs")]
    assert row.split()[0] == "j2.viscous"
    assert "different: χ² " in said


def test_another_motion_for_the_torques(places: dict[str, Path], capsys: pytest.CaptureFixture[str]):
    _, found, _ = compared(capsys, places["arm"], places["rough"], "--on", places["again"])
    assert found["motion"] == str(places["again"])


def test_models_whose_runs_are_gone(places: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    for name in ("arm", "rough"):
        model = model_of(places[name])
        provenance = {**model.provenance, "run": "gone"}
        dataclasses.replace(model, provenance=provenance).save(tmp_path / f"{name}.json")
    code, found, said = compared(capsys, tmp_path / "arm.json", tmp_path / "rough.json")
    assert code == 1
    assert found["motion"] == "random states"
    assert "on random states within the limits of the robot" in said


def test_one_recording_fitted_twice(places: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    model_of(places["arm"]).save(tmp_path / "model.json")
    code, found, said = compared(capsys, places["arm"], tmp_path / "model.json")
    assert (code, found["same_data"]) == (0, True)
    assert "both were fitted to one recording" in said


def test_untold_parameters_are_null(places: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    model = model_of(places["again"])
    covariance, parameters = model.covariance.copy(), model.parameters.copy()
    k = model.names.index("j3.viscous")
    covariance[k, :] = covariance[:, k] = 0.0
    covariance[k, k], parameters[k] = np.inf, 0.0
    dataclasses.replace(model, covariance=covariance, parameters=parameters).save(tmp_path / "model.json")
    code, found, said = compared(capsys, places["arm"], tmp_path / "model.json")
    assert (code, found["verdict"]) == (0, "cannot tell")
    parameter = found["parameters"]["j3.viscous"]
    assert parameter["b"] is parameter["difference"] is parameter["sigma"] is parameter["p_value"] is None
    assert found["torque"]["j3"]["at_most"] is None
    assert "not in both" in said


def test_other_robots_are_an_error(places: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    fit(synthetic_run(arm(2), motion_seed=1, noise_seed=1)).save(tmp_path / "small.json")
    code, _, said = compared(capsys, places["arm"], tmp_path / "small.json")
    assert code == 2
    assert "the joints differ (only the first has j3; only the second nothing more)" in said
    assert compared(capsys, places["arm"], tmp_path / "none.json")[0] == 2
    code, _, said = compared(capsys, places["arm"], tmp_path)
    assert code == 2
    assert f"{tmp_path} holds no model.json; fit the run first, `jointbench fit {tmp_path}`" in said
    assert compared(capsys, places["arm"], places["again"], "--level", "2")[0] == 2


def test_both_are_judged_on_the_run_at_one_cut_off(
    places: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    fit(open_run(places["again"]), ARM, settings={"cutoff_Hz": 9.0}).save(tmp_path / "slow.json")
    _, found, said = compared(capsys, places["arm"], tmp_path / "slow.json")
    assert found["cutoff_Hz"] == 9.0
    for name in ("a", "b"):
        errors = found["errors"][name]
        # The board's noise is white: the low-pass leaves less of it than there is.
        assert errors["filtered"]["all"]["rms"]["j2"] < errors["as_measured"]["all"]["rms"]["j2"]
    assert "judged at a cut-off of 9 Hz, the lowest of the models' cut-offs; fitted at A " in said
    assert "A was fitted to this run: its errors say nothing about other motions" in said
    assert "B was fitted" not in said
    _, part, said = compared(
        capsys, places["arm"], tmp_path / "slow.json", "--cutoff-Hz", "6", "--interval", "2,7", "--on", places["rough"]
    )
    assert (part["cutoff_Hz"], part["interval"]) == (6.0, [2.0, 7.0])
    assert "as asked" in said
    assert "was fitted to this run" not in said
