"""The repository's requirements: their page, and whether a test shows each of them and reads its limit."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

from jointbench.testing.requirements import Requirement, Requirements, load

BENCH_TESTS, TOOLS = "hil_tests", "tools"


def missing_tests(requirements: Requirements, root: Path) -> list[str]:
    """Tests that a requirement names and that are not there, each as "id: file::name"."""
    return [f"{each.id}: {test}" for each in requirements.values() for test in each.tests if not _is_there(test, root)]


def unread_limits(requirements: Requirements, root: Path) -> list[str]:
    """Limits that a test does not read, though it is named for them, each as "id: file".

    A test reads what it names: its file has the id as a string. For a test of a tool the tool may have it.
    """
    return [
        f"{each.id}: {file}"
        for each in requirements.values()
        if not each.is_statement
        for file in dict.fromkeys(test.partition("::")[0] for test in each.tests)
        if not _reads(each, root, file)
    ]


def unknown_ids(requirements: Requirements, root: Path) -> list[str]:
    """Ids that bench tests measure against and that no file has, each as "file: id"."""
    return [
        f"{path.relative_to(root).as_posix()}: {id}"
        for path in sorted((root / BENCH_TESTS).rglob("test_*.py"))
        for id in sorted(_measured(path) - set(requirements))
    ]


def _measured(path: Path) -> set[str]:
    """First arguments of calls of `measured`, where they are written out."""
    calls = [node for node in ast.walk(_tree(path)) if isinstance(node, ast.Call) and node.args]
    firsts = [call.args[0] for call in calls if isinstance(call.func, ast.Name) and call.func.id == "measured"]
    return {first.value for first in firsts if isinstance(first, ast.Constant) and isinstance(first.value, str)}


def _is_there(test: str, root: Path) -> bool:
    file, _, name = test.partition("::")
    path = root / file
    if not path.is_file():
        return False
    tests = {node.name for node in _tree(path).body if isinstance(node, ast.FunctionDef)}
    return name in tests if name else any(each.startswith("test_") for each in tests)


def _reads(requirement: Requirement, root: Path, file: str) -> bool:
    path = root / file
    files = [path] if path.is_file() else []
    if file.startswith(f"{TOOLS}/"):
        files += (root / TOOLS).rglob("*.py")
    return any(requirement.id in _strings(each) for each in files)


@functools.cache
def _strings(path: Path) -> frozenset[str]:
    return frozenset(
        node.value for node in ast.walk(_tree(path)) if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "hil_tests" / "requirements"
PAGE = ROOT / "docs" / "evidence" / "requirements.md"
_HEAD = """# Requirements

What is required of boards, host and bench, why, and which test shows it. Written by `python -m tools.requirements` from
`hil_tests/requirements/*.toml`: change it there. A test reads its limit there, too, by `measured(id, value)`
([hil.md](../hil.md)), so that no limit stands in two places.

A limit is by *design* where it was chosen for a reason, and *empirical* where it is about what was measured once and
must not get worse. A requirement that *holds* is a statement without a number. 3 % is written as 0.03.
"""
_COLUMNS = "| Id | Required | Rational | Background | Shown by |\n| --- | --- | --- | --- | --- |"


def page(requirements: Requirements) -> str:
    """The whole page as Markdown, a section for each file."""
    sections = [_HEAD]
    for family, about in requirements.about.items():
        rows = "\n".join(_row(each) for each in requirements.of(family))
        sections.append(f"## {family.capitalize()}\n\n{about}\n\n{_COLUMNS}\n{rows}\n")
    return "\n".join(sections)


def _row(requirement: Requirement) -> str:
    tests = ", ".join(f"`{test}`" for test in requirement.tests)
    cells = (f"`{requirement.id}`", requirement.allowed, requirement.rational, requirement.background, tests)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    PAGE.write_text(page(load(FOLDER)), encoding="utf-8")
    print(f"{PAGE} is written")
