"""Files of a board at its interpreter's prompt, by mpremote's programming interface."""

from __future__ import annotations

import ast
import contextlib
import io
import re
import struct
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from mpremote.transport import TransportError
from mpremote.transport_serial import SerialTransport

from jointbench.errors import FlashError
from jointbench.flash.kinds import ARCHITECTURES
from jointbench.link.port_lock import lock_port

_ASK = """
import os, sys
try:
    from machine import unique_id
    uid = unique_id()
except ImportError:
    uid = b''
i = sys.implementation
version = '.'.join(str(n) for n in i.version[:3])
print((i.name, version, sys.platform, getattr(i, '_machine', ''), getattr(i, '_mpy', 0), uid))
"""
_FOLDER = 0x4000  # in a file's mode
_PATIENCE = 1.0  # [s] for bytes that are under way on the port
_PROMPT = 4.0  # [s] for a prompt to come
_TRIES = 3
_TROUBLE = (TransportError, OSError, ValueError, SyntaxError, struct.error)  # what mpremote lets through


@dataclass(frozen=True)
class Interpreter:
    """What runs on a board.

    Attributes:
        version: of MicroPython.
        platform: its port, as sys.platform has it.
        machine: what it says it runs on.
        mpy: ABI of compiled files (version, sub-version of native code).
        architecture: of native code as mpy-cross calls it, None where it runs none.
        uid: of the microcontroller, hexadecimal; empty where it has none.
    """

    version: str
    platform: str
    machine: str
    mpy: tuple[int, int]
    architecture: str | None
    uid: str

    @staticmethod
    def from_words(version: str, platform: str, machine: str, mpy: int, uid: bytes) -> Interpreter:
        """Read sys.implementation: `_mpy` is version, sub-version (2 bits) << 8 and architecture << 10."""
        number = mpy >> 10 & 0xF
        architecture = ARCHITECTURES[number] if number < len(ARCHITECTURES) else None
        return Interpreter(version, platform, machine, (mpy & 0xFF, mpy >> 8 & 3), architecture, uid.hex())


class ReplFiles:
    """See BoardFiles. `interpreter` is what answered."""

    def __init__(self, port: str, baud: int) -> None:
        """Lock and open the port and take the prompt: a program that still runs is interrupted.

        Raises:
            PortInUse: another program has the port; says who.
            FlashError: the port cannot be opened, or no MicroPython prompt answers there.
        """
        self._port = port
        self._lock = lock_port(port)
        try:
            self._transport = SerialTransport(port, baudrate=baud, timeout=_PATIENCE)
        except (TransportError, OSError, ValueError) as error:
            self._unlock()
            raise FlashError(f"port {port} cannot be opened: {error}") from error
        try:
            self._take_prompt()
            name, *words = self._ask(_ASK)
        except _TROUBLE as error:
            self.close()
            raise FlashError(
                f"no MicroPython prompt answers at {port} ({_last_line(error)}); is the interpreter on the board, and "
                "no other program using the port? docs/flash.md says how to put it there"
            ) from error
        if name != "micropython":
            self.close()
            raise FlashError(f"{port} runs {name}, not MicroPython; docs/flash.md says how to put that there")
        self.interpreter: Interpreter = Interpreter.from_words(*words)

    def names(self, folder: str) -> list[str]:
        """See BoardFiles."""
        try:
            found = self._do(self._transport.fs_listdir, folder)
        except FileNotFoundError:
            return []
        return sorted(f"{each.name}/" if each.st_mode & _FOLDER else each.name for each in found)

    def read(self, path: str) -> bytes | None:
        """See BoardFiles."""
        try:
            return bytes(self._do(self._transport.fs_readfile, path))
        except FileNotFoundError:
            return None

    def sha256(self, path: str) -> str | None:
        """See BoardFiles; the board computes it."""
        try:
            return self._do(self._transport.fs_hashfile, path, "sha256").hex()
        except FileNotFoundError:
            return None

    def write(self, path: str, content: bytes) -> None:
        """See BoardFiles."""
        self._do(self._transport.fs_writefile, path, content)

    def rename(self, old: str, new: str) -> None:
        """See BoardFiles."""
        self._do(self._transport.exec, f"os.rename({old!r}, {new!r})")

    def remove(self, path: str) -> None:
        """See BoardFiles."""
        if path.endswith("/"):
            self._do(self._transport.fs_rmdir, path.rstrip("/"))
        else:
            self._do(self._transport.fs_rmfile, path)

    def make_folder(self, path: str) -> None:
        """See BoardFiles."""
        self._do(self._transport.fs_mkdir, path)

    def free(self) -> int:
        """See BoardFiles."""
        _, fragment, _, free = self._do(self._ask, "print(os.statvfs('')[:4])")
        return fragment * free

    def reset(self) -> None:
        """Start the board anew, and let its port go."""
        try:
            self._transport.exec_raw_no_follow("import machine\nmachine.reset()")
        except _TROUBLE as error:
            said = _last_line(error)
            raise FlashError(f"{self._port} does not reset: {said}; take its power and give it back") from error
        finally:
            self.close()

    def close(self) -> None:
        """Let the port go; the board stays at its prompt. One that was unplugged has gone already."""
        with contextlib.suppress(OSError):
            self._transport.close()
        self._unlock()

    def _unlock(self) -> None:
        if self._lock:
            self._lock.close()

    def __enter__(self) -> ReplFiles:
        """Return the files."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let the port go."""
        self.close()

    def _take_prompt(self) -> None:
        """Interrupt what runs and enter the raw prompt; a program that is just ending may swallow the first try.

        No soft reset: it would take the console off a UART that the firmware has left to the interpreter.
        """
        for tries_left in reversed(range(_TRIES)):
            try:
                with contextlib.redirect_stdout(io.StringIO()):  # mpremote prints what came instead of a prompt
                    self._transport.enter_raw_repl(soft_reset=False, timeout_overall=_PROMPT)
                return
            except TransportError:
                if not tries_left:
                    raise

    def _ask(self, program: str) -> tuple[Any, ...]:
        return ast.literal_eval(self._transport.exec(program).decode().strip())

    def _do(self, act: Any, *arguments: Any) -> Any:
        """Carry out, with every failure as the OSError that the board or the port means."""
        try:
            return act(*arguments)
        except OSError:
            raise
        except _TROUBLE as error:
            said = _last_line(error)
            number = re.search(r"OSError: (?:\[Errno )?(\d+)", said)
            raise (OSError(int(number[1]), said) if number else OSError(said)) from error


def _last_line(error: BaseException) -> str:
    lines = str(getattr(error, "error_output", "") or error).strip().splitlines()
    return lines[-1] if lines else type(error).__name__
