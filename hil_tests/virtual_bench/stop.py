"""How a running bench is told to end: SIGTERM, Ctrl-C, or the end of its standard input when it is attached to it."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import Any


class Stop:
    """A request to end, as a flag for loops and as descriptors for select(); entered, it takes both signals over."""

    def __init__(self, attached: bool = False) -> None:
        """Nothing asked for yet; `attached` ends the bench with whoever holds its standard input."""
        self.requested = False
        self._wake, self._alarm = os.pipe()
        self.sources: list[Any] = [self._wake, sys.stdin] if attached else [self._wake]
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Stop:
        """Take over SIGTERM and SIGINT."""
        self._before = {number: signal.signal(number, self._on_signal) for number in (signal.SIGTERM, signal.SIGINT)}
        return self

    def __exit__(self, *_: object) -> None:
        """Give both back."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self._wake)
        os.close(self._alarm)

    def told_by(self, ready: list[Any]) -> bool:
        """Whether one of the descriptors that select() returned asks to end."""
        self.requested = self.requested or any(source in ready for source in self.sources)
        return self.requested

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self.requested = True
        os.write(self._alarm, b"!")
