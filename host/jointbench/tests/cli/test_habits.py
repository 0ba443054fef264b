"""What every verb does alike: it says what is next, takes lists of numbers, describes whatever it is given."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

import jointbench as jb
from jointbench.checks import Result
from jointbench.cli.main import OWN, SILENT, main, next_step
from jointbench.cli.parser import VERBS, Parser, build_parser


@pytest.fixture(scope="module")
def folder(files_of_examples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run, model.json and plan.json of an arm with two joints."""
    folder = tmp_path_factory.mktemp("habits")
    (folder / "runs").symlink_to(files_of_examples / "runs")
    (folder / "bench.toml").write_text((files_of_examples / "bench.toml").read_text(), encoding="utf-8")
    jb.fit(folder / "runs" / "arm", friction="coulomb_viscous").save(folder / "model.json")
    jb.random_excitation(jb.load_robot("cobot6:2"), period=4.0, seed=1).save(folder / "plan.json")
    return folder


@pytest.mark.parametrize(
    ("what", "words", "following"),
    [
        ("cobot6:2", [], "plan cobot6:2"),
        ("bench.toml", ["loop://", "2 boards"], "check bench.toml"),
        ("runs/arm", ["10000 samples at 0.001 s"], "fit runs/arm"),
        ("model.json", ["14 base parameters: 12 identified, 2 refused", "verdict: identified"], "validate model.json"),
        ("plan.json", ["fourier, 4 s, seed 1", "left to the limits"], "run BENCH --plan plan.json"),
    ],
)
def test_info_shows_joints_limits_and_drives_of_anything(
    what: str,
    words: list[str],
    following: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder)
    assert main(["info", what]) == 0
    said = capsys.readouterr().out

    for word in (*words, "-150 … 150°", "90°/s", "300°/s²", "125 N·m", "upper_arm", "0.124 N·m/A", "10 A", "harmonic"):
        assert word in said
    assert said.splitlines()[-1].startswith(f"next: jointbench {following}")
    assert main(["info", what, "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["joints"] == ["j1", "j2"]


def test_info_on_the_plan_of_an_unknown_robot_says_so(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = jb.load_excitation(folder / "plan.json").to_dict() | {"robot": "mine"}
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({key: value for key, value in plan.items() if key != "digest"}), encoding="utf-8")

    assert main(["info", str(path)]) == 0
    assert "its robot is none of the library" in capsys.readouterr().out
    assert main(["info", str(path), "--base-parameters"]) == 2


@pytest.mark.parametrize("refused", [False, True], ids=["yes", "no"])
@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb not in (*SILENT, *OWN)])
def test_after_each_verb_there_is_a_command_that_parses(verb: str, refused: bool) -> None:
    given = argparse.Namespace(
        bench="bench.toml", target="bench.toml", plan="plan.json", what="arm.toml", source="log.csv", robot="cobot6",
        model="m.json", first="m.json", second="run", a="a.json", b="b.json", run="run", out=["arm.h"],
    )  # fmt: skip
    command = next_step(verb, given, Result(verb, refused=refused))

    parser = build_parser()
    words = command.split()[1:]
    if words[-1] != "--help":
        parser.parse_args(words)
    assert words[0] in VERBS


@pytest.mark.parametrize("text", ["-0,-90,0", "-1.5", "-.5,2", "-1e-3,4"])
def test_lists_of_numbers_may_begin_with_a_minus(text: str) -> None:
    parser = Parser(prog="jointbench")
    parser.add_argument("--home")
    parser.add_argument("place", nargs="?")

    assert parser.parse_args(["--home", text]).home == text
    assert parser.parse_args([text]).place == text


def test_a_word_that_begins_with_a_minus_is_an_option() -> None:
    with pytest.raises(SystemExit):
        Parser(prog="jointbench").parse_args(["-x,1"])
