"""Requests and answers with one board: repeated until answered, and what boards say in codes, in words."""

from __future__ import annotations

import os
import secrets
import struct
from collections.abc import Callable, Mapping
from typing import Any

from serial.tools import list_ports

from jointbench.bench.clock import Clock
from jointbench.bench.line import Line
from jointbench.errors import BoardLost, BoardRefused, BoardSilent
from jointwire import (
    BY_NAME,
    FROZEN,
    REGISTERS,
    Chunk,
    Frame,
    FrameError,
    MessageType,
    Noise,
    Refusal,
    Register,
    State,
    Trip,
    encode_frame,
)

# Of each refusal: why, and what the ACK's value means; the fields are value (the ACK's), the same as a word without
# sign or as a state, and what is allowed.
_REFUSALS: dict[Refusal, str] = {
    Refusal.OK: "accepted",
    Refusal.BAD_LENGTH: "the request has a wrong length ({value} bytes arrived)",
    Refusal.UNKNOWN_MESSAGE: "this firmware does not know the request",
    Refusal.WRONG_STATE: "not allowed in state {state}",
    Refusal.UNKNOWN_REGISTER: "there is no register {value}",
    Refusal.READ_ONLY: "the register is a fact of the board and cannot be written",
    Refusal.OUT_OF_RANGE: "out of range, the nearest it takes is {value}; allowed is {allowed}",
    Refusal.BAD_TOKEN: "the arming token is not that of its last HELLO_ACK; does another program use this board?",
    Refusal.BAD_CRC: "the trajectory arrived damaged; send it again",
    Refusal.INCOMPLETE: "it has only {value} knots so far; send the trajectory from its start",
    Refusal.TOO_LONG: "it can hold {value} only; play a shorter trajectory",
    Refusal.OUTSIDE_LIMITS: "outside the position window or faster than the velocity limit (knot or count {value})",
    Refusal.NOT_AT_START: "the joint is {value} motor counts from the first knot; move_to() the start first",
    Refusal.BAD_CONFIG: "its registers or trajectory are not as this host last read, wrote or loaded them (CRC-32 is "
    "{word:08x}): another program changed them, or the board started again; connect() and configure() anew",
    Refusal.NO_MOTOR: "the board has no motor, as its channels ({value:#x}) say; leave it out of the motion",
    Refusal.PINS: "its pins keep the motor off: {pins}; release the emergency stop, or look after the power stage",
    Refusal.BRAKE: "its brake is still opening, a motion may begin at its tick {value}; start later after arm(), or at "
    "no tick of your own",
    Refusal.FEEDFORWARD: "the feed-forward current of knot {value} is beyond limit.feedforward, of a table beyond "
    "limit.float, which are 0 unless a host allows more; look for a wrong model, sign or torque constant, or raise "
    "the limit",
    Refusal.TABLE: "knot {value} keeps its motor from floating: limit.float is 0 unless a host allows it, each knot "
    "needs a current, and positions must be evenly 2^8 to 2^20 counts apart",
    Refusal.NO_MEMORY: "it has no memory for more requests while a motor is on ({value} since it was armed); stop it, "
    "or ask less often",
    Refusal.NOT_SAVED: "its flash could not be written (error {value} of its file system); is it full, or worn out?",
    Refusal.TOO_LATE: "the start tick has passed, its tick is {value}; is the computer too busy or the link too slow?",
}


