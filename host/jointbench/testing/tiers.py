"""Needs and tiers of bench tests, and the tiers that must have run."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import pytest

from jointbench.testing.record import note_session

MARK = "jointbench_needs"

FEATURES = MappingProxyType(
    {
        "motor": "each board drives a motor, or what behaves like one",
        "link_encoder": "boards measure the joint behind its gear too",
        "current": "boards measure their motor's current",
        "torque_sensor": "boards measure the torque behind the gear",
        "foot_force": "boards measure the force under a foot",
        "model_in_firmware": "boards carry a model of their joint and need no motor (`sim_joint`)",
        "supply": "boards measure their supply voltage",
        "temperature": "boards measure their temperature",
        "sync": "all boards see the pulses of one SYNC line",
        "shared_line": "boards share a serial line",
        "several_boards": "there are two boards or more",
        "faults": "faults of sensors, motors and boards can be put in",
        "outputs": "the bench sees what boards give their motors' drives",
        "power": "the bench can take a board's power and give it back",
        "flash": "firmware can be put onto the boards",
        "fault_transport": "the ports can be put behind fault:// URLs",
    }
)
"""Features of benches, each with what it says."""
SETTING = "jointbench_features"


def needs(*features: str) -> pytest.MarkDecorator:
    """Mark a test, or all of a class, as one that needs these features of its bench.

    Args:
        features: names of `FEATURES`, or of the setting `jointbench_features`; others are refused at collection.
    """
    return getattr(pytest.mark, MARK)(*features)


def known_features(config: pytest.Config) -> frozenset[str]:
    """Return the names of all features, with those that the setting adds, a line "name: what it says" each."""
    return frozenset({*FEATURES, *(line.partition(":")[0].strip() for line in config.getini(SETTING))})


def needed(item: pytest.Item) -> tuple[str, ...]:
    """The features that a test needs, each once, those nearest to the test first."""
    return tuple(dict.fromkeys(name for mark in item.iter_markers(MARK) for name in mark.args))


def check_needs(item: pytest.Item, known: Collection[str]) -> None:
    """Refuse a test that asks for what nobody knows: on every bench it would be skipped.

    Raises:
        pytest.UsageError: a feature is unknown, or the mark names none.
    """
    if any(not mark.args or mark.kwargs for mark in item.iter_markers(MARK)):
        raise pytest.UsageError(f'{item.nodeid}: needs() must name features, as in needs("motor", "sync")')
    for name in needed(item):
        if name not in known:
            raise pytest.UsageError(
                f"{item.nodeid} needs {name!r}, which is no feature; there are {', '.join(sorted(known))} (more by "
                f"the setting {SETTING})"
            )


CLOCKS = ("virtual", "icount", "wall")
TIERS = MappingProxyType(
    {
        "functional": frozenset(CLOCKS),
        "deterministic": frozenset({"virtual", "icount"}),  # the same bytes every time
        "realtime": frozenset({"wall"}),  # of an emulator's clock nothing follows for a board's
    }
)
"""Tiers, each with the clocks of benches that its tests can run on."""

PROPERTY = "tier"
_PREFIX = "jointbench_"
MARKS = {
    f"{_PREFIX}functional": "a bench test for every bench",
    f"{_PREFIX}deterministic": "a bench test that needs a clock under the bench's control",
    f"{_PREFIX}realtime": "a bench test that needs the wall clock",
}

functional: pytest.MarkDecorator = pytest.mark.jointbench_functional
deterministic: pytest.MarkDecorator = pytest.mark.jointbench_deterministic
realtime: pytest.MarkDecorator = pytest.mark.jointbench_realtime


def tier_of(item: pytest.Item) -> str:
    """Return the tier of a test, empty where it has none.

    Raises:
        pytest.UsageError: it has several.
    """
    tiers = [tier for tier in TIERS if item.get_closest_marker(_PREFIX + tier)]
    if len(tiers) > 1:
        raise pytest.UsageError(f"{item.nodeid} is marked {' and '.join(tiers)}; a test has one tier")
    return tiers[0] if tiers else ""


def need_tier(item: pytest.Item) -> str:
    """Return the tier of a test that must have one.

    Raises:
        pytest.UsageError: it has none, or several.
    """
    tier = tier_of(item)
    if not tier:
        raise pytest.UsageError(
            f"{item.nodeid} runs on a bench and has no tier; mark it with one of {', '.join(TIERS)} of "
            "jointbench.testing"
        )
    return tier


_GOOD = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
_SHOWN = 5  # skipped tests of a tier, in the summary


@dataclass(frozen=True)
class TierTally:
    """Outcome of one tier's tests.

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
        """True if the tier was run as a whole."""
        return bool(self.selected) and not self.skipped

    @property
    def facts(self) -> dict[str, Any]:
        """All of it as plain values."""
        numbers = {"selected": len(self.selected), "skipped": len(self.skipped)}
        return {"tier": self.tier, **numbers, "sentence": self.sentence}

    @property
    def sentence(self) -> str:
        """Sentence on what is wrong; empty where nothing is."""
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
