"""Where a bench's page is served: at the same address after a restart, so that open pages come back by themselves."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from contextlib import suppress
from pathlib import Path
from socket import socket
from urllib.parse import urlsplit

from tornado.netutil import bind_sockets

from jointbench.errors import MonitorError
from jointbench.link.feed import private_folder
from jointbench.monitor.access import HOST, Access


def listen(bench: Path, port: int | None) -> tuple[list[socket], Access]:
    """Listen on this machine alone.

    Args:
        bench: the bench file; where its page was served last is kept in the user's private folder.
        port: to serve it at; None: the last one, or where that is taken, any free one.

    Returns:
        The sockets, and what a request must bring. The token is the last one of that port, else a new random one.

    Raises:
        MonitorError: the port cannot be had.
        FeedError: the private folder is not ours alone.
    """
    path = private_folder() / f"monitor-{hashlib.sha256(os.fsencode(os.path.realpath(bench))).hexdigest()[:16]}.json"
    last = _read(path)
    try:
        sockets = bind_sockets(last.port if port is None else port, HOST)
    except OSError as error:
        if port is not None:
            raise MonitorError(
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
    """What was written there; port 0, which is any, where nothing was."""
    with suppress(OSError, ValueError, LookupError, TypeError):
        about = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(about["port"], int) and len(about["token"]) == len(secrets.token_urlsafe(24)):
            return Access(about["port"], about["token"])
    return Access(0, "")


def _write(path: Path, access: Access) -> None:
    _write_for_us(path, json.dumps({"port": access.port, "token": access.token}))


def _write_for_us(path: Path, text: str) -> None:
    with suppress(FileNotFoundError):
        path.unlink()
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(file, "w", encoding="utf-8") as stream:
        stream.write(text)
