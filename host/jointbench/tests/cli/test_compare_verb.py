"""`jointbench compare`: the tables, the sentence, the exit code, and everything as JSON.

`jointbench history`: its tables, the sentence, the exit code, and everything as JSON.

`jointbench report`: a model with one run or two, two models, two runs; and what it says when it cannot.
"""

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jointbench.cli.main import main
from jointbench.files import sealed_json
from jointbench.identification import Model, fit
from jointbench.recording import open_run
from jointbench.tests.identification.synthetic import arm, synthetic_run
from jointbench.tests.identification.test_fleet import ARM, NAMES, make_run, true_parameters
from jointbench.tests.results.page_text import Page


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


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs of an arm, each with its model; before the last one its second joint has lost its grease."""
    folder, truth = tmp_path_factory.mktemp("runs"), true_parameters(1)[0]
    rough = truth.copy()
    for name in ("j2.viscous", "j2.coulomb"):
        rough[NAMES.index(name)] *= 1.5
    for seed, (name, parameters) in enumerate({"a": truth, "b": truth, "c": rough}.items()):
        place = make_run(folder / name, parameters, seed)
        fit(open_run(place), ARM).save(place / "model.json")
    return folder


def told(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, dict[str, Any], str]:
    code = main(["history", *map(str, arguments), "--json", "-"])
    said = capsys.readouterr()
    return code, json.loads(said.out) if said.out else {}, said.err


def test_a_folder_of_runs_is_a_history(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found, said = told(capsys, folder)
    assert code == 1
    assert found["grown"] == ["j2"]
    assert [each["name"] for each in found["sessions"]] == ["a", "b", "c"]
    change = found["joints"]["j2"]
    assert change["word"] == "grown"
    assert change["friction"] / change["expected"] == pytest.approx(1.5, abs=0.05)
    assert found["sessions"][0]["joints"]["j1"]["temperature_K"] is None
    lines = said.splitlines()
    assert lines[0].split() == ["friction", "[N·m]", "UTC", "°C", "j1", "j2", "j3"]
    (grown,) = [line for line in lines if "friction has grown: j2; look at grease, bearings" in line]
    assert max(len(line) for line in lines if line != grown) <= 80


def test_what_did_not_change_is_exit_code_0(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found, said = told(capsys, folder / "a", folder / "b" / "model.json")
    assert (code, found["grown"]) == (0, [])
    assert "no friction has grown" in said.splitlines()


def test_one_recording_says_what_is_missing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, said = told(capsys, folder / "a")
    assert code == 0
    assert "\nnothing to compare with yet: fit another recording of this robot" in said


def test_a_run_without_a_model_is_told_how_to_get_one(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "empty").mkdir()
    code, _, said = told(capsys, folder / "a", tmp_path / "empty")
    assert code == 2
    assert "holds no model.json; fit the run first" in said


@pytest.fixture(scope="module")
def fitted_run(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Runs of one arm and of one with a tenth more friction, each with its model; and a run without one."""
    folder = tmp_path_factory.mktemp("runs")
    truth = true_parameters(1)[0]
    rough = truth.copy()
    rough[NAMES.index("j2.viscous")] *= 1.1
    fitted_run: dict[str, Path] = {}
    for seed, (name, parameters) in enumerate({"arm": truth, "rough": rough, "other": truth}.items()):
        fitted_run[name] = make_run(folder / name, parameters, seed)
        if name != "other":
            fit(open_run(fitted_run[name]), ARM).save(fitted_run[name] / "model.json")
    return fitted_run


def page_of(tmp_path: Path, *arguments: str | Path) -> Page:
    out = tmp_path / "report.html"
    assert main(["report", *map(str, arguments), "--out", str(out)]) == 0
    return Page(out.read_text(encoding="utf-8"))


