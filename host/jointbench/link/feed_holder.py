"""The feed of a bench as the thread sees it that owns the bench: it says what it does, and looks for what is asked."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from jointbench.errors import FeedError, StopAsked
from jointbench.link.feed import VERSION
from jointbench.link.feed_server import FeedServer
from jointbench.link.feed_state import BenchView
from jointbench.link.program import program_name, this_program
from jointbench.link.tally import Counts, Tally

if TYPE_CHECKING:
    from jointbench.link.bench import Bench

_NOTHING_MOVES = "{holder} holds the bench and moves nothing{motors}. The next motion that it begins is refused"
_OFF = ": as its boards last said, their motors are off"
_MAY_DRIVE = ", but {joints} did not confirm that the motor is off: switch the power off"
_STOPPED = "stopped by {who}; motors are off"
_REFUSED = (
    "stopped by {who} before this motion began: motors stay off. Begin it again if it may go on; Bench.connect() takes "
    "note of such a stop beforehand"
)
_NOTED = "{holder} has taken note of the stop that was asked for while nothing moved: it may move the bench again"
_HANGS = "{holder} has not looked for {patience:g} s. Boards that hear nothing of it switch their motors off themselves"
_MOVES = "{holder} moves the bench; end that first, or ask it to stop"
STOP_PATIENCE_S = 2.0


@dataclass(frozen=True)
class Activity:
    """What the bench is doing.

    Attributes:
        doing: "moving" is a motion that nobody records.
        run: directory of the run that is recorded.
        start_us: when the motion begins, by the clock; None while it is prepared.
        duration_us: of the motion.
    """

    doing: Literal["idle", "moving", "playing"] = "idle"
    run: str | None = None
    start_us: int | None = None
    duration_us: int = 0


@dataclass(frozen=True)
class _Stop:
    """One that was asked for: by whom, and whether a motion was there to be stopped."""

    who: str
    of_motion: bool


class Feed:
    """What a bench's owner says to those who look on, and is asked by them.

    A thread of its own serves them. It reads what boards and this object hold, each a value that is replaced as a whole
    and never changed, so that the owner waits for nobody; of a bench that nobody looks at it does nothing at all.

    Attributes:
        server: the thread's side.
        activity: what the bench is doing.
        counts: samples and losses of each node, while somebody counts them.
        release_asked: whether somebody wants the ports of a bench that is only watched.
    """

    def __init__(self, bench: Bench, watching: bool = False) -> None:
        """Serve a feed of a connected bench.

        Args:
            bench: whose feed it is.
            watching: whether its ports are given back when somebody asks for them.

        Raises:
            FeedError: it cannot be served, or nobody be told of it; says why.
        """
        self.activity: Activity = Activity()
        self.counts: Mapping[int, Counts] = {}
        self.release_asked: bool = False
        self._watching = watching
        self._stop: _Stop | None = None
        self._bench = bench
        self._view = BenchView(bench)
        self._about = {
            "kind": "about",
            "version": VERSION,
            "bench": bench.name,
            "robot": bench.robot.name,
            "program": program_name(),
            "pid": os.getpid(),
            "since": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
            "boards": self._view.boards(),
        }
        self.server: FeedServer = FeedServer(self, STOP_PATIENCE_S)
        try:
            for line in bench.lines:
                line.port.tell_others(feed={"path": str(self.server.path), "version": VERSION})
        except OSError as error:
            self.server.close("closed")
            raise FeedError(f"the lock of a port cannot say where the feed is: {error}") from error

    @contextmanager
    def showing(self, run: str | None) -> Iterator[None]:
        """Say that a motion goes on, which is recorded in `run` or nowhere.

        Raises:
            StopAsked: a stop was asked for when the motion had nothing left to do: nothing shall follow it.
        """
        self.activity = Activity("playing" if run else "moving", run)
        try:
            yield
            self.check()
        finally:
            if self.stop_asked:  # no motor is on any more, or one whose board has not confirmed an earlier stop
                self._bench.stop()
            self.activity, self.counts = Activity(), {}

    def begin(self, start_us: int, duration_us: int) -> None:
        """The motion that is shown has a time to begin, and lasts so long."""
        self.activity = replace(self.activity, start_us=start_us, duration_us=duration_us)

    def count(self, tally: Tally) -> None:
        """Show what was counted until now."""
        self.counts = tally.counts()

    @property
    def is_read(self) -> bool:
        """Whether anybody looks on."""
        return self.server.n_clients > 0

    @property
    def stop_asked(self) -> bool:
        """Whether a stop was asked for that nobody has carried out."""
        return self._stop is not None

    def check(self) -> None:
        """Let a stop that was asked for take effect now.

        Raises:
            StopAsked: it was; says by whom.
        """
        if (stop := self._stop) is not None:
            raise StopAsked((_STOPPED if stop.of_motion else _REFUSED).format(who=stop.who))

    def stopped(self, unconfirmed: list[str]) -> None:
        """All motors were told to stop: say so to everybody; these joints' boards did not confirm it."""
        self._stop = None
        self.server.tell({"kind": "stopped", "ok": not unconfirmed, "unconfirmed": unconfirmed})

    def take_note(self) -> None:
        """Let no stop that was asked for until now refuse the next motion."""
        if self.stop_asked:
            self._stop = None
            self.server.tell({"kind": "error", "why": _NOTED.format(holder=this_program())})

    def close(self) -> None:
        """Say goodbye; the ports must be closed already. Closing twice is harmless."""
        self.server.close("released" if self.release_asked else "closed")

    def about(self) -> dict[str, Any]:
        """The first line."""
        return self._about

    def state(self) -> dict[str, Any]:
        """The line of this moment."""
        return self._view.state(self.activity, self.counts)

    def asked(self, what: str, who: str) -> dict[str, Any] | None:
        """Take what a client asks; returns the answer, None where that comes later."""
        if what == "stop":
            self._stop = _Stop(who, self.activity.doing != "idle")
            return None
        if what != "release":
            return {"kind": "error", "why": f"asked for {what!r}; a feed can be asked to stop or to release"}
        if not self._watching:
            return {"kind": "busy", "why": _MOVES.format(holder=this_program())}
        self.release_asked = True
        return None

    def unheard(self) -> dict[str, Any] | None:
        """The answer to a stop that nobody has carried out in `STOP_PATIENCE_S`; None where somebody has."""
        if not self.stop_asked:
            return None
        holder = this_program()
        if self.activity.doing == "idle" and not self._watching:
            driving = ", ".join(board.joint for board in self._bench.all_boards if board.is_driving)
            motors = _MAY_DRIVE.format(joints=driving) if driving else _OFF
            return {"kind": "error", "why": _NOTHING_MOVES.format(holder=holder, motors=motors)}
        return {"kind": "error", "why": _HANGS.format(holder=holder, patience=STOP_PATIENCE_S)}