# Where the same refusal of another request means something else.
_REFUSALS_OF: dict[tuple[MessageType, Refusal], str] = {
    (MessageType.LOAD, Refusal.OUT_OF_RANGE): "a trajectory has two knots at least",
    (MessageType.LOAD, Refusal.TOO_LONG): "it can be repeated {value} times at most; play it in parts",
    (MessageType.FEEDFORWARD, Refusal.TOO_LONG): "with a feed-forward it can hold {value} knots only; play a shorter "
    "trajectory",
    (MessageType.ARM, Refusal.INCOMPLETE): "knot {value} is outside the limits as they are now; load it anew",
    (MessageType.CONFIRM, Refusal.BAD_CONFIG): "it runs another image than that; flash it again",
    (MessageType.DICT, Refusal.INCOMPLETE): "its schema.bin cannot be read (error {value}); copy its firmware anew",
}
_BY_ID = {register.id: register for register in REGISTERS}
_STATES = frozenset(State)
# Bits of a board's pins, and what each says when it is low.
_PINS = {1: "stop is open", 2: "the power stage reports a fault", 4: "limit_low is reached", 8: "limit_high is reached"}
CLEARING = "clear the fault (`jointbench run --clear`, or bench.clear())"
_OF_PINS = frozenset({Trip.STOP_PIN, Trip.FAULT_PIN, Trip.LIMIT_PIN})
LINE_NAME = "Jointbench line"
"""The line's interface, as the firmware names it (boards/drivers/rp2_usb_line.py)."""
ANSWER_TIMEOUT_US = 100_000
RETRANSMISSIONS = 3
# Of requests that take a board longer than answering: it writes its flash, and may have to erase it first.
_TIMEOUTS_US = {MessageType.SAVE: 1_000_000, MessageType.CONFIRM: 1_000_000}
_SHOWN = 60  # bytes of what came instead of a frame
# 2^32 / golden ratio: times that differ little give numbers that differ much (Knuth, TAOCP 3, sec. 6.4).
_SPREAD = 0x9E3779B1


def refusal_text(refusal: int, value: int, allowed: str = "", request: MessageType | None = None) -> str:
    """A refusal of a request in words, with the number that came with it and what is allowed."""
    if refusal not in _REFUSALS:
        return f"refusal {refusal}, which this release does not know (value {value})"
    of_any = _REFUSALS[Refusal(refusal)]
    text = (_REFUSALS_OF.get((request, Refusal(refusal)), of_any) if request else of_any).format(
        value=value, word=value & 0xFFFFFFFF, state=state_text(value), allowed=allowed or "less", pins=pins_text(value)
    )
    if refusal == Refusal.WRONG_STATE and value == State.FAULT:
        text += f"; first {CLEARING}"
    return text


# Fields of a request that its refusal repeats.
_REQUESTED = {
    MessageType.WRITE: " {name} = {value}",
    MessageType.KNOTS: " from {offset}",
    MessageType.FEEDFORWARD: " from {offset}",
    MessageType.LOAD: " of {count} knots, {repeats} times",
    MessageType.START: " at tick {at_tick}",
}


def request_refusal(kind: MessageType, fields: Mapping[str, Any], refusal: int, value: int) -> str:
    """A request with its fields, and why it is refused, in words."""
    register = _BY_ID[fields["register"]] if kind is MessageType.WRITE else None
    requested = _REQUESTED.get(kind, "").format(**fields, name=register.name if register else "")
    reason = refusal_text(refusal, value, range_text(register) if register else "", kind)
    return f"refused {kind.name}{requested}: {reason}"


def pins_text(pins: int) -> str:
    """Describe the pins of a board that are low."""
    return ", ".join(text for bit, text in _PINS.items() if pins & bit) or "none"


