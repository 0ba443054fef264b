"""Zero force: motors float by tables on their boards, and the host adds the rest, holds joints at rest, and records."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.bench.client import RegisterName
from jointbench.bench.gate import plan_move
from jointbench.bench.playback import (
    FAULT_FRAME_US,
    RESET,
    SILENCE_US,
    await_opening_status,
    finish,
    old_objects_set_aside,
    published,
    written_together,
)
from jointbench.bench.subscribers import Sink
from jointbench.errors import BenchLost, BoardError, BoardFault, BoardSilent, ExcitationError
from jointbench.stopping import SafeInterrupt, why_ended
from jointwire import Frame, MessageType, State
from jointwire.samples import decode_samples

if TYPE_CHECKING:
    from jointbench.bench.bench import Bench
    from jointbench.bench.board import Board

UPDATE_US = 20_000
"""Time between two COMPENSATE to a board [µs]; a board that hears none for float.timeout stops its motor."""

_BRAKING_US = 3_000_000  # for motors to slow down and brakes to engage
_LEAD_TICKS = 250  # from asking for the common start to it
_MILLI = 1e3

LET_GO = (
    "braked and switched its motor off: for float.timeout it heard no COMPENSATE. Look at the line towards it, and for "
    "what kept this computer busy"
)
"""What a board did that is at rest though this host still holds the switch."""

_CHANGED: tuple[RegisterName, ...] = (
    "limit.float", "float.velocity", "float.wall", "float.dead_band", "float.hold", "float.timeout", "float.inertia",
    "servo.friction", "servo.friction_band", "servo.velocity_feedforward", "stream.block",
)  # fmt: skip

RemainingCurrent = Callable[[Array], Array]
"""Motor currents [A], shape (n_motors,), beside those of the tables, by the joints' positions [rad], (n_joints,)."""


@dataclass(frozen=True)
class FloatTable:
    """Table by which a motor floats.

    Attributes:
        positions: of the table's currents, evenly 2^8 to 2^20 motor counts apart, beyond limit.position_*, shape (n,).
        currents_mA: that hold the joint at these positions with the other joints at rest in one pose, shape (n,).
        registers: raw limits and gains of floating (docs/wire.md).
        hold_A: largest current by which the host holds the motor at rest.
        hold_range: distance from the place of rest at which it is reached [rad of the motor].
    """

    positions: NDArray[np.int32]
    currents_mA: NDArray[np.int16]
    registers: Mapping[RegisterName, int]
    hold_A: float = 0.0
    hold_range: float = 1.0


@dataclass
class RestHold:
    """Position hold of motors at rest, so weak that a hand overcomes it without noticing.

    A motor that moves by less than a quarter of its range within 0.3 s is at rest, and is held where it is from then on
    by hold · clip((anchor − position) / range, ±1). It is let go of when it is one and a half times its range away. A
    hand that turns round while it guides the arm does not stay that long, so that it does not feel the hold.

    The boards have a hold of their own, `float.hold`, which they let go of beyond `float.dead_band`. The velocity that
    this compares has a ripple from encoder counts: a dead band above the ripple is felt at each turn of the hand.

    Attributes:
        hold: largest currents [A], shape (n_motors,).
        range: distances at which they are reached [rad of the motor], shape (n_motors,).
        anchor: positions at which the motors are held [rad], NaN for one that is not held; None before the first call.
    """

    hold: Array
    range: Array
    anchor: Array | None = None
    _recent: deque[tuple[float, Array]] = field(default_factory=deque[tuple[float, Array]])

    REST_SECONDS = 0.3
    REST_SHARE = 0.25  # of the range, within which a motor stays while it is at rest
    RELEASE = 1.5  # ranges

    def __call__(self, time: float, motors: Array) -> Array:
        """Return the currents that hold the motors at rest.

        Args:
            time: of the positions [s], ascending from call to call.
            motors: positions [rad of the motor], shape (n_motors,).

        Returns:
            Currents [A], shape (n_motors,).
        """
        if self.anchor is None:  # it begins at rest
            self.anchor = motors.copy()
        self._recent.append((time, motors))
        while len(self._recent) > 1 and time - self._recent[1][0] >= self.REST_SECONDS:
            self._recent.popleft()
        travel = np.ptp([positions for _, positions in self._recent], axis=0)
        at_rest = (travel < self.REST_SHARE * self.range) & (time - self._recent[0][0] >= self.REST_SECONDS)
        away = np.abs(np.nan_to_num(motors - self.anchor)) > self.RELEASE * self.range
        anchor = np.where(away, np.nan, self.anchor)
        self.anchor = np.where(np.isnan(anchor) & at_rest, motors, anchor)
        return self.hold * np.clip(np.nan_to_num(self.anchor - motors) / self.range, -1.0, 1.0)


