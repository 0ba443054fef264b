"""Signals that are a STOP, and the words for what ended a motion or a command."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

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
