"""docs/evidence/requirements.md, rendered from the requirement files."""

from __future__ import annotations

from pathlib import Path

from jointbench.testing.requirements import Requirement, Requirements

ROOT = Path(__file__).resolve().parents[2]
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
