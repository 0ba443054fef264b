"""Start a virtual bench from Python, as a process of its own: host and bench share nothing but ports and a file."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import Literal

from hil_tests.virtual_bench.bench_file import EMULATED
from hil_tests.virtual_bench.errors import BenchError
from hil_tests.virtual_bench.folder import claim_folder

_PATIENCE = 60.0  # [s] of the wall clock, for starting and for ending
BOARD_NAME = "JOINTBENCH_BOARD"  # environment variable: what emulates every board, unless the caller says
_CHECKOUT = Path(__file__).resolve().parents[2]


@contextlib.contextmanager
def virtual_bench(
    bench_toml: Path | str,
    plant: Literal["harmonic", "ideal"] = "harmonic",
    seed: int = 0,
    realtime: bool = False,
    out: Path | str = "runs/sim",
    board: str | None = None,
    modules: int | str | None = None,
    noise_seed: int | None = None,
) -> Generator[Path]:
    """Run a virtual bench while the context lasts.

    Args:
        bench_toml: bench file with boards at "unix:" or "qemu:".
        plant: "harmonic" for harmonic-drive joints, "ideal" for rigid joints with Coulomb and viscous friction.
        seed: of the boards' imperfections and noise; same seed and same client, same bytes.
        realtime: run by the wall clock instead of by a client's control connection.
        out: folder for bench.toml, bench.log and the boards' files; one bench at a time may use it.
        board: what emulates every board, "unix:" or "qemu:"; without it `JOINTBENCH_BOARD`, else what the file says.
        modules: how many joints of the robot are there, with their boards; all of them without it.
        noise_seed: of the noise alone, which is the seed's without it: benches of one seed and other noise are one
            bench on several occasions.

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
    command = [
        sys.executable, "-m", "hil_tests.virtual_bench", str(Path(bench_toml).resolve()),
        "--plant", plant, "--seed", str(seed), "--out", str(folder), "--attached",
        *(["--realtime"] if realtime else []), *(["--board", board] if board else []),
        *([] if modules is None else ["--modules", str(modules)]),
        *([] if noise_seed is None else ["--noise-seed", str(noise_seed)]),
    ]  # fmt: skip
    with log_path.open("wb") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=log, stderr=log, env=_environment(), start_new_session=True
        )
    try:
        _await_start(process, live, log_path)
        yield live
    finally:
        _end(process)


def _environment() -> dict[str, str]:
    """Return this process's environment with its module search path, so that the bench finds the same packages."""
    paths = [str(_CHECKOUT), *(path for path in sys.path if path)]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))}


def _await_start(process: subprocess.Popen[bytes], live: Path, log_path: Path) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not live.exists():
        if process.poll() is not None:
            said = log_path.read_text(encoding="utf-8", errors="replace").strip()
            raise BenchError(said.removeprefix("error: ") or f"virtual bench ended with status {process.returncode}")
        if time.monotonic() > deadline:
            raise BenchError(f"virtual bench did not start within {_PATIENCE:g} s; its words are in {log_path}")
        time.sleep(0.01)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the bench by closing its standard input, as would happen were this process killed."""
    if process.stdin:
        process.stdin.close()
    try:
        process.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
