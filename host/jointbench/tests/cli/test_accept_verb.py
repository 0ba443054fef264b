"""`jointbench accept`: until then an edited run goes nowhere, and afterwards everything says that it was edited."""

import json
from pathlib import Path

import pytest

from jointbench.cli.main import main
from jointbench.identification import load_model
from jointbench.model import load_robot
from jointbench.recording import save_samples
from jointbench.tests.identification.synthetic import synthetic_run
from jointbench.tests.recording.test_seal import edit

TOLD = "robot.toml (joints.j1.link.mass_kg = 3.8, was 3.7)"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two runs, of which "mine" has a model that was fitted before its robot file was edited."""
    robot = load_robot("cobot6:2")
    for seed, name in enumerate(("mine", "other"), 1):
        run = synthetic_run(robot, motion_seed=seed, noise_seed=seed, repeats=1)
        save_samples(tmp_path / name, run.samples, {"robot": "cobot6:2"})
    monkeypatch.chdir(tmp_path)
    assert main(["fit", "mine"]) == 0
    edit(tmp_path / "mine" / "robot.toml", "mass_kg = 3.7", "mass_kg = 3.8")
    return tmp_path


@pytest.mark.slow  # fits, and draws reports
def test_an_edited_run_goes_nowhere_until_it_is_accepted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    uses = (
        ["info", "mine"], ["fit", "mine"], ["validate", "mine/model.json", "mine"], ["convert", "mine", "--to", "csv"],
        ["report", "mine/model.json", "mine"], ["report", "mine/model.json", "other"], ["friction", "mine"],
    )  # fmt: skip
    capsys.readouterr()
    for words in uses:
        assert main(words) == 2, words
        said = capsys.readouterr().err
        assert "robot.toml was changed after it was imported: joints.j1.link.mass_kg = 3.8, was 3.7" in said
        assert "note it: `jointbench accept mine --reason" in said
    assert main(["doctor", "mine"]) == 1
    assert "damaged: SHA-256 of robot.toml" in capsys.readouterr().out

    assert main(["accept", "mine", "--reason", "weighed", "--json", "accepted.json"]) == 0
    said = capsys.readouterr().out
    assert "  joints.j1.link.mass_kg: 3.7 → 3.8\n" in said
    (noted,) = json.loads((folder / "accepted.json").read_text())["files"]
    assert noted["values"] == [{"name": "joints.j1.link.mass_kg", "before": 3.7, "after": 3.8}]

    assert main(["doctor", "mine"]) == 0
    assert TOLD in capsys.readouterr().out
    assert main(["report", "mine/model.json", "mine", "--out", "before.html"]) == 0
    assert "The fit run was edited after the model was fitted to it" in (folder / "before.html").read_text()
    assert main(["fit", "mine"]) == 0
    assert TOLD in capsys.readouterr().out
    (sentence,) = load_model("mine/model.json").edits
    assert sentence.startswith("fitted to mine, edited, and accepted on ")
    assert TOLD in sentence
    assert main(["report", "mine/model.json", "mine", "--out", "after.html"]) == 0
    page = (folder / "after.html").read_text()
    assert "joints.j1.link.mass_kg = 3.8, was 3.7" in page
    assert "The fit run was edited after" not in page
    capsys.readouterr()
    for words in (["validate", "mine/model.json", "other"], ["export", "mine/model.json", "--out", "arm.h"]):
        main(words)
        assert f"warning: the model was {sentence}" in capsys.readouterr().out


@pytest.mark.slow  # as its folder is
def test_what_was_measured_is_not_accepted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = bytearray((folder / "other" / "samples.npz").read_bytes())
    data[len(data) // 2] ^= 1
    (folder / "other" / "samples.npz").write_bytes(data)
    assert main(["accept", "other"]) == 2
    assert "take samples.npz from a copy: what was measured is never edited" in capsys.readouterr().err
