"""Ctrl-C, a closed terminal or a STOP from elsewhere while motors run: kept until it can be obeyed, never lost."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

from jointbench.stopping import STOPPING, stop


class SafeInterrupt:
    """While it is entered, SIGINT, SIGTERM and SIGHUP wait for `check`; a second one cannot break into the stopping.

    Outside the main thread, and where the program has handlers of its own, it does nothing: those stay in charge. One
    within another shares what that one keeps.
    """

    def __init__(self, also: Callable[[], None] | None = None) -> None:
        """Nothing pending; `also` raises what else there is to obey, wherever a signal may take effect."""
        self._also = also
        self._pending: signal.Signals | None = None
        self._keeper = self
        self._before: dict[signal.Signals, Any] = {}

    def check(self) -> None:
        """Let what has come take effect now.

        Raises:
            KeyboardInterrupt: after SIGINT.
            SystemExit: after SIGTERM or SIGHUP, with the shell's status for it.
            JointbenchError: what `also` raises.
        """
        if self._also:
            self._also()
        keeper = self._keeper
        if keeper._pending is None:
            return
        number, keeper._pending = keeper._pending, None
        if number is signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(128 + number)

    def __enter__(self) -> SafeInterrupt:
        """Keep signals from now on."""
        for number in STOPPING.values():
            usual = (signal.default_int_handler,) if number is signal.SIGINT else (signal.SIG_DFL, stop)
            handler = signal.getsignal(number)
            outer = getattr(handler, "__self__", None)
            if isinstance(outer, SafeInterrupt) and threading.current_thread() is threading.main_thread():
                self._keeper = outer
            elif handler in usual:
                try:
                    self._before[number] = signal.signal(number, self._keep)
                except ValueError:  # not the main thread: signals do not come here anyway
                    break
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give signals back, and obey one that came last."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if error is None:
            self.check()

    def _keep(self, number: int, frame: FrameType | None) -> None:
        self._pending = signal.Signals(number)

