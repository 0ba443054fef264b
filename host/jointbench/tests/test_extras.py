"""Packages of an extra: asked for when they are needed, installed where that can be done, else what to type is said."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from jointbench import extras
from jointbench.errors import MissingExtra
from jointbench.extras import INSTALLER, need

PACKAGE = "jointbench_never_heard_of"


def installer(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    """Have extras installed by a Python program, which has the extra's name as its argument."""
    monkeypatch.setenv(INSTALLER, shlex.join([sys.executable, "-Sc", program]))


def test_what_is_there_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    installer(monkeypatch, "raise SystemExit(9)")
    need("report", "a report", "json")


def test_without_an_installer_it_says_what_to_type() -> None:
    sentence = rf"^MCAP needs {PACKAGE}, which is not installed; run: pip install 'jointbench\[convert\]', or ./run"
    with pytest.raises(MissingExtra, match=sentence):
        need("convert", "MCAP", PACKAGE)


def test_an_installer_is_asked_once_and_heard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    made = tmp_path / f"{PACKAGE}.py"
    program = "import sys; print('setting up', sys.argv[1], '(220 MB)', file=sys.stderr); open({!r}, 'x')"
    installer(monkeypatch, program.format(str(made)))
    need("convert", "MCAP", PACKAGE)
    need("convert", "MCAP", PACKAGE)  # a second call of the installer would find the file in its way
    assert capfd.readouterr().err == "setting up convert (220 MB)\n"


def test_packages_that_lie_in_folders_of_their_own_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a .pth file among the packages says, which Python reads when it starts."""
    folder = tmp_path / "apart"
    folder.mkdir()
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(extras.sysconfig, "get_path", lambda _: str(tmp_path))
    module, path = folder / f"{PACKAGE}.py", tmp_path / "a.pth"
    installer(monkeypatch, f"open({str(module)!r}, 'x'); open({str(path)!r}, 'w').write({str(folder)!r})")
    need("rerun", "Rerun", PACKAGE)


def test_an_installer_that_fails_gives_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    program = "import sys; sys.stderr.write('set-up: uv: no network\\n  All output: log\\n'); sys.exit(2)"
    installer(monkeypatch, program)
    with pytest.raises(MissingExtra, match=rf"^MCAP needs {PACKAGE}, which is not installed; uv: no network$"):
        need("convert", "MCAP", PACKAGE)
    assert capfd.readouterr().err == ""
