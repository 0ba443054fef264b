import importlib.util
import os
import shutil
from pathlib import Path

import pytest

from tools.setup import development, environment, oracle
from tools.setup.checkout import Checkout
from tools.setup.errors import CommandFailed, SetupError


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    (tmp_path / ".cache" / "work").mkdir(parents=True)
    (tmp_path / "requirements.lock").write_text("numpy==1\n")
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    return Checkout(tmp_path)


def pretend_complete(checkout: Checkout) -> Path:
    checkout.python.parent.mkdir(parents=True)
    checkout.python.touch()
    stamp = checkout.venv / "jointbench-setup"
    stamp.write_text(environment.fingerprint(checkout))
    return stamp


def test_ready_only_while_stamp_and_sources_agree(checkout: Checkout) -> None:
    assert not environment.is_ready(checkout)
    stamp = pretend_complete(checkout)
    assert environment.is_ready(checkout)
    checkout.lock.write_text("numpy==2\n")
    assert not environment.is_ready(checkout)
    stamp.write_text(environment.fingerprint(checkout))
    assert environment.is_ready(checkout)
    checkout.python.unlink()
    assert not environment.is_ready(checkout)


def test_a_moved_checkout_is_set_up_anew(checkout: Checkout, tmp_path: Path) -> None:
    pretend_complete(checkout)
    moved = Checkout(tmp_path / "moved")
    shutil.copytree(checkout.root, moved.root, ignore=lambda *_: ["moved"])
    assert not environment.is_ready(moved)


def test_an_environment_of_somebody_else_is_left_alone(checkout: Checkout) -> None:
    (checkout.venv / "bin").mkdir(parents=True)
    with pytest.raises(SetupError, match="was not made by this set-up; move it away"):
        environment.install(checkout)
    assert (checkout.venv / "bin").exists()


def test_a_failure_leaves_an_unfinished_environment_that_the_next_one_replaces(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make_venv(command: list[str | Path], *_: object) -> str:
        (Path(command[-1]) / "bin").mkdir()
        checkout.python.touch()
        return ""

    def fail(*_: object) -> None:
        raise CommandFailed("pip", "no network")

    monkeypatch.setattr(environment, "run", make_venv)
    stamp = pretend_complete(checkout)
    (checkout.venv / "old").mkdir()
    monkeypatch.setattr(environment.packages, "install", fail)
    with pytest.raises(CommandFailed, match="pip: no network"):
        environment.install(checkout)
    assert stamp.read_text() == environment.UNFINISHED
    assert not environment.is_ready(checkout)

    monkeypatch.setattr(environment.packages, "install", lambda _: None)
    environment.install(checkout)
    assert environment.is_ready(checkout)
    assert not (checkout.venv / "old").exists()


def test_the_rest_of_the_lock_comes_into_the_same_environment_and_goes_with_it(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment.packages, "install_all", lambda _: None)
    pretend_complete(checkout)
    assert not development.is_ready(checkout)
    development.install(checkout)
    assert development.is_ready(checkout)

    checkout.lock.write_text("numpy==2\n")
    assert not development.is_ready(checkout)
    development.install(checkout)
    monkeypatch.setattr(environment, "run", lambda *_: "")
    monkeypatch.setattr(environment.packages, "install", lambda _: None)
    environment.install(checkout)
    assert not development.is_ready(checkout)


@pytest.mark.parametrize(("user", "apt"), [(1000, "/usr/bin/apt-get"), (0, None)])
def test_without_venv_module_and_rights_the_command_to_type_is_named(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch, user: int, apt: str | None
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setattr(shutil, "which", lambda _: apt)
    with pytest.raises(SetupError, match=r"Type: sudo apt-get install python3\.\d+-venv"):
        environment.install(checkout)
    assert not checkout.venv.exists()


def test_root_installs_the_venv_module_and_refreshes_old_lists(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[list[str]] = []

    def apt_with_old_lists(command: list[str], *_: object) -> str:
        commands.append(command)
        if "install" in command and len(commands) == 1:
            raise CommandFailed("apt-get", "unable to locate the package")
        return ""

    present = iter([None, object()])
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: next(present))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda _: "/usr/bin/apt-get")
    monkeypatch.setattr(environment, "run", apt_with_old_lists)
    monkeypatch.setattr(environment.packages, "install", lambda _: None)
    environment.install(checkout)
    assert [words[2] for words in commands if words[0] == "apt-get"] == ["install", "update", "install"]


def test_the_oracle_is_given_only_the_library_it_misses(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> str:
        raise CommandFailed("python", "ImportError: libother.so.2: cannot open shared object file")

    checkout.venv.mkdir()
    monkeypatch.setattr(oracle, "run", broken)
    with pytest.raises(CommandFailed, match="libother"):
        oracle.install(checkout)
    assert not oracle.is_ready(checkout)
    monkeypatch.setattr(oracle, "run", lambda *_: "")
    oracle.install(checkout)
    assert oracle.is_ready(checkout)
