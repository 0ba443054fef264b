import importlib.util
import os
import shutil
from pathlib import Path

import pytest

from tools.setup import apt, debian, environment, packages
from tools.setup.checkout import Checkout
from tools.setup.command import CommandFailed, SetupError
from tools.setup.extras import Extra, development
from tools.tests.setup_checkouts import ROOT


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


def test_settings_of_the_tests_make_no_other_environment(checkout: Checkout) -> None:
    pretend_complete(checkout)
    project = checkout.root / "pyproject.toml"
    project.write_text("[project]\n[tool.ruff]\nline-length = 100\n")
    assert environment.is_ready(checkout)
    project.write_text('[project]\ndependencies = ["numpy"]\n')
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


@pytest.fixture
def has_ensurepip(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Python has it that is not a bare Debian's."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: True)


@pytest.mark.usefixtures("has_ensurepip")
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


@pytest.mark.usefixtures("has_ensurepip")
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


def test_without_ensurepip_pip_comes_from_debians_lock(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a bare Debian, which keeps pip's wheel in a package of its own: nothing is installed into the system."""
    commands: list[list[str]] = []

    def unpack(debs: list[Path], root: Path, _: Path) -> None:
        (root / "usr/share/python-wheels").mkdir(parents=True)
        (root / "usr/share/python-wheels" / f"pip-{debs[0].name}-py3-none-any.whl").touch()

    def run(command: list[str | Path], *_: object) -> str:
        commands.append([str(word) for word in command])
        return ""

    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    monkeypatch.setattr(debian, "fetch", lambda name, architecture, _: [Path(f"{name}{architecture}")])
    monkeypatch.setattr(apt, "unpack", unpack)
    monkeypatch.setattr(environment, "run", run)
    monkeypatch.setattr(environment.packages, "install", lambda _: None)
    environment.install(checkout)
    make, fill = commands
    assert make[1:] == ["-m", "venv", "--without-pip", str(checkout.venv)]
    assert fill[0] == str(checkout.python)
    assert fill[1].endswith("/pip-pipall-py3-none-any.whl/pip")
    assert fill[2:] == ["install", "--no-index", "--no-deps", fill[1].removesuffix("/pip")]


def test_where_no_pip_can_be_fetched_the_command_to_type_is_named(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> list[Path]:
        raise SetupError("there is no apt-get here to ask for a Debian mirror")

    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    monkeypatch.setattr(debian, "fetch", fail)
    with pytest.raises(SetupError, match=r"no apt-get here .* Type: sudo apt-get install python3\.\d+-venv"):
        environment.install(checkout)
    assert not environment.is_ready(checkout)


def elf(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\x7fELF and so on")
    path.chmod(0o755)
    return path


@pytest.fixture
def ldd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Says which libraries a file misses by the file beside it; none that lies in LD_LIBRARY_PATH."""
    program = tmp_path / "bin" / "ldd"
    program.parent.mkdir()
    program.write_text(
        '#!/bin/sh\n[ -e "$1.needs" ] && for name in $(cat "$1.needs"); do\n'
        '[ -e "$LD_LIBRARY_PATH/$name" ] || printf "\\t$name => not found\\n"; done\n'
        'printf "\\tlibc.so.6 => /lib/libc.so.6 (0x1)\\n"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return program


@pytest.mark.usefixtures("ldd")
def test_libraries_that_a_bare_machine_lacks_are_fetched_and_only_those(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = elf(checkout.venv / "lib" / "driver" / "node")
    Path(f"{node}.needs").write_text("libatomic.so.1 libown.so.3")
    elf(checkout.venv / "lib" / "other.libs" / "libown.so.3")  # a wheel brings it, found when it is loaded
    fetched: list[str] = []

    def unpack(deb: Path, root: Path, _: object) -> None:
        for name in ("libatomic.so.1", "libgomp.so.1"):
            elf(root / "usr/lib/x" / name)

    monkeypatch.setattr(debian, "fetch", lambda name, *_: fetched.append(name) or [Path("a.deb")])
    monkeypatch.setattr(apt, "unpack_part", unpack)
    assert packages.missing_libraries(checkout) == {"libatomic.so.1": node}
    packages.complete_libraries(checkout)
    assert [path.name for path in checkout.libraries.iterdir()] == ["libatomic.so.1"]
    packages.complete_libraries(checkout)
    assert fetched == ["libraries"]


@pytest.mark.usefixtures("ldd")
def test_a_library_that_cannot_be_had_is_named_with_who_needs_it(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = elf(checkout.venv / "driver" / "node")
    Path(f"{node}.needs").write_text("libodd.so.7")
    monkeypatch.setattr(debian, "fetch", lambda *_: [])
    with pytest.raises(SetupError, match=rf"node \({node}\) needs libodd\.so\.7, which this system has not; install"):
        packages.complete_libraries(checkout)


@pytest.mark.slow
def test_every_program_of_this_checkout_has_its_libraries() -> None:
    assert packages.missing_libraries(Checkout(ROOT)) == {}


def test_an_extra_comes_once_and_with_the_environment_it_goes(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed: list[str] = []
    monkeypatch.setattr(packages, "install_extra", lambda _, name: installed.append(name))
    convert = Extra("convert")
    pretend_complete(checkout)
    assert not convert.is_ready(checkout)
    convert.install(checkout)
    assert convert.is_ready(checkout)
    assert not Extra("rerun").is_ready(checkout)
    checkout.lock.write_text("numpy==2\n")
    assert not convert.is_ready(checkout)
    (checkout.venv / "jointbench-development").write_text(environment.fingerprint(checkout))
    assert Extra("rerun").is_ready(checkout)  # the whole lock has it
    assert installed == ["convert"]
