"""The report of a pytest run: gathers records as tests end, keeps the logs of what failed, writes the files."""

from __future__ import annotations

import shutil
import time
from collections.abc import Generator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from jointbench.errors import ReportError
from jointbench.testing.bench_under_test import BenchOptions
from jointbench.testing.choose_bench import LIVE
from jointbench.testing.record import Record, note, noted, noted_of_session
from jointbench.testing.report.again import again
from jointbench.testing.report.campaign import read_campaign
from jointbench.testing.report.facts import urls_in
from jointbench.testing.report.ledgers import ledgers_in
from jointbench.testing.report.phases import FACTS, failed_collection, record_of
from jointbench.testing.report.raw_logs import folder_of, keep, prune
from jointbench.testing.session import SESSION

if TYPE_CHECKING:
    from jointbench.testing.report.summary import Summary

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
        """What to type to run a test again, or all of it."""
        options, told = self._options, self._config.option
        template, require = told.jointbench_again, told.jointbench_require or ""
        return again(template, test, self._bench_name, options.seed, options.port, require)

    @property
    def _bench_name(self) -> str:
        """As it was typed; by its file's name where it was the setting's."""
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
        """What the run came to. Only now is imported what that takes."""
        from jointbench.testing.report.summary import Summary
        from jointbench.testing.report.versions import versions

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
        from jointbench.testing.report.write import write_files

        try:
            self.written, self.missing = write_files(self.out, summary)
        except ReportError as error:
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
    except ReportError as error:
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
