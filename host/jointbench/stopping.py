"""Signals that are a STOP, and the words for what ended a motion or a command."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, NoReturn

STOPPING = {
    name: signal.Signals[name] for name in ("SIGINT", "SIGTERM", "SIGHUP") if name in signal.Signals.__members__
}
"""Signals that are a STOP, by name: Ctrl-C, `kill`, and a terminal that is closed or a connection that is lost."""

_WORDS = {"SIGINT": "Ctrl-C", "SIGTERM": "SIGTERM, as `kill` sends it", "SIGHUP": "SIGHUP: its terminal is gone"}


def why_ended(error: BaseException) -> str:
    """Say in a few words what ended a motion, as "Ctrl-C" or "BoardLost: j2 (node 2): …"."""
    if isinstance(error, (KeyboardInterrupt, SystemExit)) and (code := exit_code(error)) is not None:
        return _WORDS[signal.Signals(code - 128).name]
    return f"{type(error).__name__}: {error}".rstrip(": ")


def exit_code(stopped: KeyboardInterrupt | SystemExit) -> int | None:
    """Return the shell's status for a program that such a signal ended; None where none of them did."""
    code = 128 + signal.SIGINT if isinstance(stopped, KeyboardInterrupt) else stopped.code
    return code if isinstance(code, int) and code - 128 in STOPPING.values() else None


def stop(number: int, frame: FrameType | None) -> NoReturn:
    """Handle a signal as Ctrl-C is: by an exception, with the shell's status for a program that it ended.

    Raises:
        SystemExit: always.
    """
    raise SystemExit(128 + number)


@contextmanager
def signals_stop() -> Iterator[None]:
    """Have every signal that is a STOP unwind the program, as Ctrl-C does, where it would end it on the spot."""
    usual = [number for number in STOPPING.values() if signal.getsignal(number) is signal.SIG_DFL]
    try:
        for number in usual:
            signal.signal(number, stop)
    except ValueError:  # not the main thread: signals do not come here anyway
        usual = []
    try:
        yield
    finally:
        for number in usual:
            signal.signal(number, signal.SIG_DFL)


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
