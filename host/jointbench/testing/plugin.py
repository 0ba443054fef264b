"""The plugin: options, fixtures, and when a test of a bench runs, is skipped, or is refused."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from jointbench.testing import session as hooks
from jointbench.testing.record import note
from jointbench.testing.session import (
    BENCH_SETTING,
    FOLDERS,
    FOLDERS_SETTING,
    KEPT,
    OUT,
    SESSION,
    BenchOptions,
    BenchSession,
    BenchUnderTest,
    bench_facts,
    board_facts,
    choose_bench,
    make_ready,
    real_bench,
)
from jointbench.testing.tiers import (
    MARK,
    MARKS,
    PROPERTY,
    SETTING,
    TIERS,
    RequiredTiers,
    check_needs,
    known_features,
    need_tier,
    needed,
    parse_tiers,
    tier_of,
)

pytest_plugins: tuple[str, ...] = ("jointbench.testing.requirements", "jointbench.testing.report")

_FIXTURES = {"bench_under_test", "live_bench"}
_TIER = pytest.StashKey[str]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what the command line and pytest's settings can say of benches."""
    group = parser.getgroup("jointbench", "benches of joint boards")
    add = group.addoption
    add("--bench", dest="jointbench_bench", metavar="NAME|FILE", help="bench file, or its name, to run bench tests on")
    add(
        "--require",
        dest="jointbench_require",
        metavar="TIER,…",
        help=f"fail unless all tests of these tiers ran, and there were some: {', '.join(TIERS)}",
    )
    add("--bench-seed", dest="jointbench_seed", type=int, default=0, metavar="N", help="of all chance on the bench (0)")
    add("--bench-port", dest="jointbench_port", metavar="PATH", help="open this instead of the file's serial port")
    add("--bench-out", dest="jointbench_out", metavar="DIR", help="for logs and reports (runs/TIME-hil-BENCH)")
    parser.addini(BENCH_SETTING, "bench, or its file, of runs without --bench")
    parser.addini(FOLDERS_SETTING, "folders of bench files", type="args", default=FOLDERS)
    parser.addini(SETTING, 'features of your benches beside those known, "name: what it says"', type="linelist")


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Let others start benches."""
    pluginmanager.add_hookspecs(hooks)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Know the marks, and the bench, which is not started yet."""
    for name, meaning in MARKS.items():
        config.addinivalue_line("markers", f"{name}: {meaning}")
    config.addinivalue_line("markers", f"{MARK}(*features): what a bench test needs of its bench")
    required: str | None = config.option.jointbench_require
    if required is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(RequiredTiers(config, parse_tiers(required)))
    options = choose_bench(config)
    if options:
        config.stash[SESSION] = BenchSession(config, options)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker of pytest-xdist where the run leaves its results: it would find a folder of its own."""
    session = node.config.stash.get(SESSION, None)
    if session:
        node.workerinput |= {OUT: str(session.options.out), KEPT: session.options.is_kept}


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Say which bench it is."""
    session = config.stash.get(SESSION, None)
    if session is None:
        return []
    options = session.options
    return [f"bench: {options.bench}, seed {options.seed}{f', port {options.port}' * bool(options.port)}"]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Refuse bench tests that would never run, or of which nobody knows when they should."""
    known = known_features(config)
    for item in items:
        wants_bench = needed(item) or not _FIXTURES.isdisjoint(getattr(item, "fixturenames", ()))
        tier = need_tier(item) if wants_bench else tier_of(item)
        if tier:
            check_needs(item, known)
            item.stash[_TIER] = tier
            item.user_properties.append((PROPERTY, tier))
            note(item, tier=tier, needs=list(needed(item)))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a bench test where there is no bench, the bench is broken, or it is not what the test needs."""
    tier = item.stash.get(_TIER, "")
    if not tier:
        return
    session = item.config.stash.get(SESSION, None)
    if session is None:
        pytest.skip("there is no bench; give --bench=NAME or --bench=FILE")
    if session.broken:
        pytest.skip(session.broken.reason)
    bench = session.start(item.nodeid)
    if bench.clock not in TIERS[tier]:
        allowed = " or ".join(sorted(TIERS[tier]))
        pytest.skip(f"{tier} tests need a bench whose clock is {allowed}; bench {bench.name} has clock {bench.clock}")
    missing = [name for name in needed(item) if name not in bench.features]
    if missing:
        note(item, missing=missing)
        pytest.skip(f"bench {bench.name} lacks {', '.join(missing)}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Notice that a test ended because a board is gone."""
    session = item.config.stash.get(SESSION, None)
    if session and call.excinfo and _TIER in item.stash:
        session.note_error(call.excinfo.value, item.nodeid, call.when == "setup")
    return (yield)


@pytest.hookimpl(trylast=True)
def pytest_jointbench_start(bench_file: Path, options: BenchOptions) -> AbstractContextManager[BenchUnderTest]:
    """Serve real ports, unless somebody else started the bench."""
    return real_bench(bench_file, options)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """End the bench, once the last fixture has let it go."""
    if SESSION in session.config.stash:
        session.config.stash[SESSION].close()


@pytest.fixture(scope="session")
def bench_under_test(request: pytest.FixtureRequest) -> BenchUnderTest:
    """Return the bench that --bench names, started."""
    return request.config.stash[SESSION].start(request.node.nodeid)


@pytest.fixture
def live_bench(request: pytest.FixtureRequest, bench_under_test: BenchUnderTest) -> Path:
    """Return the live bench file of a bench on which every board answers, no motor is on and no fault is latched."""
    boards = make_ready(bench_under_test.file)
    bench = bench_under_test
    note(
        request.node,
        bench=bench_facts(bench.name, bench.clock, bench.seed, bench.features),
        boards=[board_facts(board) for board in boards],
    )
    return bench.file
