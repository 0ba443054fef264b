"""A measured value held against a requirement's limit: `assert_within`, and the fixtures `requirements`, `measured`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Protocol

import pytest

from jointbench.errors import BeyondLimit, FileError
from jointbench.testing.record import note
from jointbench.testing.requirements import FRACTION, Requirement, Requirements, load


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
