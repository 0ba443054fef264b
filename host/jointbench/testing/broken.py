"""A board that is gone: it breaks one test, and all later ones are skipped with its name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jointbench.errors import BenchLost, BoardLost, BoardSilent


@dataclass(frozen=True)
class Broken:
    """What broke the bench.

    Attributes:
        what: the board or the bench.
        since: the test that it broke.
        cause: in one line.
    """

    what: str
    since: str
    cause: str

    @property
    def reason(self) -> str:
        """Why later tests do not run."""
        return f"{self.what} is broken since {self.since}: {self.cause}"


def broken_by(error: BaseException, test: str, in_setup: bool) -> Broken | None:
    """Say what an error that ended a test has broken, or None for one that may have been the test's alone.

    A board that only says nothing is given up when it cannot be greeted before a test: while a test runs, the test may
    have silenced it.
    """
    for each in _chain(error):
        if isinstance(each, BoardLost) or (isinstance(each, BoardSilent) and in_setup):
            return Broken(f"board {each.joint} (node {each.node})", test, _line(each.text))
        if isinstance(each, BenchLost):
            return Broken("the bench", test, _line(str(each)))
    return None


def _chain(error: BaseException) -> Iterator[BaseException]:
    each: BaseException | None = error
    while each is not None:
        yield each
        each = each.__cause__


def _line(text: str) -> str:
    return " ".join(text.split())
