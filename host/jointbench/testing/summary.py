"""What a whole run came to: its verdict, its checks and everything that a report says of it."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from importlib import metadata
from typing import Any

from jointbench.checks import Check, Result
from jointbench.cli.judgement import finite
from jointbench.testing.record import Outcome, Record


def versions() -> dict[str, str]:
    """Versions by name: the host's, Python's, pytest's, and the system."""
    return {
        "jointbench": metadata.version("jointbench"),
        "python": platform.python_version(),
        "pytest": metadata.version("pytest"),
        "system": f"{platform.system()} {platform.machine()}",
    }


VERSION = 1
"""Of result.json; keys are added without a new one."""
_OTHERS: dict[Outcome, str] = {"failed": "failed", "error": "could not run", "skipped": "skipped"}


@dataclass(frozen=True)
class Summary:
    """A run of tests on a bench; it judges itself.

    Attributes:
        records: of all tests, in the order in which they ran.
        bench: as it was named, with what it said of itself: name, clock, seed, features.
        seed: of the bench.
        exit_code: pytest's; 0 only where all is well.
        started: UTC, ISO 8601.
        seconds: of the wall clock.
        command: what to type to run all of it again.
        required: tiers that had to run: tier, selected, skipped, sentence.
        urls: of the boards in the bench file, by node.
        campaign: a fault campaign's result to show beside it, None without one.
        versions: of what ran it, by name.
    """

    records: tuple[Record, ...]
    bench: Mapping[str, Any]
    seed: int
    exit_code: int
    started: str
    seconds: float
    command: str
    required: tuple[Mapping[str, Any], ...] = ()
    urls: Mapping[int, str] = field(default_factory=dict[int, str])
    campaign: Mapping[str, Any] | None = None
    versions: Mapping[str, str] = field(default_factory=dict[str, str])

    def count(self, *outcomes: Outcome) -> int:
        """Return the number of tests with one of these outcomes."""
        return sum(record.outcome in outcomes for record in self.records)

    @property
    def n_run(self) -> int:
        """Tests that ran to a verdict of their own."""
        return self.count("passed", "failed")

    @property
    def ok(self) -> bool:
        """True if all is well: pytest and the required tiers say so, and something ran."""
        kept = all(value["ok"] for value in self.values)  # a fraction of -0.5 is none, though no limit is missed
        return self.exit_code == 0 and kept and all(check.ok for check in self.checks)

    @property
    def verdict(self) -> str:
        """One sentence."""
        ran = f"{self.count('passed')} of {len(self.records)} tests passed"
        others = [f"{self.count(outcome)} {word}" for outcome, word in _OTHERS.items() if self.count(outcome)]
        broken = [str(entry["sentence"]) for entry in self.required if entry.get("sentence")]
        missed = sum(not value["ok"] for value in self.values)
        if missed:
            broken.append(f"{missed} of {len(self.values)} limits missed")
        if not self.n_run:
            broken.append("No test ran: nothing is shown")
        elif self.exit_code > 1:
            broken.append(f"pytest ended with status {self.exit_code} before it was through")
        return ". ".join([", ".join([ran, *others]), *(sentence.rstrip(".") for sentence in broken)]) + "."

    @property
    def boards(self) -> tuple[Mapping[str, Any], ...]:
        """Every board as each firmware of it said it was, in the order of nodes, with its URL in the bench file."""
        seen: dict[tuple[Any, ...], Mapping[str, Any]] = {}
        for record in self.records:
            for board in record.boards:
                url = self.urls.get(int(board["node"]), board["port"])
                seen[board["node"], board["uid"], board["image_sha256"]] = {**board, "url": url}
        return tuple(sorted(seen.values(), key=lambda board: int(board["node"])))

    @property
    def values(self) -> tuple[Mapping[str, Any], ...]:
        """Each requirement's worst value, with the tests that held something against it; not those meant to fail."""
        by_id: dict[str, list[tuple[Record, Mapping[str, Any]]]] = {}
        for record in (record for record in self.records if record.outcome != "skipped"):
            for measured in record.measured:
                by_id.setdefault(str(measured["id"]), []).append((record, measured))
        return tuple(
            {**max((measured for _, measured in held), key=_badness), "tests": _once(record.test for record, _ in held)}
            for _, held in sorted(by_id.items())
        )

    @property
    def checks(self) -> tuple[Check, ...]:
        """Checks for a machine: something ran, nothing failed, the required tiers ran, every value keeps its limit."""
        checks = [
            Check("tests that ran", self.n_run, ">=", 1, "tests"),
            Check("tests that failed", self.count("failed", "error"), "==", 0, "tests"),
        ]
        for entry in self.required:
            tier = entry["tier"]
            checks.append(Check(f"required {tier} tests selected", entry["selected"], ">=", 1, "tests"))
            checks.append(Check(f"required {tier} tests skipped", entry["skipped"], "==", 0, "tests"))
        for value in self.values:
            if value["limit"] is not None:
                number = float("nan") if value["value"] is None else float(value["value"])
                checks.append(Check(str(value["id"]), number, str(value["relation"]), value["limit"], value["unit"]))
        return tuple(checks)

    def to_dict(self) -> dict[str, Any]:
        """result.json: the frame of every command, then bench, boards, tests and the rest as plain values."""
        fields = {
            "version": VERSION,
            "verdict": self.verdict,
            "ok": self.ok,
            "exit_code": self.exit_code,
            "started": self.started,
            "again": self.command,
            "versions": dict(self.versions),
            "bench": dict(self.bench),
            "boards": [dict(board) for board in self.boards],
            "required": [dict(entry) for entry in self.required],
            "requirements": [dict(value) for value in self.values],
            "tests": [_test(record) for record in self.records],
            "campaign": self.campaign,
        }
        frame = Result("hil", self.seed, self.checks, fields).to_dict(self.seconds)
        for check in frame["checks"]:
            check["value"] = finite(check["value"])
        return frame


def _test(record: Record) -> dict[str, Any]:
    """A test in result.json; its boards stand there once for all, and its bench is the run's."""
    return {key: value for key, value in asdict(record).items() if key not in ("bench", "boards")}


def _badness(measured: Mapping[str, Any]) -> tuple[bool, bool, float]:
    """Return the key that orders values of one requirement: the largest is the worst."""
    value, limit = measured["value"], measured["limit"]
    if value is None or limit is None:
        return not measured["ok"], value is None, 0.0
    beyond = {"<=": value - limit, ">=": limit - value, "==": abs(value - limit)}[measured["relation"]]
    return not measured["ok"], False, beyond


def _once(tests: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(tests))
