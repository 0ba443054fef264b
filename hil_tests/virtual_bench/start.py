"""Start a virtual bench from Python, as a process of its own: host and bench share nothing but ports and a folder.

The process is forked by a server that has everything imported, which spares every bench but the first 0.6 s. The server
imports the caller's main module, so a script that starts a bench does so below `if __name__ == "__main__":`.
"""

from __future__ import annotations

import contextlib
import fcntl
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import FrameType
from typing import IO, Any

from hil_tests.virtual_bench.errors import BenchError
from hil_tests.virtual_bench.kinds import EMULATED, RP2040, PlantKind, Variant


class Stop:
    """A request to end, as a flag for loops and as descriptors for select(); entered, it takes both signals over."""

    def __init__(self, attached: bool = False) -> None:
        """Nothing asked for yet; `attached` ends the bench with whoever holds its standard input."""
        self.requested = False
        self._wake, self._alarm = os.pipe()
        self.sources: list[Any] = [self._wake, sys.stdin] if attached else [self._wake]
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Stop:
        """Take over SIGTERM and SIGINT."""
        self._before = {number: signal.signal(number, self._on_signal) for number in (signal.SIGTERM, signal.SIGINT)}
        return self

    def __exit__(self, *_: object) -> None:
        """Give both back."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self._wake)
        os.close(self._alarm)

    def told_by(self, ready: list[Any]) -> bool:
        """Whether one of the descriptors that select() returned asks to end."""
        self.requested = self.requested or any(source in ready for source in self.sources)
        return self.requested

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self.requested = True
        os.write(self._alarm, b"!")


def claim_folder(folder: Path) -> IO[bytes]:
    """Make a folder and lock it.

    Returns:
        The lock: held until it is closed or the process ends, however it ends.

    Raises:
        BenchError: another bench uses the folder, or it cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / "lock").open("wb")
    except OSError as error:
        raise BenchError(f"folder {folder} cannot be written: {error.strerror}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.close()
        raise BenchError(f"folder {folder} is in use by another bench; end that one or choose another --out") from error
    return lock


_PATIENCE = 60.0  # [s] of the wall clock, for starting and for ending
_CHIPS_PATIENCE = 300.0  # for chips to start: 2 s of their time, of which six take up to 20 s each
BOARD_NAME = "JOINTBENCH_BOARD"  # environment variable: what emulates every board, unless the caller says
_PROGRAM, _BENCH = "hil_tests.virtual_bench.__main__", "hil_tests.virtual_bench.bench"
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload([_PROGRAM, _BENCH])


@contextlib.contextmanager
def virtual_bench(
    bench_toml: Path | str,
    plant: PlantKind = "harmonic",
    seed: int = 0,
    realtime: bool = False,
    out: Path | str = "runs/sim",
    board: str | None = None,
    modules: int | str | None = None,
    noise_seed: int | None = None,
    variant: Variant | None = None,
) -> Generator[Path]:
    """Run a virtual bench while the context lasts.

    Args:
        bench_toml: bench file with boards at "unix:", "qemu:" or "rp2040:".
        plant: "harmonic" for harmonic-drive joints, "ideal" for rigid joints with Coulomb and viscous friction.
        seed: of the boards' imperfections and noise; same seed and same client, same bytes.
        realtime: run by the wall clock instead of by a client's control connection.
        out: folder for bench.toml, bench.log and the boards' files; one bench at a time may use it.
        board: what emulates every board, a key of EMULATED; without it `JOINTBENCH_BOARD`, else what the file says.
        modules: how many joints of the robot are there, with their boards; all of them without it.
        noise_seed: of the noise alone, which is the seed's without it: benches of one seed and other noise are one
            bench on several occasions.
        variant: another make of the plant, one of VARIANTS.

    Yields:
        Path of the live bench file.

    Raises:
        BenchError: the bench did not start, with its own words why.
    """
    board = board or os.environ.get(BOARD_NAME)
    if board and board not in EMULATED:
        raise BenchError(f"board = {board!r} is no emulator of boards; there are {', '.join(map(repr, EMULATED))}")
    folder = Path(out).resolve()
    claim_folder(folder).close()  # before another bench's files are touched; the process claims it again for itself
    live, log_path = folder / "bench.toml", folder / "bench.log"
    live.unlink(missing_ok=True)
    arguments = [
        str(Path(bench_toml).resolve()),
        "--plant", plant, "--seed", str(seed), "--out", str(folder), "--attached",
        *(["--realtime"] if realtime else []), *(["--board", board] if board else []),
        *([] if modules is None else ["--modules", str(modules)]),
        *([] if variant is None else ["--variant", variant]),
        *([] if noise_seed is None else ["--noise-seed", str(noise_seed)]),
    ]  # fmt: skip
    log_path.write_bytes(b"")
    stdin, held = _FORKS.Pipe(duplex=False)
    process = _FORKS.Process(target=_serve, args=(arguments, dict(os.environ), os.getcwd(), stdin, log_path))
    process.start()
    stdin.close()
    try:
        _await_start(process, live, log_path, _CHIPS_PATIENCE if _has_chips(bench_toml, board) else _PATIENCE)
        yield live
    finally:
        _end(process, held)


def _has_chips(bench_toml: Path | str, board: str | None) -> bool:
    """Whether a bench may have chips; of a file that cannot be read the bench's process says why."""
    try:
        return RP2040 in (board or Path(bench_toml).read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return False


def _serve(arguments: Sequence[str], env: Mapping[str, str], cwd: str, stdin: Connection, log_path: Path) -> None:
    """Be the process of a bench: as if its program had been started by a shell, without a terminal."""
    os.setsid()
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    os.dup2(stdin.fileno(), 0)
    stdin.close()
    log = os.open(log_path, os.O_WRONLY | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    sys.stdin = open(0, closefd=False)
    from hil_tests.virtual_bench.__main__ import main  # the program itself imports this module

    sys.exit(main(arguments))


def _await_start(process: BaseProcess, live: Path, log_path: Path, patience: float) -> None:
    deadline = time.monotonic() + patience
    while not live.exists():
        if not process.is_alive():
            said = log_path.read_text(encoding="utf-8", errors="replace").strip()
            raise BenchError(said.removeprefix("error: ") or f"virtual bench ended with status {process.exitcode}")
        if time.monotonic() > deadline:
            raise BenchError(f"virtual bench did not start within {patience:g} s; its words are in {log_path}")
        time.sleep(0.01)


def _end(process: BaseProcess, held: Connection) -> None:
    """End the bench by closing its standard input, as would happen were this process killed."""
    held.close()
    process.join(_PATIENCE)
    if process.is_alive():
        process.kill()
        process.join()
    process.close()
