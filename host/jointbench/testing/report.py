"""The report of a pytest run: gathers records as tests end, keeps the logs of what failed, writes the files."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import shutil
import time
import zlib
from collections.abc import Generator, Mapping
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from jointbench.errors import FileNotWritten
from jointbench.files import json_values, text_of, write_file
from jointbench.testing.record import FACTS, Record, failed_collection, note, noted, noted_of_session, record_of
from jointbench.testing.session import LIVE, SESSION, BenchOptions, urls_in

if TYPE_CHECKING:
    from jointbench.testing.summary import Summary


PYTEST = "pytest {test} --bench={bench} --bench-seed={seed} {port} {require}"
"""With "=": pytest would take a path that stands alone for tests, and look for its settings there."""


def again(template: str, test: str, bench: str, seed: int, port: str = "", require: str = "") -> str:
    """Return what to type.

    Args:
        template: a command with {test}, {bench}, {seed}, {port} and {require} in it, any of them; they are filled in
            quoted for a shell, {port} becomes "--bench-port=PATH", and {require} "--require=TIERS" of the whole run.
        test: node id; empty for the whole run.
        bench: as it was named on the command line.
        seed: of the bench.
        port: that was given instead of the bench file's; empty without one.
        require: tiers that had to run; one test is not all of a tier.

    Raises:
        KeyError, ValueError, IndexError: the template has another place to fill in, or a brace too many.

    >>> again(PYTEST, "suite/test_line.py::test_echo[a b]", "unix6", 3)
    "pytest 'suite/test_line.py::test_echo[a b]' --bench=unix6 --bench-seed=3"
    >>> again("./run hil --bench {bench} --seed {seed} -- {test}", "", "unix6", 0)
    './run hil --bench unix6 --seed 0'
    >>> again(PYTEST, "", "unix6", 0, require="functional,deterministic")
    'pytest --bench=unix6 --bench-seed=0 --require=functional,deterministic'
    """
    quoted = {"test": shlex.quote(test) if test else "", "bench": shlex.quote(bench), "seed": seed}
    quoted["port"] = f"--bench-port={shlex.quote(port)}" if port else ""
    quoted["require"] = f"--require={shlex.quote(require)}" if require and not test else ""
    words = (word.format(**quoted) for word in template.split())
    return " ".join(word for word in words if word).removesuffix(" --")


NEEDED = ("id", "fault", "state", "ok")
"""What each cell must say."""


def read_campaign(path: str | Path) -> Mapping[str, Any]:
    """Read the JSON of a campaign.

    Raises:
        FileNotWritten: it cannot be read, or is of something else.
    """
    path = Path(path)
    try:
        campaign = json_values(text_of(path))
    except (OSError, ValueError) as error:
        raise FileNotWritten(f"{path} is no fault campaign: {error}; give the file of `./run faults --json`") from None
    cells = campaign.get("cells") if isinstance(campaign, dict) else None
    if not isinstance(cells, list) or not all(isinstance(cell, dict) and set(NEEDED) <= set(cell) for cell in cells):
        raise FileNotWritten(f"{path} is no fault campaign: it has no cells with {', '.join(NEEDED)}")
    return campaign


TESTS = "tests"
BENCH = "bench"
"""Folders of the tests in that of the run, and of the bench's logs in that of a test."""
_LOGS = ("*.log", "bench.toml", "boards/*/*.log")
_LONGEST_NAME = 120  # a file system's names end at 255 bytes
_LONGEST_LOG = 4 * 2**20  # [bytes], of which the end is kept


def folder_of(out: Path, test: str) -> Path:
    """Return the folder of a test: a name that any file system takes, another one for each test."""
    name = re.sub(r"[^\w.-]+", "_", test.rpartition("/")[2]).strip("_")
    if len(name) > _LONGEST_NAME or name != test:
        name = f"{name[:_LONGEST_NAME]}-{zlib.crc32(test.encode()):08x}"
    return out / TESTS / name


def keep(bench: Path, out: Path, test: str) -> Path | None:
    """Copy what an emulated bench has logged so far, in its folder `bench`, beside what the test wrote.

    Returns:
        The folder of the test, or None where there is nothing to keep.
    """
    folder = folder_of(out, test)
    for log in sorted({path for pattern in _LOGS for path in bench.glob(pattern)}):
        copy = folder / BENCH / log.relative_to(bench)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(_end_of(log))
    return folder if folder.is_dir() and any(folder.iterdir()) else None


def prune(out: Path, test: str) -> None:
    """Remove the folder of a test that passed, and that of all tests' when it was the last in it."""
    shutil.rmtree(folder_of(out, test), ignore_errors=True)
    with contextlib.suppress(OSError):  # others' are still in it, or it was never made
        (out / TESTS).rmdir()


