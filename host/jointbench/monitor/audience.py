"""The pages that are open, what each is told, and what they ask."""

from __future__ import annotations

import contextlib
import json
from asyncio import Future
from collections.abc import Callable
from typing import Any, Protocol

from tornado.websocket import WebSocketClosedError

_KEPT = (
    "link",
    "about",
    "state",
)  # the newest of each is what a page that has just been opened must know, in this order


class Page(Protocol):
    """One open page."""

    def write_message(self, message: str) -> Future[None]:
        """Send it text; done when it is on its way."""
        ...


class Audience:
    """Tells all pages every line, and one that is slow only the newest state.

    Attributes:
        states: lines of state that came.
        stops: how often a page asked for a stop.
    """

    def __init__(self, ask: Callable[[str], bool]) -> None:
        """Nobody yet; `ask` hands a request to whoever holds the bench, and tells whether there is somebody."""
        self.states: int = 0
        self.stops: int = 0
        self._ask = ask
        self._pages: dict[Page, Future[None] | None] = {}
        self._newest: dict[str, str] = {}

    def join(self, page: Page) -> None:
        """Tell a page what is known, and all that comes from now on."""
        self._pages[page] = None
        for kind in _KEPT:
            if kind in self._newest:
                self._send(page, self._newest[kind])

    def leave(self, page: Page) -> None:
        """Tell a page no more."""
        self._pages.pop(page, None)

    def tell(self, line: dict[str, Any]) -> None:
        """A line of the feed, or of the monitor itself, to all pages."""
        kind = line.get("kind", "")
        text = json.dumps(line, separators=(",", ":"), ensure_ascii=False)
        if kind in _KEPT:
            self._newest[kind] = text
        is_state = kind == "state"
        self.states += is_state
        for page, sent in list(self._pages.items()):
            if is_state and sent is not None and not sent.done():
                continue  # it has not taken the last one yet: the next will be newer
            self._send(page, text)

    def stop(self) -> None:
        """Have the bench stopped; its word on it comes as a line."""
        self.stops += 1
        if not self._ask("stop"):
            self.tell({"kind": "error", "why": "nobody holds the bench at the moment: use the emergency stop"})

    def _send(self, page: Page, text: str) -> None:
        with contextlib.suppress(WebSocketClosedError):  # it says so itself, by leaving
            self._pages[page] = sent = page.write_message(text)
            sent.add_done_callback(_pass_over_a_page_that_closed)


def _pass_over_a_page_that_closed(sent: Future[None]) -> None:
    """A page may close while text is on its way to it; an error that nobody looks at, asyncio prints."""
    error = None if sent.cancelled() else sent.exception()
    if error is not None and not isinstance(error, WebSocketClosedError):
        raise error
