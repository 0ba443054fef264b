"""The browser of the tests: it shows pages, tells what is wrong with them, and never leaves this machine."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tools.browser import need_chromium, page_of, serious_findings

GOOD = '<!doctype html><html lang="en"><title>Good</title><main><h1>Good</h1><button>Stop</button></main></html>'
BAD = '<!doctype html><html lang="en"><title>Bad</title><main><button></button><p style="color:#aaa">faint</p></main>'


def test_a_page_runs_its_script(page: Page) -> None:
    page.set_content("<p id=sum></p><script>sum.textContent = 6 * 7</script>")
    assert page.locator("#sum").inner_text() == "42"


def test_it_shows_files_and_a_font(page: Page, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("<span id=word>word</span>")
    page.goto((tmp_path / "page.html").as_uri())
    assert page.locator("#word").bounding_box()["width"] > 20  # type: ignore[index]


def test_what_axe_calls_serious_is_told_with_its_place(page: Page) -> None:
    page.set_content(GOOD)
    assert serious_findings(page) == []
    page.set_content(BAD)
    findings = serious_findings(page)
    assert [finding.partition(" ")[0] for finding in findings] == ["button-name", "color-contrast"]
    assert findings[1].endswith(": p")


@pytest.mark.parametrize("url", ["http://192.0.2.1/x.png", "https://fonts.example/x.css"])
def test_a_page_that_asks_another_machine_is_an_error(browser: Browser, url: str) -> None:
    with pytest.raises(AssertionError, match=f"not on this machine: {re.escape(url)}"), page_of(browser) as page:
        page.evaluate("url => fetch(url, {signal: AbortSignal.timeout(200)}).catch(() => 0)", url)


def test_a_socket_to_another_machine_is_an_error(browser: Browser) -> None:
    with pytest.raises(AssertionError, match=r"ws://feed\.example/"), page_of(browser) as page:
        # Until it failed: a page closed at once is closed before the browser has told of the socket.
        page.evaluate("new Promise(done => { new WebSocket('ws://feed.example/').onerror = done })")


@pytest.mark.parametrize(("ci", "what"), [("true", pytest.fail.Exception), ("", pytest.skip.Exception)])
def test_chromium_may_be_missing_on_a_desk_but_not_in_ci(
    ci: str, what: type[BaseException], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JOINTBENCH_CHROMIUM", str(tmp_path / "chromium"))
    monkeypatch.setenv("CI", ci)
    with pytest.raises(what, match=r"no Chromium here: `\./run setup` fetches one"):
        need_chromium()
