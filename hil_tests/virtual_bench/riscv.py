"""A RISC-V board running MicroPython: QEMU's machine virt with the port's image VIRT_RV32, for programs that compare.

It has no flash, no timer in Python and no pins, so it is no board of a bench: what runs here shows what a 32-bit RISC-V
(ESP32-C3, the Hazard3 cores of an RP2350) computes.
"""

import os
import socket
import subprocess
from pathlib import Path

from hil_tests.virtual_bench.errors import QemuMissing
from hil_tests.virtual_bench.interpreter import CHECKOUT
from hil_tests.virtual_bench.qemu import HOST_FILES, RUN_MAIN, printed_by

_FOLDER = CHECKOUT / ".cache" / "riscv"
_QEMU, _FIRMWARE = "JOINTBENCH_QEMU_RISCV", "JOINTBENCH_RISCV_FIRMWARE"

# A breakpoint between two shifts of the register zero; all three in one page of memory, therefore aligned.
_CALL = """
import sys
@micropython.asm_rv32
def call(a0, a1):
    align(16)
    slli(zero, zero, 31)
    ebreak()
    srai(zero, zero, 7)
class semihosting:
    call = staticmethod(call)
sys.modules["semihosting"] = semihosting
"""
# A board without files gets its first module typed.
_AS_MODULE = """
class host_files:
    HostFiles = HostFiles
sys.modules["host_files"] = host_files
"""


def find_riscv() -> tuple[Path, Path]:
    """Return qemu-system-riscv32 and the image: those named in the environment, else those that set-up keeps.

    Raises:
        QemuMissing: one of them is not there.
    """
    program = Path(os.environ.get(_QEMU) or _FOLDER / "bin" / "qemu-system-riscv32")
    firmware = Path(os.environ.get(_FIRMWARE) or _FOLDER / "firmware.elf")
    for path, variable in ((program, _QEMU), (firmware, _FIRMWARE)):
        if not path.is_file():
            raise QemuMissing(
                f"no {path.name} of the RISC-V board at {path}; `python3 -m tools.setup riscv` in {CHECKOUT} fetches "
                f"and builds it, or set {variable} to one"
            )
    return program.resolve(), firmware.resolve()


def on_a_riscv(folder: Path, icount: bool, deadline: float) -> bytes:
    """Start a RISC-V that runs main.py of `folder`, end it, and return what was printed; see qemu.on_a_cortex."""
    program, firmware = find_riscv()
    console, its_end = socket.socketpair()
    with its_end, (folder / "qemu.log").open("wb") as log:
        process = subprocess.Popen(
            [
                program, "-machine", "virt", "-bios", "none", "-kernel", firmware, "-display", "none",
                "-monitor", "none", "-semihosting-config", "enable=on,target=native",
                "-chardev", f"socket,id=console,fd={its_end.fileno()}", "-serial", "chardev:console",
                *(["-icount", "shift=0,sleep=off"] if icount else []),
            ],
            cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=[its_end.fileno()],
        )  # fmt: skip
    typed = _CALL + HOST_FILES.read_text(encoding="utf-8") + _AS_MODULE + RUN_MAIN
    console.sendall(f"\x01{typed}\x04".encode())
    return printed_by(process, console, deadline)
