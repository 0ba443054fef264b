"""The set-up of the emulated Cortex-M3: what is fetched, how it is started, when it is made anew."""

import io
import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from tools.setup import __main__ as setup
from tools.setup import apt, debian, qemu, qemu_image, qemu_tools
from tools.setup.checkout import Checkout
from tools.setup.command import SetupError, Unavailable
from tools.tests.setup_checkouts import ROOT, bare_checkout


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


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
