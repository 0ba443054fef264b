"""Playing a trajectory on all boards: load, arm, start together, keep alive, and stop safely whatever happens."""

from __future__ import annotations

import gc
import math
import random
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

from jointbench.bench.client import RegisterName
from jointbench.bench.feedforward import Feedforward
from jointbench.bench.gate import Trajectory, check_repeats, trajectory_knots
from jointbench.bench.identity import Facts
from jointbench.bench.ledger import Ledger
from jointbench.bench.motion_watch import STANDING_SAMPLES, FallWatch, MotionEnded, MotorWatch, Peaks
from jointbench.bench.subscribers import Progress, ProgressCallback, Sink
from jointbench.bench.sync import Exchange, board_clock, common_start_us
from jointbench.errors import BenchLost, BoardError, BoardFault, BoardSilent
from jointbench.stopping import SafeInterrupt, why_ended
from jointwire import Frame, State, Trip

if TYPE_CHECKING:
    from jointbench.bench.bench import Bench
    from jointbench.bench.board import Board


# Of the boards' link time-out, between two PINGs: from half of it on they let go of the motor, so that one may be lost.
KEEP_ALIVE = 0.25
# What is watched while boards move goes by turns: after each sleep a computer takes several times as long for the same,
# so what boards send is gathered. Their samples are in no hurry; how long a PONG was under way is to be known.
TURN_US = 32_000
DITHER = 0.2  # a turn with PINGs is up to this much shorter: the phase of PINGs in the ticks of the boards varies
REPORT_TURNS = 8
PONG_US = 5_000
# From asking for the common start to the start: several round trips to each board, with a retransmission among them.
LEAD_US = 250_000
PINGS = 8  # to each board, to place its ticks on a clock that it does not share
PAUSE_US = 2_000  # before each at most
OVERTIME = 2  # a board that needs twice the time plays, but not this trajectory at this rate
SILENCE_US = 500_000  # a running board sends a block every 64 ms
FAULT_FRAME_US = 10_000
RESET = (
    "has started again in the middle of the motion: its motor is off and nothing is loaded. Look at its supply and at "
    "what its watchdog may have met; connect and configure before you play again"
)
STANDING_US = 3_000_000  # for the samples that tell whether a robot stands, each 64 ticks at least
# Boards send STATUS each second, and at once when they stop; two may be lost.
STATUS_WAIT_US = 2_500_000
STATUS_LOOK_US = 100_000
_OFF_WITHOUT: tuple[RegisterName, ...] = ("limit.feedforward", "limit.unexpected")
_FEEDFORWARD_LIMITS: tuple[RegisterName, ...] = ("limit.feedforward", "limit.following", "limit.unexpected")


def play(
    bench: Bench,
    trajectory: Trajectory,
    repeats: int,
    recorder: Sink | None,
    progress: ProgressCallback | None,
    falls: FallWatch | None = None,
    feedforward: Feedforward | None = None,
    watcher: MotorWatch | None = None,
) -> Ledger | None:
    """Play a trajectory; see Bench.play.

    With a watcher only the motor that it names is armed, and nothing but its board's limits is asked about the motion.
    """
    outcome = "finished"
    before = {board.node: board.facts.registers for board in bench.boards if board.facts} if feedforward else {}
    with SafeInterrupt(bench.check_stop) as interrupt, published(bench, recorder), old_objects_set_aside():
        try:
            playback = _Playback(bench, recorder, progress, interrupt, falls, watcher)
            playback.load(trajectory, repeats, feedforward)
            playback.stand()
            playback.start()
            playback.watch()
        except MotionEnded as ended:
            outcome = f"ended: {ended}"
        except BaseException as error:
            outcome = f"stopped by {why_ended(error)}"
            raise
        finally:
            finish(bench, recorder, outcome)
            _restore(bench, before)
    return recorder.tally.ledger() if recorder else None


