"""The bench of a pytest run: chosen on the command line, started for the first test, broken once a board is."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from jointbench.errors import BenchLost, BoardLost, BoardSilent, FileError
from jointbench.files import text_of, toml_values, write_file
from jointbench.testing.tiers import FEATURES, SETTING, known_features

if TYPE_CHECKING:
    from jointbench.bench import Board


@pytest.hookspec(firstresult=True)
def pytest_jointbench_start(  # pyright: ignore[reportUnusedParameter]
    bench_file: Path, options: BenchOptions
) -> AbstractContextManager[BenchUnderTest] | None:
    """Start the bench of a bench file, for as long as the context lasts; None leaves it to others.

    The plugin itself opens real ports.

    Args:
        bench_file: what --bench names.
        options: what else the command line says.
    """


@dataclass(frozen=True)
class BenchOptions:
    """Options of the command line on the bench.

    Attributes:
        bench: bench file.
        seed: of everything on the bench that is drawn by chance.
        port: opened instead of the URL in the file; empty for the file's.
        out: folder for all that the run leaves behind.
        folder: in it, for the bench's own files: with several processes each has a bench.
        is_kept: whether `out` outlives the run.
    """

    bench: Path
    seed: int
    port: str
    out: Path
    folder: Path
    is_kept: bool


@dataclass(frozen=True)
class BenchUnderTest:
    """A started bench.

    Attributes:
        name: of the bench.
        file: live bench file, for `jointbench.bench.open_bench`.
        clock: "virtual", "icount" or "wall".
        features: what it offers, names of `FEATURES`.
        seed: of everything on it that is drawn by chance.
        out: folder for what the run leaves behind.
        boards: node, joint and URL of each.
        limits: what it allows, by name with the unit, as `position_rad`.
    """

    name: str
    file: Path
    clock: str
    features: frozenset[str]
    seed: int
    out: Path
    boards: tuple[tuple[int, str, str], ...]
    limits: Mapping[str, float]

    @classmethod
    def from_live_file(cls, file: Path, options: BenchOptions) -> BenchUnderTest:
        """The bench of a live bench file.

        Raises:
            FileError: the file cannot be read, or is wrong.
        """
        from jointbench.bench import read_bench_file  # brings numpy and more: only to runs with a bench

        bench = read_bench_file(file)
        boards = tuple((board.node, board.joint, board.url) for board in bench.boards)
        return cls(bench.name, file, bench.clock, bench.features, options.seed, options.out, boards, bench.terms.limits)


@dataclass(frozen=True)
class Broken:
    """Failure of the bench itself.

    Attributes:
        what: the board or the bench.
        since: the test that it broke.
        cause: in one line.
    """

    what: str
    since: str
    cause: str

    @property
    def reason(self) -> str:
        """Reason why later tests do not run."""
        return f"{self.what} is broken since {self.since}: {self.cause}"


def broken_by(error: BaseException, test: str, in_setup: bool) -> Broken | None:
    """Say what an error that ended a test has broken, or None for one that may have been the test's alone.

    A board that only says nothing is given up when it cannot be greeted before a test: while a test runs, the test may
    have silenced it.
    """
    for each in _chain(error):
        if isinstance(each, BoardLost) or (isinstance(each, BoardSilent) and in_setup):
            return Broken(f"board {each.joint} (node {each.node})", test, _line(each.text))
        if isinstance(each, BenchLost):
            return Broken("the bench", test, _line(str(each)))
    return None


def _chain(error: BaseException) -> Iterator[BaseException]:
    each: BaseException | None = error
    while each is not None:
        yield each
        each = each.__cause__


def _line(text: str) -> str:
    return " ".join(text.split())


LIVE = "live_bench"
"""Folder of a running bench in that of the run, with a worker's name behind it where several run at once."""
FOLDERS = ["hil_tests/benches", "benches"]
FOLDERS_SETTING, BENCH_SETTING = "jointbench_benches", "jointbench_bench"
OUT, KEPT = "jointbench_out", "jointbench_kept"  # what the workers of pytest-xdist are told


def choose_bench(config: pytest.Config) -> BenchOptions | None:
    """Read --bench, or the setting that stands for it, and what goes with it; None without a bench.

    The folder for results is settled in the process that was typed: others of the same run are told.

    Raises:
        pytest.UsageError: there is no such bench.
    """
    option = config.option
    named: str = option.jointbench_bench or ""
    wanted = named or config.getini(BENCH_SETTING)
    if not wanted:
        return None
    file = _bench_file(wanted, [config.rootpath / folder for folder in config.getini(FOLDERS_SETTING)])
    told: dict[str, Any] = getattr(config, "workerinput", {})
    is_kept: bool = told.get(KEPT, bool(named or option.jointbench_out))
    option.jointbench_out = told.get(OUT, option.jointbench_out)
    if not option.jointbench_out:
        now = time.strftime("%Y-%m-%dT%H%M%SZ", time.gmtime())
        kept, passing = config.rootpath / "runs" / f"{now}-hil-{file.stem}", f"jointbench-hil-{os.getpid()}-{now}"
        option.jointbench_out = str(kept if is_kept else Path(tempfile.gettempdir(), passing))
    out = Path(option.jointbench_out).absolute()
    worker: str = told.get("workerid", "")
    folder = out / (f"{LIVE}-{worker}" if worker else LIVE)
    return BenchOptions(file, option.jointbench_seed, option.jointbench_port or "", out, folder, is_kept)


