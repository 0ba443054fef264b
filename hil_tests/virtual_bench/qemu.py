"""QEMU's machines that run MicroPython, found by convention: the Cortex-M3 mps2-an385, and a RISC-V for programs.

The RISC-V has no flash, no timer in Python and no pins, so it is no board of a bench: what runs there shows what a
32-bit RISC-V (ESP32-C3, the Hazard3 cores of an RP2350) computes.
"""

import os
import select
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hil_tests.virtual_bench.emulated_board import CHECKOUT
from hil_tests.virtual_bench.errors import BoardStartError, ProgramFailed, QemuMissing
from hil_tests.virtual_bench.mailbox import MEMORY_SIZE, write_flash

Board = Callable[[Path, bool, float], bytes]
"""What run_program runs on: on_a_cortex, or riscv.on_a_riscv."""

STDOUT = "stdout"  # run_program's name for what a program printed
_FOLDER = CHECKOUT / ".cache" / "qemu"
_QEMU, _FIRMWARE, _COMPILER = "JOINTBENCH_QEMU", "JOINTBENCH_QEMU_FIRMWARE", "JOINTBENCH_ARM_GCC"
HOST_FILES = CHECKOUT / "hil_tests" / "programs" / "host_files.py"
# QEMU outlives its sockets; the kernel ends it with the process that started it (PR_SET_PDEATHSIG is 1).
_WITH_PARENT = "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 9); os.execv(sys.argv[1], sys.argv[1:])"
# semihosting.py, and what comes before RUN_MAIN.
_CALL = """
@micropython.asm_thumb
def call(r0, r1):
    data(2, 0xBEAB)
"""
_UMOUNT = """
import host_files, vfs
vfs.umount("/")
"""
# Between the control characters stand what the program prints, and what it fails with. Nothing is typed at the board:
# at which instruction that would arrive depends on the host.
RUN_MAIN = """
import os, sys, vfs
from host_files import HostFiles
vfs.mount(HostFiles(), "/")
os.chdir("/")
print("\\x02", end="")
try:
    import main
    print("\\x04", end="")
except BaseException as error:
    print("\\x04", end="")
    sys.print_exception(error)
print("\\x04\\x03", end="")
"""


@dataclass(frozen=True)
class Qemu:
    """The emulator and the MicroPython image it runs."""

    program: Path
    firmware: Path

    def start(
        self,
        memory: Path,
        folder: Path,
        console: socket.socket,
        tick: socket.socket | None = None,
        monitor: socket.socket | None = None,
        icount: int | None = None,
    ) -> subprocess.Popen[bytes]:
        """Start the board.

        Args:
            memory: file of MEMORY_SIZE bytes that becomes its PSRAM.
            folder: what QEMU itself says goes to its qemu.log, and semihosting sees its files.
            console, tick: the board's ends of UART 0 and UART 1; they are closed here.
            monitor: QEMU's own end of its monitor; closed here.
            icount: an instruction takes exactly 2 ** icount nanoseconds of the board's time, and waiting takes none.
                None: that time is the host's.

        Raises:
            BoardStartError: the process cannot be started.
        """
        path = str(memory).replace(",", ",,")  # as QEMU's options want it
        ram = f"memory-backend-file,id=psram,share=on,mem-path={path},size={MEMORY_SIZE}"
        uses = {console: ("-serial", "chardev:{}")}
        if tick:
            uses[tick] = ("-serial", "chardev:{}")
        if monitor:
            uses[monitor] = ("-mon", "chardev={},mode=readline")
        sockets: list[str] = []
        for number, (end, (option, value)) in enumerate(uses.items()):
            sockets += ["-chardev", f"socket,id=s{number},fd={end.fileno()}", option, value.format(f"s{number}")]
        command = [
            sys.executable, "-I", "-S", "-c", _WITH_PARENT, str(self.program),
            "-machine", "mps2-an385,memory-backend=psram", "-object", ram, "-kernel", str(self.firmware),
            "-display", "none", "-monitor", "none", "-semihosting-config", "enable=on,target=native",
            *sockets, *([] if icount is None else ["-icount", f"shift={icount},sleep=off"]),
        ]  # fmt: skip
        try:
            with (folder / "qemu.log").open("wb") as log:
                return subprocess.Popen(
                    command,
                    cwd=folder,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    pass_fds=[end.fileno() for end in uses],
                    start_new_session=True,  # Ctrl-C in the terminal is the bench's, who ends its boards in order
                )
        except OSError as error:
            raise BoardStartError(f"QEMU {self.program} cannot be started: {error}") from error
        finally:
            for end in uses:
                end.close()


def find_qemu() -> Qemu:
    """QEMU and its image: `JOINTBENCH_QEMU` and `JOINTBENCH_QEMU_FIRMWARE`, else those `./run setup` keeps.

    Raises:
        QemuMissing: one of them is not there.
    """
    program = _find(_QEMU, _FOLDER / "bin" / "qemu-system-arm", "qemu-system-arm")
    return Qemu(program, _find(_FIRMWARE, _FOLDER / "firmware.elf", "image of MicroPython for it"))


