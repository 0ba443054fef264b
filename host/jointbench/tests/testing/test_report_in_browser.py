"""The report of a test run in a browser, at a desk, on a phone and on paper."""

from __future__ import annotations

from typing import Any

import pytest

from jointbench.tests.results.page_text import BEYOND, LETTERS, ON_PAPER, SMALLEST_LETTER, TEXTS, overlapping
from jointbench.tests.testing.test_taking_turns import with_bench
from tools.browser import page_of, serious_findings

from .test_run_report import DESK, TESTS

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.slow

WIDTHS = {"desk": {"width": 1280, "height": 800}, "phone": {"width": 390, "height": 844}}
A4 = {"width": 688, "height": 1017}
"""A4 within the margins of the style sheet, 14 mm, in CSS pixels."""


def test_the_page_is_whole_readable_and_asks_for_nothing(pytester: pytest.Pytester, browser: Any) -> None:
    with_bench(pytester).makepyfile(test_mixed=TESTS)
    pytester.runpytest_subprocess(*DESK)
    address = (pytester.path / "out" / "report.html").as_uri()
    for viewport in WIDTHS.values():
        with page_of(browser, viewport=viewport) as page:
            page.goto(address)
            assert page.evaluate(BEYOND) == []
            assert overlapping(page.evaluate(TEXTS)) == []
            assert page.evaluate(LETTERS) >= SMALLEST_LETTER
            assert serious_findings(page) == []
    with page_of(browser, viewport=A4) as page:
        page.goto(address)
        page.emulate_media(media="print")
        assert page.evaluate(ON_PAPER) == []
