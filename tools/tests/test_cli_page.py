"""docs/cli.md says what the command line is."""

from jointbench.cli.verbs import VERBS
from tools.cli_page import PAGE, page


def test_the_page_is_that_of_the_parsers() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "stale: run `python -m tools.cli_page`"


def test_every_verb_has_a_section_with_an_example() -> None:
    sections = page().split("\n## ")[1:]
    assert [section.splitlines()[0] for section in sections] == list(VERBS)
    assert all("```text\n" in section for section in sections)
    assert "`--interval FROM,TO`" in page()
