"""The fixtures that tests judge measured values with: `requirements`, and `measured`, which also notes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import pytest

from jointbench.errors import BeyondLimit, RequirementsError
from jointbench.testing.record import note
from jointbench.testing.requirements import Requirements, load

FOLDER = "requirements"


class Measured(Protocol):
    """What the fixture `measured` gives."""

    def __call__(self, id: str, value: Any, unit: str | None = None) -> None:
        """Hold what was measured, one number or many, against the requirement of this id, and note it.

        Raises:
            BeyondLimit: a value is beyond the limit, is no number, or there is none; an AssertionError.
            UnknownRequirement: there is none of this id.
            RequirementsError: it is a statement.
        """
        ...


def nearest_folder(file: Path, root: Path) -> Path:
    """The folder `requirements` with TOML files in it beside a test's file, or above it up to `root`.

    Raises:
        RequirementsError: there is none.
    """
    above = [folder for folder in file.parents if folder.is_relative_to(root)] or [file.parent]
    for folder in above:
        if any((folder / FOLDER).glob("*.toml")):
            return folder / FOLDER
    raise RequirementsError(
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
    from jointbench.testing.assert_within import assert_within  # pytest loads this file with or without a bench test

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
