"""`run` as it is typed, in a checkout where nothing is set up."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tools.setup import __main__ as setup
from tools.setup.checkout import Checkout, exclusive
from tools.setup.command import run_over_network
from tools.tests.setup_checkouts import ROOT, bare_checkout, start

NOWHERE = "http://127.0.0.1:9"  # the discard port of this machine: nobody listens


def test_the_verbs_are_listed_without_any_set_up(tmp_path: Path) -> None:
    root = bare_checkout(tmp_path)
    listings = [start(root, *arguments).communicate()[0] for arguments in ((), ("--help",), ("help",))]
    assert all(listing == listings[0] for listing in listings)
    assert "setup " in listings[0]
    assert not (root / ".venv").exists()
    assert not (root / ".cache").exists()


def test_run_may_be_called_by_a_link(tmp_path: Path) -> None:
    root = bare_checkout(tmp_path)
    (root / ".cache").touch()  # in the way, so that the set-up stops at once and names where it stands
    link = tmp_path / "link"
    link.symlink_to(root / "run")
    done = subprocess.run([link, "fit"], cwd="/", capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == f"set-up: [Errno 17] File exists: '{root}/.cache' ({root}/.cache)\n"


def test_no_python(tmp_path: Path) -> None:
    root = bare_checkout(tmp_path)
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("dirname", "readlink"):
        (tools / name).symlink_to(str(shutil.which(name)))
    process = start(root, "setup", PATH=str(tools))
    assert process.communicate()[1].strip().endswith("type: sudo apt-get install python3 python3-venv")
    assert process.returncode == 2


def test_no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """After four tries: what is done, why each failed, the sentence at the end, and where the rest stands."""
    pauses: list[float] = []
    monkeypatch.setattr("tools.setup.command.pause", pauses.append)
    monkeypatch.setattr("tools.setup.packages.run_over_network", failing)
    monkeypatch.setattr("tools.setup.environment._make_venv", lambda _: None)
    root = bare_checkout(tmp_path)
    monkeypatch.setattr(setup, "__file__", str(root / "tools" / "setup" / "__main__.py"))
    assert setup.main(["environment"]) == 2
    said = capsys.readouterr().err.splitlines()
    assert pauses == [1, 3, 9]
    assert said[0] == "setting up the Python environment (.venv, about 0.5 GB)"
    assert said[1:4] == [
        f"  pip: no network: a server could not be reached; trying again in {pause:.0f} s" for pause in pauses
    ]
    assert said[4].startswith("set-up: pip: no network: a server could not be reached; connect")
    assert said[5] == f"  All output: {root}/.cache/setup.log"
    assert len(said) == 6


def failing(command: list[str | Path], log: Path, env: dict[str, str] | None = None) -> str:
    """Do what is asked with a pip that cannot reach its server, as it says so."""
    return run_over_network(["sh", "-c", 'echo "Connection refused"; exit 1', "-m", "pip"], log, env)


@pytest.mark.skipif(not shutil.which("apt-get"), reason="asks this machine's apt")
def test_no_mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("tools.setup.command.pause", lambda _: None)
    monkeypatch.setenv("JOINTBENCH_DEBIAN_MIRROR", NOWHERE)
    monkeypatch.delenv("JOINTBENCH_MICROPYTHON", raising=False)
    monkeypatch.setattr(setup, "__file__", str(tmp_path / "tools" / "setup" / "__main__.py"))
    assert setup.main(["micropython"]) == 2
    said = capsys.readouterr().err
    assert f"did not come from {NOWHERE}: no answer (" in said
    assert "Type the same command again" in said


def test_ctrl_c_says_that_the_same_command_goes_on(tmp_path: Path) -> None:
    root = bare_checkout(tmp_path)
    process = start(root, "setup", PIP_INDEX_URL=NOWHERE)
    assert process.stderr is not None
    assert process.stderr.readline().startswith("setting up the Python environment")
    os.killpg(process.pid, signal.SIGINT)
    said = process.communicate()[1]
    assert said == "set-up: interrupted; the same command goes on from here\n"
    assert process.returncode in (130, -signal.SIGINT)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(28, "No space left on device"), "no space left on the disk"),
        (PermissionError(13, "Permission denied", "/x"), "must be writable for the user who runs this (/x)"),
    ],
)
def test_an_error_of_the_system_is_one_sentence(
    error: OSError, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: Checkout) -> None:
        raise error

    monkeypatch.setattr(setup, "__file__", str(tmp_path / "tools" / "setup" / "__main__.py"))
    monkeypatch.setattr(setup.environment, "install", fail)
    assert setup.main(["environment"]) == 2
    assert said in capsys.readouterr().err


def test_a_second_set_up_waits_for_the_first(tmp_path: Path) -> None:
    root = bare_checkout(tmp_path)
    with exclusive(Checkout(root)):
        process = start(root, "fit", PIP_INDEX_URL=NOWHERE)
        assert process.stderr is not None
        assert process.stderr.readline() == "another set-up of this checkout is running; waiting for it\n"
        assert not (root / ".venv").exists()
        (root / ".cache" / "work" / "mine").touch()
    assert process.stderr.readline().startswith("setting up the Python environment")
    assert not (root / ".cache" / "work" / "mine").exists()
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def test_what_is_ready_is_found_ready() -> None:
    parts = ["environment", "development", "convert", "rerun", "micropython"]
    command = [ROOT / ".venv/bin/python", "-S", "-P", "-m", "tools.setup", "--check", *parts]
    assert subprocess.run(command, env=os.environ | {"PYTHONPATH": str(ROOT)}, check=False).returncode == 0
