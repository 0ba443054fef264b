"""Playing a trajectory on all boards: load, arm, start together, keep alive, and stop safely whatever happens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from jointbench.errors import BoardSilent
from jointbench.link.interrupt import SafeInterrupt
from jointbench.link.knots import Trajectory, trajectory_knots
from jointbench.link.ledger import Ledger
from jointbench.link.sink import Sink
from jointbench.link.sync import Exchange, tick_offset
from jointwire import Frame, State, decode_samples

if TYPE_CHECKING:
    from jointbench.link.bench import Bench

KEEP_ALIVE_US = 100_000  # a fifth of the boards' default link time-out
PROGRESS_US = 250_000
# From asking for the common start to the start: several round trips to each board, with a retransmission among them.
LEAD_US = 250_000
PINGS = 8  # to each board, to place its ticks on a wall clock
OVERTIME = 2  # a board that needs twice the time plays, but not this trajectory at this rate
SILENCE_US = 500_000  # a running board sends a block every 64 ms
FAULT_FRAME_US = 10_000
# Boards send STATUS each second, and at once when they stop; two may be lost.
STATUS_WAIT_US = 2_500_000


@dataclass(frozen=True)
class Progress:
    """How a motion goes.

    Attributes:
        elapsed, duration: of the target's time [s].
        samples: received since the start, of all boards.
        rate: samples received a second of the target's time.
        frames_lost: sequence numbers missing so far, None without a recorder.
        peak_torque: largest motor torque at each joint since the last report, by joint [N·m].
    """

    elapsed: float
    duration: float
    samples: int
    rate: float
    frames_lost: int | None
    peak_torque: dict[str, float]


ProgressCallback = Callable[[Progress], None]


def play(
    bench: Bench,
    trajectory: Trajectory,
    repeats: int,
    recorder: Sink | None,
    progress: ProgressCallback | None,
) -> Ledger | None:
    """Play a trajectory; see Bench.play."""
    outcome = "finished"
    with SafeInterrupt() as interrupt:
        try:
            playback = _Playback(bench, recorder, progress, interrupt)
            playback.load(trajectory, repeats)
            playback.start()
            playback.watch()
        except BaseException as error:
            outcome = f"stopped by {type(error).__name__}: {error}".rstrip(": ")
            raise
        finally:
            _finish(bench, recorder, outcome)
    return recorder.tally.ledger() if recorder else None


def _finish(bench: Bench, recorder: Sink | None, outcome: str) -> None:
    """Motors off, last frames in, recording closed; a second error must not keep the first from any of it."""
    try:
        if any(board.is_driving for board in bench.boards):
            unconfirmed = bench.stop()
            if recorder:
                recorder.event(bench.clock.now_us(), "stopped", reason=outcome, unconfirmed=unconfirmed)
        if recorder:
            _await_status(bench, recorder, opened=False)
    finally:
        for board in bench.boards:
            board.listen(None)
            board.on_data = None
        if recorder:
            recorder.close(outcome)


def _await_status(bench: Bench, recorder: Sink, opened: bool) -> list[int]:
    """Wait for the STATUS that opens or closes each board's count; returns the nodes that sent none."""
    lost = {board.node for board in bench.boards if board.port.lost}
    deadline = bench.clock.now_us() + STATUS_WAIT_US
    while set(recorder.tally.waiting(opened)) - lost and (left := deadline - bench.clock.now_us()) > 0:
        bench.clock.wait(min(left, KEEP_ALIVE_US))
        lost = {board.node for board in bench.boards if board.port.lost}
    return list(recorder.tally.waiting(opened))


