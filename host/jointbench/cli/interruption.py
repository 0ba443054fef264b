"""Whether Ctrl-C was pressed during something that ends early by it, with what it has."""

from __future__ import annotations

import signal
from types import FrameType, TracebackType


class Interruption:
    """Notices Ctrl-C within a `with` block, and lets it do what it does.

    Outside the main thread, and where the program has a handler of its own, it notices nothing.

    Attributes:
        happened: whether it was pressed.
    """

    def __init__(self) -> None:
        """Not pressed yet."""
        self.happened: bool = False
        self._noticing = False

    def __enter__(self) -> Interruption:
        """Notice from now on."""
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            try:
                signal.signal(signal.SIGINT, self._notice)
                self._noticing = True
            except ValueError:  # not the main thread: signals do not come here anyway
                pass
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Notice no longer."""
        if self._noticing:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _notice(self, number: int, frame: FrameType | None) -> None:
        self.happened = True
        signal.default_int_handler(number, frame)
