"""The host that meets a fault, and the ways in which one is made to strike: by bench, board or the host itself."""

from __future__ import annotations

import json
import os
import resource
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from jointbench.bench import Feedforward, open_bench
from jointbench.bench.floating import float_boards
from jointbench.errors import BenchLost, BoardError, BoardFault, BoardSilent, JointbenchError, PortInUse
from jointwire import MessageType, State
from tools.faults.cell import MOMENTS_US, Cell, StateNotReached
from tools.faults.subject import (
    FLOAT_SECONDS,
    HOT,
    PERIOD,
    REPEATS,
    CountedRecorder,
    MomentClock,
    feedforward_of,
    float_table,
    load,
    motion,
    other_motion,
    right_feedforward,
    set_up,
    with_faulty_line,
)

KEEP_ALIVE_US = 50_000
SILENCE_US = 500_000  # as in a motion
TOLD_US = 10_000  # from a STATUS that says FAULT to the frame that says which
STATUS_US = 2_500_000  # two of those that come each second may be lost
LOOK_US = 150_000  # at a board at rest, before the host goes on
HOLD_US = 100_000  # what is armed, before it starts
ARMED_US = 650_000  # the same where ARMED is the state to be struck: longer than limit.link_timeout
SETTLE_US = 650_000  # for a board that cannot be told to stop


