"""A Chromium without a window for the tests of pages: where it is, how it starts, what axe says of a page."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

from tools.setup import browser
from tools.setup.checkout import Checkout

ROOT = Path(__file__).resolve().parents[1]

# No name is looked up and no proxy asked, whatever this machine is set up with.
ALONE = ["--no-proxy-server", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
OF_THIS_MACHINE = ("file://", "http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:", "about:")
SERIOUS = ("serious", "critical")


def need_chromium() -> Path:
    """Return Chromium's program; where there is none the test is skipped, and fails where CI is set."""
    program = browser.program(Checkout(ROOT))
    if program is not None:
        return program
    missing = "no Chromium here: `./run setup` fetches one, or install Debian's package chromium"
    if os.environ.get("CI"):
        pytest.fail(f"{missing}; in CI it must be there", pytrace=False)
    pytest.skip(missing)


@contextmanager
def chromium() -> Generator[Browser]:
    """A Chromium that runs until the end of the block. Within it, its thread can run no other event loop."""
    program = need_chromium()
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=ALONE)
        try:
            yield started
        finally:
            started.close()


@contextmanager
def page_of(started: Browser, **settings: Any) -> Generator[Page]:
    """A fresh page, which may ask this machine alone; at the end of the block it is an error if it asked another.

    Args:
        started: the browser.
        settings: of the page, as `Browser.new_page` takes them, e.g. viewport={"width": 390, "height": 844}.
    """
    asked: list[str] = []
    page = started.new_page(**settings)
    page.on("request", lambda request: asked.append(request.url))
    page.on("websocket", lambda socket: asked.append(socket.url))
    try:
        yield page
    finally:
        page.close()
    elsewhere = [url for url in asked if not url.startswith(OF_THIS_MACHINE)]
    assert not elsewhere, f"the page asked for what is not on this machine: {', '.join(elsewhere)}"


def serious_findings(page: Page) -> list[str]:
    """What axe calls serious or critical in a page: the rule, what is wrong, and where, a line each."""
    found: list[str] = []
    for rule in Axe().run(page).response["violations"]:
        if rule["impact"] in SERIOUS:
            places = ", ".join(" ".join(map(str, node["target"])) for node in rule["nodes"])
            found.append(f"{rule['id']} ({rule['impact']}): {rule['help']}: {places}")
    return found