def find_compiler() -> Path:
    """Return arm-none-eabi-gcc: `JOINTBENCH_ARM_GCC`, else the one `./run setup` keeps.

    Raises:
        QemuMissing: it is not there.
    """
    return _find(_COMPILER, _FOLDER / "bin" / "arm-none-eabi-gcc", "arm-none-eabi-gcc")


def _find(variable: str, convention: Path, what: str) -> Path:
    path = Path(os.environ.get(variable) or convention)
    if not path.is_file():
        raise QemuMissing(f"no {what} at {path}; ./run setup fetches QEMU's parts, or set {variable} to one")
    return path.resolve()


def on_a_cortex(folder: Path, icount: bool, deadline: float) -> bytes:
    """Start a Cortex-M3 whose main.py runs that of `folder`, end it, and return what was printed.

    Args:
        folder: of the host.
        icount, deadline: as run_program has them; the latter is a time of the monotonic clock.
    """
    qemu = find_qemu()
    memory = folder.with_name("psram.bin")
    modules = {"semihosting.py": _CALL.encode(), "host_files.py": HOST_FILES.read_bytes()}
    write_flash(memory, {"main.py": (_UMOUNT + RUN_MAIN).encode(), **modules})
    console, its_end = socket.socketpair()
    process = qemu.start(memory, folder, its_end, icount=0 if icount else None)
    return printed_by(process, console, deadline)


def run_program(
    program: str,
    files: dict[str, bytes],
    icount: bool = False,
    patience: float = 120.0,
    board: Board = on_a_cortex,
) -> dict[str, bytes]:
    """Run a MicroPython program on an emulated board, with files of any size as its file system.

    Args:
        program: its text; it runs as the module `main`, and imports what is among the files.
        files: by their path from the root ("cases.bin", "jointboard/tick.py").
        icount: one instruction takes exactly one nanosecond of the board's time, so that counts repeat.
        patience: seconds of the wall clock after which it is said to hang.
        board: what starts it on the files of a folder, ends it, and returns what it printed.

    Returns:
        The files it wrote or changed, by path, and what it printed as STDOUT.

    Raises:
        QemuMissing: QEMU or the image is not there.
        ProgramFailed: it raised an exception, ended the board or hangs; the text ends with what it said last.
    """
    with tempfile.TemporaryDirectory(prefix="jointbench-") as name:
        folder = Path(name) / "files"
        folder.mkdir()
        given = {**files, "main.py": program.encode()}
        for path, data in given.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(data)
        printed = board(folder, icount, time.monotonic() + patience)
        (folder / "qemu.log").unlink()
        after = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
        found = {path: file.read_bytes() for path, file in after.items()}
    return {STDOUT: printed, **{path: data for path, data in found.items() if given.get(path) != data}}


def printed_by(process: subprocess.Popen[bytes], console: socket.socket, deadline: float) -> bytes:
    """Wait until a board has run RUN_MAIN, end it, and return what its program printed.

    Raises:
        ProgramFailed: the program raised an exception, ended the board or hangs.
    """
    try:
        said = _read_until(console, b"\x04\x03", deadline)
    finally:
        process.kill()
        process.wait()
        console.close()
    printed, _, error = said.partition(b"\x02")[2].removesuffix(b"\x04\x03").partition(b"\x04")
    if error:
        raise ProgramFailed(f"program on the emulated board failed: {error.decode(errors='replace').strip()}")
    return printed.replace(b"\r\n", b"\n")


def _read_until(console: socket.socket, end: bytes, deadline: float) -> bytes:
    """Read what the board says until it has said `end`."""
    said = b""
    while end not in said[-4096 - len(end) :]:
        ready, _, _ = select.select([console], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            raise ProgramFailed(f"program on the emulated board hangs; it said {said[-500:]!r}")
        part = console.recv(4096)
        if not part:
            raise ProgramFailed(f"the emulated board ended; it said {said[-500:]!r}")
        said += part
    return said[: said.rindex(end) + len(end)]


_RISCV_FOLDER = CHECKOUT / ".cache" / "riscv"
_RISCV_QEMU, _RISCV_FIRMWARE = "JOINTBENCH_QEMU_RISCV", "JOINTBENCH_RISCV_FIRMWARE"

# A breakpoint between two shifts of the register zero; all three in one page of memory, therefore aligned.
_RISCV_CALL = """
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
    program = Path(os.environ.get(_RISCV_QEMU) or _RISCV_FOLDER / "bin" / "qemu-system-riscv32")
    firmware = Path(os.environ.get(_RISCV_FIRMWARE) or _RISCV_FOLDER / "firmware.elf")
    for path, variable in ((program, _RISCV_QEMU), (firmware, _RISCV_FIRMWARE)):
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
    typed = _RISCV_CALL + HOST_FILES.read_text(encoding="utf-8") + _AS_MODULE + RUN_MAIN
    console.sendall(f"\x01{typed}\x04".encode())
    return printed_by(process, console, deadline)
