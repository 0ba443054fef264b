"""Commands that write files which their user keeps, each on a small stored run, in a fork of a virtual bench."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path

from hil_tests.flash_helpers import changed_firmware
from hil_tests.virtual_bench.bench import Stop, running_bench
from hil_tests.virtual_bench.bench_file import BenchFile, read_bench_file
from hil_tests.virtual_bench.errors import BenchError
from jointbench.cli.main import main
from jointbench.files import write_file
from jointbench.stopping import STOPPING
from tools.faults.cell import CellNotRun
from tools.faults.program import plan_text
from tools.faults.subject import BENCH, MODULES

_PATIENCE_S = 60.0  # of the wall clock, for starting, and for ending
_LOOK_S = 0.002


@contextlib.contextmanager
def forked_bench(description: BenchFile, seed: int, folder: Path) -> Generator[Path]:
    """Run a virtual bench in virtual time while the context lasts; yields the path of its live bench file.

    Raises:
        BenchError: it did not start, with its own words why, or it did not end.
    """
    folder.mkdir(parents=True)
    log, live = folder / "bench.log", folder / "bench.toml"
    stdin, held = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(held)
        _serve(description, seed, folder, stdin, log)
    os.close(stdin)
    try:
        _await_start(child, live, log)
        yield live
    finally:
        os.close(held)  # its standard input ends, and so does it
        with contextlib.suppress(ChildProcessError):
            _await_end(child, log)


def _serve(description: BenchFile, seed: int, folder: Path, stdin: int, log: Path) -> None:
    """Be the bench until standard input ends; never returns."""
    try:
        os.setsid()  # Ctrl-C is for the campaign, which ends its benches
        os.dup2(stdin, 0)
        words = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644)
        os.dup2(words, 1)
        os.dup2(words, 2)
        sys.stdin, sys.stderr = os.fdopen(0), os.fdopen(2, "w", buffering=1)  # a process of a pool has others
        try:
            running = running_bench(description, "harmonic", seed, False, folder)
            with Stop(attached=True) as stop, running as (_, bench, control):
                assert control is not None
                bench.serve_control(control, stop)
        except BenchError as error:
            print(f"error: {error}", file=sys.stderr)
        except Exception:
            traceback.print_exc()
    finally:
        os._exit(0)


def _await_start(child: int, live: Path, log: Path) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not live.exists():
        if os.waitpid(child, os.WNOHANG)[0]:
            raise BenchError(log.read_text(encoding="utf-8").strip().removeprefix("error: "))
        if time.monotonic() > deadline:
            raise BenchError(f"virtual bench did not start within {_PATIENCE_S:g} s; its words are in {log}")
        time.sleep(_LOOK_S)


def _await_end(child: int, log: Path) -> None:
    """Wait for the bench, which ends its boards; one that hangs is ended with everything it started."""
    deadline = time.monotonic() + _PATIENCE_S
    while not os.waitpid(child, os.WNOHANG)[0]:
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise BenchError(f"virtual bench did not end within {_PATIENCE_S:g} s; its words are in {log}")
        time.sleep(_LOOK_S)


EXPORTS = ("arm.urdf", "arm.xml", "arm.h", "arm.json", "arm.toml")


@dataclass(frozen=True)
class Store:
    """What the commands read, made once.

    Attributes:
        folder: with a run and its model, a plan, and a firmware that is another than the boards'.
    """

    folder: Path

    @property
    def run(self) -> Path:
        """A recording of two small motions of one joint."""
        return self.folder / "run"

    @property
    def model(self) -> Path:
        """Fitted to it."""
        return self.folder / "model.json"

    @property
    def plan(self) -> Path:
        """Of its motion."""
        return self.folder / "plan.json"

    @property
    def firmware(self) -> Path:
        """What boards are flashed with."""
        return self.folder / "firmware"


@dataclass(frozen=True)
class Command:
    """A command that writes files.

    Attributes:
        words: what is typed, of a store, the place that it writes to, and a live bench.
        files: names of what it leaves in that place, folders too.
        on_bench: whether it takes a bench.
    """

    words: Callable[[Store, Path, Path], list[object]]
    files: tuple[str, ...]
    on_bench: bool = False


COMMANDS: dict[str, Command] = {
    "plan": Command(
        lambda store, place, live: ["plan", "modular7:1", "--random", "--period", "3.2", "--force",
                                    "--out", place / "plan.json", "--picture", place / "plan.png"],
        ("plan.json", "plan.png"),
    ),
    "model": Command(
        lambda store, place, live: ["fit", store.run, "--out", place / "model.json", "--force"], ("model.json",)
    ),
    "report": Command(
        lambda store, place, live: ["report", store.model, store.run, "--out", place / "report.html", "--force"],
        ("report.html",),
    ),
    "export": Command(
        lambda store, place, live: ["export", store.model, "--out", *(place / name for name in EXPORTS), "--force"],
        EXPORTS,
    ),
    "result": Command(lambda store, place, live: ["info", "modular7:1", "--json", place / "info.json"], ("info.json",)),
    "run": Command(
        lambda store, place, live: ["run", live, "--plan", store.plan, "--repeats", "1", "--out", place / "run"],
        ("run",), on_bench=True,
    ),
    "configuration": Command(
        lambda store, place, live: ["flash", live, "--firmware", store.firmware, "--backup", place / "boards"],
        ("boards",), on_bench=True,
    ),
}  # fmt: skip


def one_board() -> BenchFile:
    """The bench that commands take."""
    return read_bench_file(BENCH).with_modules(MODULES)


def make_store(folder: Path) -> Store:
    """Record a small run, and fit a model to it.

    Raises:
        CellNotRun: it could not be made; says where the command's words are.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    store = Store(folder)
    write_file(store.plan, plan_text(""))
    changed_firmware(store.firmware, "new = 1")
    with forked_bench(one_board(), 0, folder / "bench") as live:
        made = COMMANDS["run"].words(store, folder, live)
        codes = [in_child(lambda: typed(made), folder / "made.log")]
    codes.append(in_child(lambda: typed(COMMANDS["model"].words(store, folder, folder)), folder / "made.log"))
    if any(codes):
        raise CellNotRun(f"the run that commands are tried on could not be made; see {folder / 'made.log'}")
    return store


def typed(words: list[object]) -> int:
    """Carry out a command line in this process; its exit code."""
    return main([str(word) for word in words])


def in_child(act: Callable[[], int], words: Path) -> int:
    """Do something in a process of its own, whose output goes to a file; a signal that ended it is negative."""
    child = os.fork()
    if child == 0:
        code = 3
        try:
            for number in STOPPING.values():
                signal.signal(number, signal.default_int_handler if number is signal.SIGINT else signal.SIG_DFL)
            log = os.open(words, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644)
            os.dup2(log, 1)
            os.dup2(log, 2)
            sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)
            code = act()
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
