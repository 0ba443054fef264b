"""docs/faults.md says what the code does: its table, its URLs, and what its examples print."""

import doctest
import re
from pathlib import Path

from jointbench.errors import FaultUrlError
from jointbench.link.fault import parse_fault_url
from jointbench.link.fault.direction import LONGEST_FRAME
from jointbench.link.fault.kinds import KINDS

DOCS = Path(__file__).parents[4] / "docs" / "faults.md"
TEXT = DOCS.read_text(encoding="utf-8")


def test_its_table_is_that_of_the_code() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (.*?) \| (.*?) ?\|$", TEXT, re.MULTILINE)
    of_code = [
        (name, kind.unit, kind.does, ",".join(f"{setting}:{value}" for setting, value in kind.defaults.items()))
        for name, kind in KINDS.items()
    ]
    assert [(name, unit, does, own.strip("`")) for name, unit, does, own in rows] == of_code
    assert f"or for {LONGEST_FRAME} of them" in TEXT


def test_its_urls_and_settings_are_right() -> None:
    urls = set(re.findall(r'fault://[^"`\s]*;[^"`\s.:]+', TEXT))
    assert len(urls) >= 5
    wrong = []
    for url in urls:
        try:
            parse_fault_url(url)
        except FaultUrlError:
            wrong.append(url)
    assert len(wrong) == 1  # the one that shows what is said of it
    assert "rx.drop=2;" in wrong[0]
    settings = re.findall(r"`(rx\.\w+=[^`]+)`", TEXT)
    assert len(settings) >= 7
    for setting in settings:
        parse_fault_url(f"fault://{setting};x")


def test_its_examples_print_what_they_show() -> None:
    outcome = doctest.testfile(str(DOCS), module_relative=False, encoding="utf-8")
    assert outcome.attempted >= 8
    assert outcome.failed == 0
