"""Debian's packages by lock: fetched without the mirror's index, by apt where they are gone, and locked anew."""

import gzip
import lzma
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.setup import __main__ as setup
from tools.setup import apt, debian, relock
from tools.setup.checkout import Checkout
from tools.setup.command import DownloadFailed, SetupError
from tools.setup.debian import HOSTS, SETS, Locked, PackageSet, parse
from tools.tests.local_mirror import Mirror, mirror
from tools.tests.setup_checkouts import ROOT

needs_apt = pytest.mark.skipif(not shutil.which("apt-get"), reason="asks this machine's apt")
THIS = apt.ARCHITECTURES.get(os.uname().machine, "amd64")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mirror]:
    with mirror() as started:
        monkeypatch.setenv(apt.MIRROR_VARIABLE, started.address)
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        yield started


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
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
    server: Mirror, checkout: Checkout, lock: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    half_synchronised(server, tmp_path)
    relock.lock_debian(checkout)
    assert [(entry.package, entry.version, entry.signed) for entry in parse(lock.read_text())] == [
        ("jb-library", "1:2.0-1", False),
        ("jb-tool", "1:2.0-1", False),
    ]
    assert "Taking the index as it is: unsigned" in capsys.readouterr().err

    with pytest.raises(SetupError, match=f"asking {server.address} for trixie"):  # today's way alone would fail
        apt.fetch(["jb-tool"], "trixie", THIS, checkout.work / "apt", checkout.log)

    server.asked.clear()
    debs = debian.fetch("tools", THIS, checkout)
    assert [path.name for path in debs] == [f"jb-library_2.0-1_{THIS}.deb", f"jb-tool_2.0-1_{THIS}.deb"]
    assert not [path for path in server.asked if "dists" in path]
    apt.unpack(debs, checkout.work / "root", checkout.log)
    assert (checkout.work / "root/usr/bin/jb-tool").read_text() == "jb-tool"


def test_what_a_point_release_superseded_is_asked_of_apt(
    server: Mirror, checkout: Checkout, lock: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[object] = []
    monkeypatch.setattr(apt, "fetch", lambda *given, **named: asked.append((given[:3], named)) or [])
    lock.write_text(f"tools trixie {THIS} jb-tool 2.0-1 9 {'0' * 64} pool/main/j/jb-tool_2.0-1.deb\n")
    assert debian.fetch("tools", THIS, checkout) == []
    assert asked == [((("jb-tool",), "trixie", THIS), {"closure": True, "sources": ()})]
    said = capsys.readouterr().err
    assert "jb-tool_2.0-1.deb did not come from" in said
    assert "Asking apt for what Debian has signed instead" in said


def test_a_mirror_that_fails_is_not_taken_for_one_that_has_moved_on(
    server: Mirror, checkout: Checkout, lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools.setup.command.pause", lambda _: None)
    monkeypatch.setattr(apt, "fetch", lambda *_, **__: pytest.fail("apt was asked"))
    server.add("pool/a.deb", b"a")
    server.faults = [500] * 4
    lock.write_text(f"tools trixie {THIS} a 1 1 {'0' * 64} pool/a.deb\n")
    with pytest.raises(DownloadFailed, match=r"a\.deb did not come from http://127.*: the mirror answered 500"):
        debian.fetch("tools", THIS, checkout)


def test_a_set_that_was_interrupted_goes_on_with_what_it_has(
    server: Mirror, checkout: Checkout, lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools.setup.command.pause", lambda _: None)
    files = {name: server.add(f"pool/{name}.deb", name.encode()) for name in "ab"}
    entries = [Locked("tools", "trixie", THIS, name, "1", file) for name, file in files.items()]
    lock.write_text("".join(f"{entry.line()}\n" for entry in entries))
    del server.files["/debian/pool/b.deb"]
    monkeypatch.setattr(apt, "fetch", lambda *_, **__: (_ for _ in ()).throw(SetupError("no apt")))
    with pytest.raises(SetupError, match="no apt"):
        debian.fetch("tools", THIS, checkout)
    server.add("pool/b.deb", b"b")
    assert [path.read_bytes() for path in debian.fetch("tools", THIS, checkout)] == [b"a", b"b"]
    assert server.asked.count("/debian/pool/a.deb") == 1


def test_what_was_fetched_goes_when_its_part_is_made(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    class Part:
        is_ready = staticmethod(lambda _: False)

        @staticmethod
        def install(checkout: Checkout) -> None:
            checkout.downloads.mkdir()
            if broken:
                raise SetupError("it does not start")

    monkeypatch.setitem(setup.PARTS, "part", (Part, "a part"))
    broken = True
    with pytest.raises(SetupError):
        setup.set_up(checkout, ["part"], [])
    assert checkout.downloads.exists()
    checkout.downloads.rmdir()
    broken = False
    setup.set_up(checkout, ["part"], [])
    assert not checkout.downloads.exists()


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
