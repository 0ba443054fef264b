"""`jointbench import` as its user meets it: a mapping proposed, filled in, imported, and what looks wrong said."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.cli.main import main
from jointbench.identification.log_check import check_log
from jointbench.recording import Run, open_run, propose_mapping
from jointbench.tests.identification.log_check.logs import data_folder, position_of, simulated_log, torque_of, turned


@pytest.fixture(scope="module")
def log() -> Run:
    return simulated_log(Path("log"))


def write(folder: Path, run: Run, torque: Array) -> Path:
    n = run.robot.n_joints
    header = [f"{name}{k}" for name in ("q", "dq", "tau") for k in range(1, n + 1)]
    values = np.hstack([position_of(run), np.array(run.samples.joint_velocity), torque])
    path = folder / "log.csv"
    np.savetxt(path, np.column_stack([run.samples.time, values]), delimiter=",", header=",".join(["t", *header]),
               comments="", fmt="%.7g")  # fmt: skip
    return path


def test_propose_look_import(tmp_path: Path, log: Run, capsys: pytest.CaptureFixture[str]) -> None:
    path, mapping = write(tmp_path, log, torque_of(log)), tmp_path / "mapping.toml"
    proposing = ["import", "--robot", "cobot6", "--csv", str(path), "--propose", str(mapping)]
    assert main(proposing) == 0
    said = capsys.readouterr().out
    assert "position.unit = rad: " in said
    assert f"then: jointbench import {mapping}" in said
    assert main(proposing) == 2
    assert "exists; a mapping is never overwritten" in capsys.readouterr().err
    assert main(["import", str(mapping), "--out", str(tmp_path / "run"), "--json", "-"]) == 0
    said = capsys.readouterr()
    result = json.loads(said.out)
    assert result["log"]["word"] == "fine"
    assert {"limits", "velocity", "signs and order"} <= {finding["name"] for finding in result["log"]["findings"]}
    assert "the log looks fine: " in said.err
    assert open_run(tmp_path / "run").robot.name == "cobot6"


def test_a_log_without_questions_is_imported_at_once(
    tmp_path: Path, log: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, log, torque_of(log))
    monkeypatch.chdir(tmp_path)
    assert main(["import", "--robot", "cobot6", "log.csv", "--out", "run"]) == 0
    said = capsys.readouterr().out
    assert "torque.side = joint: the largest is " in said
    assert "run: run" in said
    assert {path.name for path in tmp_path.iterdir()} == {"log.csv", "run"}
    run = open_run(tmp_path / "run")
    assert run.samples.motor_position == pytest.approx(position_of(log), abs=1e-6)  # seven digits of the log
    assert (run.path / "mapping.toml").read_text(encoding="utf-8").startswith("# Proposed for cobot6 from log.csv")


def test_a_question_is_asked_with_its_answers_and_answered(
    tmp_path: Path, log: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "log.csv"  # no header, no times
    np.savetxt(path, np.hstack([position_of(log), torque_of(log) / 12.0]), delimiter=",", fmt="%.7g")
    asking = ["import", "--robot", "cobot6", str(path), "--out", str(tmp_path / "run")]
    assert main(asking) == 2
    said = capsys.readouterr().err
    assert (
        "leaves 3 questions open; answer with --set sample_rate_Hz=… torque.unit=… torque.side=…, or have the" in said
    )
    assert "\n  sample_rate_Hz: no column tells the time, nor do logged velocities; write how many rows a" in said
    assert "as N·m of the joints 2.6%, as N·m of the motors 262%, as A of the motors 32%, as mA" in said
    assert not (tmp_path / "run").exists()
    answers = ["sample_rate_Hz=1000", "torque.unit=N·m", "torque.gain=12,12,12,12,12,12", "torque.side=joint"]
    assert main([*asking, "--set", *answers]) == 0
    samples = open_run(tmp_path / "run").samples
    assert samples.sample_period == 1e-3
    assert samples.motor_torque == pytest.approx(torque_of(log), rel=1e-5, abs=1e-4)  # seven digits of the log
    for answer in ("torque.side", "=motor"):
        assert main([*asking, "--set", answer]) == 2
        assert f"--set {answer!r}: give ENTRY=VALUE" in capsys.readouterr().err


def test_a_log_that_looks_wrong_is_saved_and_exits_1(
    tmp_path: Path, log: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    path, mapping = write(tmp_path, log, turned(torque_of(log), 1)), tmp_path / "mapping.toml"
    assert main(["import", "--robot", "cobot6", "--csv", str(path), "--propose", str(mapping)]) == 0
    assert main(["import", str(mapping), "--out", str(tmp_path / "run")]) == 1
    said = capsys.readouterr().out
    assert "  wrong: swapped sign j2: the sign is swapped in motor torque" in said
    assert "    write gain = -1 for it in [torque]" in said
    assert open_run(tmp_path / "run").samples.n_samples == log.samples.n_samples
    repaired = mapping.read_text(encoding="utf-8").replace("[torque]\n", "[torque]\ngain = [1, -1, 1, 1, 1, 1]\n")
    mapping.write_text(repaired, encoding="utf-8")
    assert main(["import", str(mapping), "--out", str(tmp_path / "again")]) == 0


def test_what_is_open_is_said_twice(tmp_path: Path, log: Run, capsys: pytest.CaptureFixture[str]) -> None:
    path, mapping = tmp_path / "log.csv", tmp_path / "mapping.toml"
    values = np.hstack([position_of(log), torque_of(log)])
    np.savetxt(path, values, delimiter=",", fmt="%.7g")
    assert main(["import", "--robot", "cobot6", "--csv", str(path), "--propose", str(mapping), "--json", "-"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["to_fill_in"] == ["sample_rate_Hz"]  # no unit but one makes usual torques of them
    assert "fill in sample_rate_Hz, then: jointbench import" in said.err
    assert main(["import", str(mapping)]) == 2
    assert "still to be filled in: sample_rate_Hz;" in capsys.readouterr().err


def test_data_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", "tx40", "--data", str(tmp_path / "log.csv")]) == 2
    assert f"the log's data {tmp_path / 'log.csv'}: there is no such file or folder; give" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--propose", "m.toml"],
        ["--robot", "cobot6"],
        ["m.toml", "n.toml"],
        ["m.toml", "--set", "torque.side=motor"],
        ["--robot", "cobot6", "log.csv", "--data", "logs"],
    ],
)
def test_half_a_command_says_what_is_wanted(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", *arguments]) == 2
    assert (
        "give a mapping to import (jointbench import mapping.toml), or the robot and its log ("
        in capsys.readouterr().err
    )


def test_settings_no_fit_would_take_are_refused_before_there_is_a_run(
    tmp_path: Path, log: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    path, mapping = write(tmp_path, log, torque_of(log)), tmp_path / "mapping.toml"
    assert main(["import", "--robot", "cobot6", "--csv", str(path), "--propose", str(mapping)]) == 0
    text = mapping.read_text(encoding="utf-8")
    mapping.write_text(text + ("" if "[fit]" in text else "[fit]\n") + 'torqe = "joint"\n', encoding="utf-8")
    assert main(["import", str(mapping), "--out", str(tmp_path / "run")]) == 2
    assert f"mapping {mapping}, [fit]: fit setting 'torqe' is not known" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


PAGE = Path(__file__).parents[4] / "docs" / "import.md"
TEXT = PAGE.read_text(encoding="utf-8")
NUMBER = re.compile(r"[-+]?\d+\.?\d*(?:e[-+]?\d+)?")
TOLERANCE = 0.05
"""Of the numbers shown: sums in another order, and the solver's last digits, differ between machines."""