def _end_of(log: Path) -> bytes:
    with log.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _LONGEST_LOG))
        return file.read()


def ledgers_in(folder: Path) -> list[dict[str, Any]]:
    """Return run, verdict and plain ledger of each run in a folder, in the order of their names."""
    return [entry for path in sorted(folder.glob("*/result.json")) for entry in _entry(path)]


def _entry(path: Path) -> list[dict[str, Any]]:
    """A run's result is written last and by rename: what is there is whole. Other commands' have no ledger."""
    result = json_values(text_of(path))
    ledger = result.get("ledger") if isinstance(result, dict) else None
    return [{"run": path.parent.name, "verdict": ledger["verdict"], "ledger": ledger}] if ledger else []


RESULT, PAGE = "result.json", "report.html"


def write_files(out: Path, summary: Summary) -> tuple[tuple[Path, ...], str]:
    """Write the report of a run into its folder.

    Returns:
        The files; and why there is no page, empty where there is one.

    Raises:
        FileNotWritten: the folder cannot be written.
    """
    text = json.dumps(summary.to_dict(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    result = _write(out / RESULT, text)
    if find_spec("jinja2") is None:
        return (result,), f"no {PAGE}: jinja2 is not installed; run: pip install 'jointbench[testing]'"
    from jointbench.testing.summary import page_html

    return (_write(out / PAGE, page_html(summary)), result), ""


def _write(path: Path, text: str) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return write_file(path, text)
    except OSError as error:
        cause = error.__cause__ if isinstance(error.__cause__, OSError) else error
        raise FileNotWritten(f"{path} cannot be written: {cause.strerror}; name another --bench-out") from error


_FAILED: pytest.StashKey[bool] = pytest.StashKey()
_MOST_FAILURES = 20  # told in the terminal; the page has all


class RunReport:
    """A pytest plugin for one run; with pytest-xdist each worker keeps logs, and the controller writes the report.

    Attributes:
        records: of the tests that have ended.
        written: the files, once the run is over.
        missing: what could not be written, and why.
    """

    def __init__(self, config: pytest.Config, campaign: Mapping[str, Any] | None = None) -> None:
        """Gather for a run on the bench that the command line names, to be shown beside a fault campaign."""
        self.records: list[Record] = []
        self.written: tuple[Path, ...] = ()
        self.missing: str = ""
        self._config = config
        self._campaign = campaign
        self._phases: dict[str, list[pytest.TestReport]] = {}
        self._started = datetime.now(UTC)
        self._start = time.monotonic()

    @property
    def out(self) -> Path:
        """Folder of all that the run leaves behind."""
        return self._options.out

    @property
    def _options(self) -> BenchOptions:
        return self._config.stash[SESSION].options

    def again(self, test: str = "") -> str:
        """Return the command that runs a test again, or all of them."""
        options, told = self._options, self._config.option
        template, require = told.jointbench_again, told.jointbench_require or ""
        return again(template, test, self._bench_name, options.seed, options.port, require)

    @property
    def _bench_name(self) -> str:
        """Name of the bench as it was typed, or its file's name where the setting named it."""
        return self._config.option.jointbench_bench or self._options.bench.stem

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Keep the logs of a test as soon as it fails, and hand on what was noted of it when it is over."""
        report = yield
        if report.failed and not item.stash.get(_FAILED, False):
            item.stash[_FAILED] = True
            kept = keep(self._options.folder, self.out, item.nodeid)
            note(item, logs=str(kept or ""), command=self.again(item.nodeid))
        if report.when == "teardown":
            for ledger in ledgers_in(folder_of(self.out, item.nodeid)):
                note(item, ledgers=ledger)
            if not item.stash.get(_FAILED, False):
                prune(self.out, item.nodeid)
            setattr(report, FACTS, noted(item))
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Gather the phases of a test into its record."""
        phases = self._phases.setdefault(report.nodeid, [])
        phases.append(report)
        if report.when == "teardown":
            self.records.append(record_of(self._phases.pop(report.nodeid)))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file that cannot be collected is as bad as a failure of all that is in it."""
        if report.failed:
            self.records.append(failed_collection(report))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the report; a run in which nothing ran has not passed, nor one that missed a limit and went on."""
        if hasattr(session.config, "workerinput"):
            return
        summary = self._summary(int(session.exitstatus))
        if session.exitstatus == pytest.ExitCode.OK and not summary.ok:
            failed, none = pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED
            session.exitstatus = failed if summary.n_run else none
            summary = self._summary(int(session.exitstatus))
        self._write(summary)
        if not self.written:
            session.exitstatus = session.exitstatus or pytest.ExitCode.INTERNAL_ERROR
        if summary.ok:
            for folder in (self._options.folder, *self.out.glob(f"{LIVE}-gw*")):  # and those of pytest-xdist's workers
                shutil.rmtree(folder, ignore_errors=True)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say where the files are, and of each failure where its logs are and how to see it again."""
        bad = [record for record in self.records if record.is_bad]
        tell = terminalreporter.write_line
        if bad:
            terminalreporter.section("to see it again")
        for record in bad[:_MOST_FAILURES]:
            tell(record.command or self.again(record.test))
            if record.logs:
                tell(f"    raw logs: {record.logs}")
        if len(bad) > _MOST_FAILURES:
            tell(f"{len(bad) - _MOST_FAILURES} more are in the report")
        for path in self.written:
            tell(f"written: {path}")
        if self.missing:
            tell(self.missing)

    def _summary(self, exit_code: int) -> Summary:
        """Return the summary of the run; what that takes is imported only now."""
        from jointbench.testing.summary import Summary, versions

        benches = [record.bench for record in self.records if record.bench]
        at_their_urls = benches and not self._options.port
        return Summary(
            records=tuple(self.records),
            bench=benches[-1] if benches else {"name": self._bench_name},
            seed=self._options.seed,
            exit_code=exit_code,
            started=f"{self._started:%Y-%m-%dT%H:%M:%SZ}",
            seconds=time.monotonic() - self._start,
            command=self.again(),
            required=tuple(noted_of_session(self._config).get("required", ())),
            urls=urls_in(self._options.bench) if at_their_urls else {},
            campaign=self._campaign,
            versions=versions(),
        )

    def _write(self, summary: Summary) -> None:
        """Write the files; a report that cannot be written must not look like one that is not there."""
        try:
            self.written, self.missing = write_files(self.out, summary)
        except FileNotWritten as error:
            self.missing = str(error)
            return
        junit: str | None = self._config.getoption("xmlpath", None)
        if junit:
            self.written = (*self.written, Path(junit))


_REPORT: pytest.StashKey[RunReport] = pytest.StashKey()


def start_report(config: pytest.Config) -> RunReport:
    """Let a run on a bench have its report.

    Raises:
        pytest.UsageError: the campaign to show is none, or the command to run a test again cannot be filled in.
    """
    file: str | None = config.option.jointbench_campaign
    try:
        report = config.stash[_REPORT] = RunReport(config, read_campaign(file) if file else None)
        report.again()
    except FileNotWritten as error:
        raise pytest.UsageError(f"--bench-campaign: {error}") from None
    except (KeyError, ValueError, IndexError):
        raise pytest.UsageError(
            f"--bench-again {config.option.jointbench_again!r}: write a command with {{test}}, {{bench}}, {{seed}}, "
            "{port} and {require} in it, and no other braces"
        ) from None
    config.pluginmanager.register(report, "jointbench-report")
    return report


def report_of(config: pytest.Config) -> RunReport | None:
    """The report of this run, where it has one."""
    return config.stash.get(_REPORT, None)


@pytest.fixture
def test_folder(request: pytest.FixtureRequest) -> Path:
    """Return a folder of the test's own, kept beside the bench's logs when it fails and removed when it passes.

    The loss ledgers of runs that are recorded right in it go into the report. In a run without a report it is the
    test's `tmp_path`.
    """
    report = report_of(request.config)
    if report is None:
        folder: Path = request.getfixturevalue("tmp_path")
        return folder
    folder = folder_of(report.out, request.node.nodeid)
    shutil.rmtree(folder, ignore_errors=True)  # of an earlier run into the same folder
    folder.mkdir(parents=True, exist_ok=True)
    return folder


test_folder.__test__ = False  # pyright: ignore[reportAttributeAccessIssue] # a fixture, whatever its name begins with


JUNIT = "junit.xml"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what the report can be told."""
    group = parser.getgroup("jointbench")
    add = group.addoption
    add("--bench-campaign", dest="jointbench_campaign", metavar="FILE", help="JSON of a fault campaign, for the report")
    add(
        "--bench-again",
        dest="jointbench_again",
        metavar="COMMAND",
        default=PYTEST,
        help="how to run a test again, with {test}, {bench} and {seed} in it (%(default)s)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Start the report of a run whose results are kept; pytest's own JUnit file then lies beside it, or elsewhere.

    The plugin that this one belongs to has read the bench before, and pytest's own asks for its file after.
    """
    session = config.stash.get(SESSION, None)
    if session is None or not session.options.is_kept or config.option.collectonly:
        return
    report = start_report(config)
    if config.getoption("xmlpath", None) is None and not hasattr(config, "workerinput"):
        config.option.xmlpath = str(report.out / JUNIT)
