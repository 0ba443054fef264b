"""Where a command speaks: results to standard output, or all of it to standard error when that carries JSON."""

from __future__ import annotations

import sys
import time
from typing import TextIO


class Console:
    """Lines for a person, and one progress line that is redrawn on terminals and silent elsewhere."""

    def __init__(self, json_destination: str | None = None) -> None:
        self.stream: TextIO = sys.stderr if json_destination == "-" else sys.stdout
        self._progress_width = 0
        self._last_drawn = 0.0

    def say(self, text: str = "") -> None:
        """One line, after wiping a progress line."""
        self._wipe()
        shown = text if self.can_say(text) else text.encode("ascii", "replace").decode("ascii")
        print(shown, file=self.stream, flush=True)

    def can_say(self, text: str) -> bool:
        """Whether the stream has all characters of a text."""
        try:
            text.encode(self.stream.encoding or "ascii")
        except UnicodeEncodeError:
            return False
        return True

    def progress(self, text: str) -> None:
        """Redraws the progress line, ten times a second at most."""
        now = time.monotonic()
        if not sys.stderr.isatty() or now - self._last_drawn < 0.1:
            return
        self._last_drawn = now
        print("\r" + text.ljust(self._progress_width), end="", file=sys.stderr, flush=True)
        self._progress_width = max(self._progress_width, len(text))

    def _wipe(self) -> None:
        if self._progress_width:
            print("\r" + " " * self._progress_width + "\r", end="", file=sys.stderr, flush=True)
            self._progress_width = 0
