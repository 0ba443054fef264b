"""Nothing that was named is overwritten unasked, and of what has a default name the one before is kept beside it."""

import json
from pathlib import Path

import pytest

from jointbench.cli.main import main
from jointbench.cli.parser import VERBS, module_of

PLAN = ["plan", "cobot6:2", "--random", "--period", "3.2"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("command", "named"),
    [
        (PLAN, "--out"),
        (PLAN, "--picture"),
        (["sweep", "cobot6:2", "j1"], "--out"),
        (["assemble", "bench.toml"], "--out"),
        (["fit", "runs/none"], "--out"),
        (["fit", "runs/a", "runs/b"], "--csv"),
        (["report", "model.json", "runs/none"], "--out"),
        (["export", "cobot6"], "--out"),
        (["convert", "runs/none"], "--out"),
        (["residual", "runs/none"], "--picture"),
        (["prove", "none.json", "none.toml"], "--report"),
        (["commission", "none.toml"], "--write"),
    ],
)
def test_a_named_file_that_is_there_asks_for_force(
    command: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("mine.urdf").write_text("of a week's work")
    assert main([*command, named, "mine.urdf"]) == 2
    assert "mine.urdf exists; name another file, or replace it with --force" in capsys.readouterr().err
    assert Path("mine.urdf").read_text() == "of a week's work"


def test_every_verb_that_writes_takes_force() -> None:
    writing = {verb for verb in VERBS if getattr(module_of(verb), "WRITES", ())}
    on_benches = {"assemble", "commission", "prove"}
    assert writing == {*on_benches, "init", "plan", "sweep", "fit", "stance", "report", "export", "convert", "residual"}


def test_a_result_replaces_an_earlier_result_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    Path("model.json").write_text('{"estimator": "of a week\'s work"}')
    Path("empty.json").touch()
    for name in ("model.json", "empty.json"):
        before = Path(name).read_text()
        assert main(["info", "cobot6", "--json", name]) == (2 if before else 0)
        assert (Path(name).read_text() == before) is bool(before)
    assert "--json model.json exists and is not a result of an earlier command; name another" in capsys.readouterr().err
    for robot in ("cobot6", "modular7"):
        assert main(["info", robot, "--json", "result.json"]) == 0
        assert json.loads(Path("result.json").read_text())["robot"] == robot


def test_with_force_it_is_replaced() -> None:
    Path("mine.urdf").write_text("of a week's work")
    assert main(["export", "cobot6", "--out", "mine.urdf", "--force"]) == 0
    assert Path("mine.urdf").read_text().startswith("<?xml")


def test_of_a_plan_without_a_name_the_one_before_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    for speeds in ("10", "20", "30"):
        assert main(["sweep", "cobot6:2", "j1", "--speeds", speeds]) == 0
    found = {str(path): json.loads(path.read_text())["n_speeds"] for path in Path().glob("*.json")}
    assert found == {"sweep-1.json": 10, "sweep-2.json": 20, "sweep.json": 30}
    said = capsys.readouterr().out
    assert "the earlier file is kept as sweep-1.json" in said
    assert "the earlier file is kept as sweep-2.json" in said
