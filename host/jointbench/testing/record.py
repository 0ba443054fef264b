"""Notes on each test while it runs, and the record that a report reads: plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

import pytest

Outcome = Literal["passed", "failed", "error", "skipped"]

LISTS = ("measured", "ledgers")
"""Facts of which a test may note several, one by one; of the others the last one noted counts."""
_FACTS: pytest.StashKey[dict[str, Any]] = pytest.StashKey()


@dataclass(frozen=True)
class Record:
    """Outcome of one test, with all that was noted.

    Attributes:
        test: its node id.
        outcome: "error" where it could not be set up or taken down.
        seconds: of the wall clock, setting up and taking down included.
        reason: one line: why it was skipped, or what went wrong.
        text: all that pytest says of a failure.
        tier: functional, deterministic or realtime; empty where it has none.
        needs: features it asks for.
        missing: those of them that the bench lacks.
        measured: values that it held against requirements: id, value, relation, limit, unit, ok, background.
        ledgers: of the runs it recorded: run, verdict and the ledger's plain data.
        bench: what it ran on: name, clock, seed, features.
        boards: what each board said of itself when it was last greeted.
        logs: folder with the raw logs, empty where none were kept.
        command: what to type to run it again.
    """

    test: str
    outcome: Outcome
    seconds: float
    reason: str = ""
    text: str = ""
    tier: str = ""
    needs: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    measured: tuple[Mapping[str, Any], ...] = ()
    ledgers: tuple[Mapping[str, Any], ...] = ()
    bench: Mapping[str, Any] | None = None
    boards: tuple[Mapping[str, Any], ...] = ()
    logs: str = ""
    command: str = ""

    @property
    def is_bad(self) -> bool:
        """True if the test failed, or could not be run."""
        return self.outcome in ("failed", "error")


NOTED = tuple(field.name for field in fields(Record))[5:]
"""What may be noted of a test; the fields before these pytest knows."""


def note(item: pytest.Item, **facts: Any) -> None:
    """Note facts of a test for the report, as plain values: numbers, texts, lists and mappings of them.

    Args:
        item: the test, `request.node` in a fixture.
        facts: fields of `Record`; `measured` and `ledgers` take one entry and add it.

    Raises:
        TypeError: a fact is no field of `Record` that can be noted.
    """
    for key, value in facts.items():
        if key not in NOTED:
            raise TypeError(f"{key!r} cannot be noted of a test; there are {', '.join(NOTED)}")
        noted = item.stash.setdefault(_FACTS, {})
        if key in LISTS:
            noted.setdefault(key, []).append(value)
        else:
            noted[key] = value
        if key == "measured":  # for JUnit, which knows texts
            item.user_properties.append((str(value["id"]), _sentence(value)))


def noted(item: pytest.Item) -> dict[str, Any]:
    """All that was noted of a test."""
    return dict(item.stash.get(_FACTS, {}))


def note_session(config: pytest.Config, **facts: Any) -> None:
    """Note facts of the whole run: `required`, a list of {"tier", "selected", "skipped", "sentence"}."""
    config.stash.setdefault(_FACTS, {}).update(facts)


def noted_of_session(config: pytest.Config) -> dict[str, Any]:
    """All that was noted of the run."""
    return dict(config.stash.get(_FACTS, {}))


def _sentence(measured: Mapping[str, Any]) -> str:
    """One value in words: "0 samples, required <= 0 samples"."""
    unit = f" {measured['unit']}" if measured["unit"] else ""
    if measured["limit"] is None:
        return "holds" if measured["ok"] else "does not hold"
    value = "no value" if measured["value"] is None else f"{measured['value']:.6g}{unit}"
    return f"{value}, required {measured['relation']} {measured['limit']:.6g}{unit}"


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
    """Return the notes as fields of a record: lists do not change once it is made."""
    needs = tuple(each for each in told.get("needs", "").split(", ") if each)
    values: dict[str, Any] = {"tier": told.get("tier", ""), "needs": needs} | dict(facts)
    return {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