def commands() -> list[tuple[list[str], list[str], int]]:
    """Arguments, lines shown, and exit code of each command of the page."""
    found: list[tuple[list[str], list[str], int]] = []
    for block in re.findall(r"```console\n(.*?)```", TEXT, re.DOTALL):
        for part in block.split("$ jointbench ")[1:]:
            first, *shown = part.splitlines()
            code = int(shown.pop()[-2]) if shown and shown[-1].startswith("(exit code") else 0
            found.append((first.split(), shown, code))
    return found


def same(shown: str, said: str) -> bool:
    """Whether two lines are the same but for the last digits of numbers."""
    if " ".join(NUMBER.sub("#", shown).split()) != " ".join(NUMBER.sub("#", said).split()):
        return False
    pairs = zip(NUMBER.findall(shown), NUMBER.findall(said), strict=True)
    return all(abs(float(a) - float(b)) <= max(TOLERANCE * abs(float(a)), 1e-3) for a, b in pairs)


def missing(shown: list[str], said: list[str]) -> str | None:
    """The first line shown that was not said in its turn; lines may be left out where an ellipsis stands."""
    place, free = 0, False
    for line in shown:
        if line == "…":
            free = True
            continue
        rest = range(place, len(said)) if free else range(place, min(place + 1, len(said)))
        found = next((k for k in rest if same(line, said[k])), None)
        if found is None:
            return line
        place, free = found + 1, False
    return None


def test_lines_are_held_against_each_other() -> None:
    assert same("joint_2  2.276  11.6%", "joint_2    2.280  11.5%")
    assert not same("joint_2  2.276", "joint_2  2.5")
    assert not same("joint_2: poor fit", "joint_2: refused")
    assert missing(["a 1", "…", "c"], ["a 1", "b", "b", "c"]) is None
    assert missing(["a 1", "c"], ["a 1", "b", "c"]) == "c"
    assert missing(["c", "…", "a"], ["a", "c"]) == "c"


def test_the_page_has_commands_and_names_what_there_is() -> None:
    verbs = {arguments[0] for arguments, _, _ in commands()}
    assert verbs == {"import", "fit", "validate", "report", "export", "compare"}
    assert propose_mapping.__name__ in TEXT
    assert check_log.__name__ in TEXT


@pytest.mark.slow
def test_its_commands_print_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in data_folder("kinova_gen3").iterdir():
        shutil.copyfile(path, tmp_path / path.name)
    monkeypatch.chdir(tmp_path)
    for arguments, shown, code in commands():
        assert main(arguments) == code, arguments
        said = [line for line in capsys.readouterr().out.splitlines() if not re.fullmatch(r"\d+ s in all", line)]
        assert missing(shown, said) is None, "\n".join([*arguments, *said])
    assert (tmp_path / "report.html").stat().st_size > 0
