"""Requirements as data: what a test holds its values against, read from a folder of TOML files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jointbench.checks import Check
from jointbench.errors import FileError

if TYPE_CHECKING:
    from jointbench.model.table import Table

RELATIONS = ("<=", ">=", "==")
HOLDS = "holds"
RATIONALS = ("design", "empirical")
FRACTION = "fraction"
_PERCENT = ("%", "percent", "per cent")


@dataclass(frozen=True)
class Requirement:
    """One thing that is required of boards, host or bench, and the tests that show it.

    Attributes:
        id: its name, from its file's on: "clock.pulses" stands in clock.toml.
        relation: of a value to the limit, "<=", ">=" or "=="; "holds" for a statement without a number.
        limit: in `unit`; None of a statement.
        unit: of limit and values; "" of a statement.
        rational: "design" where the limit is chosen, "empirical" where it is what was measured and must not get worse.
        background: why it is required, and where the number comes from; of a statement, the statement.
        tests: that show it, each "folder/test_file.py" or "folder/test_file.py::test_name".
    """

    id: str
    relation: str
    limit: float | None
    unit: str
    rational: str
    background: str
    tests: tuple[str, ...]

    @property
    def is_statement(self) -> bool:
        """True of a requirement without a number: there is nothing to hold a value against."""
        return self.limit is None

    def check(self, value: float) -> Check:
        """Hold one value, in `unit`, against the limit.

        Raises:
            FileError: it is a statement.
        """
        return Check(self.id, value, self.relation, self.checked_limit, self.unit)

    @property
    def checked_limit(self) -> float:
        """The limit, in `unit`.

        Raises:
            FileError: it is a statement.
        """
        if self.limit is None:
            raise FileError(
                f"requirement {self.id!r} is a statement and has no limit to hold a value against; give it relation, "
                "limit and unit, or name another"
            )
        return self.limit

    def to_dict(self) -> dict[str, Any]:
        """The requirement as plain values."""
        return asdict(self) | {"tests": list(self.tests)}

    @property
    def allowed(self) -> str:
        """Allowed values, in a word or two: "<= 20 µs", or "holds"."""
        return self.relation if self.limit is None else f"{self.relation} {self.limit:.12g} {self.unit}"


class Requirements(Mapping[str, Requirement]):
    """All requirements of a folder, by id."""

    def __init__(self, folder: Path, about: Mapping[str, str], requirements: tuple[Requirement, ...]) -> None:
        """Keep them in the order of the files' names, then as they stand in each.

        Args:
            folder: they were read from.
            about: what each file's requirements are about, by its name without suffix.
            requirements: all of them.
        """
        self.folder = folder
        self.about = about
        self._by_id = {requirement.id: requirement for requirement in requirements}

    def __getitem__(self, id: str) -> Requirement:
        """Return a requirement.

        Raises:
            FileError: there is none of this id.
        """
        if id in self._by_id:
            return self._by_id[id]
        family = id.split(".")[0]
        there = [known for known in self if known.split(".")[0] == family] or self.about
        raise FileError(
            f"{self.folder} has no requirement {id!r}; there are {', '.join(there)}; write it into {family}.toml"
        )

    def get(self, id: str, default: Any = None, /) -> Any:
        """Return a requirement, or the default where there is none of this id: Mapping's own waits for a KeyError."""
        return self._by_id.get(id, default)

    def of(self, family: str) -> tuple[Requirement, ...]:
        """Return those of one file, in its order."""
        return tuple(each for each in self.values() if each.id.split(".")[0] == family)

    def __contains__(self, id: object) -> bool:
        """Tell whether there is a requirement of this id."""
        return id in self._by_id

    def __iter__(self) -> Iterator[str]:
        """Return the ids."""
        return iter(self._by_id)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._by_id)


def load(folder: str | Path) -> Requirements:
    """Read all requirements of a folder: each `*.toml` in it says what it is about, and holds `[[requirement]]` tables.

    Raises:
        FileError: there is no file, one cannot be read, or an entry is missing, unknown, mistyped, given twice
            or contradicts another; says which file, id and key.
    """
    from jointbench.model.table import read_table  # not before it is needed: it brings all that a robot is

    folder = Path(folder)
    files = sorted(folder.glob("*.toml"))
    if not files:
        raise FileError(f"{folder} holds no requirements; write them into *.toml files in it")
    about: dict[str, str] = {}
    found: list[Requirement] = []
    for path in files:
        table = read_table(path, "requirements")
        about[path.stem] = table.line("about")
        found += [_requirement(entry, path.stem) for entry in table.tables("requirement")]
        table.finish()
    _refuse_twins(found)
    return Requirements(folder, about, tuple(found))


def _requirement(table: Table, family: str) -> Requirement:
    id = table.name("id")
    table.where = f"{family}.toml: requirement {id!r}"
    if not id.startswith(f"{family}.") or id == f"{family}.":
        table.fault(f"id must begin with {family + '.'!r}, its file's name; rename it, or move it")
    relation = table.text("relation", HOLDS, (*RELATIONS, HOLDS))
    requirement = Requirement(
        id=id,
        relation=relation,
        limit=table.number("limit") if relation != HOLDS else None,
        unit=_unit(table) if relation != HOLDS else "",
        rational=table.text("rational", allowed=RATIONALS),
        background=table.line("background"),
        tests=_tests(table),
    )
    if relation == HOLDS and (table.has("limit") or table.has("unit")):
        table.fault(f"has a limit or a unit and no relation; add relation, one of {', '.join(map(repr, RELATIONS))}")
    if requirement.unit == FRACTION and not 0.0 <= requirement.checked_limit <= 1.0:
        table.fault(f"limit = {requirement.limit:g} is no fraction; write 3 % as 0.03")
    table.finish()
    return requirement


def _unit(table: Table) -> str:
    unit = table.line("unit")
    if unit in _PERCENT:
        table.fault(f"unit = {unit!r} is taken for a fraction by half of all readers; write unit = '{FRACTION}'")
    return unit


def _tests(table: Table) -> tuple[str, ...]:
    """One test as a string, or several as a list."""
    try:
        tests = (table.line("test"),)
    except FileError:
        tests = table.texts("test")
    if not tests:
        table.fault("test = [] names no test; name the one that shows it")
    for test in tests:
        file = test.partition("::")[0]
        if not file.endswith(".py") or Path(file).is_absolute() or ".." in Path(file).parts:
            table.fault(f"test = {test!r} must be written folder/test_file.py or folder/test_file.py::test_name")
    return tests


def _refuse_twins(found: list[Requirement]) -> None:
    seen: set[str] = set()
    for requirement in found:
        if requirement.id in seen:
            family = requirement.id.split(".")[0]
            raise FileError(
                f"{family}.toml: id {requirement.id!r} is there twice; give each requirement an id of its own"
            )
        seen.add(requirement.id)
