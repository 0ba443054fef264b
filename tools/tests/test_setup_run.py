"""`run` as it is typed, in a checkout where nothing is set up."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tools.setup import __main__ as setup
from tools.setup.checkout import Checkout, exclusive
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


def test_no_network(tmp_path: Path) -> None:
    process = start(bare_checkout(tmp_path), "fit", PIP_INDEX_URL=NOWHERE)
    said = process.communicate()[1]
    assert process.returncode == 2
    assert "set-up: pip: no network: a server could not be reached" in said
    assert "Traceback" not in said
    assert len(said.splitlines()) == 3  # what is done, the sentence, where the rest stands


@pytest.mark.skipif(not shutil.which("apt-get"), reason="asks this machine's apt")
def test_no_mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("JOINTBENCH_DEBIAN_MIRROR", NOWHERE)
    monkeypatch.delenv("JOINTBENCH_MICROPYTHON", raising=False)
    monkeypatch.setattr(setup, "__file__", str(tmp_path / "tools" / "setup" / "__main__.py"))
    assert setup.main(["micropython"]) == 2
    assert f"asking {NOWHERE} for trixie: apt-get: no network" in capsys.readouterr().err


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
    parts = ["environment", "development", "micropython", "oracle"]
    command = [ROOT / ".venv/bin/python", "-S", "-P", "-m", "tools.setup", "--check", *parts]
    assert subprocess.run(command, env=os.environ | {"PYTHONPATH": str(ROOT)}, check=False).returncode == 0
