"""Tests of several boards at once: one file says what is done with each, and they wait for one another's words.

A role is a function of a `Role`: it talks to one board as if there were no other, says words that the others can wait
for, and lets the target's time pass. Roles run side by side, in virtual time the same way every time::

    def leader(me: Role) -> None:
        me.board.arm()
        me.say("armed", me.board.ping().tick)
        me.hear("seen")

    def follower(me: Role) -> None:
        tick = me.hear("armed")
        ...
        me.say("seen")

    with open_bench(live, around=TakingTurns) as bench:
        bench.connect()
        for boards in seatings(bench.boards, 2):  # each role at each board
            run_roles(bench, leader, follower, boards=boards)

`TakingTurns` is the clock on which they wait side by side: one runs at a time, and time passes when all wait.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from jointbench.bench import Bench, Board, Clock
from jointbench.errors import RoleError


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


PATIENCE_US = 10_000_000  # of the target's time, for a word
KEEP_ALIVE_US = 50_000  # well within the shortest time-out of a driven motor's link at its default


@dataclass(frozen=True)
class Word:
    """Word of a role: when [µs], which role, at which joint's board, the word, and a value with it."""

    time_us: int
    role: str
    joint: str
    word: str
    value: Any


@dataclass(frozen=True)
class Played:
    """Result of roles: the value that each returned, by its name, and all words in order."""

    results: Mapping[str, Any]
    words: tuple[Word, ...]


class Role:
    """One role at one board.

    Attributes:
        name: of the role, its function's.
        board: it talks to.
        bench: of all boards.
    """

    def __init__(self, name: str, board: Board, bench: Bench, scene: _Scene) -> None:
        """Take a board; `run_roles` does."""
        self.name = name
        self.board = board
        self.bench = bench
        self._scene = scene
        self._kept_alive_us = bench.clock.now_us() - KEEP_ALIVE_US

    def say(self, word: str, value: Any = None) -> None:
        """Let every other role know, at once and for good; a word said again has the newer value."""
        self._scene.say(Word(self.bench.clock.now_us(), self.name, self.board.joint, word, value))

    def hear(self, word: str, of: str | None = None, within_us: int = PATIENCE_US) -> Any:
        """Wait until another role has said a word; the board is kept alive meanwhile.

        Args:
            word: what to wait for.
            of: name of the role that must have said it; any other by default.
            within_us: how long, by the target's time.

        Returns:
            The value it was said with.

        Raises:
            RoleError: it was not said in that time, or nobody is left to say it.
        """
        others = [name for name in self._scene.names if name != self.name] if of is None else [of]
        if unknown := sorted(set(others) - set(self._scene.names)):
            raise RoleError(f"role {self.name} waits for {unknown[0]!r}; the roles are {', '.join(self._scene.names)}")
        deadline = self.bench.clock.now_us() + within_us
        while not (said := self._scene.said(word, others)):
            left_us = deadline - self.bench.clock.now_us()
            if left_us <= 0 or self._scene.have_ended(others):
                raise RoleError(self._in_vain(word, others, within_us if left_us <= 0 else None))
            self._wait(left_us)
        return said[-1].value

    def meet(self, word: str, within_us: int = PATIENCE_US) -> None:
        """Say a word, and wait until every other role has said it.

        Raises:
            RoleError: as in `hear`.
        """
        self.say(word)
        for name in self._scene.names:
            if name != self.name:
                self.hear(word, name, within_us)

    def let_pass(self, duration_us: int) -> None:
        """Let the target's time pass, as a host that is alive."""
        end_us = self.bench.clock.now_us() + duration_us
        while (left_us := end_us - self.bench.clock.now_us()) > 0:
            self._wait(left_us)

    def _wait(self, left_us: int) -> None:
        clock = self.bench.clock
        if clock.now_us() >= self._kept_alive_us + KEEP_ALIVE_US:
            self._kept_alive_us = clock.now_us()
            self.board.keep_alive()
        clock.wait(min(left_us, self._kept_alive_us + KEEP_ALIVE_US - clock.now_us()))

    def _in_vain(self, word: str, others: Sequence[str], waited_us: int | None) -> str:
        why = "has ended" if waited_us is None else f"did not say it in {waited_us / 1e6:g} s"
        said = ", ".join(each.word for each in self._scene.words if each.role in others)
        return (
            f"role {self.name} at {self.board.joint} (node {self.board.node}) waits for {word!r} of "
            f"{' or '.join(others) or 'nobody'}, who {why}; said was: {said or 'nothing'}"
        )


def run_roles(bench: Bench, *roles: Callable[[Role], Any], boards: Sequence[Board] | None = None) -> Played:
    """Run roles side by side, each at a board, until all have returned.

    Args:
        bench: opened with `around=TakingTurns`, and connected.
        roles: functions; one that is there several times has its number behind its name, "follower 2".
        boards: of the roles, as many; the bench's first by default.

    Returns:
        What came of it.

    Raises:
        RoleError: roles and boards do not match, or the bench has another clock.
        BaseException: the first role's error, with a note of whose it is; the other roles have ended then.
    """
    seats = tuple(bench.boards[: len(roles)] if boards is None else boards)
    clock, names = bench.clock, _names(roles)
    if not isinstance(clock, TakingTurns):
        raise RoleError("roles wait side by side on one clock; open the bench with open_bench(…, around=TakingTurns)")
    if len(seats) != len(roles) or len({board.node for board in seats}) < len(seats):
        raise RoleError(
            f"{len(roles)} roles ({', '.join(names)}) are given {len(seats)} boards "
            f"({', '.join(board.joint for board in seats)}); give each role a board of its own"
        )
    scene = _Scene(names, clock)
    cast = [Role(name, board, bench, scene) for name, board in zip(names, seats, strict=True)]
    clock.run([partial(scene.play, role, function) for role, function in zip(cast, roles, strict=True)])
    return Played({name: scene.results[name] for name in names}, tuple(scene.words))


def seatings(boards: Sequence[Board], n_roles: int) -> Iterator[tuple[Board, ...]]:
    """Boards for so many roles, as often as there are boards: each role has each board once.

    Raises:
        RoleError: there are more roles than boards.
    """
    if n_roles > len(boards):
        raise RoleError(f"{n_roles} roles need as many boards, and the bench has {len(boards)}")
    for first in range(len(boards)):
        yield tuple(boards[(first + k) % len(boards)] for k in range(n_roles))


def _names(roles: Sequence[Callable[[Role], Any]]) -> list[str]:
    plain = [role.__name__ for role in roles]
    return [f"{name} {plain[: k + 1].count(name)}" if plain.count(name) > 1 else name for k, name in enumerate(plain)]


class _Scene:
    """State that the roles of one run share."""

    def __init__(self, names: Sequence[str], clock: TakingTurns) -> None:
        self.names: tuple[str, ...] = tuple(names)
        self.words: list[Word] = []
        self.results: dict[str, Any] = {}
        self._clock = clock

    def say(self, word: Word) -> None:
        self.words.append(word)
        self._clock.wake()

    def said(self, word: str, by: Sequence[str]) -> list[Word]:
        return [each for each in self.words if each.word == word and each.role in by]

    def have_ended(self, names: Sequence[str]) -> bool:
        return all(name in self.results for name in names)

    def play(self, role: Role, function: Callable[[Role], Any]) -> None:
        try:
            self.results[role.name] = function(role)
        except Exception as error:
            error.add_note(f"in role {role.name} at {role.board.joint} (node {role.board.node})")
            raise
        finally:
            self._clock.wake()  # whoever waits for it need not wait any more
