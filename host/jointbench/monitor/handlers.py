"""What the monitor answers to a browser: the page's files and the live lines, to nobody but its user."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tornado.web import Application, HTTPError, RequestHandler, StaticFileHandler
from tornado.websocket import WebSocketHandler

from jointbench.monitor.access import Access
from jointbench.monitor.audience import Audience

STATIC = Path(__file__).parent / "static"
_LONGEST = 1024  # bytes of a request on the web socket; a page's have some twenty
_PING_S = 10.0


class Guarded(RequestHandler):
    """Refuses, before anything else, whoever has no access; says why in a plain sentence."""

    access: Access

    def initialize(self, access: Access, **others: Any) -> None:
        """Take what all handlers share."""
        self.access = access
        for name, value in self.access.headers.items():  # too late for set_default_headers, which came before
            self.set_header(name, value)

    def prepare(self) -> None:
        """Let through whoever may see the bench."""
        refusal = self.access.refusal(self.request)
        if refusal is not None:
            raise HTTPError(403)

    def log_exception(self, typ: Any, value: Any, tb: Any) -> None:
        """Log no refusal: the line would hold the path, and the token belongs in no log."""
        if not isinstance(value, HTTPError):
            super().log_exception(typ, value, tb)

    def write_error(self, status_code: int, **more: Any) -> None:
        """The reason as text; `send_error` has cleared the headers."""
        for name, value in self.access.headers.items():
            self.set_header(name, value)
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        refusal = self.access.refusal(self.request)
        self.finish(f"{refusal or self._reason}\n")


class Nothing(Guarded):
    """There is nothing at this path."""

    def prepare(self) -> None:
        """Say so to whoever may know."""
        super().prepare()
        raise HTTPError(404)


class PageFile(Guarded, StaticFileHandler):
    """A file of the page."""

    def initialize(self, access: Access, **others: Any) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Serve the page for the folder."""
        Guarded.initialize(self, access)
        StaticFileHandler.initialize(self, str(STATIC), "index.html")

    def should_return_304(self) -> bool:
        """Never: nothing is kept."""
        return False


class Live(Guarded, WebSocketHandler):
    """The lines of the bench, to a page; from it, that the bench stop."""

    audience: Audience

    def initialize(self, access: Access, *, audience: Audience) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Take what all pages share."""
        super().initialize(access)
        self.audience = audience

    def prepare(self) -> None:
        """A browser always says which page opens a web socket; who does not is none."""
        super().prepare()
        if "Origin" not in self.request.headers:
            raise HTTPError(403)

    def check_origin(self, origin: str) -> bool:
        """As `prepare` has found it."""
        return self.access.refusal(self.request) is None

    def open(self, *args: str, **kwargs: str) -> None:
        """Tell the page what is known."""
        self.set_nodelay(True)
        self.audience.join(self)

    def on_message(self, message: str | bytes) -> None:
        """Hand a page's request on; anything else it sends is none."""
        try:
            asked = json.loads(message)
        except ValueError:
            return
        if isinstance(asked, dict) and asked.get("ask") == "stop":
            self.audience.stop()

    def on_close(self) -> None:
        """Tell it no more."""
        self.audience.leave(self)


def application(access: Access, audience: Audience) -> Application:
    """The answers by path."""
    shared = {"access": access}
    return Application(
        [
            (r"/[^/]+/live", Live, {**shared, "audience": audience}),
            (r"/[^/]+/((?:uplot/)?[\w.]*)", PageFile, shared),
        ],
        default_handler_class=Nothing,
        default_handler_args=shared,
        log_function=lambda handler: None,  # for the same reason
        websocket_ping_interval=_PING_S,
        websocket_max_message_size=_LONGEST,
    )