def float_boards(
    bench: Bench,
    tables: Sequence[FloatTable | None],
    remaining: RemainingCurrent,
    seconds: float,
    *,
    recorder: Sink | None = None,
    is_held: Callable[[], bool] = lambda: True,
    on_update: Callable[[Array], None] | None = None,
) -> None:
    """Let the motors of a bench float by hand.

    Each board compensates its own motor at 1 kHz by its table, friction and inertia. Every 20 ms the host adds what
    depends on the other joints, and holds joints that are at rest. When the time is over or `is_held` says no, the host
    says no more: each board slows its motor down and switches it off, as it does when the host or the link fails.
    Registers are then as before.

    Args:
        bench: connected and configured.
        tables: of each motor; None: it is not armed.
        remaining: motor currents that the tables do not contain.
        seconds: how long the motors float at most.
        recorder: records everything received; it is closed afterwards.
        is_held: whether somebody holds the dead-man's switch.
        on_update: called with the joints' positions [rad] at each update.

    Raises:
        BoardFault: a board tripped, started again, or heard nothing from this host for float.timeout.
        BoardRefused: a board refused a table, to arm, or to start.
        BoardLost, BoardSilent: a board is gone, or says nothing any more.
        ExcitationError: the robot stands on a foot, and would fall; or a joint stands where the gate lets none move.
    """
    outcome = "finished"
    floats = [(k, board) for k, board in enumerate(bench.boards) if tables[k] is not None]
    before = {board.node: dict(board.facts.registers) for board in bench.boards if board.facts}
    with SafeInterrupt(bench.check_stop) as interrupt, published(bench, recorder), old_objects_set_aside():
        try:
            if bench.foot_boards:
                raise ExcitationError(f"{bench.robot.name!r} stands on its feet and would fall if its joints floated")
            _check_where_it_stands(bench)
            positions = _load(bench, tables, recorder)
            interrupt.check()
            _start(bench, floats, recorder)
            hold = RestHold(
                np.array([0.0 if table is None else table.hold_A for table in tables]),
                np.array([1.0 if table is None else table.hold_range for table in tables]),
            )
            updates = _Updates(bench, floats, positions, remaining, hold, interrupt, on_update)
            with written_together(recorder):
                updates.run(seconds, is_held, recorder)
                _await_rest(bench, floats, interrupt)
            if recorder:
                recorder.event(bench.clock.now_us(), "done")
        except BaseException as error:
            outcome = f"stopped by {why_ended(error)}"
            raise
        finally:
            finish(bench, recorder, outcome)
            _restore(bench, before)


def _check_where_it_stands(bench: Bench) -> None:
    """Ask the gate for a motion that stays where the arm is: within all limits that hold now, and held by its motors.

    Raises:
        ExcitationError: a joint stands outside its window, or its weight takes more than is allowed.
    """
    stands = bench.positions()
    step = bench.facts[0].tick_period * bench.facts[0].knot_ticks
    bench.gate(stands).check(plan_move(bench.robot, stands, stands, step))


def _load(bench: Bench, tables: Sequence[FloatTable | None], recorder: Sink | None) -> dict[int, int]:
    """Upload the tables, begin to listen, and return where positions will be noted, by node [encoder counts]."""
    positions: dict[int, int] = {}
    for board in bench.all_boards:
        if board.state is State.FAULT:
            raise board.fault_error()
    for board, table in zip(bench.boards, tables, strict=True):
        if table is not None:
            for name, raw in table.registers.items():
                board.write_register(name, raw)
            knots = np.stack([table.positions, np.zeros_like(table.positions)], axis=1)
            board.upload(knots, 0, table.currents_mA)
    for board, facts in zip(bench.boards, bench.facts, strict=True):
        board.on_data = _noting(positions, board.node, facts.position_channel)
    if recorder:
        for board in bench.all_boards:
            board.listen(recorder.chunk)
        recorder.event(bench.clock.now_us(), "loaded", floats=True)
        await_opening_status(bench, recorder)
    for board, table in zip(bench.boards, tables, strict=True):
        if table is None:
            board.write_register("stream.always", 1)
    return positions


