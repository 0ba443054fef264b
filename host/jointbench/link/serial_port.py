"""What pyserial's kinds of port have in common, and where they differ."""

from __future__ import annotations

import os
import re
import socket
from typing import Any

import serial

_CHUNK = 65536


SCHEMES = ("serial", "socket", "rfc2217", "hwgrep", "loop", "fault")
"""What may stand before the colon of a port's URL; pyserial knows others, of which one writes files."""

_SCHEME = re.compile(r"\s*([A-Za-z][A-Za-z0-9+.-]*):")


def refused_scheme(url: str) -> str:
    """Say why a port's URL is not opened, "" where it may be: a device is named without a scheme, or by "serial:"."""
    scheme = _SCHEME.match(url.strip().removeprefix("serial:"))
    if scheme is None or scheme[1].lower() in SCHEMES or re.fullmatch(r"(?i)com\d+", scheme[1]):
        return ""
    return f"{scheme[1]!r} is no kind of port that is opened here; name a device, or one of {', '.join(SCHEMES)}"


def open_serial(url: str, **settings: Any) -> Any:
    """Open a serial device or a URL of one of `SCHEMES`, so that reading never waits.

    Raises:
        ValueError: the URL's scheme is another, or as pyserial does.
        serial.SerialException, OSError: as pyserial does.
    """
    if why := refused_scheme(url):
        raise ValueError(why)
    if url.lower().startswith("rfc2217:"):
        settings.pop("write_timeout", None)  # pyserial has none there; the connection's own holds
    port = serial.serial_for_url(url, timeout=0, **settings)
    if url.lower().startswith("socket:"):
        _send_at_once(port.fileno())
    return port


def file_descriptor(port: Any) -> int | None:
    """File descriptor to wait on, or None where the kind of port has none."""
    try:
        return port.fileno()
    except (AttributeError, OSError, ValueError):  # io.UnsupportedOperation is both of the latter
        return None


def read_waiting(port: Any, size: int = _CHUNK) -> bytes:
    """Bytes that are there, at most `size`, of a port opened by `open_serial`.

    Raises:
        serial.SerialException, OSError: the port is gone.
    """
    data: bytes = port.read(size)
    if file_descriptor(port) is None:  # rfc2217:// gives one byte a time to who does not wait
        pieces = [data]
        got = len(data)
        while data and got < size:
            data = port.read(size - got)
            pieces.append(data)
            got += len(data)
        return b"".join(pieces)
    return data


def close_serial(port: Any) -> None:
    """Close a port opened by `open_serial`; closing twice is harmless."""
    connection: socket.socket | None = getattr(port, "_socket", None)
    port.close()
    if connection is not None:
        connection.close()  # pyserial forgets one that the other end has ended, without closing it


def _send_at_once(descriptor: int) -> None:
    """A request is small and waits for its answer: TCP must not wait for more of it."""
    with socket.socket(fileno=os.dup(descriptor)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