# Of each trip: what happened, the register whose unit and limit it has, what to do.
TRIPS: dict[Trip, tuple[str, str | None, str]] = {
    Trip.NONE: ("no trip", None, ""),
    Trip.OVER_CURRENT: (
        "motor current over its limit", "limit.current", "look for a blocked joint or a motion beyond its torque"
    ),
    Trip.POSITION: (
        "position outside its window", "limit.position_max", "move the joint back by hand, or correct zero or limits"
    ),
    Trip.VELOCITY: ("velocity over its limit", "limit.velocity", "slow the motion down or raise the limit"),
    Trip.FOLLOWING: (
        "joint does not follow its reference", "limit.following", "look for a blocked joint, or stiffen the servo"
    ),
    Trip.LINK_LOSS: (
        "no valid frame from the host for too long", "limit.link_timeout", "check the cable and this computer's load"
    ),
    Trip.INTERNAL: ("the firmware failed", None, "read the board's error output and report it"),
    Trip.I2T: (
        "motor current over what the motor bears for long", "limit.continuous_current",
        "let it cool down; look for a jammed joint, or plan a gentler motion"
    ),
    Trip.ENCODER_JUMP: (
        "motor encoder jumped within a tick", "limit.jump", "check the encoder's cable, shield and supply"
    ),
    Trip.ENCODER_STUCK: (
        "motor encoder stands still though the motor is driven", "limit.stuck_time",
        "check the encoder's cable, then look for a blocked joint"
    ),
    Trip.SUPPLY: ("supply outside its window", "limit.supply_max", "check supply, fuse and braking resistor"),
    Trip.TEMPERATURE: ("motor too hot", "limit.temperature", "let it cool down, or plan a gentler motion"),
    Trip.OVERRUN: (
        "too many ticks missed in a row", "limit.missed_ticks", "stream fewer channels, or lengthen the tick"
    ),
    Trip.COMMAND: (
        "reference outside the position window", "limit.position_max", "plan the motion inside its limits"
    ),
    Trip.PARTNER: (
        "the other motor of its board tripped, was stopped or did not play", None,
        "find out what became of that one"
    ),
    Trip.HARDWARE: (
        "a sensor or drive of the board does not answer, or says what cannot be", None,
        "read on the board's console which, and check its wires and supply"
    ),
    Trip.STOP_PIN: ("the emergency stop is open", None, "release it when nobody is in the robot's reach"),
    Trip.FAULT_PIN: (
        "the power stage reports a fault", None, "look for a short circuit, heat or a low supply at the power stage"
    ),
    Trip.LIMIT_PIN: (
        "a limit switch was reached", None,
        "check zero and limits; from where it stands the motor may only leave the switch"
    ),
    Trip.TWIST: (
        "motor and link encoder disagree by more than the joint can twist", "limit.twist",
        "look for a slipping clutch or a bad encoder, then let the board start again, which finds the joint anew"
    ),
    Trip.UNEXPECTED: (
        "the servo adds more to the motion's feed-forward than its model leaves open", "limit.unexpected",
        "look for what pushes the joint, a payload the model does not have, or friction that grew"
    ),
}  # fmt: skip


def fault_text(trip: int, value: int, limit: int, tick: int) -> str:
    """A FAULT frame in words: what, value, limit, when, and what to do next."""
    what, register, advice = TRIPS[Trip(trip)]
    sizes = f": {si_text(BY_NAME[register], value)}, limit {si_text(BY_NAME[register], limit)}" if register else ""
    if trip == Trip.PARTNER and value:
        sizes = f" ({TRIPS[Trip(value)][0]})"
    if trip in _OF_PINS:
        sizes = f" ({pins_text(value)})"
    next_step = f"{advice[:1].upper()}{advice[1:]}, then {CLEARING} and play again"
    return f"tripped at tick {tick}, {what}{sizes}; its motor is off. {next_step}"


def si_text(register: Register, raw: int) -> str:
    """A raw register value in its unit."""
    unit = f" {register.unit}" if register.unit else ""
    return f"{raw * register.scale:.6g}{unit}"


def range_text(register: Register) -> str:
    """Range of a register, raw and in its unit."""
    low, high = register.minimum, register.maximum
    if register.unit in ("", "count"):
        return f"{low} to {high}"
    return f"{low} to {high} ({si_text(register, low)} to {si_text(register, high)})"


def state_text(state: int) -> str:
    """Name of a state."""
    return State(state).name if state in _STATES else f"{state}"


def line_beside(url: str) -> str | None:
    """Return the port that is the line of the board whose console is at another one.

    Args:
        url: the port, or a link to it, as a bench file names it.

    Returns:
        The line's port; None where `url` is no port on USB, or that of a line, or of a device without one.
    """
    ports = {os.path.realpath(port.device): port for port in list_ports.comports()}
    here = ports.get(os.path.realpath(url))
    if here is None or not here.location or here.interface == LINE_NAME:
        return None
    device = _device(here.location)
    named = (port for port in ports.values() if port.interface == LINE_NAME)
    return next((port.device for port in named if port.location and _device(port.location) == device), None)


