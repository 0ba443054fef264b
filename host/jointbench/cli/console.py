"""Console of a command: its lines, tables and progress; all on standard error when standard output carries JSON."""

from __future__ import annotations

import errno
import os
import re
import select
import shutil
import stat
import sys
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

from jointbench.files import keep_earlier

_RED, _GREEN, _YELLOW, _PLAIN = "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[0m"
_WORDS = {
    _GREEN: r"\bidentified\b|^ *ok\b",
    _YELLOW: r"\bpoorly excited\b|\bpoor fit\b|^ *warning\b",
    _RED: r"\bnot observable\b|\brefused\b|\bFAILED\b|^ *NO\b",
}
_VERDICTS = re.compile("|".join(f"(?P<c{i}>{words})" for i, words in enumerate(_WORDS.values())), re.MULTILINE)
_COLOURS = tuple(_WORDS)

WIDTH = 80
"""Most characters of a table's line."""

_REDRAW_S = 0.1
_LINE_S = 5.0  # where nothing can be redrawn: from one line of progress to the next
SILENCE_S = 1.0  # of work that tells of itself: from then on somebody tells for it
_SOON = 0.02  # share of the work from which on the time that is left is guessed

WORDS = "compiling the numerical kernels: on first use only, what is compiled is kept"


def wants_colour(stream: TextIO) -> bool:
    """Return whether a stream is a terminal whose user has not asked for plain text."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def painted(text: str) -> str:
    r"""The text with its verdict words in colour: what is well, what is doubtful, what is not.

    >>> painted("j1: identified")
    'j1: \x1b[32midentified\x1b[0m'
    """
    return _VERDICTS.sub(lambda match: f"{_COLOURS[(match.lastindex or 1) - 1]}{match[0]}{_PLAIN}", text)


def alarming(text: str) -> str:
    """The text in red."""
    return f"{_RED}{text}{_PLAIN}"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lines of aligned columns, the heads above a rule; what is wider than 80 characters becomes several tables.

    Each of them begins with the first column, which names the rows.
    """
    widths = [max(len(line[column]) for line in (heads, *rows)) for column in range(len(heads))]
    blocks: list[list[int]] = [[0]]
    for column in range(1, len(heads)):
        if len(blocks[-1]) > 1 and sum(widths[k] + 2 for k in (*blocks[-1], column)) > WIDTH:
            blocks.append([0])
        blocks[-1].append(column)
    return "\n\n".join(
        _aligned([heads[k] for k in block], [[row[k] for k in block] for row in rows]) for block in blocks
    )


