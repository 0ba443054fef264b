"""The live page's server: where it listens, who may see it, and what each request is answered."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import json
import os
import secrets
import signal
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from socket import socket
from typing import Any, Protocol
from urllib.parse import urlsplit

from tornado.httpserver import HTTPServer
from tornado.httputil import HTTPServerRequest
from tornado.netutil import bind_sockets
from tornado.web import Application, HTTPError, RequestHandler, StaticFileHandler
from tornado.websocket import WebSocketClosedError, WebSocketHandler

from jointbench.bench.feed import private_folder
from jointbench.bench.monitor.attachment import Attachment
from jointbench.errors import FeedError

_KEPT = ("link", "about", "state")  # the newest of each is what a newly opened page must know, in this order
HOST = "127.0.0.1"
_NAMES = (HOST, "localhost")
_LONGEST = 1024  # bytes of a request on the web socket; a page's have some twenty
_PING_S = 10.0
_AT_THE_END_S = 1.0  # for pages to be told


class Page(Protocol):
    """One open page."""

    def write_message(self, message: str) -> asyncio.Future[None]:
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
        self._pages: dict[Page, asyncio.Future[None] | None] = {}
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


def _pass_over_a_page_that_closed(sent: asyncio.Future[None]) -> None:
    """A page may close while text is on its way to it; an error that nobody looks at, asyncio prints."""
    error = None if sent.cancelled() else sent.exception()
    if error is not None and not isinstance(error, WebSocketClosedError):
        raise error


@dataclass(frozen=True)
class Access:
    """Token and origin that a request must bring.

    Attributes:
        port: on which the page is served.
        token: the first part of every path.
    """

    port: int
    token: str

    @property
    def url(self) -> str:
        """URL of the page."""
        return f"http://{HOST}:{self.port}/{self.token}/"

    def refusal(self, request: HTTPServerRequest) -> str | None:
        """Reason why a request is refused, for a person; None where it is not.

        A page of another site may make a browser that runs here send requests, by a name that leads here if need be:
        it is told from ours by the Host and the Origin that the browser adds.
        """
        own_hosts = {f"{name}:{self.port}" for name in _NAMES}
        if request.headers.get("Host", "").lower() not in own_hosts:
            return f"the monitor answers at {HOST}:{self.port} only; open the address that `jointbench monitor` printed"
        origin = request.headers.get("Origin")
        if origin is not None and origin.lower() not in {f"http://{name}" for name in own_hosts}:
            return "another page asked for this; open the address that `jointbench monitor` printed"
        token = request.path.removeprefix("/").partition("/")[0]
        if not hmac.compare_digest(token.encode(), self.token.encode()):
            return "the address lacks its token, or has an old one; open the address that `jointbench monitor` printed"
        return None

    @property
    def headers(self) -> dict[str, str]:
        """Headers of every answer: nothing from elsewhere, nothing kept, nothing told to others."""
        sources = " ".join(f"ws://{name}:{self.port}" for name in _NAMES)
        return {
            "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
            f"connect-src 'self' {sources}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
            "Cache-Control": "no-store",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin",
        }


def listen(bench: Path, port: int | None) -> tuple[list[socket], Access]:
    """Listen on this machine alone.

    Args:
        bench: the bench file; where its page was served last is kept in the user's private folder.
        port: to serve it at; None: the last one, or where that is taken, any free one.

    Returns:
        The sockets, and what a request must bring. The token is the last one of that port, else a new random one.

    Raises:
        FeedError: the port cannot be had; or the private folder is not ours alone.
    """
    path = private_folder() / f"monitor-{hashlib.sha256(os.fsencode(os.path.realpath(bench))).hexdigest()[:16]}.json"
    last = _read(path)
    try:
        sockets = bind_sockets(last.port if port is None else port, HOST)
    except OSError as error:
        if port is not None:
            raise FeedError(
                f"port {port} cannot be had: {error.strerror}; name another, or leave --port out"
            ) from error
        sockets = bind_sockets(0, HOST)
    number: int = sockets[0].getsockname()[1]
    access = last if last.port == number else Access(number, secrets.token_urlsafe(24))
    if last.port == 0 or port is not None:  # else another monitor of this bench is served there
        _write(path, access)
    return sockets, access


def door(url: str) -> str:
    """The address of a file of this user's that leads a browser to a page.

    It can be handed to the browser: the command lines of programs, which every user of the machine can read, do not
    hold the page's token then.

    Raises:
        FeedError: the private folder is not ours alone.
        OSError: the file cannot be written.
    """
    path = private_folder() / f"monitor-{urlsplit(url).port}.html"
    _write_for_us(path, f'<!doctype html><meta http-equiv="refresh" content="0; url={url}"><a href="{url}">Monitor</a>')
    return path.as_uri()


def _read(path: Path) -> Access:
    """Address that was written there; port 0, which is any, where none was."""
    with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
        about = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(about["port"], int) and len(about["token"]) == len(secrets.token_urlsafe(24)):
            return Access(about["port"], about["token"])
    return Access(0, "")


def _write(path: Path, access: Access) -> None:
    _write_for_us(path, json.dumps({"port": access.port, "token": access.token}))


def _write_for_us(path: Path, text: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(file, "w", encoding="utf-8") as stream:
        stream.write(text)


STATIC = Path(__file__).parent / "static"


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
        """Return whether the access rules allow this request."""
        return self.access.refusal(self.request) is None

    def open(self, *args: str, **kwargs: str) -> None:
        """Tell the page what is known."""
        self.set_nodelay(True)
        self.audience.join(self)

    def on_message(self, message: str | bytes) -> None:
        """Hand a page's request on; anything else it sends is none."""
        try:
            request = json.loads(message)
        except ValueError:
            return
        if isinstance(request, dict) and request.get("ask") == "stop":
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


@dataclass(frozen=True)
class Served:
    """Result of serving a page.

    Attributes:
        url: of its page.
        states: lines of state that it passed on.
        stops: how often its pages asked for a stop.
    """

    url: str
    states: int
    stops: int


def serve_monitor(
    bench: str | Path, port: int | None = None, ready: Callable[[str], None] = lambda url: None
) -> Served:
    """Serve the live page of a bench on this machine until Ctrl-C or SIGTERM; called in the main thread.

    Args:
        bench: a bench file.
        port: to serve at; None: where it was served last, or any free one.
        ready: called, in a thread of its own, with the page's address once it can be opened.

    Returns:
        What it did.

    Raises:
        FileError: the bench file is wrong.
        FeedError: the port cannot be had; or the private folder is not ours alone.
    """
    return asyncio.run(_serve(Path(bench), port, ready))


async def _serve(bench: Path, port: int | None, ready: Callable[[str], None]) -> Served:
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    sockets, access = listen(bench, port)
    audience = Audience(lambda what: attachment.ask(what))

    def tell(line: dict[str, Any]) -> None:
        loop.call_soon_threadsafe(partial(audience.tell, line))

    server = HTTPServer(application(access, audience))
    server.add_sockets(sockets)
    attachment = Attachment(bench, tell)
    try:
        await loop.run_in_executor(None, ready, access.url)  # it may open a browser, and wait for that
        await ended.wait()
    finally:
        server.stop()
        await loop.run_in_executor(None, attachment.close)  # its last words still pass through this loop
        await asyncio.wait_for(server.close_all_connections(), _AT_THE_END_S)
    return Served(access.url, audience.states, audience.stops)
