"""The record of a test from what pytest reports of its phases: set-up, call, teardown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from jointbench.testing.record import Outcome, Record

FACTS = "jointbench_facts"
"""Attribute of a phase's report that holds what was noted of the test: it passes between processes with it."""
_LONGEST_TEXT = 50_000  # characters of a failure, of which the end says what went wrong
_TOLD_BY_PLUGIN = ("tier", "needs")


def record_of(phases: Sequence[pytest.TestReport]) -> Record:
    """Return the record of a test.

    Args:
        phases: in the order in which they happened, at least one.
    """
    facts: dict[str, Any] = {}
    for phase in phases:
        facts |= dict(getattr(phase, FACTS, {}))
    bad = [phase for phase in phases if phase.failed]
    telling = bad[0] if bad else next((phase for phase in phases if phase.skipped), None)
    told = {name: str(value) for name, value in phases[-1].user_properties if name in _TOLD_BY_PLUGIN}
    return Record(
        test=phases[0].nodeid,
        outcome=_outcome(telling),
        seconds=sum(phase.duration for phase in phases),
        reason=reason_of(telling) if telling else "",
        text="\n\n".join(text_of(phase) for phase in bad),
        **_noted(told, facts),
    )


def failed_collection(report: pytest.CollectReport) -> Record:
    """Return the record of a file whose tests cannot even be told: it is as bad as a failure of all of them."""
    return Record(report.nodeid, "error", 0.0, reason_of(report), text_of(report))


def reason_of(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Return why it was skipped or failed, in one line."""
    longrepr = report.longrepr
    expected = getattr(report, "wasxfail", None)
    if expected is not None:
        return f"expected to fail: {expected}".removesuffix(": ")
    if isinstance(longrepr, tuple):
        return str(longrepr[2]).removeprefix("Skipped: ")
    crash = getattr(longrepr, "reprcrash", None)
    text = str(crash.message) if crash else report.longreprtext.strip()
    lines = text.splitlines() or [""]
    return lines[0] if crash else lines[-1].removeprefix("E").strip()


def text_of(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Return all that pytest says of a failure, what the test printed included."""
    sections = [f"{f' {title} ':-^80}\n{content.rstrip()}" for title, content in report.sections if content.strip()]
    return "\n".join([report.longreprtext.rstrip(), *sections])[-_LONGEST_TEXT:]


def _outcome(telling: pytest.TestReport | None) -> Outcome:
    if telling is None:
        return "passed"
    if telling.skipped:
        return "skipped"
    return "failed" if telling.when == "call" else "error"


def _noted(told: Mapping[str, str], facts: Mapping[str, Any]) -> dict[str, Any]:
    """What was noted, as fields of a record: lists do not change once it is made."""
    needs = tuple(each for each in told.get("needs", "").split(", ") if each)
    values: dict[str, Any] = {"tier": told.get("tier", ""), "needs": needs} | dict(facts)
    return {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
