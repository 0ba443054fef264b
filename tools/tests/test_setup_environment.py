"""The private environment, and Debian's packages with their lock and mirrors."""

import gzip
import importlib.util
import lzma
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.setup import __main__ as setup
from tools.setup import apt, debian, environment, packages, relock
from tools.setup.checkout import Checkout
from tools.setup.command import CommandFailed, DownloadFailed, SetupError
from tools.setup.debian import HOSTS, SETS, Locked, PackageSet, parse
from tools.setup.extras import Extra, development
from tools.tests.local_mirror import ROOT, Mirror, mirror


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


needs_apt = pytest.mark.skipif(not shutil.which("apt-get"), reason="asks this machine's apt")
THIS = apt.ARCHITECTURES.get(os.uname().machine, "amd64")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mirror]:
    with mirror() as started:
        monkeypatch.setenv(apt.MIRROR_VARIABLE, started.address)
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        yield started


@pytest.fixture
def debian_checkout(tmp_path: Path) -> Checkout:
    (tmp_path / ".cache" / "work").mkdir(parents=True)
    return Checkout(tmp_path)


@pytest.fixture
def lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A lock of its own, of one set with one package and what that depends on."""
    path = tmp_path / "debian.lock"
    monkeypatch.setattr(debian, "LOCK", path)
    monkeypatch.setattr(debian, "SETS", {"tools": PackageSet("trixie", (THIS,), ("jb-tool",))})
    monkeypatch.setattr(relock, "SETS", debian.SETS)
    debian.locked.cache_clear()
    yield path
    debian.locked.cache_clear()


def package(folder: Path, name: str, depends: str = "") -> bytes:
    """A Debian package that holds one file."""
    root = folder / name
    (root / "DEBIAN").mkdir(parents=True)
    (root / "usr" / "bin").mkdir(parents=True)
    (root / "usr" / "bin" / name).write_text(name)
    needs = f"Depends: {depends}\n" if depends else ""
    (root / "DEBIAN" / "control").write_text(
        f"Package: {name}\nVersion: 1:2.0-1\nArchitecture: {THIS}\nMaintainer: nobody <n@example.org>\n{needs}"
        "Description: for a test\n"
    )
    subprocess.run(["dpkg-deb", "--build", root, folder / f"{name}.deb"], check=True, capture_output=True)
    return (folder / f"{name}.deb").read_bytes()


def half_synchronised(server: Mirror, folder: Path) -> None:
    """Have the mirror hold two packages, an index of them, and a Release of another day that does not fit the index."""
    stanzas: list[str] = []
    for name, depends in (("jb-tool", "jb-library"), ("jb-library", "")):
        content = package(folder, name, depends)
        file = server.add(f"pool/main/j/jb/{name}_2.0-1_{THIS}.deb", content)
        control = (folder / name / "DEBIAN" / "control").read_text()
        stanzas.append(f"{control}Filename: {file.path}\nSize: {file.size}\nSHA256: {file.sha256}\n")
    index = "\n".join(stanzas).encode()
    server.add(f"dists/trixie/main/binary-{THIS}/Packages.xz", lzma.compress(index))
    server.add(f"dists/trixie/main/binary-{THIS}/Packages.gz", gzip.compress(index))
    wrong = f" {'0' * 64} {len(index) + 9} main/binary-{THIS}/Packages.xz\n"
    server.add("dists/trixie/Release", f"Suite: stable\nCodename: trixie\nSHA256:\n{wrong}".encode())


@needs_apt
def test_with_an_index_that_does_not_fit_its_release_the_lock_is_made_and_fetched_from(
    server: Mirror, debian_checkout: Checkout, lock: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    half_synchronised(server, tmp_path)
    relock.lock_debian(debian_checkout)
    assert [(entry.package, entry.version, entry.signed) for entry in parse(lock.read_text())] == [
        ("jb-library", "1:2.0-1", False),
        ("jb-tool", "1:2.0-1", False),
    ]
    assert "Taking the index as it is: unsigned" in capsys.readouterr().err

    with pytest.raises(SetupError, match=f"asking {server.address} for trixie"):  # today's way alone would fail
        apt.fetch(["jb-tool"], "trixie", THIS, debian_checkout.work / "apt", debian_checkout.log)

    server.asked.clear()
    debs = debian.fetch("tools", THIS, debian_checkout)
    assert [path.name for path in debs] == [f"jb-library_2.0-1_{THIS}.deb", f"jb-tool_2.0-1_{THIS}.deb"]
    assert not [path for path in server.asked if "dists" in path]
    apt.unpack(debs, debian_checkout.work / "root", debian_checkout.log)
    assert (debian_checkout.work / "root/usr/bin/jb-tool").read_text() == "jb-tool"


def test_what_a_point_release_superseded_is_asked_of_apt(
    server: Mirror,
    debian_checkout: Checkout,
    lock: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked: list[object] = []
    monkeypatch.setattr(apt, "fetch", lambda *given, **named: asked.append((given[:3], named)) or [])
    lock.write_text(f"tools trixie {THIS} jb-tool 2.0-1 9 {'0' * 64} pool/main/j/jb-tool_2.0-1.deb\n")
    assert debian.fetch("tools", THIS, debian_checkout) == []
    assert asked == [((("jb-tool",), "trixie", THIS), {"closure": True, "sources": ()})]
    said = capsys.readouterr().err
    assert "jb-tool_2.0-1.deb did not come from" in said
    assert "Asking apt for what Debian has signed instead" in said


def test_a_mirror_that_fails_is_not_taken_for_one_that_has_moved_on(
    server: Mirror, debian_checkout: Checkout, lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools.setup.command.pause", lambda _: None)
    monkeypatch.setattr(apt, "fetch", lambda *_, **__: pytest.fail("apt was asked"))
    server.add("pool/a.deb", b"a")
    server.faults = [500] * 4
    lock.write_text(f"tools trixie {THIS} a 1 1 {'0' * 64} pool/a.deb\n")
    with pytest.raises(DownloadFailed, match=r"a\.deb did not come from http://127.*: the mirror answered 500"):
        debian.fetch("tools", THIS, debian_checkout)


def test_a_set_that_was_interrupted_goes_on_with_what_it_has(
    server: Mirror, debian_checkout: Checkout, lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools.setup.command.pause", lambda _: None)
    files = {name: server.add(f"pool/{name}.deb", name.encode()) for name in "ab"}
    entries = [Locked("tools", "trixie", THIS, name, "1", file) for name, file in files.items()]
    lock.write_text("".join(f"{entry.line()}\n" for entry in entries))
    del server.files["/debian/pool/b.deb"]
    monkeypatch.setattr(apt, "fetch", lambda *_, **__: (_ for _ in ()).throw(SetupError("no apt")))
    with pytest.raises(SetupError, match="no apt"):
        debian.fetch("tools", THIS, debian_checkout)
    server.add("pool/b.deb", b"b")
    assert [path.read_bytes() for path in debian.fetch("tools", THIS, debian_checkout)] == [b"a", b"b"]
    assert server.asked.count("/debian/pool/a.deb") == 1


def test_what_was_fetched_goes_when_its_part_is_made(
    debian_checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Part:
        is_ready = staticmethod(lambda _: False)

        @staticmethod
        def install(debian_checkout: Checkout) -> None:
            debian_checkout.downloads.mkdir()
            if broken:
                raise SetupError("it does not start")

    monkeypatch.setitem(setup.PARTS, "part", (Part, "a part"))
    broken = True
    with pytest.raises(SetupError):
        setup.set_up(debian_checkout, ["part"], [])
    assert debian_checkout.downloads.exists()
    debian_checkout.downloads.rmdir()
    broken = False
    setup.set_up(debian_checkout, ["part"], [])
    assert not debian_checkout.downloads.exists()


def test_the_lock_names_files_with_size_and_hash_and_no_server() -> None:
    text = (ROOT / "tools/setup/debian.lock").read_text()
    assert "//" not in text
    entries = parse(text)
    for entry in entries:
        assert entry.file.path.startswith("pool/")
        assert len(bytes.fromhex(entry.file.sha256)) == 32
        assert parse(entry.line()) == [entry]
    for name, chosen in SETS.items():
        for architecture in chosen.architectures:
            there = {entry.package for entry in entries if (entry.set, entry.architecture) == (name, architecture)}
            assert {*chosen.packages, *chosen.sources} <= there
            # What they need to run comes with them.
            assert ("libc6" in there) == chosen.closure


def test_all_of_the_compilers_and_browsers_closure_is_signed() -> None:
    """Their indexes fit Debian's signature when the lock was made; the small 32-bit sets may say otherwise."""
    assert all(entry.signed for entry in parse(debian.LOCK.read_text()) if entry.architecture in HOSTS)


def test_a_line_with_other_columns_is_named() -> None:
    with pytest.raises(SetupError, match=r"debian\.lock:2 has other columns than set suite .*: a b c"):
        parse("# a comment\na b c\n")
    with pytest.raises(SetupError, match=r"debian\.lock holds no nothing for amd64"):
        debian.locked("nothing", "amd64")
