"""What the page of a run says, as its template reads it: words and finished numbers, nothing left to compute."""

from dataclasses import dataclass

from jointbench.results.content import Fact, RunTable


@dataclass(frozen=True)
class FailureEntry:
    """A test that failed or could not run: what went wrong, where its logs are, how to see it again."""

    test: str
    anchor: str
    outcome: str
    reason: str
    text: str
    logs: str
    command: str


@dataclass(frozen=True)
class BoardRow:
    """One board; `fingerprint` is markup made by this package, a small picture of its firmware's hash."""

    node: str
    joint: str
    url: str
    kind: str
    uid: str
    firmware: str
    fingerprint: str
    image: str


@dataclass(frozen=True)
class ValueRow:
    """A requirement with the worst value held against it; `used` is the share of the limit it takes [%]."""

    id: str
    background: str
    value: str
    relation: str
    limit: str
    unit: str
    margin: str
    used: float | None
    ok: bool
    tests: tuple[str, ...]


@dataclass(frozen=True)
class OutcomeRow:
    """One test in the list of all."""

    name: str
    tier: str
    needs: str
    outcome: str
    seconds: str
    reason: str


@dataclass(frozen=True)
class OutcomeGroup:
    """The tests of one file."""

    file: str
    rows: tuple[OutcomeRow, ...]


@dataclass(frozen=True)
class SkipGroup:
    """Tests that were skipped for the same reason."""

    reason: str
    tests: tuple[str, ...]


@dataclass(frozen=True)
class Cell:
    """A fault in a state: its verdict ("yes", "no", or "none" where it was not tried), what is written, and more."""

    verdict: str
    mark: str
    title: str


@dataclass(frozen=True)
class MatrixRow:
    """One fault, in every state."""

    fault: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class BadCell:
    """A cell of the campaign that did not pass."""

    name: str
    reason: str
    command: str


@dataclass(frozen=True)
class Matrix:
    """A fault campaign on one kind of board; its groups are the tables' row groups."""

    title: str
    sentence: str
    states: tuple[str, ...]
    groups: tuple[tuple[str, tuple[MatrixRow, ...]], ...]
    bad: tuple[BadCell, ...]


@dataclass(frozen=True)
class Content:
    """Everything the page shows, in the order it shows it."""

    title: str
    ok: bool
    sentence: str
    warnings: tuple[str, ...]
    facts: tuple[Fact, ...]
    failures: tuple[FailureEntry, ...]
    board_note: str
    boards: tuple[BoardRow, ...]
    value_note: str
    values: tuple[ValueRow, ...]
    tests: tuple[OutcomeGroup, ...]
    skips: tuple[SkipGroup, ...]
    matrices: tuple[Matrix, ...]
    ledgers: tuple[RunTable, ...]
    provenance: tuple[tuple[str, str], ...]
    command: str
