"""docs/safety.md holds what it names: its tests exist, and every trip has a hazard that a test shows."""

import ast
import re
from pathlib import Path

import pytest

from jointbench.testing.requirements import Requirement, load
from jointwire import BY_NAME, Trip

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "safety.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`([\w/]+\.py)::(\w+)`", PAGE)))
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ") and "::" in line]
REQUIRED = [each for each in load(ROOT / "hil_tests" / "requirements").of("safety") if not each.is_statement]


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_each_test_it_names_exists(file: str, name: str) -> None:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("trip", [trip.name for trip in Trip if trip is not Trip.NONE])
def test_each_trip_has_a_hazard_and_a_test_on_the_bench(trip: str) -> None:
    rows = [row for row in ROWS if re.search(rf"\b{trip}\b", row)]
    assert rows
    assert any("hil_tests/test_safety" in row for row in rows)


def test_each_test_of_a_trip_is_named() -> None:
    """No hazard is shown that the page does not tell."""
    for file in ("hil_tests/test_safety.py", "hil_tests/test_safety_program.py"):
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        tests = {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}
        assert tests - {name for named, name in NAMED if named == file} <= {"test_the_judge_of_outputs_can_fail"}


def test_each_register_it_names_exists() -> None:
    for name in re.findall(r"`((?:limit|hard|servo)\.\w+)`", PAGE):
        assert name in BY_NAME


@pytest.mark.parametrize("required", REQUIRED, ids=lambda each: each.id)
def test_each_limit_stands_beside_its_test(required: Requirement) -> None:
    """In the column of ticks of a row that names a test of it."""
    cells = [row.split(" | ")[2] for row in ROWS if any(f"`{test}`" in row for test in required.tests)]
    assert any(f"{required.limit:g}" in re.findall(r"\d+", cell) for cell in cells), cells
