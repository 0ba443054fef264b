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
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from jointbench.bench import Bench, Board
from jointbench.errors import RoleError
from jointbench.testing.taking_turns import TakingTurns

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
