"""A clock on which several parts of a test wait side by side: one runs at a time, and time passes when all wait."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Sequence

from jointbench.bench import Clock


class TakingTurns:
    """Another clock, the same to whoever waits on it alone; under `run` it serves several parts in turn.

    Parts are threads of which only one runs, so that on a virtual clock the same parts send the same bytes every time.

    Attributes:
        clock: the other one.
    """

    def __init__(self, clock: Clock) -> None:
        """Wait on this clock."""
        self.name: str = clock.name
        self.common_ticks: bool = clock.common_ticks
        self.clock = clock
        self._running: _Part | None = None
        self._at_once = False

    def now_us(self) -> int:
        """Time since the bench was opened [µs]."""
        return self.clock.now_us()

    def wait(self, timeout_us: int, gather_us: int = 0, timed_us: int = 0) -> None:
        """Let other parts run, or time pass; returns after the first arrival, the time-out, or somebody's `wake`."""
        if self._running is None:
            self.clock.wait(timeout_us, gather_us, timed_us)
            return
        self._running.due_us = self.now_us() + timeout_us
        self._running.give_back()

    def wake(self) -> None:
        """Let every part look again before any time passes: something was said."""
        self._at_once = True

    def run(self, parts: Sequence[Callable[[], object]]) -> None:
        """Run all parts until each has returned; when one fails, the others end in their next wait.

        Raises:
            BaseException: the first part's error, as it was raised.
        """
        waiting = [_Part(part) for part in parts]
        everybody = tuple(waiting)
        try:
            while waiting:
                self._at_once = False
                for part in waiting:
                    self._turn(part)
                waiting = [part for part in waiting if not part.has_ended]
                if waiting and not self._at_once:
                    self.clock.wait(max(min(part.due_us for part in waiting) - self.now_us(), 0))
        finally:
            for part in everybody:
                while not part.has_ended:
                    part.is_called_off = True
                    self._turn(part, is_heard=False)

    def close(self) -> None:
        """Let the target go."""
        self.clock.close()

    def _turn(self, part: _Part, is_heard: bool = True) -> None:
        self._running = part
        try:
            part.resume()
        finally:
            self._running = None
        if part.error and is_heard:
            raise part.error


class _CalledOff(BaseException):
    """Ends a part because another failed: no error of its own, and for no `except Exception` to keep."""


class _Part:
    """One function in a thread that runs between `resume` and `give_back` only."""

    def __init__(self, function: Callable[[], object]) -> None:
        self.due_us = 0
        self.error: BaseException | None = None
        self.is_called_off = False
        self.has_ended = False
        self._function = function
        self._may_run, self._gave_back = threading.Semaphore(0), threading.Semaphore(0)
        # With the caller's context: numpy's floating-point errors are set in it.
        context = contextvars.copy_context()
        self._thread = threading.Thread(target=context.run, args=(self._run,), daemon=True)
        self._thread.start()

    def resume(self) -> None:
        """Let it run until it waits or has ended."""
        self._may_run.release()
        self._gave_back.acquire()

    def give_back(self) -> None:
        """Wait for the next turn; called by the part itself."""
        self._gave_back.release()
        self._may_run.acquire()
        if self.is_called_off:
            raise _CalledOff

    def _run(self) -> None:
        self._may_run.acquire()
        try:
            if not self.is_called_off:
                self._function()
        except _CalledOff:
            pass
        except BaseException as error:
            self.error = error
        finally:
            self.has_ended = True
            self._gave_back.release()
