"""The set-up of the emulated RISC-V board: what is kept of the packages, and when it is made anew."""

from pathlib import Path

import pytest

from tools.setup import apt, debian, qemu_image, qemu_tools, riscv
from tools.setup.checkout import Checkout
from tools.setup.command import SetupError, Unavailable


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    """A checkout without packages: unpacking makes a QEMU that answers as a board does, and compiling an image."""
    for name in (*riscv.VARIABLES, apt.MIRROR_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    checkout = Checkout(tmp_path)
    checkout.work.mkdir(parents=True)

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
    monkeypatch.setattr(qemu_image, "unpack", lambda *_: checkout.work / "micropython")
    monkeypatch.setattr(qemu_image, "make", make)
    return checkout


def clean(checkout: Checkout) -> None:
    for path in sorted(checkout.work.rglob("*"), reverse=True):
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
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not riscv.is_ready(checkout)
    riscv.install(checkout)
    assert riscv.is_ready(checkout)
    kept = {path.relative_to(checkout.riscv).as_posix() for path in checkout.riscv.rglob("*") if path.is_file()}
    assert kept == {"bin/qemu-system-riscv32", "lib/x86_64-linux-gnu/libc.so.6", "firmware.elf", "key"}
    monkeypatch.setattr(debian, "key", lambda *_: "other packages")
    assert not riscv.is_ready(checkout)


def test_an_image_that_does_not_run_never_takes_its_place(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    riscv.install(checkout)
    before = (checkout.riscv / "key").read_text()
    clean(checkout)
    monkeypatch.setattr(riscv, "PROBE_ANSWER", "another product")
    monkeypatch.setattr(debian, "key", lambda *_: "other packages")
    unpack = qemu_tools.unpack

    def unpack_another(debs: object, folder: Path, *rest: object) -> None:
        unpack(debs, folder, *rest)  # pyright: ignore[reportArgumentType]
        (folder / "usr/bin/qemu-system-riscv32").write_text("#!/bin/sh\ncat >/dev/null; echo Illegal instruction\n")

    monkeypatch.setattr(qemu_tools, "unpack", unpack_another)
    with pytest.raises(SetupError, match=r"does not run as a board in .*riscv32 \(it said: Illegal instruction\)"):
        riscv.install(checkout)
    assert (checkout.riscv / "key").read_text() == before
    assert not riscv.is_ready(checkout)


def test_without_packages_the_other_ways_are_named(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    def fetch(*_: object) -> list[Path]:
        raise SetupError("no mirror")

    monkeypatch.setattr(debian, "fetch", fetch)
    with pytest.raises(Unavailable, match=r"no mirror\n.*JOINTBENCH_DEBIAN_MIRROR.*JOINTBENCH_RISCV_FIRMWARE"):
        riscv.install(checkout)


def test_what_is_named_is_taken(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in riscv.VARIABLES:
        assert not riscv.is_ready(checkout)
        monkeypatch.setenv(name, "/somewhere")
    assert riscv.is_ready(checkout)
