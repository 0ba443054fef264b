"""The reports in a browser, at a desk and on a phone and on paper: whole, readable, and asking for nothing."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from jointbench.identification import fit
from jointbench.link.sync import Exchange, board_clock
from jointbench.results import ComparisonEvidence, write_comparison, write_report
from tools.browser import page_of, serious_findings

from .page_looks import BEYOND, LETTERS, ON_PAPER, SMALLEST_LETTER, TEXTS, overlapping
from .recordings import Example

pytestmark = pytest.mark.slow  # axe alone takes seconds for a page of so many marks

DESK, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
A4 = {"width": 688, "height": 1017}
"""A4 within the margins of the style sheet, 14 mm, in CSS pixels."""
LARGEST = 5 * 10**6


@pytest.fixture(scope="module")
def files(example: Example, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A report with all that it can hold, names longer than ours among it; and one on two models."""
    folder = tmp_path_factory.mktemp("pages")
    clocks = {
        name: board_clock([Exchange(10**6 * k, 10**6 * k + 700, 1000 * k, 10**6 * k + 350) for k in range(20)], 1000.0)
        for name in example.model.robot.joint_names
    }
    run = dataclasses.replace(example.fit_run, clocks=clocks, warnings=(f"torn/{'a-long-name/' * 12}end",))
    parameters = example.model.parameters.copy()
    parameters[[name.startswith("j6.") for name in example.model.names]] *= 0.5  # refused, with its reason
    model = dataclasses.replace(example.model, parameters=parameters)
    places = Path(f"runs/{'2026-05-04T101500Z-' * 6}/model.json"), Path("b.json")
    evidence = ComparisonEvidence.of(model, fit(example.verification_run), places, example.fit_run)
    return {
        "model": write_report(folder / "model.html", model, run, example.validation, example.verification_run),
        "two models": write_comparison(folder / "two.html", evidence),
    }


@pytest.fixture(scope="module", params=["model", "two models"])
def file(request: pytest.FixtureRequest, files: dict[str, Path]) -> Path:
    return files[request.param]


@pytest.fixture(scope="module", params=[DESK, PHONE], ids=["desk", "phone"])
def shown(request: pytest.FixtureRequest, browser: Any, file: Path) -> Iterator[Any]:
    """The page, opened; whatever it writes to the console is an error of the test."""
    said: list[str] = []
    with page_of(browser, viewport=request.param) as page:
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(file.as_uri())
        yield page
    assert said == []


def test_nothing_reaches_out_and_nothing_overlaps(shown: Any) -> None:
    assert shown.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert shown.evaluate(BEYOND) == []
    assert overlapping(shown.evaluate(TEXTS)) == []


def test_letters_can_be_read(shown: Any) -> None:
    assert shown.evaluate(LETTERS) >= SMALLEST_LETTER


def test_the_verdict_is_in_the_first_screen(shown: Any) -> None:
    for place in ("#verdict", ".sentence"):
        box = shown.locator(place).bounding_box()
        assert box["y"] + box["height"] < shown.viewport_size["height"]


def test_axe_finds_nothing_serious(shown: Any) -> None:
    assert serious_findings(shown) == []


def test_headings_are_in_order_and_links_lead_to_what_the_keyboard_reaches(shown: Any) -> None:
    levels = shown.evaluate("[...document.querySelectorAll('h1, h2, h3')].map(each => +each.tagName[1])")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(below - above <= 1 for above, below in pairwise(levels))
    shown.keyboard.press("Tab")
    assert shown.evaluate("document.activeElement.closest('nav, .scroll') !== null")
    links = shown.evaluate("[...document.querySelectorAll('nav a')].map(each => each.getAttribute('href'))")
    assert len(links) >= 4
    assert all(shown.locator(link).is_visible() for link in links)


def test_it_is_small(file: Path) -> None:
    assert file.stat().st_size <= LARGEST


def test_dark_letters_are_light_on_dark(browser: Any, file: Path) -> None:
    with page_of(browser, viewport=DESK, color_scheme="dark") as page:
        page.goto(file.as_uri())
        assert serious_findings(page) == []
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(19, 23, 27)"


def test_paper_cuts_nothing(browser: Any, file: Path, tmp_path: Path) -> None:
    with page_of(browser, viewport=A4) as page:
        page.goto(file.as_uri())
        page.emulate_media(media="print")
        assert page.evaluate(ON_PAPER) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert overlapping(page.evaluate(TEXTS)) == []
        printed = page.pdf(path=tmp_path / "report.pdf", format="A4", prefer_css_page_size=True)
        heights = "[...document.querySelectorAll('figure, tr, p, pre')].map(e => e.getBoundingClientRect().height)"
        tallest = max(page.evaluate(heights))
    assert tallest < A4["height"]  # or it would be cut between two pages
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) >= 2


def test_what_overlaps_is_found() -> None:
    apart = [["a", 0.0, 0.0, 10.0, 10.0], ["b", 0.0, 9.0, 10.0, 19.0], ["c", 12.0, 0.0, 20.0, 10.0]]
    assert overlapping(apart) == []
    assert overlapping([*apart, ["d", 5.0, 3.0, 15.0, 13.0]]) == [("a", "d"), ("c", "d"), ("d", "b")]
