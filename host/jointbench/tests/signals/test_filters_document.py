"""The example of docs/filters.md gives what it shows."""

import doctest
from pathlib import Path

DOCUMENT = Path(__file__).parents[4] / "docs" / "filters.md"


def test_the_example_gives_what_it_shows():
    outcome = doctest.testfile(str(DOCUMENT), module_relative=False)
    assert outcome.attempted >= 7
    assert outcome.failed == 0
