"""Requirements as data, read from a folder of TOML files, and the measured values that tests hold against them.

`assert_within` and the fixtures `requirements` and `measured` are for tests.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from jointbench.checks import Check
from jointbench.errors import BeyondLimit, FileError
from jointbench.testing.record import note

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


def assert_within(value: Any, requirement: Requirement, unit: str | None = None) -> float:
    """Hold a value, or each of several, against a requirement's limit; nothing is scaled or rounded.

    Args:
        value: a number or an array of numbers of any shape, in the requirement's unit.
        requirement: what it is held against.
        unit: of the value, where the caller knows it: it must then be the requirement's.

    Returns:
        The value that came nearest to the limit, or was furthest from it where the two must be equal.

    Raises:
        BeyondLimit: an AssertionError: a value is beyond the limit; or is NaN, infinite, missing, masked, true or false
            or no number; or there is none at all; or it has another unit; or it is a fraction outside 0 … 1.
        FileError: the requirement is a statement and has no limit.
    """
    said = f"{requirement.id} must be {requirement.allowed}"
    limit = requirement.checked_limit
    if unit is not None and unit != requirement.unit:
        raise BeyondLimit(f"{said}, and the value is in {unit}: give it in {requirement.unit}")
    numbers = [_number(each, said) for each in _each(value, said)]
    worst = _worst(numbers, requirement.relation, limit)
    of = f", the worst of {len(numbers)}" if len(numbers) > 1 else ""
    if not requirement.check(worst).ok:
        raise BeyondLimit(f"{said}, and is {worst!r}{of}", worst)
    if requirement.unit == FRACTION and not 0 <= min(numbers) <= max(numbers) <= 1:
        raise BeyondLimit(f"{said}, and {min(numbers)!r} … {max(numbers)!r} are no fractions: 3 % is 0.03", worst)
    return worst


def _each(value: Any, said: str) -> list[Any]:
    """All values there are, as plain Python ones: whole numbers are then compared exactly, whatever their size."""
    import numpy as np  # pytest loads this file with or without a bench test

    masked = int(np.ma.count_masked(value)) if isinstance(value, np.ma.MaskedArray) else 0
    if masked:
        raise BeyondLimit(f"{said}, and {masked} of {value.size} values are masked: they were not measured")
    if isinstance(value, np.ndarray | np.generic):
        numeric = value.dtype.kind in "biufO"  # of times and texts tolist() would make other things
        each = np.asarray(value).ravel().tolist() if numeric else [value]
    elif isinstance(value, list | tuple):
        each = [inner for item in value for inner in _each(item, said)]
    else:
        each = [value]
    if not each:
        raise BeyondLimit(f"{said}, and there is no value: nothing was measured")
    return each


def _number(value: Any, said: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BeyondLimit(f"{said}, and {value!r} is no number")
    if not math.isfinite(value):
        raise BeyondLimit(f"{said}, and is {value!r}: nothing can be said of it")
    return value


def _worst(numbers: list[float], relation: str, limit: float) -> float:
    if relation == "<=":
        return max(numbers)
    if relation == ">=":
        return min(numbers)
    return max(numbers, key=lambda number: abs(number - limit))


FOLDER = "requirements"


class Measured(Protocol):
    """Interface of the fixture `measured`."""

    def __call__(self, id: str, value: Any, unit: str | None = None) -> None:
        """Hold what was measured, one number or many, against the requirement of this id, and note it.

        Raises:
            BeyondLimit: a value is beyond the limit, is no number, or there is none; an AssertionError.
            FileError: there is none of this id, or it is a statement.
        """
        ...


def nearest_folder(file: Path, root: Path) -> Path:
    """The folder `requirements` with TOML files in it beside a test's file, or above it up to `root`.

    Raises:
        FileError: there is none.
    """
    above = [folder for folder in file.parents if folder.is_relative_to(root)] or [file.parent]
    for folder in above:
        if any((folder / FOLDER).glob("*.toml")):
            return folder / FOLDER
    raise FileError(
        f"no folder {FOLDER}/ with *.toml files in it beside {file.name} or above it up to {root}; make one, and write "
        "into it what the test requires"
    )


@pytest.fixture(scope="module")
def requirements(request: pytest.FixtureRequest) -> Requirements:
    """Requirements of the nearest folder `requirements`."""
    return load(nearest_folder(request.path, request.config.rootpath))


@pytest.fixture
def measured(request: pytest.FixtureRequest, requirements: Requirements) -> Measured:
    """Assert that what was measured keeps a requirement's limit, and note both for the report."""

    def hold(id: str, value: Any, unit: str | None = None) -> None:
        requirement, worst, ok = requirements[id], None, False
        try:
            worst, ok = assert_within(value, requirement, unit), True
        except BeyondLimit as failure:
            worst = failure.value
            raise
        finally:
            note(request.node, measured={**requirement.to_dict(), "value": worst, "ok": ok})

    return hold
