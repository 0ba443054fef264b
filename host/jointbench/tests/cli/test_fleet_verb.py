"""`jointbench fit RUN RUN…`: every run its model, a table of what differs, and no run lost for another."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from jointbench.cli.fleet import apart_text, is_fleet
from jointbench.cli.main import main
from jointbench.excitation import random_excitation
from jointbench.identification import fit, load_model
from jointbench.identification.random_effects import Family
from jointbench.recording import save_samples
from jointbench.robot import load_robot
from jointbench.tests.identification.synthetic import arm, synthetic_run
from jointbench.tests.results.recordings import PERIOD_S, recorded_run

UNITS = ("arm1", "arm2", "arm3")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs of cobot6, and one that is torn."""
    robot, folder = load_robot("cobot6"), tmp_path_factory.mktemp("runs")
    plan = random_excitation(robot, period=PERIOD_S, seed=1)
    for seed, name in enumerate(UNITS):
        save_samples(folder / name, recorded_run(robot, plan, seed, name).samples, {"robot": "cobot6"})
    (folder / "torn").mkdir()
    (folder / "torn" / "run.toml").write_text("version = ")
    return folder


def fitted(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, dict[str, Any], str]:
    code = main(["fit", *map(str, arguments), "--json", "-"])
    said = capsys.readouterr()
    return code, json.loads(said.out) if said.out else {}, said.err


def test_every_run_has_its_model_and_the_torn_one_its_reason(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    code, found, said = fitted(capsys, f"{folder}/*", "--out", tmp_path, "--csv", tmp_path / "spread.csv")

    assert code == 1  # one has no model
    assert "3 of 4 runs fitted" in said
    assert "no model of torn: " in said
    assert "3 units of cobot6" in said
    assert found["runs"]["torn"]["failure"].endswith("(at end of document)")
    assert found["runs"]["torn"]["model"] is None
    for name in UNITS:
        assert found["runs"][name]["verdict"] == "identified"
        assert load_model(found["runs"][name]["model"]).robot.name == "cobot6"
    (family,) = found["families"]
    assert family["units"] == list(UNITS)
    parameter = family["parameters"]["j1.coulomb"]
    assert parameter["mean"] == pytest.approx(5.0, abs=4.0 * parameter["mean_sigma"] + 0.01)
    assert sorted(parameter["values"]) == list(UNITS)
    assert parameter["lowest"] <= parameter["spread"] <= parameter["highest"]
    with (tmp_path / "spread.csv").open(encoding="utf-8") as file:
        rows = {row["name"]: row for row in csv.DictReader(file)}
    assert float(rows["j1.coulomb"]["mean"]) == parameter["mean"]
    assert rows["j1.coulomb"]["robot"] == "cobot6"
    assert set(rows) == set(family["parameters"])


def test_all_well_is_exit_code_zero(folder: Path, capsys: pytest.CaptureFixture[str]):
    code, found, _ = fitted(capsys, folder / "arm1", folder / "arm2")
    assert code == 0
    assert found["runs"]["arm1"]["model"] == str(folder / "arm1" / "model.json")
    assert (folder / "arm2" / "model.json").is_file()


def test_the_settings_reach_every_run(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    _, found, _ = fitted(capsys, folder / "arm1", folder / "arm2", "--out", tmp_path, "--cutoff", "15")
    assert {load_model(each["model"]).settings.cutoff_Hz for each in found["runs"].values()} == {15.0}


def test_what_is_asked_for_wrongly_is_named(folder: Path, capsys: pytest.CaptureFixture[str]):
    both = ("--jobs", "2", "--scheduler", "tcp://10.0.0.1:8786")
    code, _, said = fitted(capsys, folder / "arm1", folder / "arm2", *both)
    assert code == 2
    assert "--jobs are processes of this machine, --scheduler has its own; leave one out" in said
    code, _, said = fitted(capsys, folder / "arm1", folder / "arm2", "--jobs", "0")
    assert code == 2
    assert "workers = 0 must be at least 1" in said
    code, _, said = fitted(capsys, f"{folder}/none*")
    assert code == 2
    assert "stands for no run" in said


def test_why_units_are_not_of_one_family_is_told():
    large, small = (
        Family((name,), (fit(synthetic_run(arm(joints), motion_seed=1, noise_seed=1)),))
        for name, joints in (("large", 3), ("small", 2))
    )
    told = apart_text(large, small)
    assert told.startswith("small not with large: models of robots ")
    assert "the joints differ (only the first has j3; only the second nothing more)" in told
    assert apart_text(large, large) == ""


def test_one_run_by_its_url(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    code, found, _ = fitted(capsys, f"file://{folder}/arm1", "--out", tmp_path)
    assert code == 0
    assert load_model(found["runs"]["arm1"]["model"]).robot.name == "cobot6"


@pytest.mark.parametrize("place", ["file:///runs/arm1", "arm1.zip"])
def test_where_urls_are_not_read_it_is_said(place: str, capsys: pytest.CaptureFixture[str]):
    code, _, said = fitted(capsys, "--together", place, place)
    assert code == 2
    assert "is no directory; only `jointbench fit`, without --together, reads runs from .zip files and URLs" in said


def test_what_is_a_fleet():
    assert [is_fleet(runs) for runs in (["a"], ["file:///a"], ["a", "b"], ["a*"], ["a.zip"], ["s3://a/b"])] == [
        False, True, True, True, True, True,
    ]  # fmt: skip
