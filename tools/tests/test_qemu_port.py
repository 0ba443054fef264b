"""The interpreter of the emulated Cortex-M3, as it lives: it starts, runs its files, is interrupted and reset."""

import os
import subprocess
import time
from collections.abc import Callable, Generator
from pathlib import Path
from select import select

import pytest

from hil_tests.need_qemu import need_qemu
from hil_tests.virtual_bench.mailbox import PROGRAM, PROMPT

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
