"""`jointbench history`: its tables, the sentence, the exit code, and everything as JSON."""

import json
from pathlib import Path
from typing import Any

import pytest

from jointbench.cli.main import main
from jointbench.identification import fit
from jointbench.recording import open_run
from jointbench.tests.identification.test_fleet import ARM, NAMES, make_run, true_parameters


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
