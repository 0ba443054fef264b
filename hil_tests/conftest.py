"""Which emulated boards the bench tests run on: both kinds for a few, otherwise unix boards, or what --board says."""

import os
from pathlib import Path

import pytest

from hil_tests.need_qemu import need_qemu
from hil_tests.virtual_bench.bench_file import EMULATED, QEMU
from hil_tests.virtual_bench.start import BOARD_NAME

HERE = Path(__file__).resolve().parent
MARKERS = (
    "both_boards: in a run without --board, once on unix: and once on qemu: boards",
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
    """With --board leave out tests that have no board, and those that need another."""
    board = config.getoption("--board")
    if not board:
        return
    config.hook.pytest_deselected(items=[item for item in items if HERE not in item.path.parents])
    items[:] = [item for item in items if HERE in item.path.parents]
    for item in items:
        only = item.get_closest_marker("unix_only")
        if only and EMULATED[board] == QEMU:
            item.add_marker(pytest.mark.skip(reason=f"needs the unix port: {only.args[0]}"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests that are marked so on both kinds of boards."""
    if metafunc.definition.get_closest_marker("both_boards") and not metafunc.config.getoption("--board"):
        metafunc.parametrize("emulator", ["unix:", "qemu:"], indirect=True)


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
