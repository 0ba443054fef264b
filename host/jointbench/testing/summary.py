"""Summary of a run of tests: its verdict, its checks, and its page, one HTML file that needs nothing else."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import metadata
from typing import Any, NamedTuple

import jinja2

from jointbench.bench import Ledger
from jointbench.checks import Check, Result
from jointbench.cli.judgement import finite
from jointbench.results import NOT_A_NUMBER, Fact, count, ledger_table, percent
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


SIDE = 7
"""Cells across and down a fingerprint; the right half mirrors the left, as eyes compare symmetric shapes best."""
_OUTCOMES = {"error": "could not run"}
_RELATIONS = {"<=": "≤", ">=": "≥", "==": "="}
_PICTURE = "The picture is drawn from the hash of its image: other firmware, other picture."


class Cell(NamedTuple):
    """A fault in a state: its verdict ("yes", "no", or "none" where it was not tried), what is written, and more."""

    verdict: str
    mark: str
    title: str


class Matrix(NamedTuple):
    """A fault campaign on one kind of board; groups are the tables' row groups, each of (fault, cells)."""

    title: str
    sentence: str
    states: Sequence[str]
    groups: Sequence[tuple[str, Sequence[tuple[str, Sequence[Cell]]]]]
    bad: Sequence[Mapping[str, Any]]


def page_html(summary: Summary) -> str:
    """Return the page as HTML text that refers to nothing outside itself."""
    loader = jinja2.ChoiceLoader([jinja2.PackageLoader(f"jointbench.{room}") for room in ("testing", "results")])
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, loader=loader)
    environment.filters |= {"outcome": _outcome, "fingerprint": fingerprint}
    return environment.get_template("hil.html").render(
        css="".join(loader.get_source(environment, name)[0] for name in ("report.css", "hil.css")),
        summary=summary,
        warnings=_warnings(summary),
        facts=_facts(summary),
        failures=[record for record in summary.records if record.is_bad],
        board_note=_board_note(summary),
        value_note=_value_note(summary),
        values=sorted((value | _shown(value) for value in map(dict, summary.values)), key=lambda value: value["ok"]),
        tests=_tests_by_file(summary),
        skips=_tests_by_reason(summary),
        matrices=fault_matrices(summary.campaign),
        ledgers=[
            ledger_table(f"{record.test.rpartition('::')[2]}: {entry['run']}", Ledger.from_dict(entry["ledger"]))
            for record in summary.records
            for entry in record.ledgers
        ],
        provenance=_provenance(summary),
    )


def _outcome(outcome: str) -> str:
    return _OUTCOMES.get(outcome, outcome)


def _facts(summary: Summary) -> tuple[Fact, ...]:
    kept = sum(bool(value["ok"]) for value in summary.values)
    return (
        Fact(f"{count(summary.count('passed'))} of {count(len(summary.records))}", "tests passed"),
        Fact(count(summary.count("failed", "error")), "failed"),
        Fact(count(summary.count("skipped")), "skipped"),
        Fact(f"{kept} of {len(summary.values)}", "limits kept"),
        Fact(count(len({board["node"] for board in summary.boards})), "boards"),
        Fact(str(summary.bench.get("clock", "–")), "clock"),
        Fact(str(summary.seed), "seed"),
        Fact(f"{summary.seconds:.1f} s", "by the wall clock"),
    )


def _warnings(summary: Summary) -> list[str]:
    """Return what a careful reader must know before the verdict is believed."""
    warnings = [f"{entry['sentence']}." for entry in summary.required if entry.get("sentence")]
    images = {board["image_sha256"] for board in summary.boards}
    if len(images) > 1:
        warnings.append(f"The boards do not all run the same firmware: {len(images)} images.")
    if summary.campaign and not all(cell["ok"] for cell in summary.campaign["cells"]):
        warnings.append("The fault campaign shown below has cells that did not pass.")
    return warnings


def _board_note(summary: Summary) -> str:
    images = {str(board["image_sha256"]) for board in summary.boards}
    if not summary.boards:
        return "No board was greeted: no test came so far."
    if len(images) == 1:
        return f"All boards ran the same firmware. {_PICTURE}"
    return f"The boards ran {len(images)} different firmwares. {_PICTURE}"


def _value_note(summary: Summary) -> str:
    if not summary.values:
        return "No test held a value against a requirement."
    return (
        "The worst value that any test held against each requirement. A bar shows how much of the limit it takes, the "
        "margin how much is left; where a limit is zero or an equality there is neither."
    )


def _provenance(summary: Summary) -> list[tuple[str, str]]:
    return [
        ("bench", str(summary.bench["name"])),
        ("clock", str(summary.bench.get("clock", "not started"))),
        ("features", ", ".join(summary.bench.get("features", ())) or "–"),
        ("seed", str(summary.seed)),
        ("started", summary.started),
        ("pytest's status", str(summary.exit_code)),
        *(
            (f"required tier {entry['tier']}", f"{entry['selected']} selected, {entry['skipped']} skipped")
            for entry in summary.required
        ),
        *((f"version of {name}", version) for name, version in summary.versions.items()),
    ]


# Boards, limits and tests