def _aligned(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [list(heads), *(list(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(heads))]
    lines.insert(1, ["-" * width for width in widths])
    texts = [
        [line[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True))]
        for line in lines
    ]
    return "\n".join("  ".join(["", *text]).rstrip() for text in texts)


class Console:
    """Lines for a person, and progress: a line that is redrawn on a terminal, one every few seconds elsewhere."""

    def __init__(self, json_destination: str | None = None) -> None:
        self.stream: TextIO = sys.stderr if json_destination == "-" else sys.stdout
        self._progress_width = 0
        self._last_drawn: float | None = None  # since the last `say`
        self._last_told = 0.0  # by the work itself
        self._began: float | None = None  # the work whose progress is shown
        self._drawing = threading.RLock()
        self._working: list[threading.Event] = []

    def say(self, text: str = "") -> None:
        """One line, after wiping a progress line; verdict words have colour on a terminal."""
        shown = text if self.can_say(text) else text.encode("ascii", "replace").decode("ascii")
        with self._drawing:
            self._wipe()
            self._began = self._last_drawn = None
            _print(painted(shown) if wants_colour(self.stream) else shown, self.stream)

    def alarm(self, who: str, text: str) -> None:
        """Say on standard error what went wrong, and with which command, after wiping a progress line."""
        with self._drawing:
            self._wipe()
            _print(f"{alarming(who) if wants_colour(sys.stderr) else who}: {text}", sys.stderr)

    def keep_earlier(self, path: str | Path, named: object) -> None:
        """Move a file that is about to be written anew to a name beside it, and say so, unless somebody named it."""
        if not named and (kept := keep_earlier(path)):
            self.say(f"the earlier file is kept as {kept}")

    def can_say(self, text: str) -> bool:
        """Return whether the stream has all characters of a text."""
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

        Raises:
            BrokenPipeError: nobody reads it any more, as when an ssh without a terminal is lost: at once, and not when
                the next line is due.
        """
        if _is_unread(sys.stderr):
            raise BrokenPipeError(errno.EPIPE, "standard error is closed: nothing reads the progress lines")
        now = self._last_told = time.monotonic()
        remaining = ""
        if share is not None:
            self._began = now if self._began is None else self._began
            if _SOON < share <= 1.0:
                remaining = f", {time_text((now - self._began) * (1.0 - share) / share)} left"
        self._draw(now, text, remaining)

    @contextmanager
    def working(self, text: str, silence: float = 0.0) -> Iterator[None]:
        """Show that something goes on, and for how long, as long as the block runs and shows no progress of its own.

        Of blocks inside each other the innermost is shown.

        Args:
            text: what goes on.
            silence: how long nothing is shown at first [s].
        """
        ended = threading.Event()
        began = time.monotonic()
        self._last_told = 0.0
        self._working.append(ended)

        def draw() -> None:
            while not ended.wait(_REDRAW_S):
                now = time.monotonic()
                shown = self._working[-1] is ended and now - began >= silence
                if shown and now - self._last_told > SILENCE_S:
                    with suppress(OSError):  # nobody reads it: whoever does the work will notice
                        self._draw(now, f"{text}, {time_text(now - began)}")

        drawing = threading.Thread(target=draw, daemon=True)
        drawing.start()
        try:
            yield
        finally:
            ended.set()
            drawing.join()
            self._working.remove(ended)
            with self._drawing:
                self._wipe()

    def _draw(self, now: float, text: str, remaining: str = "") -> None:
        with self._drawing:
            redraws = sys.stderr.isatty()
            if self._last_drawn is None:
                self._last_drawn = 0.0 if redraws else now
            if now - self._last_drawn < (_REDRAW_S if redraws else _LINE_S):
                return
            self._last_drawn = now
            if not redraws:
                _print(text + remaining, sys.stderr)
                return
            # A line that wraps could not be redrawn.
            text = text[: max(0, shutil.get_terminal_size().columns - 1 - len(remaining))] + remaining
            _print("\r" + text.ljust(self._progress_width), sys.stderr, end="")
            self._progress_width = len(text)

    def _wipe(self) -> None:
        if self._progress_width:
            _print("\r" + " " * self._progress_width + "\r", sys.stderr, end="")
            self._progress_width = 0


def _print(text: str, stream: TextIO, end: str = "\n") -> None:
    """Print, and go on where the terminal is gone: what a motion or a file still needs comes after it."""
    try:
        print(text, end=end, file=stream, flush=True)
    except OSError as error:
        if error.errno != errno.EIO:
            raise


def _is_unread(stream: TextIO) -> bool:
    """Return whether a stream is a pipe or a connection whose other end is gone; of a terminal SIGHUP tells."""
    try:
        mode = os.fstat(descriptor := stream.fileno()).st_mode
    except (OSError, ValueError):  # it is none of the system's
        return False
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)) or not hasattr(select, "poll"):
        return False
    poll = select.poll()
    poll.register(descriptor, 0)  # that it is gone is told unasked
    return any(events & (select.POLLERR | select.POLLHUP) for _, events in poll.poll(0))


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


@contextmanager
def compiling_told(console: Console) -> Generator[None]:
    """Say it when the first function is compiled inside the block, and show the name of each; imports Numba.

    Source: https://numba.readthedocs.io/en/stable/developer/event_api.html
    """
    from numba.core import event

    class Told(event.Listener):
        said = False

        def on_start(self, event: Any) -> None:
            if not Told.said:
                Told.said = True
                console.say(WORDS)
            console.progress(f"compiling {event.data['dispatcher'].py_func.__name__}")

        def on_end(self, event: Any) -> None:
            pass

    with event.install_listener("numba:compile", Told()):
        yield
