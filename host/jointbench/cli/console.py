"""Where a command speaks: results to standard output, or all of it to standard error when that carries JSON."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from jointbench.cli.colour import alarming, painted, wants_colour

_REDRAW_S = 0.1
_SOON = 0.02  # share of the work from which on the time that is left is guessed


class Console:
    """Lines for a person, and one progress line that is redrawn on terminals and silent elsewhere."""

    def __init__(self, json_destination: str | None = None) -> None:
        self.stream: TextIO = sys.stderr if json_destination == "-" else sys.stdout
        self._progress_width = 0
        self._last_drawn = 0.0
        self._began: float | None = None  # the work whose progress is shown

    def say(self, text: str = "") -> None:
        """One line, after wiping a progress line; verdict words have colour on a terminal."""
        self._wipe()
        self._began = None
        shown = text if self.can_say(text) else text.encode("ascii", "replace").decode("ascii")
        print(painted(shown) if wants_colour(self.stream) else shown, file=self.stream, flush=True)

    def alarm(self, who: str, text: str) -> None:
        """Say on standard error what went wrong, and with which command, after wiping a progress line."""
        self._wipe()
        print(f"{alarming(who) if wants_colour(sys.stderr) else who}: {text}", file=sys.stderr, flush=True)

    def can_say(self, text: str) -> bool:
        """Whether the stream has all characters of a text."""
        try:
            text.encode(self.stream.encoding or "ascii")
        except UnicodeEncodeError:
            return False
        return True

    def progress(self, text: str, share: float | None = None) -> None:
        """Redraws the progress line, ten times a second at most.

        Args:
            text: what is done.
            share: how much of the work is done, from 0 to 1; what is left is guessed from it.
        """
        now = time.monotonic()
        self._began = now if self._began is None else self._began
        if not sys.stderr.isatty() or now - self._last_drawn < _REDRAW_S:
            return
        self._last_drawn = now
        if share is not None and _SOON < share <= 1.0:
            text += f", {time_text((now - self._began) * (1.0 - share) / share)} left"
        text = text[: shutil.get_terminal_size().columns - 1]  # a line that wraps could not be redrawn
        print("\r" + text.ljust(self._progress_width), end="", file=sys.stderr, flush=True)
        self._progress_width = len(text)

    @contextmanager
    def working(self, text: str) -> Iterator[None]:
        """Show that something goes on that tells nothing of itself, and for how long, as long as the block runs."""
        ended = threading.Event()
        began = time.monotonic()

        def draw() -> None:
            while not ended.wait(_REDRAW_S):
                self.progress(f"{text}, {time_text(time.monotonic() - began)}")

        drawing = threading.Thread(target=draw, daemon=True)
        if sys.stderr.isatty():
            drawing.start()
        try:
            yield
        finally:
            ended.set()
            if drawing.ident is not None:
                drawing.join()
            self._wipe()

    def _wipe(self) -> None:
        if self._progress_width:
            print("\r" + " " * self._progress_width + "\r", end="", file=sys.stderr, flush=True)
            self._progress_width = 0


def time_text(seconds: float) -> str:
    """A time as a person says it.

    >>> time_text(7.4), time_text(75.0), time_text(7300.0)
    ('7 s', '1 min 15 s', '2 h 1 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, left = divmod(whole, 60)
    return f"{minutes} min {left} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