@contextmanager
def published(bench: Bench, recorder: Sink | None) -> Iterator[None]:
    """Publish that a motion goes on; a stop that is asked for when it has nothing left to do still lets none follow."""
    bench.publish("motion", run=str(recorder.path) if recorder else None)
    try:
        yield
        bench.check_stop()
    finally:
        bench.publish("rest")


def keep_alive_us(facts: Iterable[Facts]) -> int:
    """Longest time between two PINGs to boards with these registers in a motion [µs]."""
    return round(1e6 * KEEP_ALIVE * min(board_facts.si("limit.link_timeout") for board_facts in facts))


@contextmanager
def old_objects_set_aside() -> Iterator[None]:
    """Keep the garbage collector off everything that is there already: looking it all through takes it 50 ms."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@contextmanager
def written_together(recorder: Sink | None) -> Iterator[None]:
    """Have what arrives in a wait written after it, at once."""
    if recorder is None:
        yield
        return
    recorder.holds = True
    try:
        yield
    finally:
        recorder.holds = False
        recorder.flush()


def finish(bench: Bench, recorder: Sink | None, outcome: str) -> None:
    """Motors off, last frames in, recording closed; a second error must not keep the first from any of it."""
    try:
        if any(board.is_driving for board in bench.all_boards):
            unconfirmed = bench.stop()
            if recorder:
                recorder.event(bench.clock.now_us(), "stopped", reason=outcome, unconfirmed=unconfirmed)
        _end_measuring(bench)
        if recorder:
            _await_status(bench, recorder, opened=False)
    finally:
        for board in bench.all_boards:
            board.listen(None)
            board.on_data = None
        if recorder:
            for line in bench.lines:
                if line.rest:
                    recorder.rest(bench.clock.now_us(), line.speaker, line.rest)
                if line.port.faults:
                    recorder.event(bench.clock.now_us(), "faults", nodes=line.nodes, counts=line.port.faults)
            recorder.close(outcome)


def _restore(bench: Bench, before: Mapping[int, Mapping[str, int]]) -> None:
    """Set limits back that a motion with feed-forward changed; a board in FAULT keeps its tighter ones until CLEAR."""
    for board in bench.boards:
        registers = before.get(board.node)
        if registers is None or not board.has_motor or board.facts is None or board.why_lost:
            continue
        for name in _FEEDFORWARD_LIMITS:
            if board.facts.registers[name] != registers[name]:
                with suppress(BoardError, BenchLost):
                    board.write_register(name, registers[name])


def _end_measuring(bench: Bench) -> None:
    """Have the boards that only measured stream no more, as those that drive do by themselves; one may be gone."""
    for board in bench.all_boards:
        if board.facts and board.facts.registers["stream.always"] and not board.why_lost:
            with suppress(BoardError, BenchLost):
                board.write_register("stream.always", 0)


def await_opening_status(bench: Bench, recorder: Sink) -> None:
    """Wait for the STATUS from which each board's samples are counted.

    Raises:
        BoardLost, BoardSilent: a board sent none.
    """
    for node in _await_status(bench, recorder, opened=True):
        board = next(board for board in bench.all_boards if board.node == node)
        if board.why_lost:
            raise board.lost_error()
        raise BoardSilent(
            board.joint, node, f"sent no STATUS in {STATUS_WAIT_US / 1e6:g} s; its samples could not be counted"
        )


def _await_status(bench: Bench, recorder: Sink, opened: bool) -> list[int]:
    """Wait for the STATUS that opens or closes each board's count; returns the nodes that sent none."""
    lost = {board.node for board in bench.all_boards if board.why_lost}
    deadline = bench.clock.now_us() + STATUS_WAIT_US
    while set(recorder.tally.waiting(opened)) - lost and (remaining_us := deadline - bench.clock.now_us()) > 0:
        bench.clock.wait(min(remaining_us, STATUS_LOOK_US))
        lost = {board.node for board in bench.all_boards if board.why_lost}
    return list(recorder.tally.waiting(opened))


