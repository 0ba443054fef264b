"""Tiers that must have run: a run in which one selects no test, or skips one, has failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from jointbench.testing.record import note_session
from jointbench.testing.tiers import PROPERTY, TIERS

_GOOD = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
_SHOWN = 5  # skipped tests of a tier, in the summary


@dataclass(frozen=True)
class TierTally:
    """What became of one tier's tests.

    Attributes:
        tier: its name.
        selected: its tests that were to run, by node id.
        skipped: those of them that did not, with the reason.
    """

    tier: str
    selected: set[str] = field(default_factory=set)
    skipped: dict[str, str] = field(default_factory=dict)

    @property
    def is_met(self) -> bool:
        """Whether the tier was run as a whole."""
        return bool(self.selected) and not self.skipped

    @property
    def facts(self) -> dict[str, Any]:
        """All of it as plain values."""
        numbers = {"selected": len(self.selected), "skipped": len(self.skipped)}
        return {"tier": self.tier, **numbers, "sentence": self.sentence}

    @property
    def sentence(self) -> str:
        """What is wrong; empty where nothing is."""
        if self.is_met:
            return ""
        if not self.selected:
            return f"the required tier {self.tier} has no test in this run"
        shown = [f"{test} ({reason})" for test, reason in list(self.skipped.items())[:_SHOWN]]
        more = [f"and {len(self.skipped) - _SHOWN} more"] if len(self.skipped) > _SHOWN else []
        return (
            f"the required tier {self.tier} skipped {len(self.skipped)} of {len(self.selected)} tests: "
            f"{'; '.join(shown + more)}"
        )


class RequiredTiers:
    """A plugin of its own, of runs with --require: counts reports as they arrive, also those of other processes."""

    def __init__(self, config: pytest.Config, tiers: Sequence[str]) -> None:
        """Count nothing yet."""
        self.tallies: tuple[TierTally, ...] = tuple(TierTally(tier) for tier in tiers)
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count one test's report, of its setting up, its run or its taking down."""
        tier = dict(report.user_properties).get(PROPERTY)
        for tally in self.tallies:
            if tally.tier == tier:
                tally.selected.add(report.nodeid)
                if report.skipped:
                    tally.skipped[report.nodeid] = _reason(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Count a file that is skipped as a whole in each tier: nobody knows what tests are in it."""
        for tally in self.tallies if report.skipped else ():
            tally.selected.add(report.nodeid)
            tally.skipped[report.nodeid] = _reason(report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Let the run fail where a required tier did not run as a whole."""
        if self._config.option.collectonly:
            return
        if session.exitstatus in _GOOD and not all(tally.is_met for tally in self.tallies):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        note_session(self._config, required=[tally.facts for tally in self.tallies])

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say what is wrong."""
        sentences = [tally.sentence for tally in self.tallies if not tally.is_met]
        if sentences and not self._config.option.collectonly:
            terminalreporter.section("required tiers", red=True)
            for sentence in sentences:
                terminalreporter.line(sentence)


def parse_tiers(text: str) -> tuple[str, ...]:
    """Read the value of --require: names of tiers, with commas between them.

    Raises:
        pytest.UsageError: there is no such tier.
    """
    tiers = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    for tier in tiers:
        if tier not in TIERS:
            raise pytest.UsageError(f"--require {text}: {tier!r} is no tier; there are {', '.join(TIERS)}")
    return tiers


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    if isinstance(report, pytest.TestReport) and hasattr(report, "wasxfail"):
        return f"expected to fail: {report.wasxfail or 'no reason given'}"
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return text.removeprefix("Skipped: ")