def _noting(positions: dict[int, int], node: int, channel: str) -> Callable[[Frame], None]:
    def note(frame: Frame) -> None:
        column = decode_samples(frame).columns.get(channel)
        if column is not None and len(column):
            positions[node] = int(column[-1])

    return note


def _start(bench: Bench, floats: Sequence[tuple[int, Board]], recorder: Sink | None) -> None:
    for _, board in floats:
        board.arm()
    started: list[tuple[Board, int]] = []
    for _, board in floats:  # both motors of a chip in the same tick of its own
        own = next((tick for other, tick in started if other.is_same_chip(board)), None)
        started.append((board, board.ping().tick + _LEAD_TICKS if own is None else own))
    for board, tick in started:
        board.start(tick)
        if recorder:
            recorder.event(bench.clock.now_us(), "start", node=board.node, at_tick=tick)


@dataclass
class _Updates:
    """Sends each floating motor what its table does not contain, again and again."""

    bench: Bench
    floats: Sequence[tuple[int, Board]]
    positions: Mapping[int, int]
    remaining: RemainingCurrent
    hold: RestHold
    interrupt: SafeInterrupt
    on_update: Callable[[Array], None] | None
    nonce: int = 0

    def run(self, seconds: float, is_held: Callable[[], bool], recorder: Sink | None) -> None:
        """Send until the time is over, or nobody holds the switch."""
        clock = self.bench.clock
        end_us = clock.now_us() + round(1e6 * seconds)
        while clock.now_us() < end_us and is_held():
            self.interrupt.check()
            _check(self.bench, [board for _, board in self.floats])
            if len(self.positions) == len(self.bench.boards):
                self._send()
            next_us = clock.now_us() + UPDATE_US
            while (left_us := next_us - clock.now_us()) > 0:
                clock.wait(left_us, left_us)
                if recorder:
                    recorder.flush()

    def _send(self) -> None:
        bench = self.bench
        counts = np.array([facts.position_counts for facts in bench.facts]) / (2.0 * np.pi)
        motors = np.array([self.positions[board.node] for board in bench.boards]) / counts
        q = np.linalg.solve(bench.robot.transmission_matrix, motors).astype(np.float64)
        current = self.remaining(q) + self.hold(1e-6 * bench.clock.now_us(), motors)
        self.nonce = (self.nonce + 1) & 0xFFFFFFFF
        for k, board in self.floats:
            most = board.facts.registers["limit.float"] if board.facts else 0
            raw = int(np.clip(round(_MILLI * float(current[k])), -most, most))
            board.tell(MessageType.COMPENSATE, nonce=self.nonce, current=raw)
        if self.on_update:
            self.on_update(q)


def _check(bench: Bench, floating: Sequence[Board] = ()) -> None:
    """Raise what is wrong with a board, such as one of those that should float and is at rest.

    Raises:
        BoardFault: a board tripped, started again, or has let go of its motor.
        BoardLost, BoardSilent: a board is gone, or says nothing any more.
    """
    for board in bench.all_boards:
        if board.why_lost:
            raise board.lost_error()
        if board.state is State.FAULT:
            if board.fault is None:  # STATUS came, the FAULT frame with the reason follows it
                bench.clock.wait(FAULT_FRAME_US)
            raise board.fault_error()
        if board in floating and not board.is_driving:
            raise BoardFault(board.joint, board.node, RESET if board.state is State.DISARMED else LET_GO)
        if bench.clock.now_us() - board.last_frame_us > SILENCE_US:
            raise BoardSilent(board.joint, board.node, f"sent nothing for {SILENCE_US / 1e6:g} s while it floated")


def _await_rest(bench: Bench, floats: Sequence[tuple[int, Board]], interrupt: SafeInterrupt) -> None:
    """Wait until each board has slowed its motor down and switched it off."""
    end_us = bench.clock.now_us() + _BRAKING_US
    while any(board.is_driving for _, board in floats) and bench.clock.now_us() < end_us:
        interrupt.check()
        _check(bench)
        for _, board in floats:
            board.keep_alive()
        bench.clock.wait(UPDATE_US)


def _restore(bench: Bench, before: Mapping[int, Mapping[str, int]]) -> None:
    """Set registers back that floating changed; a board in FAULT keeps them until it is configured."""
    for board in bench.boards:
        registers = before.get(board.node)
        if registers is None or board.facts is None or board.why_lost:
            continue
        for name in _CHANGED:
            if board.facts.registers[name] != registers[name]:
                with suppress(BoardError, BenchLost):
                    board.write_register(name, registers[name])