class Session:
    """One host on one board, from its first word to its last.

    Attributes:
        cell, live, folder: what strikes, the bench file, and where everything goes.
        bench, clock, board, node: what it talks to.
        recorder: None before it records.
        shown: tick at which the fault was there first.
        armed_us, started_us: when it asked for the motor to hold or to move [µs], last;
            of what is struck in RUNNING, when the motion began.
        error: what it was stopped by.
        trip: number of the board's trip that stopped it.
        second_error: what another program was told.
        done: whether the host has seen its motion end.
        struck: how often a fault of the host's own, or of the board's power, has struck.
        altered: ticks in which a fault of the hardware changed anything.
    """

    def __init__(self, cell: Cell, live: Path, folder: Path) -> None:
        """Open the bench; time stands still."""
        self.cell, self.live, self.folder = cell, live, folder
        self.wrong_from_the_start = cell.fault.way == "feedforward" and cell.state is State.RUNNING
        moment_us = 0 if self.wrong_from_the_start else MOMENTS_US[cell.state]
        self.bench = open_bench(
            with_faulty_line(live, cell, moment_us), around=lambda clock: MomentClock(clock, moment_us, self._strike)
        )
        (self.board,) = self.bench.boards
        self.node = self.board.node
        assert isinstance(self.bench.clock, MomentClock)
        self.clock = self.bench.clock
        self.recorder: CountedRecorder | None = None
        self.taken_at_strike = 0
        self.shown = 0
        self.armed_us = self.started_us = 0
        self.error: JointbenchError | None = None
        self.trip = 0
        self.second_error = ""
        self.done = False
        self.struck = self.altered = 0
        self._pinged_us = -KEEP_ALIVE_US
        self._latched = 0  # the trip that is known already

    def run(self) -> None:
        """Everything; what stopped it is in `error`.

        Raises:
            StateNotReached: the board was not in the state to be struck, or everything was over before.
        """
        self.ask({"outputs": self.node})  # from now on they are noted
        try:
            if self.cell.state is State.RUNNING:
                self._play()
            else:
                self._reach()
                self._go_on()
        except StateNotReached:
            raise
        except JointbenchError as error:
            self.error = error
            self.trip = self.board.fault.trip if self.board.fault else 0
        finally:
            let_files_grow()
        if self.clock.struck_us is None:
            raise StateNotReached(f"{self.cell.id}: all was over before its fault: {self.error or 'nothing was wrong'}")
        with suppress(BenchLost):
            self._finish()

    def outputs(self) -> list[tuple[int, int, int]]:
        """Tick, enable and command [mA] of every tick until now; the motor is off by then, or will not be.

        What struck the hardware ends with it.
        """
        noted = self.ask({"outputs": self.node})["outputs"]
        if noted and noted[-1][1:] != [0, 0]:
            self._pass(SETTLE_US)
            noted += self.ask({"outputs": self.node})["outputs"]
        self.altered = self.ask({"heal": self.node})["altered"]
        return [(tick, enable, command) for tick, enable, command in noted]

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Ask the bench."""
        return self.clock.ask(request)

    @property
    def taken(self) -> int:
        """What the recorder was given so far."""
        return self.recorder.taken if self.recorder else 0

    def close(self) -> None:
        """Leave the bench."""
        self.bench.close()

    def _strike(self) -> None:
        if self.cell.state not in (State.BOOT, self.board.state) and not self.wrong_from_the_start:
            raise StateNotReached(f"{self.cell.id}: the board is {self.board.state!r}; was something wrong before?")
        self.taken_at_strike = self.taken
        strike(self)

    def _play(self) -> None:
        """A motion as any program plays it, or zero force."""
        set_up(self.bench)
        self._begin_run()
        assert self.recorder is not None
        try:
            if self.cell.fault.floats:
                table = float_table(self.bench)
                float_boards(self.bench, [table], lambda q: np.zeros(len(q)), FLOAT_SECONDS, recorder=self.recorder)
            else:
                self.bench.play(motion(self.bench), REPEATS, self.recorder, feedforward=self._feedforward())
        finally:
            self.started_us = 1000 * self.recorder.begins_at
        self.done = True  # playing says so only of a board that was DONE, floating of one that is at rest

    def _feedforward(self) -> Feedforward | None:
        """Feed-forward of the cell's motions: of a right model, of the wrong one that is its fault, or None."""
        fault = self.cell.fault
        if fault.way != "feedforward":
            return right_feedforward(self.bench) if fault.fed else None
        self.struck += 1
        if fault.setting["of"] == OTHER_MOTION:
            return right_feedforward(self.bench, other_motion(self.bench))
        return feedforward_of(self.bench, fault.setting["of"], fault.setting["unexpected_A"])

    def _reach(self) -> None:
        """Bring the board where the fault is to strike it, and wait for that; a board that boots is struck at once."""
        state = self.cell.state
        if state is State.BOOT:
            set_up(self.bench)
            self._record()
            return
        set_up(self.bench)
        if state is not State.DISARMED:  # what is armed has its feed-forward already; others are loaded with it later
            fed = state is State.ARMED or self.cell.fault.fed
            # What is to be DONE by the moment is played once.
            load(self.bench, self._feedforward() if fed else None, 1 if state is State.DONE else 0)
        if state in (State.DONE, State.FAULT):
            self.board.arm()
            self._move_or_trip(state)
        self._record()
        if state is State.ARMED:
            self._arm()
        self._hold(MOMENTS_US[state] - self.clock.now_us())

    def _move_or_trip(self, state: State) -> None:
        if state is State.DONE:
            self.board.start()
            self._hold(round(1e6 * PERIOD) + HOLD_US)
            return
        self.ask({"inject": {"node": self.node, **HOT}})
        with suppress(BoardError):
            self._hold(HOLD_US)
        self._latched = self.board.fault.trip
        self.ask({"heal": self.node})

    def _go_on(self) -> None:
        """What a host does next, until the motion is played."""
        self._hold(ARMED_US if self.board.state is State.ARMED else LOOK_US)
        if self.board.state is State.FAULT:
            self.bench.clear()
            self._latched = 0
        wrong = self.cell.fault.way == "feedforward" and self.board.state in (State.LOADED, State.DONE)
        if wrong or self.board.state is State.DISARMED:
            load(self.bench, self._feedforward())
        if self.board.state in (State.LOADED, State.DONE):
            self._arm()
            self._hold(HOLD_US)
        self.started_us = self.clock.now_us()
        self.board.start()
        self._hold(round(1e6 * PERIOD) + HOLD_US)
        end_us = self.clock.now_us() + STATUS_US
        while self.board.state is not State.DONE and self.clock.now_us() < end_us:  # its STATUS may have been lost
            self._hold(KEEP_ALIVE_US)
        self.done = self.board.state is State.DONE

    def _arm(self) -> None:
        self.armed_us = self.clock.now_us()
        self.board.arm()

    def _begin_run(self) -> None:
        self.recorder = CountedRecorder(self.folder / "run", self.bench.provenance(cell=self.cell.id))

    def _record(self) -> None:
        """Record from now on; a recording begins with a STATUS."""
        self._begin_run()
        assert self.recorder is not None
        self.board.listen(self.recorder.chunk)
        end_us = self.clock.now_us() + STATUS_US
        while self.recorder.tally.waiting(opened=True):
            if self.clock.now_us() > end_us:
                raise BoardSilent(self.board.joint, self.node, "sent no STATUS; its samples could not be counted")
            self._hold(KEEP_ALIVE_US)

    def _hold(self, for_us: int) -> None:
        """Let time pass as a host that is alive and looks."""
        end_us, before = self.clock.now_us() + for_us, self.board.state
        while (left_us := end_us - self.clock.now_us()) > 0:
            if self.clock.now_us() >= self._pinged_us + KEEP_ALIVE_US:
                self._pinged_us = self.clock.now_us()
                self.board.keep_alive()
            self.clock.wait(min(left_us, self._pinged_us + KEEP_ALIVE_US - self.clock.now_us()))
            self._look(before)

    def _look(self, before: State | None) -> None:
        """Whether the board is well, as playing looks at it."""
        board = self.board
        if board.why_lost:
            raise board.lost_error()
        if board.state is State.FAULT and before is not State.FAULT and board.fault is None:
            self._pass(TOLD_US)
        if board.state is State.FAULT and (board.fault.trip if board.fault else self._latched) != self._latched:
            raise board.fault_error()
        if board.state is State.DISARMED and before in (State.ARMED, State.RUNNING):
            raise BoardFault(board.joint, board.node, "has started again")
        if self.clock.now_us() - board.last_frame_us > SILENCE_US:
            raise BoardSilent(board.joint, board.node, f"sent nothing for {SILENCE_US / 1e6:g} s")

    def _finish(self) -> None:
        """Motor off, and the recording closed with the STATUS that the board sends then."""
        if self.board.is_driving and not self.board.why_lost:
            self.bench.stop()
        if self.recorder and self.cell.state is not State.RUNNING:
            end_us = self.clock.now_us() + STATUS_US
            while (
                self.recorder.tally.waiting(opened=False) and not self.board.why_lost and self.clock.now_us() < end_us
            ):
                self._pass(min(KEEP_ALIVE_US, end_us - self.clock.now_us()))
            self.board.listen(None)
            if self.bench.lines[0].rest:
                self.recorder.rest(self.clock.now_us(), self.node, self.bench.lines[0].rest)
            with suppress(JointbenchError):  # a full disk was told already
                self.recorder.close("finished" if self.error is None else f"stopped by {self.error}")
        self._pass(HOLD_US)

    def _pass(self, for_us: int) -> None:
        """Let time pass without a word."""
        end_us = self.clock.now_us() + for_us
        while (left_us := end_us - self.clock.now_us()) > 0:
            self.clock.wait(left_us)