def _device(location: str) -> str:
    """USB location of a port's device, without the port's interface: 1-2 of 1-2:1.0."""
    return location.partition(":")[0]


ChunkListener = Callable[[int, int, Chunk], None]
"""Called with the clock's time [µs], the board's node, and what came."""


class Conversation:
    """Everything that goes to and comes from one board.

    Attributes:
        line, node, joint: on which line, with whom.
        last_frame_us: when the last valid frame came.
        listener: called for everything received, unaltered (a recorder), or None.
        on_frame: called with each valid frame of this board; answers True when it has dealt with it, so that it is
            no answer to a request.
        understood: whether the board has this host's schema.
    """

    def __init__(self, line: Line, node: int, joint: str, clock: Clock, on_frame: Callable[[Frame], bool]) -> None:
        """Listen at the line; nothing is sent."""
        self.line = line
        self.node = node
        self.joint = joint
        self.clock = clock
        self.on_frame = on_frame
        self.listener: ChunkListener | None = None
        self.understood = False
        self.last_frame_us: int = clock.now_us()
        self._answers: list[tuple[int, Frame]] | None = None  # None: nobody waits for one
        self._surplus = False  # whether a second answer to the last request may be under way
        self._sequence = _first_sequence(clock)
        self._stray = b""  # the last bytes received that were no frame of this board
        self._bytes = self._frames = 0
        line.join(node, self)

    def frame(self, kind: MessageType, **fields: Any) -> bytes:
        """Build this conversation's next frame."""
        self._sequence = (self._sequence + 1) & 0xFFFF
        return encode_frame(kind, self.node, self._sequence, self.clock.now_us(), **fields)

    def ping_frame(self) -> bytes:
        """Build a PING that carries the time."""
        return self.frame(MessageType.PING, payload=struct.pack("<I", self.clock.now_us() & 0xFFFFFFFF))

    def ask(
        self, kind: MessageType, answer: MessageType, matches: Callable[[Any], bool], **fields: Any
    ) -> tuple[int, Frame]:
        """Send a request until it is answered; its sequence number makes a repetition harmless.

        Args:
            kind: of the request.
            answer: the type its answer has; an ACK of this request is an answer, too.
            matches: whether a frame of that type, by its body, answers this request.
            fields: of the request's body.

        Returns:
            When the answer came [µs], and the answer.

        Raises:
            BoardLost: the port is gone.
            BoardSilent: no answer after all repetitions; says what came instead.
        """
        if self._surplus and answer is not MessageType.ACK:
            self._let_surplus_pass()
        request = self.frame(kind, **fields)
        sequence, received, frames = self._sequence, self._bytes, self._frames
        timeout_us = _TIMEOUTS_US.get(kind, ANSWER_TIMEOUT_US) + self.line.patience_us
        self._answers = []
        try:
            for tries in range(1, RETRANSMISSIONS + 2):
                self.line.send(self.node, request)
                if reply := self._answer(kind, sequence, answer, matches, timeout_us):
                    self._surplus = self.understood and tries > 1
                    return reply
        finally:
            self._answers = None
        raise self._silent(kind, timeout_us, self._bytes - received, self._frames - frames)

    def request(
        self, kind: MessageType, answer: MessageType, matches: Callable[[Any], bool], **fields: Any
    ) -> tuple[int, Frame]:
        """Ask as `ask` does, as the `Asker` of a client.

        Raises:
            BoardRefused: the board refuses; says what was asked, and what it allows.
            BoardSilent, BoardLost: as in `ask`.
        """
        received_us, frame = self.ask(kind, answer, matches, **fields)
        if frame.type is MessageType.ACK and frame.body.refusal != Refusal.OK:
            raise BoardRefused(
                self.joint, self.node, request_refusal(kind, fields, frame.body.refusal, frame.body.value)
            )
        return received_us, frame

    def lost_error(self) -> BoardLost:
        """Return the error of a board that is gone, with the reason."""
        reason = self.line.port.why_lost(self.node)
        return BoardLost(self.joint, self.node, f"{reason}. Its motor has no power from this board")

    def heard(self, data: bytes) -> None:
        """Take note of raw bytes that are most likely this board's."""
        self._bytes += len(data)
        self._stray = self._stray or data

    def take(self, time_us: int, chunk: Chunk) -> None:
        """Take a frame of this board, or what came in its place."""
        if self.listener:
            self.listener(time_us, self.node, chunk)
        match chunk.content:
            case Frame(node=self.node) as frame:
                self._stray = b""
                self._take_frame(frame, time_us)
            case Frame(node=node):
                self._stray = f"frames of node {node}".encode()
            case Noise():
                self._stray = chunk.encoded

    def _take_frame(self, frame: Frame, time_us: int) -> None:
        self._frames += 1
        self.last_frame_us = time_us
        try:
            if not self.on_frame(frame) and self._answers is not None:
                _ = frame.body
                self._answers.append((time_us, frame))
        except FrameError:  # the recording counts it; here it is as good as not received
            self._stray = frame.payload

    def _answer(
        self, kind: MessageType, sequence: int, answer: MessageType, matches: Callable[[Any], bool], timeout_us: int
    ) -> tuple[int, Frame] | None:
        """Wait for an answer; None when the time is up."""
        deadline = self.clock.now_us() + timeout_us
        while (remaining_us := deadline - self.clock.now_us()) > 0:
            self._need_port()
            self.clock.wait(remaining_us)
            while self._answers:
                time_us, frame = self._answers.pop(0)
                if frame.type is MessageType.ACK:
                    # Where an answer has a type of its own, an ACK can only be a refusal.
                    is_answer = answer is MessageType.ACK or frame.body.refusal != Refusal.OK
                    if is_answer and (frame.body.request, frame.body.request_seq) == (kind, sequence):
                        return time_us, frame
                elif frame.type is answer and matches(frame.body):
                    return time_us, frame
        self._need_port()
        return None

    def _let_surplus_pass(self) -> None:
        """A repeated request may be answered twice; what comes before the answer to a new PING is not the next's."""
        self._surplus = False
        nonce = self.clock.now_us() & 0xFFFFFFFF
        self.ask(MessageType.PING, MessageType.PONG, lambda body: body.nonce == nonce, nonce=nonce)
        self._surplus = False  # of PONGs, whose nonces tell them apart

    def _need_port(self) -> None:
        if self.line.port.why_lost(self.node):
            raise self.lost_error()

    def _silent(self, kind: MessageType, timeout_us: int, received: int, frames: int) -> BoardSilent:
        text = f"no answer to {kind.name} in {1 + RETRANSMISSIONS} tries of {timeout_us // 1000} ms"
        port = self.line.port
        if received == 0:
            text += f", and not one byte on {port.url}; is it powered, is this its port, does its program run?"
            if beside := line_beside(port.url):
                text += f" This port is the board's console; its line is {beside}"
        elif frames == 0:
            text += (
                f"; {received} bytes came and none was a frame of node {self.node}: {self._stray[:_SHOWN]!r}. "
                "Another baud rate, another node, the REPL of a board without the firmware, or another program?"
            )
        elif kind not in FROZEN and not self.understood:
            text += f", though {frames} of its frames came; greet it first, its firmware may be another release's"
        else:
            text += f", though {frames} of its frames came; is the line too bad, or its receive buffer overrun?"
        return BoardSilent(self.joint, self.node, text)


def _first_sequence(clock: Clock) -> int:
    """First sequence number of this session: not an earlier session's last, which the board remembers.

    By virtual time, which no two sessions share, the same run has the same bytes.
    """
    if clock.name == "virtual":
        return clock.now_us() * _SPREAD >> 16 & 0xFFFF
    return secrets.randbelow(0x10000)