def test_two_runs_are_compared_by_their_models(
    fitted_run: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = page_of(tmp_path, fitted_run["arm"], fitted_run["rough"])
    assert page.by_id["verdict"] == "different"
    said = capsys.readouterr().out.splitlines()
    assert said[:2] == [f"A: {fitted_run['arm'] / 'model.json'}", f"B: {fitted_run['rough'] / 'model.json'}"]
    assert said[2].startswith("different: χ² ")
    assert "j2.viscous +" in said[2]
    assert said[3] == f"report: {tmp_path / 'report.html'}"


def test_two_models_are_compared_too(fitted_run: dict[str, Path], tmp_path: Path) -> None:
    page = page_of(tmp_path, fitted_run["rough"] / "model.json", fitted_run["rough"] / "model.json")
    assert page.by_id["verdict"] == "same"


def test_a_model_and_two_runs_are_a_report_on_the_model(fitted_run: dict[str, Path], tmp_path: Path) -> None:
    page = page_of(tmp_path, fitted_run["arm"] / "model.json", fitted_run["arm"], fitted_run["other"])
    assert "a motion it was not fitted to" in page.text
    assert f"jointbench report model.json {fitted_run['arm']} {fitted_run['other']}" in page.text


@pytest.mark.parametrize("runs", [["arm", "other"], ["arm"]])
def test_report_and_terminal_say_the_same_error(
    runs: list[str], fitted_run: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = fitted_run["arm"] / "model.json"
    page = page_of(tmp_path, model, *(fitted_run[name] for name in runs))
    report = capsys.readouterr().out
    assert main(["validate", str(model), str(fitted_run[runs[-1]]), "--in-sample"]) == 0
    validate = capsys.readouterr().out
    found = [re.search(r"torques of (.*) with an error of ([\d.]+)\s%", text) for text in (page.text, report, validate)]
    assert all(found)
    assert len({match.groups() for match in found if match}) == 1


def test_the_model_s_own_run_alone_says_that_it_is_its_own(fitted_run: dict[str, Path], tmp_path: Path) -> None:
    page = page_of(tmp_path, fitted_run["arm"] / "model.json", fitted_run["arm"])
    assert "the motion it was fitted to" in page.text
    assert "say nothing about other motions" in page.text


def test_another_run_alone_finds_the_model_s_own_beside_it(fitted_run: dict[str, Path], tmp_path: Path) -> None:
    page = page_of(tmp_path, fitted_run["arm"] / "model.json", fitted_run["other"])
    pairs = dict(row for row in page.rows if len(row) == 2)
    assert pairs["fit run"] == str(fitted_run["arm"])
    assert pairs["verification run"] == str(fitted_run["other"])


def test_a_model_in_another_s_run_is_not_taken_for_its_model(fitted_run: dict[str, Path], tmp_path: Path) -> None:
    fit(open_run(fitted_run["arm"]), ARM).save(fitted_run["other"] / "of_arm.json")
    page = page_of(tmp_path, fitted_run["other"] / "of_arm.json", fitted_run["other"])
    pairs = dict(row for row in page.rows if len(row) == 2)
    assert pairs["fit run"] == str(fitted_run["arm"])


def test_what_cannot_be_done_is_said(
    fitted_run: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lonely = tmp_path / "model.json"
    values = json.loads((fitted_run["arm"] / "model.json").read_text(encoding="utf-8"))
    del values["digest"], values["digests"]
    values["provenance"]["run"] = "gone"
    lonely.write_text(sealed_json(values), encoding="utf-8")
    for arguments, sentence in (
        (
            (lonely, fitted_run["other"]),
            "the run that it was fitted to is no longer there; give both: jointbench report ",
        ),
        ((fitted_run["arm"], fitted_run["other"]), "holds no model.json; fit the run first"),
        ((tmp_path / "nothing.json", fitted_run["arm"]), "nothing.json cannot be read: No such file or directory"),
    ):
        assert main(["report", *map(str, arguments), "--out", str(tmp_path / "report.html")]) == 2
        assert sentence in capsys.readouterr().err
    assert not (tmp_path / "report.html").exists()
