"""The tests of a run: what failed and how to see it again, what was skipped and for want of what, and all of them."""

from __future__ import annotations

from jointbench.testing.record import Record
from jointbench.testing.report.content import FailureEntry, OutcomeGroup, OutcomeRow, SkipGroup
from jointbench.testing.report.summary import Summary

_WORDS = {"error": "could not run"}


def failures(summary: Summary) -> tuple[FailureEntry, ...]:
    """Return the tests that failed or could not run, in the order in which they did."""
    bad = [record for record in summary.records if record.is_bad]
    return tuple(
        FailureEntry(
            test=record.test,
            anchor=f"failure-{index}",
            outcome=_WORDS.get(record.outcome, record.outcome),
            reason=record.reason,
            text=record.text,
            logs=record.logs,
            command=record.command,
        )
        for index, record in enumerate(bad, 1)
    )


def skips(summary: Summary) -> tuple[SkipGroup, ...]:
    """Return the skipped tests by reason: missing features first, the commonest before."""
    groups: dict[tuple[bool, str], list[str]] = {}
    for record in summary.records:
        if record.outcome == "skipped":
            reason = f"the bench lacks {', '.join(record.missing)}" if record.missing else record.reason
            groups.setdefault((not record.missing, reason), []).append(record.test)
    ordered = sorted(groups.items(), key=lambda item: (item[0][0], -len(item[1])))
    return tuple(SkipGroup(reason, tuple(tests)) for (_, reason), tests in ordered)


def outcome_groups(summary: Summary) -> tuple[OutcomeGroup, ...]:
    """Return all tests by file, in the order in which they ran."""
    groups: dict[str, list[OutcomeRow]] = {}
    for record in summary.records:
        file, _, name = record.test.partition("::")
        groups.setdefault(file, []).append(_row(record, name or file))
    return tuple(OutcomeGroup(file, tuple(rows)) for file, rows in groups.items())


def _row(record: Record, name: str) -> OutcomeRow:
    return OutcomeRow(
        name=name,
        tier=record.tier,
        needs=", ".join(record.needs),
        outcome=_WORDS.get(record.outcome, record.outcome),
        seconds=f"{record.seconds:.1f}",
        reason=record.reason,
    )
