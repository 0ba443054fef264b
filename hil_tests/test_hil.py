"""docs/hil.md as it stands there, and `./run hil` as it is typed."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jointbench.testing import FEATURES
from jointbench.testing.summary import Summary

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "hil.md").read_text(encoding="utf-8")
FILES = re.findall(r"^`([\w/]+\.\w+)`:\n\n(?:<!--.*-->\n\n)?```\w+\n(.*?)```$", PAGE, re.MULTILINE | re.DOTALL)


def first_cells(heading: str) -> list[str]:
    """The names in the first column of the first table behind a heading."""
    behind = PAGE[PAGE.index(heading) :]
    table = re.search(r"(?:^\|.*\n)+", behind, re.MULTILINE)
    assert table
    cells = [row.split("|")[1] for row in table.group().splitlines()[2:]]
    return [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]


@pytest.fixture
def port() -> Iterator[str]:
    """The port of a bare board."""
    command = [sys.executable, "-P", "-u", "-m", "hil_tests.simboard", "--attached"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "host", ROOT / "protocol")))}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment
    ) as board:
        assert board.stdout
        assert board.stdin
        try:
            yield board.stdout.readline().strip()
        finally:
            board.stdin.close()


@pytest.mark.slow
def test_the_suite_of_ones_own_runs_on_a_board_at_a_port(port: str, tmp_path: Path) -> None:
    assert [name for name, _ in FILES] == [
        "benches/desk.toml", "benches/elbow.toml", "requirements/elbow.toml", "test_elbow.py",
    ]  # fmt: skip
    for name, text in FILES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    command = [
        *(sys.executable, "-P", "-m", "pytest", "-p", "jointbench.testing.plugin", "-p", "no:cacheprovider"),
        *("--bench=desk", f"--bench-port={port}", "--bench-out=out"),
    ]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT / "host", ROOT / "protocol")))}
    ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout
    result = json.loads((tmp_path / "out" / "result.json").read_text(encoding="utf-8"))
    assert result["ok"]
    outcomes = {test["test"].partition("::")[2]: test["outcome"] for test in result["tests"]}
    assert outcomes == {"test_it_follows": "passed", "test_the_gear_winds_up": "skipped"}
    assert {check["name"] for check in result["checks"]} >= {"elbow.lost", "elbow.follows"}
    assert [(board["joint"], board["url"]) for board in result["boards"]] == [("elbow", port)]
    assert [ledger["run"] for ledger in result["tests"][0]["ledgers"]] == ["run"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["junit.xml", "report.html", "result.json"]


def test_all_features_are_told() -> None:
    behind = PAGE[PAGE.index("| feature | says |") :].partition("\n\n")[0].splitlines()[2:]
    assert behind == [f"| `{name}` | {said} |" for name, said in FEATURES.items()]


def test_all_keys_of_the_result_are_told() -> None:
    told = first_cells("### result.json")
    frame = {"command", "seed", "seconds", "checks"}
    assert set(told) == set(Summary((), {"name": "desk"}, 0, 0, "", 0.0, "").to_dict()) - frame


def run_hil(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "tools.hil", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture
def simboard() -> Iterator[str]:
    """Port of a bare board that another process serves."""
    command = [sys.executable, "-m", "hil_tests.simboard", "--attached"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.stdin.close()
        assert process.wait() == 0


@pytest.mark.slow
def test_the_suite_passes_on_a_serial_port(simboard: str, tmp_path: Path) -> None:
    """Nothing of the functional tier may need more than a bare board: with --require a skip would fail.

    This board is emulated by the wall clock, and late where its machine is busy: a defect fails in each of three runs.
    """
    arguments = ("--bench", "serial", "--port", simboard, "--require", "functional,realtime", "--json", "-")

    out = tmp_path / "out"
    done = run_hil(*arguments, "--out", out)
    for again in ("second", "third"):
        if done.returncode:
            out = tmp_path / again
            done = run_hil(*arguments, "--out", out)

    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["command"], result["bench"]["clock"], result["seed"]) == ("hil", "wall", 0)
    assert result["checks"]
    assert all(check["ok"] for check in result["checks"])
    assert {test["outcome"] for test in result["tests"] if test["tier"] != "deterministic"} == {"passed"}
    assert {path.name for path in out.iterdir()} >= {"report.html", "result.json", "junit.xml"}


@pytest.mark.slow
def test_no_board_at_the_port_is_no_pass(tmp_path: Path) -> None:
    test = "hil_tests/suite/test_handshake.py"
    arguments = ("--bench", "serial", "--port", "/dev/nowhere", "--out", tmp_path / "out", "--json", tmp_path / "json")

    done = run_hil(*arguments, "--", test)

    assert done.returncode == 1
    assert "port /dev/nowhere cannot be opened" in done.stdout
    assert f"./run hil --bench serial --seed 0 --port /dev/nowhere -- {test}" in done.stdout
    outcomes = [test["outcome"] for test in json.loads((tmp_path / "json").read_text())["tests"]]
    assert outcomes[0] == "error"
    assert set(outcomes[1:]) == {"skipped"}  # one error, and why the others were not tried


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--bench", "lab"], 2, "there is no such bench; there are cobot6, "),
        (["--", "-k", "nosuchtest"], 1, "deselected"),
        (["--require", "hurried"], 2, "'hurried' is no tier; there are functional, "),
        (
            ["--port", "/dev/ttyACM9", "--", "hil_tests/suite/test_handshake.py"],
            1,
            "/dev/ttyACM9 is for boards at real ports",
        ),
        (["--", "hil_tests/suite/test_nothing.py"], 2, "pytest ended with status 4"),
    ],
)
def test_what_cannot_run_does_not_pass(tmp_path: Path, arguments: list[str], code: int, message: str) -> None:
    done = run_hil("--out", tmp_path / "out", *arguments)
    assert message in done.stdout + done.stderr
    assert done.returncode == code
