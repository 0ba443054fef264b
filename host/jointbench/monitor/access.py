"""Who may see a bench: whoever has the token, on a page of ours, on this machine."""

from __future__ import annotations

import hmac
from dataclasses import dataclass

from tornado.httputil import HTTPServerRequest

HOST = "127.0.0.1"
_NAMES = (HOST, "localhost")


@dataclass(frozen=True)
class Access:
    """What a request must bring.

    Attributes:
        port: on which the page is served.
        token: the first part of every path.
    """

    port: int
    token: str

    @property
    def url(self) -> str:
        """Of the page."""
        return f"http://{HOST}:{self.port}/{self.token}/"

    def refusal(self, request: HTTPServerRequest) -> str | None:
        """Why a request is refused, for a person; None where it is not.

        A page of another site may make a browser that runs here send requests, by a name that leads here if need be:
        it is told from ours by the Host and the Origin that the browser adds.
        """
        ours = {f"{name}:{self.port}" for name in _NAMES}
        if request.headers.get("Host", "").lower() not in ours:
            return f"the monitor answers at {HOST}:{self.port} only; open the address that `jointbench monitor` printed"
        origin = request.headers.get("Origin")
        if origin is not None and origin.lower() not in {f"http://{name}" for name in ours}:
            return "another page asked for this; open the address that `jointbench monitor` printed"
        given = request.path.removeprefix("/").partition("/")[0]
        if not hmac.compare_digest(given.encode(), self.token.encode()):
            return "the address lacks its token, or has an old one; open the address that `jointbench monitor` printed"
        return None

    @property
    def headers(self) -> dict[str, str]:
        """Of every answer: nothing from elsewhere, nothing kept, nothing told to others."""
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
