"""The set-up of the browser: which one is taken, what is kept of Debian's packages, when it is refused."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tools.setup import apt, browser
from tools.setup.checkout import Checkout
from tools.setup.command import SetupError, Unavailable


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    monkeypatch.delenv(browser.VARIABLE, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (tmp_path / ".cache" / "work").mkdir(parents=True)
    return Checkout(tmp_path)


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_the_named_one_comes_before_the_machines_own_and_that_before_the_fetched(
    checkout: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not browser.is_ready(checkout)
    fetched = script(checkout.chromium / "bin" / "chromium", "")
    assert browser.program(checkout) == fetched
    own = script(tmp_path / "bin" / "google-chrome", "")
    assert browser.program(checkout) == own
    monkeypatch.setenv(browser.VARIABLE, str(tmp_path / "named"))
    assert browser.program(checkout) is None
    assert script(tmp_path / "named", "") == browser.program(checkout)


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("usr/lib/chromium/chromium-headless-shell", True),
        ("usr/lib/chromium/icudtl.dat", True),
        ("usr/lib/chromium/libvk_swiftshader.so", True),
        ("usr/lib/chromium/libVkLayer_khronos_validation.so", False),
        ("usr/lib/chromium/locales/en-US.pak", True),
        ("usr/lib/chromium/locales/de.pak", False),
        ("usr/lib/x86_64-linux-gnu/libnss3.so", True),
        ("usr/lib/x86_64-linux-gnu/nss/libsoftokn3.chk", True),
        ("lib/aarch64-linux-gnu/libexpat.so.1.8.10", True),
        ("usr/lib/x86_64-linux-gnu/libLLVM-15.so.1", False),
        ("usr/lib/x86_64-linux-gnu/dri/swrast_dri.so", False),
        ("usr/share/fonts/truetype/dejavu/DejaVuSans.ttf", True),
        ("usr/bin/chromium-headless-shell", False),
    ],
)
def test_what_is_kept_of_the_packages(path: str, wanted: bool) -> None:
    assert bool(browser.WANTED.fullmatch(path)) is wanted


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("echo '<title>42,true</title>'", None),
        ("echo '<title>42,false</title>'", "does not show a page"),  # no font
        ("echo libnss3.so: cannot open shared object file >&2; exit 127", "it said: libnss3.so: cannot open"),
        ("", "it said: nothing"),
    ],
)
def test_a_browser_must_compute_and_write(tmp_path: Path, text: str, why: str | None) -> None:
    program = script(tmp_path / "chromium", text)
    if why is None:
        browser.check(program)
    else:
        with pytest.raises(SetupError, match=why):
            browser.check(program)


def test_a_program_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"does not run as a Chromium .*\n  Other ways: sudo apt-get install chromium"):
        browser.check(tmp_path / "nothing")


def test_without_apt_it_is_unavailable_and_the_other_ways_are_told(checkout: Checkout) -> None:
    assert shutil.which("apt-get") is None
    with pytest.raises(
        Unavailable, match=rf"Chromium cannot be fetched: there is no apt-get .*\n.*{apt.MIRROR_VARIABLE}"
    ):
        browser.install(checkout)


def test_a_named_one_that_does_not_run_is_not_replaced(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(browser.VARIABLE, "/nowhere/chromium")
    with pytest.raises(SetupError, match="/nowhere/chromium does not run as a Chromium"):
        browser.install(checkout)


def test_the_launcher_finds_its_libraries_wherever_it_stands(tmp_path: Path) -> None:
    made = tmp_path / "made here"
    launcher = script(made / "bin" / "chromium", browser.LAUNCHER.partition("\n")[2])
    library = made / "root" / "usr" / "lib" / "x86_64-linux-gnu"
    library.mkdir(parents=True)
    says = 'echo "$LD_LIBRARY_PATH"; echo "$FONTCONFIG_FILE" "$@"'
    script(made / "root" / "usr" / "lib" / "chromium" / "chromium-headless-shell", says)
    moved = made.rename(tmp_path / "moved there")
    command = [moved / launcher.relative_to(made), "--headless"]
    libraries, rest = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert str(moved / library.relative_to(made)) in libraries.split(":")
    assert rest == f"{moved}/fonts.conf --headless"
