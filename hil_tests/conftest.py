"""Which emulated boards the bench tests run on: both kinds for a few, otherwise unix boards, or what --board says."""

import os
import tomllib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from multiprocessing import forkserver
from pathlib import Path

import pytest

from hil_tests.need_qemu import need_qemu
from hil_tests.virtual_bench.bench_file import EMULATED, QEMU
from hil_tests.virtual_bench.errors import BenchError
from hil_tests.virtual_bench.start import BOARD_NAME, virtual_bench
from jointbench.testing.session import BenchOptions, BenchUnderTest
from jointbench.testing.tiers import need_tier
from jointwire import decode_stream

HERE = Path(__file__).resolve().parent
SUITE = HERE / "suite"  # tests of any bench, the one that --bench names
MARKERS = (
    "both_boards: in a run without --board, once on unix: and, slowly, once on qemu: boards",
    "unix_only(reason): needs the unix port itself; skipped with --board qemu:",
)


def pytest_configure(config: pytest.Config) -> None:
    """Tell every bench that a test starts."""
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)
    board: str | None = config.getoption("--board")
    if board and board not in EMULATED:
        raise pytest.UsageError(f"--board {board}: there are {', '.join(EMULATED)}")
    if board:
        os.environ[BOARD_NAME] = board


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Have every test of the suite in a tier; with --board leave out tests that have no such boards, or need others."""
    for item in items:
        if SUITE in item.path.parents:
            need_tier(item)
    board = config.getoption("--board")
    if not board:
        return
    has_board = [HERE in item.path.parents and SUITE not in item.path.parents for item in items]
    config.hook.pytest_deselected(items=[item for item, has in zip(items, has_board, strict=True) if not has])
    items[:] = [item for item, has in zip(items, has_board, strict=True) if has]
    for item in items:
        only = item.get_closest_marker("unix_only")
        if only and EMULATED[board] == QEMU:
            item.add_marker(pytest.mark.skip(reason=f"needs the unix port: {only.args[0]}"))


def pytest_jointbench_start(bench_file: Path, options: BenchOptions) -> AbstractContextManager[BenchUnderTest] | None:
    """Start benches of emulated boards."""
    emulators = _emulators(bench_file)
    return _emulated_bench(bench_file, options, emulators) if emulators else None


def _emulators(bench_file: Path) -> set[str]:
    """What emulates the boards of a bench file, behind their fault:// URLs; none of a file that others must refuse."""
    try:
        boards = tomllib.loads(bench_file.read_text(encoding="utf-8"))["board"]
        urls: list[str] = [board["url"].rpartition(";")[2].strip() for board in boards]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return set()
    return set(urls) & EMULATED.keys()


@contextmanager
def _emulated_bench(bench_file: Path, options: BenchOptions, emulators: set[str]) -> Iterator[BenchUnderTest]:
    if any(EMULATED[emulator] == QEMU for emulator in emulators):
        need_qemu()
    if options.port:
        raise BenchError(
            f"{bench_file.name} has emulated boards; --bench-port {options.port} is for boards at real ports"
        )
    named = next(iter(emulators)) if len(emulators) == 1 else None  # not what the environment says of all benches
    with virtual_bench(bench_file, seed=options.seed, out=options.folder, board=named) as live:
        yield BenchUnderTest.from_live_file(live, options)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests that are marked so on both kinds of boards."""
    if metafunc.definition.get_closest_marker("both_boards") and not metafunc.config.getoption("--board"):
        slowly = pytest.param("qemu:", marks=pytest.mark.slow)
        metafunc.parametrize("emulator", ["unix:", slowly], indirect=True)


@pytest.fixture(scope="session", autouse=True)
def ready() -> None:
    """Load what the first bench test would: SciPy's filters, the decoder, the server that forks benches."""
    import_module("scipy.signal")
    decode_stream(b"\0")
    forkserver.ensure_running()


@pytest.fixture(autouse=True)
def emulator(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What emulates the boards of this test: "unix:" or "qemu:"."""
    chosen: str | None = getattr(request, "param", None) or request.config.getoption("--board")
    if chosen:
        monkeypatch.setenv(BOARD_NAME, chosen)
    if not chosen or EMULATED[chosen] != QEMU:
        return "unix:"
    need_qemu()
    return "qemu:"
