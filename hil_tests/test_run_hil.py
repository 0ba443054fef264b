"""`./run hil` as it is typed: on a board at a serial port, and where it must not pass."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


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
    """Nothing of the functional tier may need more than a bare board: with --require a skip would fail."""
    arguments = ("--bench", "serial", "--port", simboard, "--require", "functional,realtime", "--out", tmp_path / "out")

    done = run_hil(*arguments, "--json", "-")

    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["command"], result["bench"]["clock"], result["seed"]) == ("hil", "wall", 0)
    assert result["checks"]
    assert all(check["ok"] for check in result["checks"])
    assert {test["outcome"] for test in result["tests"] if test["tier"] != "deterministic"} == {"passed"}
    assert {path.name for path in (tmp_path / "out").iterdir()} >= {"report.html", "result.json", "junit.xml"}


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
