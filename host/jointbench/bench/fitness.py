"""Fitness of boards to be moved: each is listened to while every motor is off, and judged by what it measures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.bench.bench_checks import check_board, check_feet
from jointbench.bench.board import Board
from jointbench.bench.clock import Clock
from jointbench.bench.identity import Facts
from jointbench.bench.ledger import BoardLedger
from jointbench.bench.settings import JointSettings
from jointbench.bench.sync import Exchange, board_clock
from jointbench.bench.tally import BoardTally
from jointbench.errors import BenchLost, BoardError, BoardSilent
from jointbench.model import Robot
from jointwire import CHANNEL_BY_NAME, Chunk, Frame, MessageType, ResetCause, State, stack_samples
from jointwire.bodies import Status

_STATUS_US = 2_500_000  # boards send one each second; two may be lost
_PAUSE_US = 40_000  # between two PINGs to a board: far more often than crystals change
SLOWEST_TRIP = 0.1  # [s]; the link's time-out is half a second, and PINGs come four times in it
MOST_LOST = 0.001  # of samples, as in a valid run
CURRENT_AT_REST = 0.03  # of the drive's limit; the firmware takes no zero that is farther off than a tenth of the range
ENCODERS_APART = 0.06  # [rad] at the joint: where a servo would trip for not following
MOVED = 0.05  # [rad]; a joint that was turned by hand so far shows whether its encoders count the same way
COUNTS_NOT = 0.1  # of what the link has turned; a motor encoder that shows less does not count
LEAST_SUPPLY = 1.0  # [V]; below it the motor's supply is off
COLDEST = -25.0  # [degC]; a sensor that is cut off shows less
ON_ITS_STOP = 0.02  # [rad] beyond its window
_CELSIUS = 273.15


@dataclass(frozen=True, eq=False)
class Observation:
    """Samples, exchanges and ledger of one board that was listened to.

    Attributes:
        ledger: what it sent, and what of it came.
        exchanges: answered PINGs.
        stamps: ticks and the board's clock exactly at them.
        columns: raw samples of each channel.
        status: its newest counters, None where no STATUS came.
    """

    ledger: BoardLedger
    exchanges: tuple[Exchange, ...]
    stamps: tuple[tuple[int, int], ...]
    columns: dict[str, NDArray[np.int32]]
    status: Status | None


def listen(boards: Sequence[Board], clock: Clock, seconds: float) -> dict[str, Observation]:
    """Let greeted boards stream for a while; those that share a line one after the other, as it carries one for sure.

    Args:
        boards: with this host's schema, and with no motor that may be driven.
        clock: the target's time.
        seconds: of the target's time, for the boards of a round.

    Returns:
        What each board said, by joint; a board that is lost meanwhile is left out.

    Raises:
        BenchLost: the virtual bench has ended.
    """
    ports = dict.fromkeys(board.port for board in boards)
    lines = ([board for board in boards if board.port is port] for port in ports)
    observed: dict[str, Observation] = {}
    for turn in zip_longest(*lines):
        observed |= _listen_together([board for board in turn if board is not None], clock, seconds)
    return {board.joint: observed[board.joint] for board in boards if board.joint in observed}


class _Listener:
    """Takes what comes from one board."""

    def __init__(self, board: Board) -> None:
        self.board = board
        self.tally = BoardTally()
        self.exchanges: list[Exchange] = []
        self.samples: list[Frame] = []
        self.statuses: list[Frame] = []
        self.was_on = int(board.facts.registers["stream.always"]) if board.facts else 0
        board.listen(self.take)

    def take(self, time_us: int, node: int, chunk: Chunk) -> None:
        frame = chunk.content
        if not isinstance(frame, Frame):
            self.tally.add_noise()
        elif frame.node == self.board.node and self.tally.add(frame):
            if frame.type is MessageType.DATA:
                self.samples.append(frame)
            elif frame.type is MessageType.STATUS:
                self.statuses.append(frame)

    def observed(self) -> Observation:
        return Observation(
            self.tally.ledger(self.board.node, self.board.joint),
            tuple(self.exchanges),
            tuple((frame.body.tick, frame.time_us) for frame in self.statuses),
            stack_samples(self.samples) if self.samples else {},
            self.statuses[-1].body if self.statuses else None,
        )


def _listen_together(boards: Sequence[Board], clock: Clock, seconds: float) -> dict[str, Observation]:
    listeners = [_Listener(board) for board in boards]
    try:
        _stream(listeners, 0)
        _wait(listeners, clock, "opened")
        _stream(listeners, 1)
        end_us = clock.now_us() + round(1e6 * seconds)
        while clock.now_us() < end_us:
            for listener in listeners:
                with suppress(BoardError):
                    listener.exchanges.append(listener.board.ping())
            pause_us = min(clock.now_us() + _PAUSE_US, end_us)
            while (remaining_us := pause_us - clock.now_us()) > 0:
                clock.wait(remaining_us)
        _stream(listeners, 0)
        _wait(listeners, clock, "closed")
    finally:
        for listener in listeners:
            listener.board.listen(None)
            with suppress(BoardError, BenchLost):
                listener.board.write_register("stream.always", listener.was_on)
    return {listener.board.joint: listener.observed() for listener in listeners if not listener.board.why_lost}


def _stream(listeners: Sequence[_Listener], on: int) -> None:
    """Let all boards stream, or none; one that does not do it is heard by its silence."""
    for listener in listeners:
        with suppress(BoardError):
            listener.board.write_register("stream.always", on)


def _wait(listeners: Sequence[_Listener], clock: Clock, what: str) -> None:
    """Wait for the STATUS of each board that opens or closes its account."""
    deadline = clock.now_us() + _STATUS_US
    while (
        not all(getattr(listener.tally, what) for listener in listeners)
        and (remaining_us := deadline - clock.now_us()) > 0
    ):
        clock.wait(remaining_us)


@dataclass(frozen=True)
class BoardFinding:
    """One thing that was looked at on one board.

    Attributes:
        joint: whose board.
        name: what was looked at.
        ok: whether it is as it should be.
        figure: the measured value in a few characters.
        text: the same in a sentence, with what to do where it is not ok.
    """

    joint: str
    name: str
    ok: bool
    figure: str
    text: str


class _Reading(NamedTuple):
    """A figure of a board, and where it is not as it should be the reason and what to do."""

    figure: str
    trouble: str = ""


def board_findings(
    board: Board, observed: Observation | None, robot: Robot, joint: int | None, first: Facts | None
) -> list[BoardFinding]:
    """Everything that one board shows by itself.

    Args:
        board: greeted, its registers read where it has this host's schema.
        observed: samples and answers of it; None where it was not listened to.
        robot: whose joints.
        joint: index of the joint it drives, None of a foot.
        first: registers of the bench's first board, which others must agree with.
    """
    checks: dict[str, Callable[[], _Reading]] = {
        "firmware": partial(_firmware, board),
        "state": partial(_state, board),
        "identity": partial(_identity, board, robot, joint, first),
    }
    if observed is not None and board.facts is not None:
        checks |= {"link": partial(_link, observed), "clock": partial(_clock, observed, board.facts)}
        if joint is not None and board.facts.has_motor:
            checks["current"] = partial(_current, board, observed, robot.drives[joint].current_limit)
        if board.facts.has("bus_voltage"):
            checks["supply"] = partial(_supply, board, observed, board.facts)
        if board.facts.has("temperature"):
            checks["temperature"] = partial(_temperature, board, observed, board.facts)
    return [_finding(board.joint, name, check) for name, check in checks.items()]


def position_findings(boards: Sequence[Board], observed: Sequence[Observation], robot: Robot) -> list[BoardFinding]:
    """Check that each joint is within its limits, and that both of its encoders agree.

    Args:
        boards: of all joints, in joint order.
        observed: samples and answers of each board.
        robot: whose joints.
    """
    return [
        _finding(board.joint, "position", partial(_position, boards, observed, robot, joint))
        for joint, board in enumerate(boards)
    ]


def settings_findings(boards: Sequence[Board], robot: Robot, settings: Sequence[JointSettings]) -> list[BoardFinding]:
    """Check that the boards take the limits that a run would set."""
    findings: list[BoardFinding] = []
    for board, joint_settings, drive in zip(boards, settings, robot.drives, strict=True):
        if board.facts is None or not board.facts.has_motor:
            continue
        hard = board.facts.si("hard.current")
        ok = joint_settings.current_limit <= hard
        text = f"the robot's file allows {drive.current_limit:g} A, the board's own bound is {hard:g} A"
        step = "; lower current_limit in the robot's file, or raise hard.current in the board's config.json"
        findings.append(BoardFinding(board.joint, "limits", ok, f"{hard:g} A", text + ("" if ok else step)))
    return findings


def _finding(joint: str, name: str, check: Callable[[], _Reading]) -> BoardFinding:
    try:
        figure, trouble = check()
    except BoardError as error:
        return BoardFinding(joint, name, False, "–", error.text if error.joint == joint else f"not known: {error}")
    return BoardFinding(joint, name, not trouble, figure, f"{figure}: {trouble}" if trouble else figure)


def _firmware(board: Board) -> _Reading:
    board.need_our_schema()
    identity = board.identity
    assert identity is not None  # need_our_schema greets
    if refused := identity.refused_image:
        return _Reading(f"{identity.board} {identity.firmware_version}", refused)
    return _Reading(f"{identity.board} {identity.firmware_version}")


def _state(board: Board) -> _Reading:
    if board.state is State.FAULT:
        raise board.fault_error()
    state = "unknown" if board.state is None else board.state.name
    if board.is_driving:
        return _Reading(
            state, "its motor may be driven; another program left it so: `jointbench run` would stop it first"
        )
    cause = board.identity.reset_cause if board.identity else ""
    if cause == ResetCause.WATCHDOG.name:
        return _Reading(
            state,
            "its watchdog reset it the last time: its program hung, so look at its error output before "
            "you trust it; a new start by power clears this",
        )
    return _Reading(state)


def _identity(board: Board, robot: Robot, joint: int | None, first: Facts | None) -> _Reading:
    if board.facts is None or first is None:
        return _Reading("–", "its registers were not read, so whose board it is is not known")
    if joint is None:
        check_feet([board], [board.facts], first)
    else:
        check_board(robot, joint, board, board.facts, first)
    return _Reading(board.identity.uid if board.identity else "–")


def _link(observed: Observation) -> _Reading:
    trips = np.array([exchange.received_us - exchange.sent_us for exchange in observed.exchanges]) * 1e-6
    if not len(trips):
        return _Reading("no PONG", "it answers no PING while it streams; is the line too slow, or noisy?")
    ledger = observed.ledger
    worst, lost = float(trips.max()), ledger.samples_lost
    figure = f"{1e3 * float(np.median(trips)):.1f} ms, {lost} lost"
    if not ledger.samples_received:
        return _Reading(figure, "it streams no samples when told to; look at its registers stream.channels")
    if lost > MOST_LOST * (lost + ledger.samples_received):
        return _Reading(
            figure,
            f"of {lost + ledger.samples_received} samples; check cable, shield, baud rate and what "
            "else this computer does",
        )
    if not ledger.closes:
        return _Reading(figure, f"{ledger.fault}; check again, and its supply if it stays so")
    if worst > SLOWEST_TRIP:
        return _Reading(
            figure, f"the slowest answer took {1e3 * worst:.0f} ms; the line is busy, or requests are lost on it"
        )
    return _Reading(figure)


def _clock(observed: Observation, facts: Facts) -> _Reading:
    if not observed.exchanges:
        return _Reading("–", "no PING was answered")
    clock = board_clock(observed.exchanges, facts.tick_period * 1e6, observed.stamps)
    figure = f"±{1e-3 * clock.bound_us:.2g} ms"
    status = observed.status
    if observed.ledger.ticks_missed:
        return _Reading(
            figure,
            f"it missed {observed.ledger.ticks_missed} of its ticks while it was listened to; stream fewer "
            "channels, or lengthen board.tick_period",
        )
    if status is not None and status.longest_tick_us > facts.tick_period * 1e6:
        return _Reading(
            figure,
            f"its longest tick of the last second took {status.longest_tick_us} µs of "
            f"{facts.tick_period * 1e6:g}; lengthen board.tick_period",
        )
    return _Reading(figure)


def _current(board: Board, observed: Observation, limit: float) -> _Reading:
    current = _si(board, observed, "motor_current")
    mean, noise = float(current.mean()), float(current.std())
    figure = f"{mean:+.3f} ± {noise:.2g} A"
    if abs(mean) > CURRENT_AT_REST * limit:
        return _Reading(
            figure,
            f"with the motor off, over {CURRENT_AT_REST:.0%} of its {limit:g} A; start the board anew "
            "with the motor at rest, then check the amplifier's reference and its cable",
        )
    return _Reading(figure)


def _supply(board: Board, observed: Observation, facts: Facts) -> _Reading:
    volts = float(_si(board, observed, "bus_voltage").mean())
    low, high = facts.si("limit.supply_min"), facts.si("limit.supply_max")
    if volts < LEAST_SUPPLY:
        return _Reading(f"{volts:.1f} V", "the motor's supply is off; switch it on, or look at its fuse")
    if not low <= volts <= high:
        return _Reading(f"{volts:.1f} V", f"outside its window of {low:g} to {high:g} V; check the supply")
    return _Reading(f"{volts:.1f} V")


def _temperature(board: Board, observed: Observation, facts: Facts) -> _Reading:
    celsius = float(_si(board, observed, "temperature").mean()) - _CELSIUS
    limit = facts.si("limit.temperature") - _CELSIUS
    figure = f"{celsius:.0f} °C"
    if celsius > limit:
        return _Reading(figure, f"over its limit of {limit:.0f} °C; let the motor cool down")
    if celsius < COLDEST:
        return _Reading(figure, "colder than any motor is; is its sensor connected, is temperature.zero right?")
    return _Reading(figure)


def _position(boards: Sequence[Board], observed: Sequence[Observation], robot: Robot, joint: int) -> _Reading:
    board, facts = boards[joint], boards[joint].facts
    assert facts is not None  # a board that was heard was read
    angles = joint_angle(boards, observed, robot, joint)
    low, high = robot.position_limits[joint]
    place = float(angles[-1])
    scale, unit = (np.degrees(1.0), "°") if robot.independent_joints[joint].kind == "revolute" else (1e3, " mm")
    figure = f"{scale * place:+.1f}{unit}"
    if facts.has_motor and facts.has("link_position"):
        link = _resampled(_si(board, observed[joint], "link_position"), len(angles))
        turned = float(np.ptp(link))
        if turned > MOVED and np.ptp(angles) < COUNTS_NOT * turned:
            return _Reading(
                figure,
                f"the link has turned by {scale * turned:.1f}{unit} and the motor encoder does not count; check its "
                "supply and its lines A and B",
            )
        if turned > MOVED and np.corrcoef(angles, link)[0, 1] < 0.0:
            return _Reading(
                figure,
                "motor and link encoder count in opposite directions; swap A and B of the motor's, or "
                "correct the sign of drive.ratio",
            )
        difference = float(np.abs(angles - link).max())
        if difference > ENCODERS_APART:
            return _Reading(
                figure,
                f"motor and link encoder are {scale * difference:.1f}{unit} apart; start the board anew with "
                "the joint at rest, then check drive.ratio and both encoders' counts",
            )
    if not low - ON_ITS_STOP <= place <= high + ON_ITS_STOP:
        return _Reading(
            figure,
            f"outside its window of {scale * low:.1f} to {scale * high:.1f}{unit}; move the joint there by "
            "hand, or calibrate its zero (encoder.link_zero)",
        )
    return _Reading(figure)


def joint_angle(boards: Sequence[Board], observed: Sequence[Observation], robot: Robot, joint: int) -> Array:
    """A joint's positions by the encoders that servos use, those of the motors that move it [rad], shape (n,)."""
    shares = np.linalg.inv(robot.transmission_matrix)[joint]
    motors = [
        share * _si(board, board_observed, board.facts.position_channel if board.facts else "motor_position")
        for share, board, board_observed in zip(shares, boards, observed, strict=True)
        if share
    ]
    n = min(map(len, motors))
    return np.stack([_resampled(motor, n) for motor in motors]).sum(axis=0)


def _resampled(values: Array, n: int) -> Array:
    return values[np.linspace(0, len(values) - 1, n).astype(int)]


def _si(board: Board, observed: Observation, name: str) -> Array:
    """Samples of a channel in its unit; an encoder's as an angle of the shaft it sits on.

    Raises:
        BoardSilent: it sends none.
    """
    channel, facts = CHANNEL_BY_NAME[name], board.facts
    raw = observed.columns.get(name)
    if facts is None or raw is None or not len(raw):
        text = f"it has {name.replace('_', ' ')} (board.channels), but sends none; is it in stream.channels?"
        raise BoardSilent(board.joint, board.node, text)
    if name in ("motor_position", "link_position"):
        return raw.astype(np.float64) * (2.0 * np.pi / facts.si(f"encoder.{name.removesuffix('_position')}_counts"))
    zero = facts.registers[channel.zero] if channel.zero else 0
    return (raw.astype(np.float64) - zero) * facts.si(channel.scale)