def _bench_file(wanted: str, folders: list[Path]) -> Path:
    if Path(wanted).suffix == ".toml" or "/" in wanted:
        file = Path(wanted).absolute()
        if not file.is_file():
            raise pytest.UsageError(f"--bench {wanted}: there is no such file")
        return file
    for folder in folders:
        file = folder / f"{wanted}.toml"
        if file.is_file():
            return file
    names = sorted(file.stem for folder in folders for file in folder.glob("*.toml"))
    raise pytest.UsageError(
        f"--bench {wanted}: there is no such bench; there are {', '.join(names) or 'none'} in "
        f"{', '.join(map(str, folders))} (setting {FOLDERS_SETTING}), or give a bench file's path"
    )


@contextmanager
def real_bench(bench_file: Path, options: BenchOptions) -> Iterator[BenchUnderTest]:
    """Give the bench of a file whose boards are at real ports.

    Raises:
        FileError: the file is wrong, or more than one port would have to become `options.port`.
    """
    live = _with_port(bench_file, options) if options.port else bench_file
    yield BenchUnderTest.from_live_file(live, options)


def _with_port(bench_file: Path, options: BenchOptions) -> Path:
    """Write the bench file anew with another port."""
    import tomli_w

    from jointbench.bench import read_bench_file
    from jointbench.errors import FileError

    bench = read_bench_file(bench_file)
    if len(bench.lines) > 1:
        raise FileError(
            f"{bench_file} has {len(bench.lines)} ports, and --bench-port gives one; write the ports into a bench file"
        )
    text = toml_values(text_of(bench_file))
    text["robot"] = bench.robot  # a path in it is meant from its own folder
    for board in text["board"]:
        faults, separator, _ = board["url"].rpartition(";")  # of a fault:// URL
        board["url"] = f"{faults}{separator}{options.port}"
    live = options.folder / "bench.toml"
    return write_file(live, tomli_w.dumps(text))


def make_ready(file: Path) -> tuple[Board, ...]:
    """Greet every board of a live bench file, stop those that may drive, and acknowledge latched faults.

    Returns:
        The boards, as they answered; their ports are closed again.

    Raises:
        BoardLost, BoardSilent: a board is gone or does not answer.
        BoardRefused: a board's firmware is another release's.
        FileError, BenchLost: the bench cannot be opened.
    """
    from jointbench.bench import open_bench  # brings numpy and more: only to runs with a bench
    from jointwire import State

    with open_bench(file) as bench:
        for board in bench.all_boards:
            board.greet()
            if board.is_driving:
                board.line.stop_all()  # of a board's two motors, one that is stopped alone trips the other
                board.stop()
            board.need_our_schema()
        for board in bench.all_boards:
            board.hello()
            if board.state is State.FAULT:
                board.clear()
        return bench.all_boards


class BenchSession:
    """One bench for all tests of a run.

    Attributes:
        options: what the command line says of it.
        bench: what was started; None before.
        broken: what broke it; None while it is whole.
    """

    def __init__(self, config: pytest.Config, options: BenchOptions) -> None:
        """Start nothing yet."""
        self.options = options
        self.bench: BenchUnderTest | None = None
        self.broken: Broken | None = None
        self._config = config
        self._open = ExitStack()

    def start(self, test: str) -> BenchUnderTest:
        """Return the bench, started for this test if it was not before.

        Raises:
            Exception: what starting raised; the bench is broken then, and is not tried again.
        """
        if self.bench is None:
            try:
                self.options.folder.mkdir(parents=True, exist_ok=True)
                if not self.options.is_kept:
                    self._open.callback(_remove, self.options)
                self.bench = self._opened()
            except (Exception, pytest.fail.Exception) as error:
                cause = " ".join(str(error).split())
                self.broken = Broken(f"bench {self.options.bench.stem}", test, f"it did not start: {cause}")
                raise
        return self.bench

    def note_error(self, error: BaseException, test: str, in_setup: bool) -> None:
        """Remember the first error that leaves the bench without a board."""
        self.broken = self.broken or broken_by(error, test, in_setup)

    def close(self) -> None:
        """End the bench."""
        self._open.close()

    def _opened(self) -> BenchUnderTest:
        bench = self._open.enter_context(
            self._config.hook.pytest_jointbench_start(bench_file=self.options.bench, options=self.options)
        )
        unknown = bench.features - known_features(self._config)
        if unknown:
            raise FileError(
                f"{self.options.bench}: features has {', '.join(sorted(unknown))}; there are "
                f"{', '.join(sorted(FEATURES))} (more by the setting {SETTING})"
            )
        return bench


SESSION = pytest.StashKey[BenchSession]()


def _remove(options: BenchOptions) -> None:
    """Remove what a bench left in a passing folder; the last of several processes removes the folder."""
    shutil.rmtree(options.folder, ignore_errors=True)  # a bench that was skipped is tried, and removed, by each test
    with suppress(OSError):
        options.out.rmdir()


def bench_facts(name: str, clock: str, seed: int, features: Iterable[str]) -> dict[str, Any]:
    """Say which bench a test runs on."""
    return {"name": name, "clock": clock, "seed": seed, "features": sorted(map(str, features))}


def urls_in(bench_file: Path) -> dict[int, str]:
    """Return the URL of each node as a bench file has it: an emulated board's port has another name in each run."""
    boards = toml_values(text_of(bench_file)).get("board", [])
    return {int(node): str(board["url"]) for board in boards for node in board.get("nodes", [board.get("node", 0)])}


def board_facts(board: Board) -> dict[str, Any]:
    """Say who a board is, by its own words when it was last greeted."""
    who = board.identity
    place = {"node": board.node, "joint": board.joint, "port": board.port.url}
    said = (
        {"board": "", "uid": "", "firmware_version": "", "image_sha256": "", "wire": ""}
        if who is None
        else {
            "board": who.board,
            "uid": who.uid,
            "firmware_version": who.firmware_version,
            "image_sha256": who.image_sha256,
            "wire": who.wire,
        }
    )
    return place | said