LAST_WORDS = "killed.json"
STALL_US = 1_000_000
ROOM_LEFT = 64  # bytes of the disk that is about to be full
OTHER_MOTION = "another plan"  # whose feed-forward a motion gets
_PART = 8  # knots of a frame that comes too early
BROKE = "broke"  # file that a board's program leaves in its folder when it breaks


def strike(session: Session) -> None:
    """Let the cell's fault begin, now; the lines' faults and the clocks' begin by themselves."""
    session.shown = session.ask({"heal": session.node})["tick"]  # the number of the next tick
    fault = session.cell.fault
    match fault.way:
        case "inject":
            session.shown = session.ask({"inject": {"node": session.node, **fault.setting}})["tick"]
        case "restart":
            session.clock.target.restart(session.node)
            session.struck = 1  # or the bench would have refused
        case "echo" if session.cell.state.name != "BOOT":
            session.bench.boards[0].tell(MessageType.ECHO, count=fault.setting, data=bytes(fault.setting))
        case "host":
            _HOST[fault.setting](session)
        case _:
            pass


def strikes_of(session: Session) -> int:
    """How often the cell's fault has struck, as it is known where it was made; 0 of one that only its name can show."""
    fault = session.cell.fault
    match fault.way:
        case "line":
            return session.board.port.faults.get(fault.line.partition("=")[0], 0)
        case "inject":
            return session.altered
        case "echo":
            return int((session.live.parent / "boards" / session.board.joint / BROKE).exists())
        case _:
            return session.struck


def _be_killed(session: Session) -> None:
    """The process ends here, as its last words know: what it had recorded, and when it was."""
    words = {"taken": session.taken, "time_us": session.clock.now_us(), "shown": session.shown}
    (session.folder / LAST_WORDS).write_text(json.dumps(words), encoding="utf-8")
    os.kill(os.getpid(), signal.SIGKILL)


def _stall(session: Session) -> None:
    """The process does nothing for a while; what comes meanwhile waits."""
    end_us, written = session.clock.now_us() + STALL_US, session.board.port.written
    while (left_us := end_us - session.clock.now_us()) > 0:
        session.clock.target.wait(left_us)
    session.struck = int(session.board.port.written == written)


def _fill_the_disk(session: Session) -> None:
    """The system lets no file of this process grow further, as a full disk does."""
    frames = session.folder / "run" / "frames.bin"
    size = frames.stat().st_size if frames.exists() else 0
    _limit_files(size + ROOM_LEFT)
    session.struck = 1


def _come_second(session: Session) -> None:
    """Another program opens the same board."""
    try:
        open_bench(session.live).close()
        session.second_error = "nothing at all"
    except JointbenchError as error:
        cause = error.__cause__ if isinstance(error.__cause__, PortInUse) else error
        session.second_error = type(cause).__name__
    session.struck = 1


def let_files_grow() -> None:
    """Undo what a full disk did."""
    _limit_files(resource.getrlimit(resource.RLIMIT_FSIZE)[1])


def _limit_files(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


def _begin_another_plan(session: Session) -> None:
    """The knots of another plan begin to come, and no more of them than one frame."""
    knots = [{"position": 100 * k, "velocity": 800} for k in range(_PART)]
    session.board.tell(MessageType.KNOTS, offset=0, count=_PART, knots=knots)
    session.struck = 1


def _begin_another_feedforward(session: Session) -> None:
    """The feed-forward of another plan begins to come, and no more of it than one frame."""
    session.board.tell(MessageType.FEEDFORWARD, offset=0, count=_PART, currents=[-1000] * _PART)
    session.struck = 1


_HOST: dict[str, Callable[[Session], None]] = {
    "killed": _be_killed,
    "stalled": _stall,
    "disk_full": _fill_the_disk,
    "second_client": _come_second,
    "another_plan": _begin_another_plan,
    "another_feedforward": _begin_another_feedforward,
}


def last_words(folder: Path) -> dict[str, int]:
    """What a host that was killed had said."""
    return json.loads((folder / LAST_WORDS).read_text(encoding="utf-8"))
