"""What must fail although nothing that runs does: a test file that is gone, tools that are not there."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from hil_tests.need_qemu import need_qemu
from tools import listed_tests, test
from tools.tests.setup_checkouts import ROOT


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with two test files, listed."""
    for name in ("hil_tests/test_a.py", "hil_tests/suite/test_b.py", "hil_tests/a_rig.py", "tools/listed_tests.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "pyproject.toml").write_text('[tool.pytest.ini_options]\ntestpaths = ["hil_tests", "tools"]\n')
    assert listed_tests.main(["--write"], tmp_path) == 0
    return tmp_path


def test_the_list_holds_test_files_alone(checkout: Path) -> None:
    assert (checkout / "tools/listed_tests.txt").read_text() == "hil_tests/suite/test_b.py\nhil_tests/test_a.py\n"
    assert listed_tests.main([], checkout) == 0


def test_a_deleted_test_file_is_missed(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (checkout / "hil_tests/suite/test_b.py").unlink()
    assert listed_tests.main([], checkout) == 1
    assert capsys.readouterr().err == (
        "tools/listed_tests.txt: test files are gone: hil_tests/suite/test_b.py. Put them back, or let the list say so "
        "too: `python -m tools.listed_tests --write`\n"
    )


def test_a_new_test_file_must_be_listed(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (checkout / "tools/test_c.py").touch()
    assert listed_tests.main([], checkout) == 1
    assert "test files are not listed: tools/test_c.py. List them: `python" in capsys.readouterr().err
    assert listed_tests.main(["--write"], checkout) == 0


def test_without_a_list_nothing_passes(checkout: Path) -> None:
    (checkout / "tools/listed_tests.txt").unlink()
    assert listed_tests.main([], checkout) == 1


def test_wrong_use_of_the_list(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert listed_tests.main(["--wirte"], checkout) == 2
    assert "--write" in capsys.readouterr().err


def test_the_list_is_checked_before_anything_runs_and_the_bench_tiers_are_required_of_a_whole_run() -> None:
    assert next(iter(test.checks([]))) == "test files"
    assert test.chosen([]) == ["-m", "not slow", "--require", "functional,deterministic"]
    assert test.chosen(["--slow"]) == ["--require", "functional,deterministic"]
    assert test.chosen(["host"]) == ["-m", "not slow", "host"]
    assert test.chosen(["--slow", "host"]) == ["host"]
    assert test.chosen(["-m", "slow"]) == ["-m", "slow"]


def test_a_check_that_fails_ends_the_run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(test, "checks", lambda _: {"test files": ["false"], "pytest": ["echo", "ran"]})
    monkeypatch.setattr(test, "BESIDE", {"pyright": ["echo", "no errors"]})
    assert test.main([]) == 1
    captured = capfd.readouterr()
    assert "test files failed: no test was run" in captured.err
    assert "ran\n" not in captured.out


def test_a_check_beside_the_tests_fails_the_run_and_is_told_after_them(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(test, "checks", lambda _: {"pytest": ["echo", "ran"]})
    monkeypatch.setattr(test, "BESIDE", {"pyright": ["sh", "-c", "echo 1 error; exit 1"]})
    assert test.main([]) == 1
    captured = capfd.readouterr()
    assert captured.out.index("ran\n") < captured.out.index("1 error\n")
    assert captured.err == "pyright failed\n"
    monkeypatch.setattr(test, "BESIDE", {"pyright": ["true"]})
    assert test.main([]) == 0


@pytest.fixture
def ci(tmp_path: Path) -> Path:
    """CI's script, with a `run` that says how it was called and fails for a verb named by FAILS."""
    script = tmp_path / ".ci" / "run"
    script.parent.mkdir()
    shutil.copy2(ROOT / ".ci" / "run", script)
    run = tmp_path / "run"
    run.write_text('#!/bin/sh\necho "CI=$CI $*"\n[ "$1" != "$FAILS" ]\n')
    run.chmod(0o755)
    return script


def call(script: Path, fails: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if name != "CI"} | {"FAILS": fails}
    return subprocess.run([script], env=env, cwd="/", capture_output=True, text=True, check=False)


def test_ci_requires_all_that_it_runs(ci: Path) -> None:
    done = call(ci, "")
    assert done.stdout.splitlines() == [
        "CI=true test --slow",
        "CI=true hil --bench qemu2 --require functional,deterministic",
    ]
    assert done.returncode == 0


@pytest.mark.parametrize("verb", ["test", "hil"])
def test_ci_fails_with_each_of_its_parts(ci: Path, verb: str) -> None:
    assert call(ci, verb).returncode == 1


@pytest.mark.parametrize(("ci", "what"), [("true", pytest.fail.Exception), ("", pytest.skip.Exception)])
def test_qemu_may_be_missing_on_a_desk_but_not_in_ci(
    ci: str, what: type[BaseException], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JOINTBENCH_QEMU", str(tmp_path / "qemu-system-arm"))
    monkeypatch.setenv("CI", ci)
    with pytest.raises(what, match="no qemu-system-arm at"):
        need_qemu()
