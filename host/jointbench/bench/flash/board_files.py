"""Kinds of boards, and the files on one: what its folders hold, and how the interpreter's REPL copies them."""

from __future__ import annotations

import ast
import contextlib
import hashlib
import io
import os
import re
import shutil
import struct
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from mpremote.transport import TransportError
from mpremote.transport_serial import SerialTransport

from jointbench.bench.port_lock import lock_port
from jointbench.errors import FlashError

# Native code by the number in sys.implementation._mpy (MicroPython's MP_NATIVE_ARCH_*), as mpy-cross calls it.
ARCHITECTURES = (
    None, "x86", "x64", "armv6", "armv6m", "armv7m", "armv7em", "armv7emsp", "armv7emdp", "xtensa", "xtensawin",
    "rv32imc", "rv64imc",
)  # fmt: skip
_FOLDER = 0x4000  # in a file's mode
_PATIENCE = 1.0  # [s] for bytes that are under way on the port
_PROMPT = 4.0  # [s] for a prompt to come
_TRIES = 3
_TROUBLE = (TransportError, OSError, ValueError, SyntaxError, struct.error)  # what mpremote lets through


@dataclass(frozen=True)
class Kind:
    """A kind of board.

    Attributes:
        name: as HELLO_ACK says it, and the name of its file in firmware/boards.
        platform: what its interpreter calls itself (sys.platform).
        architecture: of native code where the kind settles it, None where only the board itself can say.
        compiles: whether images for it hold what mpy-cross made; otherwise the sources, which it compiles itself.
        safe_outputs: what switches its motor off (boot_file.py says how); None where its wiring must say it.
    """

    name: str
    platform: str
    architecture: str | None
    compiles: bool
    safe_outputs: tuple[tuple[str, int, int], ...] | None = None


BOARD_KINDS = {
    kind.name: kind
    for kind in (
        Kind("unix", "linux", "x86", False, ()),  # its flash is a folder to look into; no pins of its own
        # A Cortex-M3, but MicroPython says so of any that has Thumb-2 and no FPU. Its outputs are words of its mailbox.
        Kind("mps2", "qemu", "armv7em", True, (("mem32", 0x21000104, 0), ("mem32", 0x21000108, 0))),
        Kind("rp2", "rp2", None, True),  # RP2040: armv6m, RP2350: armv7emsp
        Kind("stm32", "pyboard", None, True),  # by its core: armv7m, armv7emsp, armv7emdp
        Kind("esp32", "esp32", None, True),  # xtensawin; rv32imc for the C and H series
    )
}


def kind_named(name: str) -> Kind:
    """The kind of this name.

    Raises:
        FlashError: there is none.
    """
    if name not in BOARD_KINDS:
        raise FlashError(f"no kind of board is called {name!r}; there are {', '.join(BOARD_KINDS)}")
    return BOARD_KINDS[name]


class BoardFiles(Protocol):
    """Files of a board whose program has ended; paths are from the root, without a leading slash.

    Every method raises OSError when the file system refuses.
    """

    def names(self, folder: str) -> list[str]:
        """Names in a folder ("" is the root), a folder's with a slash at the end; none where there is no folder."""
        ...

    def read(self, path: str) -> bytes | None:
        """Content of a file; None where there is none."""
        ...

    def sha256(self, path: str) -> str | None:
        """Hash of a file as it lies in the flash, hexadecimal; None where there is none."""
        ...

    def write(self, path: str, content: bytes) -> None:
        """Write a file, new or in place of another."""
        ...

    def rename(self, old: str, new: str) -> None:
        """Give a file another name, in place of the one that had it."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file, or an empty folder, whose path ends in a slash."""
        ...

    def make_folder(self, path: str) -> None:
        """Make a folder."""
        ...

    def free(self) -> int:
        """Bytes that can still be written."""
        ...


class FolderFiles:
    """The folder of an emulated board."""

    def __init__(self, folder: Path) -> None:
        """Use this folder."""
        self._folder = folder

    def names(self, folder: str) -> list[str]:
        """See BoardFiles."""
        path = self._folder / folder
        if not path.is_dir():
            return []
        return sorted(f"{entry.name}/" if entry.is_dir() else entry.name for entry in path.iterdir())

    def read(self, path: str) -> bytes | None:
        """See BoardFiles."""
        file = self._folder / path
        return file.read_bytes() if file.is_file() else None

    def sha256(self, path: str) -> str | None:
        """See BoardFiles."""
        content = self.read(path)
        return None if content is None else hashlib.sha256(content).hexdigest()

    def write(self, path: str, content: bytes) -> None:
        """See BoardFiles."""
        with (self._folder / path).open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())  # what is renamed afterwards must be there before its name is

    def rename(self, old: str, new: str) -> None:
        """See BoardFiles."""
        os.replace(self._folder / old, self._folder / new)

    def remove(self, path: str) -> None:
        """See BoardFiles."""
        target = self._folder / path
        if path.endswith("/"):
            target.rmdir()
        else:
            target.unlink()

    def make_folder(self, path: str) -> None:
        """See BoardFiles."""
        (self._folder / path).mkdir()

    def free(self) -> int:
        """See BoardFiles."""
        return shutil.disk_usage(self._folder).free


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


@dataclass(frozen=True)
class Interpreter:
    """Interpreter of a board, and the code that it runs.

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
            entries = self._do(self._transport.fs_listdir, folder)
        except FileNotFoundError:
            return []
        return sorted(f"{entry.name}/" if entry.st_mode & _FOLDER else entry.name for entry in entries)

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
            message = _last_line(error)
            raise FlashError(f"{self._port} does not reset: {message}; take its power and give it back") from error
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
            message = _last_line(error)
            number = re.search(r"OSError: (?:\[Errno )?(\d+)", message)
            raise (OSError(int(number[1]), message) if number else OSError(message)) from error


def _last_line(error: BaseException) -> str:
    lines = str(getattr(error, "error_output", "") or error).strip().splitlines()
    return lines[-1] if lines else type(error).__name__