@dataclass
class _Playback:
    bench: Bench
    recorder: Sink | None
    progress: ProgressCallback | None
    interrupt: SafeInterrupt
    duration_us: int = 0
    start_us: int = 0
    samples: int = 0
    peaks: dict[str, float] = field(default_factory=dict[str, float])

    def load(self, trajectory: Trajectory, repeats: int) -> None:
        """Everything that can be done while the motors are off."""
        bench, recorder = self.bench, self.recorder
        knots = trajectory_knots(trajectory, bench.robot, bench.facts)
        for index, board in enumerate(bench.boards):
            if board.state is State.FAULT:
                raise board.fault_error()
            board.upload(knots[index], repeats)
            self.interrupt.check()
        if recorder:
            for board in bench.boards:
                board.listen(recorder.chunk)
            self.event("loaded", knots=knots.shape[1], repeats=repeats)
            for node in _await_status(bench, recorder, opened=True):
                board = next(board for board in bench.boards if board.node == node)
                if board.port.lost:
                    raise board.lost_error()
                raise BoardSilent(
                    board.joint, node, f"sent no STATUS in {STATUS_WAIT_US / 1e6:g} s; its samples could not be counted"
                )
        tick_us = bench.facts[0].tick_period * 1e6
        self.duration_us = round((knots.shape[1] - 1) * bench.facts[0].knot_ticks * repeats * tick_us)

    def start(self) -> None:
        """Arm all boards and start them at the same moment."""
        bench, tick_us = self.bench, self.bench.facts[0].tick_period * 1e6
        for board, facts, drive in zip(bench.boards, bench.facts, bench.robot.drives, strict=True):
            scale = facts.si("current.scale") * abs(drive.torque_per_current)
            board.on_data = partial(self._note, board.joint, scale, facts.si("current.zero"))
        rounds = 1 if bench.clock.common_ticks else PINGS
        exchanges: list[list[Exchange]] = [[] for _ in bench.boards]
        for _ in range(rounds):
            for each, board in zip(exchanges, bench.boards, strict=True):
                each.append(board.ping())
        for board in bench.boards:
            self.interrupt.check()
            board.arm()
            self.event("armed", node=board.node)
        now_us = bench.clock.now_us()
        self.start_us = now_us + LEAD_US
        if bench.clock.common_ticks:
            newest = max(exchange.tick + round((now_us - exchange.received_us) / tick_us) for (exchange,) in exchanges)
            ticks = [newest + round(LEAD_US / tick_us)] * len(bench.boards)
        else:
            ticks = [tick_offset(each, tick_us).tick_at(self.start_us, tick_us) for each in exchanges]
        for board, tick in zip(bench.boards, ticks, strict=True):
            board.start(tick)
            self.event("start", node=board.node, at_tick=tick)

    def watch(self) -> None:
        """Keep the boards alive until all are DONE, and notice at once when one is not well."""
        bench, clock = self.bench, self.bench.clock
        deadline = self.start_us + OVERTIME * self.duration_us + STATUS_WAIT_US
        next_ping = next_report = clock.now_us()
        while any(board.state is not State.DONE for board in bench.boards):
            now_us = clock.now_us()
            if now_us >= next_ping:
                for board in bench.boards:
                    board.keep_alive()
                next_ping = now_us + KEEP_ALIVE_US
            if now_us >= next_report:
                self._report(now_us)
                next_report = now_us + PROGRESS_US
            self.interrupt.check()
            clock.wait(min(next_ping, next_report) - now_us)
            self._check(clock.now_us(), deadline)
        self._report(clock.now_us())
        self.event("done")

    def event(self, name: str, **fields: Any) -> None:
        """Record an event, where anybody records."""
        if self.recorder:
            self.recorder.event(self.bench.clock.now_us(), name, **fields)

    def _check(self, now_us: int, deadline: int) -> None:
        for board in self.bench.boards:
            if board.port.lost:
                self.event("lost", node=board.node, reason=board.port.lost)
                raise board.lost_error()
            if board.state is State.FAULT:
                if board.fault is None:  # STATUS came, the FAULT frame with the reason follows it
                    self.bench.clock.wait(FAULT_FRAME_US)
                self.event("fault", node=board.node, text=str(board.fault_error()))
                raise board.fault_error()
            if board.silent_us > SILENCE_US:
                raise BoardSilent(board.joint, board.node, f"sent nothing for {SILENCE_US / 1e6:g} s while moving")
            if now_us > deadline:
                late = [each.joint for each in self.bench.boards if each.state is not State.DONE]
                if board.joint in late:
                    raise BoardSilent(board.joint, board.node, "has not finished long after its trajectory's end")

    def _note(self, joint: str, scale: float, zero: float, frame: Frame) -> None:
        samples = decode_samples(frame)
        self.samples += len(samples)
        if "motor_current" in (samples.dtype.names or ()) and len(samples):
            peak = float(np.max(np.abs(samples["motor_current"] - zero))) * scale
            self.peaks[joint] = max(self.peaks.get(joint, 0.0), peak)

    def _report(self, now_us: int) -> None:
        if self.progress is None:
            return
        elapsed = (now_us - self.start_us) * 1e-6
        running = elapsed + LEAD_US * 1e-6
        lost = sum(b.frames_lost for b in self.recorder.tally.ledger().boards) if self.recorder else None
        self.progress(
            Progress(
                elapsed=min(max(elapsed, 0.0), self.duration_us * 1e-6),
                duration=self.duration_us * 1e-6,
                samples=self.samples,
                rate=self.samples / running if running > 0.0 else 0.0,
                frames_lost=lost,
                peak_torque=dict(self.peaks),
            )
        )
        self.peaks.clear()