@dataclass
class _Playback:
    bench: Bench
    recorder: Sink | None
    progress: ProgressCallback | None
    interrupt: SafeInterrupt
    falls: FallWatch | None = None
    watcher: MotorWatch | None = None
    duration_us: int = 0
    armed_us: int = 0
    start_us: int = 0
    pinged_us: int | None = None
    dither: random.Random = field(default_factory=lambda: random.Random(0))
    samples: int = 0
    peaks: Peaks | None = None

    def __post_init__(self) -> None:
        """Choose the boards that drive."""
        only = self.watcher.joint if self.watcher else None
        self.drivers = [board for board in self.bench.boards if board.has_motor and only in (None, board.joint)]

    def load(self, trajectory: Trajectory, repeats: int, feedforward: Feedforward | None = None) -> None:
        """Everything that can be done while the motors are off."""
        bench, recorder = self.bench, self.recorder
        check_repeats(repeats)
        if self.watcher is None:
            bench.gate().check(trajectory)
        knots = trajectory_knots(trajectory, bench.robot, bench.facts)
        for board in bench.all_boards:
            if board.state is State.FAULT:
                raise board.fault_error()
        fed = feedforward.for_boards(bench.robot, bench.facts, knots.shape[1]) if feedforward else None
        for index, (board, board_knots) in enumerate(zip(bench.boards, knots, strict=True)):
            if board not in self.drivers:
                continue
            if fed:
                for name, raw in fed[index].registers.items():
                    board.write_register(name, raw)
                board.upload(board_knots, repeats, fed[index].currents_mA)
            else:
                for name in _OFF_WITHOUT:
                    if board.facts and board.facts.registers[name]:  # it was in FAULT when it should go
                        board.write_register(name, 0)
                board.upload(board_knots, repeats)
            self.interrupt.check()
        if recorder:
            for board in bench.all_boards:
                board.listen(recorder.chunk)
            self.event("loaded", knots=knots.shape[1], repeats=repeats)
            if feedforward:
                self.event("watch", text=feedforward.watch_text(bench.robot.joint_names))
            for board, sent in zip(bench.boards, fed or (), strict=bool(fed)):
                if board in self.drivers:  # no channel has it: current_command is the sum of it and the servo's
                    currents = sent.currents_mA.tolist()
                    self.event("feedforward", node=board.node, currents_mA=currents, registers=sent.registers)
            await_opening_status(bench, recorder)
        tick_us = bench.facts[0].tick_period * 1e6
        self.duration_us = round((knots.shape[1] - 1) * bench.facts[0].knot_ticks * repeats * tick_us)

    def stand(self) -> None:
        """See that a robot whose foot is watched stands on it, while the motors are off."""
        if self.falls is None:
            return
        clock, board = self.bench.clock, self.falls.board
        board.on_data = self.falls.add
        board.write_register("stream.always", 1)
        deadline = clock.now_us() + STANDING_US
        while self.falls.heard < STANDING_SAMPLES and (remaining_us := deadline - clock.now_us()) > 0:
            clock.wait(remaining_us)
            self.interrupt.check()
        if self.falls.heard < STANDING_SAMPLES:
            raise BoardSilent(board.joint, board.node, "answers, but streams no samples when told to")
        self.falls.begin()

    def start(self) -> None:
        """Arm all boards that drive and start them at the same moment, while those that only measure stream already."""
        bench, tick_us = self.bench, self.bench.facts[0].tick_period * 1e6
        if self.progress:
            self.peaks = Peaks(bench.robot, bench.facts)
        if self.progress or self.watcher:
            for index, board in enumerate(bench.all_boards):
                board.on_data = partial(self._note, index)
        exchanges = self._exchanges(1 if bench.clock.common_ticks else PINGS)
        for board in bench.all_boards:
            self.interrupt.check()
            self._keep_alive()
            if board in self.drivers:
                board.arm()
                self.event("armed", node=board.node)
            else:
                board.write_register("stream.always", 1)
        now_us = self.armed_us = bench.clock.now_us()
        # On a shared line each START may wait for others' turns; few wait for more than a quarter of the longest time.
        lead_us = LEAD_US + sum(board.line.patience_us for board in bench.all_boards) // 4
        lead_us += self._longest_us("brake.release_time")  # no motion before the last brake is open
        self.start_us = now_us + lead_us
        if bench.clock.common_ticks:
            newest = max(exchange.tick + round((now_us - exchange.received_us) / tick_us) for (exchange,) in exchanges)
            ticks = [newest + round(lead_us / tick_us)] * len(exchanges)
        else:
            clocks = [board_clock(board_exchanges, tick_us) for board_exchanges in exchanges]
            self.start_us = common_start_us(clocks, self.start_us)
            ticks = [clock.tick_at(self.start_us) for clock in clocks]
            # Both motors of a board count its very ticks, whose place two clocks would not know alike.
            ticks = [ticks[self._same_chip(board)[0]] for board in bench.all_boards]
        for board, tick in zip(bench.all_boards, ticks, strict=True):
            if board not in self.drivers:
                continue
            self._keep_alive()
            tick += tick & 0xFFFFFFFF == 0  # 0 would mean at once
            board.start(tick)
            self.event("start", node=board.node, at_tick=tick)
        bench.publish("scheduled", start_us=self.start_us, duration_us=self.duration_us)

    def _longest_us(self, register: str) -> int:
        return round(1e6 * max(board_facts.si(register) for board_facts in self.bench.facts))

    def watch(self) -> None:
        """Keep the boards alive until all that drive are DONE, and notice soon when one is not well."""
        deadline = self.start_us + OVERTIME * self.duration_us + STATUS_WAIT_US
        deadline += self._longest_us("brake.engage_time")
        with written_together(self.recorder):
            self._watch(deadline)
        self._report(self.bench.clock.now_us())
        self.event("done")

    def _watch(self, deadline: int) -> None:
        alive_us = keep_alive_us(self.bench.facts)
        ping_turns = math.ceil(alive_us / TURN_US)
        turn_us = alive_us // ping_turns
        for turn in count():
            if self._states() <= {State.DONE}:
                break
            now_us = self.bench.clock.now_us()
            end_us = now_us + turn_us
            self._check(now_us, deadline)
            self.interrupt.check()
            if turn % REPORT_TURNS == 0:
                self._report(now_us)
            is_pinged = turn % ping_turns == 0
            if is_pinged:
                self._ping()
                end_us -= self.dither.randrange(round(DITHER * turn_us))
            self._listen(end_us, timed_us=PONG_US * is_pinged)

    def _states(self) -> set[State | None]:
        return {board.state for board in self.drivers}

    def _listen(self, end_us: int, timed_us: int) -> None:
        """Take what comes until then, or until a board changes its state."""
        states = self._states()
        while (left_us := end_us - self.bench.clock.now_us()) > 0 and self._states() == states:
            self.bench.clock.wait(left_us, left_us, timed_us)
            if self.recorder:
                self.recorder.flush()

    def _keep_alive(self) -> None:
        """Let every board hear of the host, when that is due."""
        now_us = self.bench.clock.now_us()
        if self.pinged_us is None or now_us >= self.pinged_us + keep_alive_us(self.bench.facts):
            self._ping()

    def _ping(self) -> None:
        self.pinged_us = self.bench.clock.now_us()
        for board in self.bench.all_boards:
            board.keep_alive()

    def event(self, name: str, **fields: Any) -> None:
        """Record an event, where anybody records."""
        if self.recorder:
            self.recorder.event(self.bench.clock.now_us(), name, **fields)

    def _exchanges(self, rounds: int) -> list[list[Exchange]]:
        """PINGs and PONGs with each board, at no fixed phase of its ticks when there are several."""
        exchanges: list[list[Exchange]] = [[] for _ in self.bench.all_boards]
        for index in range(rounds):
            for board_exchanges, board in zip(exchanges, self.bench.all_boards, strict=True):
                if index:
                    self.bench.clock.wait(self.dither.randrange(PAUSE_US))
                board_exchanges.append(board.ping())
        return exchanges

    def _check(self, now_us: int, deadline: int) -> None:
        """Raise what is wrong with a board; of several the cause of the others' trouble."""
        bench = self.bench
        for board in bench.all_boards:
            if board.why_lost:
                self.event("lost", node=board.node, reason=board.why_lost)
                raise board.lost_error()
        if faulty := self._faulty():
            if any(board.fault is None for board in faulty):  # STATUS came, the FAULT frame with the reason follows it
                bench.clock.wait(FAULT_FRAME_US)
            raise self._fault_error()
        if self.falls:
            self.falls.check((now_us - self.start_us) * 1e-6)
        for board in bench.all_boards:
            if now_us - board.last_frame_us > SILENCE_US:
                raise BoardSilent(board.joint, board.node, f"sent nothing for {SILENCE_US / 1e6:g} s while moving")
        if self.watcher:
            self.watcher.check()
        for board in self.drivers:
            if board.state is State.DISARMED:
                raise BoardFault(board.joint, board.node, RESET)
            if now_us > deadline and board.state is not State.DONE:
                raise BoardSilent(board.joint, board.node, "has not finished long after its trajectory's end")

    def _faulty(self) -> list[Board]:
        return [board for board in self.bench.all_boards if board.state is State.FAULT]

    def _fault_error(self) -> Exception:
        """Return the error of the board that tripped; where one followed the other motor of its board, that one's."""
        for board in (faulty := self._faulty()):
            self.event("fault", node=board.node, text=str(board.fault_error()))
        followers = [board for board in faulty if board.fault and board.fault.trip == Trip.PARTNER]
        if causes := [board for board in faulty if board not in followers]:
            return causes[0].fault_error()
        follower = followers[0]
        unconfirmed = self.bench.stop()  # all others move still, and the partner has its word to say in this
        both = [self.bench.all_boards[index] for index in self._same_chip(follower)]
        partner = next((board for board in both if board is not follower), follower)
        if partner.joint not in unconfirmed:
            return (partner if partner.state is State.FAULT else follower).fault_error()
        text = f"says nothing any more, and {follower.joint}, whose motor the same board drives, stopped with it"
        return BoardSilent(partner.joint, partner.node, text)

    def _same_chip(self, board: Board) -> list[int]:
        """Indices of the boards that are nodes of one with this."""
        return [index for index, each in enumerate(self.bench.all_boards) if each.is_same_chip(board)]

    def _note(self, index: int, frame: Frame) -> None:
        self.samples += frame.body.count
        if self.falls and self.bench.all_boards[index] is self.falls.board:
            self.falls.add(frame)
        if self.watcher:
            self.watcher.add(index, frame)
        if self.peaks and index < len(self.bench.boards):
            self.peaks.add(index, frame)

    def _report(self, now_us: int) -> None:
        if self.recorder:
            self.bench.publish("received", tally=self.recorder.tally)
        if self.progress is None:
            return
        elapsed = (now_us - self.start_us) * 1e-6
        running = (now_us - self.armed_us) * 1e-6
        self.progress(
            Progress(
                elapsed=min(max(elapsed, 0.0), self.duration_us * 1e-6),
                duration=self.duration_us * 1e-6,
                samples=self.samples,
                rate=self.samples / running if running > 0.0 else 0.0,
                frames_lost=self.recorder.tally.frames_lost if self.recorder else None,
                peak_torque=self.peaks.take() if self.peaks else {},
                sole_margin=self.falls.take_nearest() if self.falls else None,
            )
        )
