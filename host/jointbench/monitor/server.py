"""The monitor: one attachment to a bench, told to all pages, until Ctrl-C."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tornado.httpserver import HTTPServer

from jointbench.monitor.address import listen
from jointbench.monitor.attachment import Attachment
from jointbench.monitor.audience import Audience
from jointbench.monitor.handlers import application

_AT_THE_END_S = 1.0  # for pages to be told


@dataclass(frozen=True)
class Served:
    """What a monitor did.

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
        BenchFileError: the bench file is wrong.
        MonitorError: the port cannot be had.
        FeedError: the private folder is not ours alone.
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
