"""Set-up of MicroPython, its stubs and a browser without a window."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tools.browser import need_chromium, page_of, serious_findings
from tools.setup import apt, browser, micropython, stubs
from tools.setup.checkout import Checkout, exclusive
from tools.setup.command import CommandFailed, SetupError, Unavailable
from tools.tests.local_mirror import ROOT, script


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


@pytest.fixture
def stubs_checkout(tmp_path: Path) -> Checkout:
    """A checkout with the lock of the stubs and nothing else."""
    (tmp_path / "firmware").mkdir()
    shutil.copy2(ROOT / "firmware" / "stubs.lock", tmp_path / "firmware")
    return Checkout(tmp_path)


def installer(asked: dict[str, list[str]], failing: str = ""):
    """Stands for pip: makes the target folder; keeps which packages were asked for, by port."""

    def run(command: list[str | Path], log: Path, env: dict[str, str]) -> str:
        words = [str(word) for word in command]
        target, wanted = Path(words[words.index("--target") + 1]), Path(words[words.index("-r") + 1])
        if target.name == failing:
            raise CommandFailed("pip", "no network")
        assert "--require-hashes" in words
        assert "--no-deps" in words
        lines = wanted.read_text().splitlines()
        asked[target.name] = [line.split("==")[0] for line in lines if "==" in line]
        assert all("--hash=sha256:" in line for line in lines if "==" not in line)
        target.mkdir(parents=True)
        return ""

    return run


def test_each_port_gets_its_own_stubs(stubs_checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, list[str]] = {}
    monkeypatch.setattr(stubs, "run_over_network", installer(asked))
    with exclusive(stubs_checkout):
        assert not stubs.is_ready(stubs_checkout)
        stubs.install(stubs_checkout)
        assert stubs.is_ready(stubs_checkout)
    assert asked == {port: [f"micropython-{port}-stubs", "micropython-stdlib-stubs"] for port in stubs.PORTS}


def test_stubs_that_fail_to_come_leave_those_of_before(
    stubs_checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stubs, "run_over_network", installer({}))
    with exclusive(stubs_checkout):
        stubs.install(stubs_checkout)
    stubs.lock(stubs_checkout).write_text(stubs.lock(stubs_checkout).read_text() + "\n")
    assert not stubs.is_ready(stubs_checkout)  # the lock has changed
    monkeypatch.setattr(stubs, "run_over_network", installer({}, failing="esp32"))
    with exclusive(stubs_checkout), pytest.raises(CommandFailed, match="no network"):
        stubs.install(stubs_checkout)
    assert (stubs.folder(stubs_checkout) / "rp2").is_dir()
    assert not stubs.is_ready(stubs_checkout)


def test_the_lock_names_no_place() -> None:
    """Packages, versions and hashes only: where they come from is the machine's own setting."""
    text = stubs.lock(Checkout(ROOT)).read_text()
    assert "//" not in text


@pytest.fixture
def browser_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    monkeypatch.delenv(browser.VARIABLE, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (tmp_path / ".cache" / "work").mkdir(parents=True)
    return Checkout(tmp_path)


def test_the_named_one_comes_before_the_machines_own_and_that_before_the_fetched(
    browser_checkout: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not browser.is_ready(browser_checkout)
    fetched = script(browser_checkout.chromium / "bin" / "chromium", "")
    assert browser.program(browser_checkout) == fetched
    own = script(tmp_path / "bin" / "google-chrome", "")
    assert browser.program(browser_checkout) == own
    monkeypatch.setenv(browser.VARIABLE, str(tmp_path / "named"))
    assert browser.program(browser_checkout) is None
    assert script(tmp_path / "named", "") == browser.program(browser_checkout)


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


def test_without_apt_it_is_unavailable_and_the_other_ways_are_told(browser_checkout: Checkout) -> None:
    assert shutil.which("apt-get") is None
    with pytest.raises(
        Unavailable, match=rf"Chromium cannot be fetched: there is no apt-get .*\n.*{apt.MIRROR_VARIABLE}"
    ):
        browser.install(browser_checkout)


def test_a_named_one_that_does_not_run_is_not_replaced(
    browser_checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(browser.VARIABLE, "/nowhere/chromium")
    with pytest.raises(SetupError, match="/nowhere/chromium does not run as a Chromium"):
        browser.install(browser_checkout)


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


GOOD = '<!doctype html><html lang="en"><title>Good</title><main><h1>Good</h1><button>Stop</button></main></html>'
BAD = '<!doctype html><html lang="en"><title>Bad</title><main><button></button><p style="color:#aaa">faint</p></main>'


def test_a_page_runs_its_script(page: Page) -> None:
    page.set_content("<p id=sum></p><script>sum.textContent = 6 * 7</script>")
    assert page.locator("#sum").inner_text() == "42"


def test_it_shows_files_and_a_font(page: Page, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("<span id=word>word</span>")
    page.goto((tmp_path / "page.html").as_uri())
    assert page.locator("#word").bounding_box()["width"] > 20  # type: ignore[index]


def test_what_axe_calls_serious_is_told_with_its_place(page: Page) -> None:
    page.set_content(GOOD)
    assert serious_findings(page) == []
    page.set_content(BAD)
    findings = serious_findings(page)
    assert [finding.partition(" ")[0] for finding in findings] == ["button-name", "color-contrast"]
    assert findings[1].endswith(": p")


@pytest.mark.parametrize("url", ["http://192.0.2.1/x.png", "https://fonts.example/x.css"])
def test_a_page_that_asks_another_machine_is_an_error(browser: Browser, url: str) -> None:
    with pytest.raises(AssertionError, match=f"not on this machine: {re.escape(url)}"), page_of(browser) as page:
        page.evaluate("url => fetch(url, {signal: AbortSignal.timeout(200)}).catch(() => 0)", url)


def test_a_socket_to_another_machine_is_an_error(browser: Browser) -> None:
    with pytest.raises(AssertionError, match=r"ws://feed\.example/"), page_of(browser) as page:
        # Until it failed: a page closed at once is closed before the browser has told of the socket.
        page.evaluate("new Promise(done => { new WebSocket('ws://feed.example/').onerror = done })")


@pytest.mark.parametrize(("ci", "what"), [("true", pytest.fail.Exception), ("", pytest.skip.Exception)])
def test_chromium_may_be_missing_on_a_desk_but_not_in_ci(
    ci: str, what: type[BaseException], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JOINTBENCH_CHROMIUM", str(tmp_path / "chromium"))
    monkeypatch.setenv("CI", ci)
    with pytest.raises(what, match=r"no Chromium here: `\./run setup` fetches one"):
        need_chromium()
