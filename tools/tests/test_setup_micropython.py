import subprocess
from pathlib import Path

import pytest

from tools.setup import apt, micropython
from tools.setup.checkout import Checkout
from tools.setup.command import SetupError
from tools.tests.setup_checkouts import ROOT


def program(folder: Path, text: str) -> Path:
    path = folder / "micropython"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    monkeypatch.delenv(micropython.VARIABLE, raising=False)
    monkeypatch.delenv(apt.MIRROR_VARIABLE, raising=False)
    (tmp_path / ".cache" / "work").mkdir(parents=True)
    return Checkout(tmp_path)


def test_the_interpreter_of_this_checkout_computes_as_a_board() -> None:
    micropython.check(micropython.launcher(Checkout(ROOT)))


def test_a_64_bit_interpreter_is_refused_by_name(tmp_path: Path) -> None:
    wide = program(tmp_path, "echo micropython False; echo 4900000000")
    with pytest.raises(SetupError, match=f"{wide} is a 64-bit MicroPython"):
        micropython.check(wide)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("echo micropython True; echo 'SyntaxError: invalid micropython decorator' >&2; exit 1", "invalid micropython"),
        ("echo micropython True; echo 4900000000", "4900000000"),
        ("echo 'cannot execute binary file: Exec format error' >&2; exit 126", "Exec format error"),
        ("exit 0", "nothing"),
    ],
)
def test_what_is_not_a_micropython_with_viper_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(SetupError, match=f"is not a MicroPython with viper .*{said}"):
        micropython.check(program(tmp_path, text))


def test_a_file_that_cannot_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="does not run as a MicroPython"):
        micropython.check(tmp_path / "nothing")
    with pytest.raises(SetupError, match="does not run as a MicroPython"):
        micropython.check(tmp_path)


def test_the_named_interpreter_is_used_and_checked(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    named = program(checkout.root, "echo micropython True; echo 605032704")
    monkeypatch.setenv(micropython.VARIABLE, str(named))
    assert micropython.launcher(checkout) == named
    assert micropython.is_ready(checkout)
    micropython.install(checkout)
    assert not checkout.micropython.exists()
    program(checkout.root, "echo micropython False")
    assert not micropython.is_ready(checkout)
    with pytest.raises(SetupError, match="64-bit"):
        micropython.install(checkout)


def test_machines() -> None:
    assert micropython.port_of("x86_64").architecture == "i386"
    assert micropython.port_of("aarch64").architecture == "armhf"
    with pytest.raises(SetupError, match=r"is known for a riscv64 machine; known are x86_64, .*\n.*podman"):
        micropython.port_of("riscv64")


def test_the_launcher_starts_the_loader_beside_it(tmp_path: Path) -> None:
    root = tmp_path / "a bench"
    loader = root / "root" / "ld"
    loader.parent.mkdir(parents=True)
    loader.write_text('#!/bin/sh\nfor word in "$@"; do echo "$word"; done\n')
    loader.chmod(0o755)
    (root / "bin").mkdir()
    launcher = program(root / "bin", "")
    launcher.write_text(micropython.LAUNCHER.format(loader="ld", libraries="lib"))
    said = subprocess.run([launcher, "-c", "a  b"], capture_output=True, text=True, check=True).stdout.splitlines()
    here = f"{root}/bin/../root"
    assert said == ["--library-path", f"{here}/lib", f"{here}/usr/bin/micropython", "-c", "a  b"]


def test_without_apt_the_other_ways_are_named(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(checkout.root))
    with pytest.raises(SetupError, match=r"no apt-get here .*\n.*DEBIAN_MIRROR.*MICROPYTHON.*podman"):
        micropython.install(checkout)


def fake_apt(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    for name in ("apt-get", "dpkg-deb"):
        program(folder, text).rename(folder / name)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def test_a_system_without_a_debian_mirror(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_apt(checkout.root, monkeypatch, "echo \"'http://m/ubuntu/dists/noble/InRelease' m_InRelease 0\"")
    with pytest.raises(SetupError, match="this machine knows no Debian mirror"):
        micropython.install(checkout)


def test_mirrors_are_read_from_apt_in_its_order(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_apt(
        checkout.root,
        monkeypatch,
        f"""case "$*" in *dump*) exit ;; esac
cat <<'END'
'cdrom:[Debian]/dists/bookworm/Release' x 0
'http://third/party/dists/nodistro/InRelease' x 0
'http://m/debian-security/dists/bookworm-security/InRelease' x 0
'mirror+file:{checkout.root}/list/dists/bookworm/InRelease' x 0
'http://m/debian/dists/trixie/InRelease' x 0
'http://m/debian/dists/trixie/main/binary-amd64/Packages.xz' x 0
'mirror+file:{checkout.root}/list/dists/trixie/InRelease' x 0
END""",
    )
    (checkout.root / "list").write_text("http://near/debian priority:1\n\nhttp://far/debian\n")
    listed = ["http://near/debian", "http://far/debian"]  # as Debian's cloud images name their mirrors
    assert apt.mirrors(checkout.log) == [*listed, f"mirror+file:{checkout.root}/list", "http://m/debian"]
    monkeypatch.setenv(apt.MIRROR_VARIABLE, "http://mine http://ours")
    assert apt.mirrors(checkout.log) == ["http://mine", "http://ours"]


def test_proxies_are_those_of_apt(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    program(checkout.root, 'case "$*" in *https*) echo DIRECT ;; *) echo http://proxy:3128 ;; esac').rename(
        checkout.root / "apt-config"
    )
    monkeypatch.setenv("PATH", f"{checkout.root}:/usr/bin:/bin")
    assert apt.proxies(checkout.log) == {"http": "http://proxy:3128"}


def test_every_mirror_is_asked_before_giving_up(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_apt(
        checkout.root,
        monkeypatch,
        """case "$*" in
*--print-uris*) printf "'http://one/dists/sid/InRelease' x 0\\n'http://two/dists/sid/InRelease' x 0\\n" ;;
*) sed -n 's/^URIs: //p' "$(dirname "$3")/sources.d/debian.sources"; echo 'Could not connect to it' >&2; exit 100 ;;
esac""",
    )
    monkeypatch.setattr(apt, "keyring", lambda: checkout.root / "keys")
    with pytest.raises(SetupError, match="asking http://one for trixie: apt-get: no network"):
        apt.fetch(["micropython"], "trixie", "i386", checkout.work, checkout.log)
    asked = [line for line in checkout.log.read_text().splitlines() if line.startswith("http://")]
    assert asked == ["http://one", "http://two"]


def test_where_nothing_can_be_fetched_there_is_no_interpreter(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools.setup.command.pause", lambda _: None)
    monkeypatch.setenv(apt.MIRROR_VARIABLE, "http://127.0.0.1:9")
    with pytest.raises(SetupError, match=r"\.deb did not come from http://127.*Connection refused.*\n  Other ways"):
        micropython.install(checkout)
    assert not checkout.micropython.exists()


def test_missing_debian_keys_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(apt, "KEYRINGS", [tmp_path / "none.gpg"])
    with pytest.raises(SetupError, match="sudo apt-get install debian-archive-keyring"):
        apt.keyring()
