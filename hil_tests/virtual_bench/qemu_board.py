"""One QEMU board: a Cortex-M3 in a process of its own, with a mailbox as hardware and its flash in the same file.

While the board's program runs, its line is the mailbox. Once the program has ended, the line is the interpreter's
console (UART 0), as on a real board whose line is its USB port: so mpremote finds the raw REPL at the board's port. The
image tells by a word of the mailbox which of the two it is. Whatever the console says goes to console.log as well.
"""

import contextlib
import select
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from hil_tests.virtual_bench.board import MAX_SERIAL, TICK_IN, Answer, Patience, greeting, read_outputs
from hil_tests.virtual_bench.errors import BoardDied, BoardStartError
from hil_tests.virtual_bench.mailbox import BUSY, PROMPT, Mailbox, write_flash
from hil_tests.virtual_bench.qemu import Qemu

_INSTRUCTION_TIME = 7  # 128 ns, of which firmware/boards/mps2.py counts instructions; ticks know nothing of that time
_SAID_OF_IDLING = "warning: icount sleep disabled and no active timers"  # by QEMU: it waits for a tick, as it should
_LOOK = 0.01  # [s] of the wall clock between looks at the phase of a board that says nothing


class QemuBoard:
    """A running board, from tick to tick (hil_tests.virtual_bench.board says what each part means)."""

    def __init__(self, qemu: Qemu, folder: Path, files: Mapping[str, bytes], motors: int = 1) -> None:
        """Put files into a new flash, whose config.json tells of as many motors, and start.

        Raises:
            BoardStartError: the folder cannot be written, the flash is too small, or QEMU cannot be started.
        """
        self._qemu = qemu
        self._folder = folder
        self._motors = motors
        self.memory = folder / "psram.bin"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            write_flash(self.memory, files)
            self._log = (folder / "console.log").open("wb")
        except OSError as error:
            raise BoardStartError(f"board folder {folder} cannot be written: {error}") from error
        self._mailbox = Mailbox(self.memory, motors)
        self._power_on()

    def _power_on(self) -> None:
        self._mailbox.clear()
        self.death: str | None = None
        self._asked: int | None = None  # byte that asked for the tick being waited for
        self._greeted = False  # whether the program that runs has answered a tick
        self._starts = 0  # of its programs when it was asked
        self._enable = self._command = (0,) * self._motors
        self._bites_in = 0  # ticks until the watchdog resets a board that hangs
        self._endless = False  # the interpreter is at work on something that does not end
        self._said = bytearray()  # by the console since the last answer
        self.console, its_console = socket.socketpair()
        self._tick, its_tick = socket.socketpair()
        self._monitor, its_monitor = socket.socketpair()
        self._process = self._qemu.start(
            self.memory, self._folder, its_console, its_tick, its_monitor, _INSTRUCTION_TIME
        )
        self._poll = select.poll()
        self._poll.register(self._tick, select.POLLIN)
        self._poll.register(self.console, select.POLLIN)

    @property
    def pid(self) -> int:
        """Process number of QEMU."""
        return self._process.pid

    @property
    def at_prompt(self) -> bool:
        """Whether the board's program has ended and its console is the line."""
        return self.death is None and self._mailbox.phase in (PROMPT, BUSY)

    def send_tick(self, message: bytes) -> None:
        """Give it one tick; at its prompt, only type the bytes it receives."""
        if self._bites_in:
            self._bites_in -= 1
            if self._bites_in:
                return
            self._reset()
        elif self.at_prompt:
            self._greeted = False
            self._await_prompt()
            if self.at_prompt:
                self.type(message[self._motors * TICK_IN.itemsize :])
                return
        self._starts = self._mailbox.starts
        self._asked = self._mailbox.ask(message)
        self._say(self._tick, bytes((self._asked,)))

    def receive_tick(self, tick: int) -> Answer:
        """Wait for its answer to `tick`; at its prompt the motors are off and the line says what the console does.

        A board that hangs leaves its outputs as they are until its watchdog resets it. Without a watchdog it is dead.
        """
        patience = Patience(self.pid)
        while self._asked is not None:
            ready = self._ready()
            if self._tick.fileno() in ready and self._is_answered():
                return self._answer(tick)
            if self.console.fileno() in ready:
                self._listen()
            if self.at_prompt:
                self._take_back()
                self._await_prompt()
            elif self._greeted and self._mailbox.starts != self._starts:
                self._ask_again()
            elif patience.is_over:
                self._bites_in = self._mailbox.watchdog_ms  # a tick is a millisecond
                if not self._bites_in:
                    self._die(f"no answer within {patience}: it hangs")
                self._take_back()
        if self._bites_in:
            return Answer(self._enable, self._command, b"")
        self._enable = self._command = (0,) * self._motors
        return Answer(self._enable, self._command, self.hear(MAX_SERIAL))

    def type(self, data: bytes) -> None:
        """Type on the console."""
        self._say(self.console, data)

    def hear(self, most: int) -> bytes:
        """What the console has said since the program ended and was not heard before; at most so many bytes."""
        while select.select([self.console], [], [], 0.0)[0]:
            self._listen()
        said = bytes(self._said[:most])
        del self._said[:most]
        return said

    def restart(self) -> None:
        """Take the power and give it back."""
        self._power_off()
        self._power_on()

    def close(self) -> None:
        """End the board."""
        self._power_off()
        self._mailbox.close()
        self._log.close()

    def _power_off(self) -> None:
        self._process.kill()
        self._process.wait()
        for end in (self.console, self._tick, self._monitor):
            end.close()

    def _say(self, end: socket.socket, data: bytes) -> None:
        try:
            end.sendall(data)
        except OSError:
            self._die("")

    def _hear(self, end: socket.socket) -> bytes:
        try:
            data = end.recv(4096)
        except ConnectionResetError:
            data = b""
        if not data:
            self._die("")
        return data

    def _ready(self) -> list[int]:
        """Descriptors that can be read, at once or soon."""
        return [descriptor for descriptor, _ in self._poll.poll(1e3 * _LOOK)]

    def _is_answered(self) -> bool:
        answers = self._hear(self._tick)
        return answers.endswith(bytes((self._asked or 0,)))

    def _answer(self, tick: int) -> Answer:
        self._asked = None
        if self._said:
            self._said.clear()
        if not self._greeted:
            self._check_greeting()
        try:
            self._enable, self._command, sent = read_outputs(self._mailbox.outputs, tick)
        except ValueError as error:
            self._die(str(error))
        return Answer(self._enable, self._command, self._mailbox.sent(sent))

    def _check_greeting(self) -> None:
        layout, inputs = self._mailbox.greeting
        expected, size = greeting(self._motors)
        if (layout, inputs) != (expected, size):
            self._die(
                f"board speaks mailbox layout {layout:#010x} with {inputs} bytes a tick, this bench {expected:#010x} "
                f"with {size}; firmware and bench must come from the same checkout"
            )
        self._greeted = True

    def _ask_again(self) -> None:
        """Give the tick to the program that has started since: the one that took it reset the board by itself.

        What was received with it has gone with that program.
        """
        self._greeted = False
        self._asked = self._mailbox.ask_again()
        self._say(self._tick, bytes((self._asked,)))

    def _take_back(self) -> None:
        """Wait no longer for the tick that was asked for."""
        self._mailbox.take_back()
        self._asked = None
        self._greeted = False  # what starts next may be another firmware

    def _await_prompt(self) -> None:
        """Let the interpreter come to an end with what it does; a loop without end is left to itself after a while."""
        patience = Patience(self.pid)
        while self._mailbox.phase == BUSY and not (self._endless or patience.is_over):
            if self.console.fileno() in self._ready():
                self._listen()
        self._endless = self._mailbox.phase == BUSY

    def _reset(self) -> None:
        """Let the watchdog bite; return when the board has begun to start, so that it finds the next tick."""
        self._mailbox.forget_phase()
        self._say(self._monitor, b"system_reset\n")
        patience = Patience(self.pid)
        while not self._mailbox.phase:
            self._ready()
            if patience.is_over:
                self._die(f"no start within {patience} after a reset")

    def _listen(self) -> None:
        data = self._hear(self.console)
        self._log.write(data)
        self._log.flush()
        self._said += data

    def _die(self, reason: str) -> NoReturn:
        """Make sure the process is gone, put the cause together and raise it."""
        try:
            self._process.wait(timeout=0.0 if reason else 2.0)
        except subprocess.TimeoutExpired:
            reason = reason or "closed its sockets"
            self._process.kill()
            self._process.wait()
        with contextlib.suppress(OSError):
            while last := self.console.recv(4096):
                self._log.write(last)
        self._log.flush()
        logs = [(self._folder / name).read_text("utf-8", "replace") for name in ("console.log", "qemu.log")]
        said = [[line for line in log.splitlines() if line.strip() and _SAID_OF_IDLING not in line] for log in logs]
        words = [line for lines in said for line in lines[-1:]]
        self.death = ": ".join([reason or f"exit status {self._process.returncode}", *words[:1]])
        raise BoardDied(self.death)
