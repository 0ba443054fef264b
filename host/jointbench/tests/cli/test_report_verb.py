"""`jointbench report`: a model with one run or two, two models, two runs; and what it says when it cannot."""

import json
import re
from pathlib import Path

import pytest

from jointbench.cli.main import main
from jointbench.files import sealed_json
from jointbench.identification import fit
from jointbench.recording import open_run
from jointbench.tests.identification.test_fleet import ARM, NAMES, make_run, true_parameters
from jointbench.tests.results.page_text import Page


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Runs of one arm and of one with a tenth more friction, each with its model; and a run without one."""
    folder = tmp_path_factory.mktemp("runs")
    truth = true_parameters(1)[0]
    rough = truth.copy()
    rough[NAMES.index("j2.viscous")] *= 1.1
    places: dict[str, Path] = {}
    for seed, (name, parameters) in enumerate({"arm": truth, "rough": rough, "other": truth}.items()):
        places[name] = make_run(folder / name, parameters, seed)
        if name != "other":
            fit(open_run(places[name]), ARM).save(places[name] / "model.json")
    return places


def page_of(tmp_path: Path, *arguments: str | Path) -> Page:
    out = tmp_path / "report.html"
    assert main(["report", *map(str, arguments), "--out", str(out)]) == 0
    return Page(out.read_text(encoding="utf-8"))


def test_two_runs_are_compared_by_their_models(
    places: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = page_of(tmp_path, places["arm"], places["rough"])
    assert page.by_id["verdict"] == "different"
    said = capsys.readouterr().out.splitlines()
    assert said[:2] == [f"A: {places['arm'] / 'model.json'}", f"B: {places['rough'] / 'model.json'}"]
    assert said[2].startswith("different: χ² ")
    assert "j2.viscous +" in said[2]
    assert said[3] == f"report: {tmp_path / 'report.html'}"


def test_two_models_are_compared_too(places: dict[str, Path], tmp_path: Path) -> None:
    page = page_of(tmp_path, places["rough"] / "model.json", places["rough"] / "model.json")
    assert page.by_id["verdict"] == "same"


def test_a_model_and_two_runs_are_a_report_on_the_model(places: dict[str, Path], tmp_path: Path) -> None:
    page = page_of(tmp_path, places["arm"] / "model.json", places["arm"], places["other"])
    assert "a motion it was not fitted to" in page.text
    assert f"jointbench report model.json {places['arm']} {places['other']}" in page.text


@pytest.mark.parametrize("runs", [["arm", "other"], ["arm"]])
def test_report_and_terminal_say_the_same_error(
    runs: list[str], places: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = places["arm"] / "model.json"
    page = page_of(tmp_path, model, *(places[name] for name in runs))
    report = capsys.readouterr().out
    assert main(["validate", str(model), str(places[runs[-1]]), "--in-sample"]) == 0
    validate = capsys.readouterr().out
    found = [re.search(r"torques of (.*) with an error of ([\d.]+)\s%", text) for text in (page.text, report, validate)]
    assert all(found)
    assert len({match.groups() for match in found if match}) == 1


def test_the_model_s_own_run_alone_says_that_it_is_its_own(places: dict[str, Path], tmp_path: Path) -> None:
    page = page_of(tmp_path, places["arm"] / "model.json", places["arm"])
    assert "the motion it was fitted to" in page.text
    assert "say nothing about other motions" in page.text


def test_another_run_alone_finds_the_model_s_own_beside_it(places: dict[str, Path], tmp_path: Path) -> None:
    page = page_of(tmp_path, places["arm"] / "model.json", places["other"])
    pairs = dict(row for row in page.rows if len(row) == 2)
    assert pairs["fit run"] == str(places["arm"])
    assert pairs["verification run"] == str(places["other"])


def test_a_model_in_another_s_run_is_not_taken_for_its_model(places: dict[str, Path], tmp_path: Path) -> None:
    fit(open_run(places["arm"]), ARM).save(places["other"] / "of_arm.json")
    page = page_of(tmp_path, places["other"] / "of_arm.json", places["other"])
    pairs = dict(row for row in page.rows if len(row) == 2)
    assert pairs["fit run"] == str(places["arm"])


def test_what_cannot_be_done_is_said(
    places: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lonely = tmp_path / "model.json"
    values = json.loads((places["arm"] / "model.json").read_text(encoding="utf-8"))
    del values["digest"], values["digests"]
    values["provenance"]["run"] = "gone"
    lonely.write_text(sealed_json(values), encoding="utf-8")
    for arguments, sentence in (
        ((lonely, places["other"]), "the run that it was fitted to is no longer there; give both: jointbench report "),
        ((places["arm"], places["other"]), "holds no model.json; fit the run first"),
        ((tmp_path / "nothing.json", places["arm"]), "nothing.json cannot be read: No such file or directory"),
    ):
        assert main(["report", *map(str, arguments), "--out", str(tmp_path / "report.html")]) == 2
        assert sentence in capsys.readouterr().err
    assert not (tmp_path / "report.html").exists()
