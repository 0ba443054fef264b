"""The C peer: a kernel's portable C, compiled by arm-none-eabi-gcc to bare machine code that stands anywhere."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from hil_tests.virtual_bench.qemu import find_compiler
from tools.firmware_bench.errors import PeerFailed
from tools.kernel_compiler.c_source import FLAGS, c_source
from tools.kernel_compiler.source import Kernel


def compile_peer(kernel: Kernel) -> bytes:
    """Machine code of a kernel's C; it begins with the function.

    Raises:
        PeerFailed: the compiler refuses it, or the code needs anything outside itself.
        QemuMissing: there is no compiler.
    """
    compiler = find_compiler()
    with tempfile.TemporaryDirectory(prefix="jointbench-") as name:
        source, linked, binary = (Path(name) / f"kernel.{suffix}" for suffix in ("c", "elf", "bin"))
        source.write_text(c_source(kernel), encoding="utf-8")
        place = ("-Wl,-Ttext=0", f"-Wl,-e,{kernel.name}", "-Wl,--build-id=none")
        _run([str(compiler), *FLAGS, *place, str(source), "-o", str(linked)], kernel)
        objcopy = compiler.with_name(compiler.name.replace("gcc", "objcopy"))
        _run([str(objcopy), "-O", "binary", "-j", ".text", str(linked), str(binary)], kernel)
        return binary.read_bytes()


def _run(command: list[str], kernel: Kernel) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise PeerFailed(f"{kernel.name}: {done.stderr.strip()}")


def compiler_version() -> str:
    """First line of what the compiler says of itself."""
    done = subprocess.run([str(find_compiler()), "--version"], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[0]