def fingerprint(digest: str) -> str:
    """Return an SVG element for a hash in hexadecimal: boards with other firmware are told apart at a glance.

    Its shape carries 28 bits and its colour 8 more, so that it stays different without colour.

    >>> fingerprint("00" * 32).count("<rect"), fingerprint("ff" * 32).count("<rect")
    (0, 49)
    """
    if not digest:
        return ""
    bits = int(digest[:8], 16)
    hue = round(int(digest[8:10] or "0", 16) * 360 / 256)
    half = (SIDE + 1) // 2
    cells = [
        f'<rect x="{x}" y="{row}" width="1" height="1"/>'
        for row in range(SIDE)
        for x in range(SIDE)
        if bits >> (row * half + min(x, SIDE - 1 - x)) & 1
    ]
    return (
        f'<svg class="fingerprint" viewBox="0 0 {SIDE} {SIDE}" role="img" aria-label="picture of image {digest[:12]}" '
        f'shape-rendering="crispEdges" fill="hsl({hue} 60% 48%)">{"".join(cells)}</svg>'
    )


def used(value: float | None, relation: str, limit: float | None) -> float | None:
    """Return the share of a limit that a value takes, 1 where it just keeps it; None where there is no such share.

    >>> used(2.0, "<=", 8.0), used(10.0, ">=", 8.0), used(0.0, "<=", 0.0), used(3.0, "==", 3.0)
    (0.25, 0.8, None, None)
    """
    if value is None or limit is None or value < 0.0 or limit <= 0.0 or relation == "==":
        return None
    if relation == "<=":
        return value / limit
    return limit / value if value else None


def number(value: float | None) -> str:
    """Return a whole number in full and any other to four digits, with a true minus sign.

    >>> number(1024.0), number(-0.012347), number(None)
    ('1024', '−0.01235', '–')
    """
    if value is None:
        return NOT_A_NUMBER
    text = f"{value:.0f}" if float(value).is_integer() and abs(value) < 1e15 else f"{value:.4g}"
    return text.replace("-", "−")


def _shown(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a requirement's worst value as texts; `used` is the share of the limit that it takes [%]."""
    share = used(value["value"], value["relation"], value["limit"])
    return {
        "value": number(value["value"]),
        "relation": _RELATIONS.get(str(value["relation"]), str(value["relation"])),
        "limit": number(value["limit"]),
        "margin": percent(1.0 - share) if share is not None else NOT_A_NUMBER,
        "used": None if share is None else round(100.0 * min(share, 1.0), 1),
    }


def _tests_by_reason(summary: Summary) -> list[tuple[str, list[str]]]:
    """Return the skipped tests by reason: missing features first, the commonest before."""
    groups: dict[tuple[bool, str], list[str]] = {}
    for record in summary.records:
        if record.outcome == "skipped":
            reason = f"the bench lacks {', '.join(record.missing)}" if record.missing else record.reason
            groups.setdefault((not record.missing, reason), []).append(record.test)
    ordered = sorted(groups.items(), key=lambda item: (item[0][0], -len(item[1])))
    return [(reason, tests) for (_, reason), tests in ordered]


def _tests_by_file(summary: Summary) -> dict[str, list[tuple[str, Record]]]:
    """Return names and records of all tests by file, in the order in which they ran."""
    groups: dict[str, list[tuple[str, Record]]] = {}
    for record in summary.records:
        file, _, name = record.test.partition("::")
        groups.setdefault(file, []).append((name or file, record))
    return groups


# A fault campaign


def fault_matrices(campaign: Mapping[str, Any] | None) -> list[Matrix]:
    """Return a matrix for each kind of board of a campaign; none without a campaign.

    Args:
        campaign: with `cells`, each a mapping with fault, state and ok; and, where there is something to say, id,
            group, board, expected, named, ticks, reason and command.
    """
    cells: Sequence[Mapping[str, Any]] = campaign["cells"] if campaign else ()
    boards = dict.fromkeys(str(cell.get("board", "")) for cell in cells)
    return [_matrix(board, [cell for cell in cells if str(cell.get("board", "")) == board]) for board in boards]


def _matrix(board: str, cells: Sequence[Mapping[str, Any]]) -> Matrix:
    states = list(dict.fromkeys(str(cell["state"]) for cell in cells))
    faults: dict[str, dict[str, list[Mapping[str, Any]]]] = {}
    for cell in cells:
        faults.setdefault(str(cell.get("group", "")), {}).setdefault(str(cell["fault"]), []).append(cell)
    groups = [
        (
            group,
            [
                (fault, [_cell([cell for cell in of_fault if cell["state"] == state]) for state in states])
                for fault, of_fault in rows.items()
            ],
        )
        for group, rows in faults.items()
    ]
    bad = [cell for cell in cells if not cell["ok"]]
    sentence = f"{count(len(cells) - len(bad))} of {count(len(cells))} cells passed."
    return Matrix(board or "all boards", sentence, states, groups, bad)


def _cell(cells: Sequence[Mapping[str, Any]]) -> Cell:
    """Return one place of the matrix: usually one cell, several where a fault comes in kinds."""
    if not cells:
        return Cell("none", "", "not tried")
    passed = sum(bool(cell["ok"]) for cell in cells)
    verdict, mark = ("yes", "✓") if passed == len(cells) else ("no", "✗")
    several = f" {passed}/{len(cells)}" if len(cells) > 1 else ""
    return Cell(verdict, mark + several, "; ".join(map(_title, cells)))


def _title(cell: Mapping[str, Any]) -> str:
    ticks = cell.get("ticks")
    details = {
        "expected": cell.get("expected", ""),
        "named": cell.get("named", ""),
        "safe after": "" if ticks is None else f"{ticks} ticks",
        "because": cell.get("reason", ""),
    }
    known = [f"{key} {value}" for key, value in details.items() if value]
    return f"{cell['fault']} in {cell['state']}: {', '.join(known) or ('passed' if cell['ok'] else 'failed')}"
