"""One board: what it can be asked, and what it last said of itself."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jointbench.errors import BoardFault, BoardRefused, SchemaMismatch
from jointbench.link.clock import Clock
from jointbench.link.conversation import ChunkListener, Conversation
from jointbench.link.identity import Facts, Identity
from jointbench.link.port import Port
from jointbench.link.sync import Exchange
from jointbench.link.words import CLEARING, fault_text, range_text, refusal_text
from jointwire import (
    BY_NAME,
    MAX_BODY,
    PROTOCOL_MAJOR,
    PROTOCOL_MINOR,
    REGISTERS,
    Frame,
    MessageType,
    Refusal,
    State,
    schema_hash,
)

_KNOTS_PER_FRAME = (MAX_BODY - 4) // 8
_DRIVING = (State.ARMED, State.RUNNING)


class Board:
    """A joint's board behind its port; every error it raises names joint and node.

    Attributes:
        node, joint, port: which one, and where.
        state: the last it reported, None before it was greeted.
        fault: the body of its FAULT frame while a fault is latched, where one was received.
        on_data: called for each DATA frame.
    """

    def __init__(self, port: Port, clock: Clock) -> None:
        """Listen at the port; nothing is sent."""
        self.node, self.joint, self.port = port.node, port.joint, port
        self.state: State | None = None
        self.fault: Any = None
        self.on_data: Callable[[Frame], None] | None = None
        self._clock = clock
        self._line = Conversation(port, clock, self._note)
        self._token = 0

    def hello(self) -> Identity:
        """Greet the board; it answers with who it is and a fresh arming token.

        Raises:
            SchemaMismatch: it was built from another definition of the wire.
            BoardSilent, BoardLost: it does not answer.
        """
        body = self._ask(MessageType.HELLO, MessageType.HELLO_ACK, major=PROTOCOL_MAJOR, minor=PROTOCOL_MINOR)[1].body
        if body.schema_hash != schema_hash():
            raise SchemaMismatch(
                self.joint,
                self.node,
                f"speaks wire {body.major}.{body.minor} with schema {body.schema_hash:08x}, this host "
                f"{PROTOCOL_MAJOR}.{PROTOCOL_MINOR} with {schema_hash():08x}; put this release's firmware on the board "
                "(`jointbench flash`), or use the host release that belongs to its firmware",
            )
        self.state = State(body.state)
        self._token = body.token
        return Identity.from_hello(body)

    def read_registers(self) -> Facts:
        """Read the whole register table, raw values by name.

        Raises:
            BoardSilent, BoardLost: it does not answer.
        """
        values: dict[str, int] = {}
        for first, names in _register_runs():
            asked = (first, len(names))
            _, frame = self._ask(
                MessageType.READ,
                MessageType.VALUES,
                lambda body, asked=asked: (body.first, body.count) == asked,
                first=first,
                count=len(names),
            )
            values |= dict(zip(names, (int(value) for value in frame.body["values"]), strict=True))
        return Facts(values)

    def write_register(self, name: str, raw: int) -> None:
        """Set a register to a raw value.

        Raises:
            BoardRefused: unknown, read-only, out of range, or not in this state.
        """
        register = BY_NAME.get(name)
        if register is None:
            raise BoardRefused(self.joint, self.node, f"has no register {name!r}; it has {', '.join(BY_NAME)}")
        about = f"{name} = {raw}"
        if not -(2**31) <= raw < 2**31:
            raise BoardRefused(self.joint, self.node, f"cannot be sent {about}; allowed is {range_text(register)}")
        self._command(MessageType.WRITE, about, range_text(register), register=register.id, value=raw)

    def ping(self) -> Exchange:
        """Exchange times with the board.

        Raises:
            BoardSilent, BoardLost: it does not answer.
        """
        nonce = self._clock.now_us() & 0xFFFFFFFF
        received_us, frame = self._ask(
            MessageType.PING, MessageType.PONG, lambda body: body.nonce == nonce, nonce=nonce
        )  # fmt: skip
        return Exchange.from_pong(nonce, frame.body.tick, received_us)

    def upload(self, knots: NDArray[np.int32], repeats: int) -> None:
        """Upload a trajectory and have the board check it; it is LOADED afterwards.

        Args:
            knots: position [motor counts] and velocity [counts/tick, Q8] of each knot, shape (n, 2).
            repeats: how often it will be played.

        Raises:
            BoardRefused: too long, outside the limits, or not in this state.
        """
        data = np.ascontiguousarray(knots, dtype="<i4").tobytes()
        for offset in range(0, len(knots), _KNOTS_PER_FRAME):
            part = [{"position": int(p), "velocity": int(v)} for p, v in knots[offset : offset + _KNOTS_PER_FRAME]]
            self._command(MessageType.KNOTS, f"from {offset}", offset=offset, count=len(part), knots=part)
        about = f"of {len(knots)} knots, {repeats} times"
        self._command(MessageType.LOAD, about, count=len(knots), repeats=repeats, crc32=zlib.crc32(data))
        self.state = State.LOADED

    def arm(self) -> None:
        """Let the board hold its motor where it is; it needs a loaded trajectory.

        Raises:
            BoardFault: a fault is latched; clear() first.
            BoardRefused: nothing is loaded, or the joint is outside its window.
        """
        self.hello()  # a token is good once
        if self.state is State.FAULT:
            raise self.fault_error()
        self._command(MessageType.ARM, token=self._token)
        self.state = State.ARMED

    def start(self, at_tick: int = 0) -> None:
        """Play the loaded trajectory from a tick of the board on; 0 is its next one.

        Raises:
            BoardRefused: not armed, too far from the first knot, or too late.
        """
        self._command(MessageType.START, f"at tick {at_tick}", at_tick=at_tick & 0xFFFFFFFF)
        self.state = State.RUNNING

    def stop(self) -> None:
        """Switch the motor off and wait for the board's word that it did.

        Raises:
            BoardSilent, BoardLost: it does not answer; its own link time-out stops the motor.
        """
        self._command(MessageType.STOP)
        self.state = State.DISARMED if self.is_driving else self.state

    def clear(self) -> None:
        """Acknowledge a latched fault; the board is DISARMED and without a trajectory afterwards.

        Raises:
            BoardRefused: there is no fault.
        """
        self._command(MessageType.CLEAR)
        self.state, self.fault = State.DISARMED, None

    def tell(self, kind: MessageType, **fields: Any) -> None:
        """Send a request without waiting for its answer."""
        self._line.send(kind, **fields)

    def keep_alive(self) -> None:
        """Send a PING without waiting; its PONG is recorded like any other frame."""
        self.tell(MessageType.PING, nonce=self._clock.now_us() & 0xFFFFFFFF)

    def listen(self, listener: ChunkListener | None) -> None:
        """Hand everything received to a listener, unaltered, from now on."""
        self._line.listener = listener

    @property
    def is_driving(self) -> bool:
        """Whether its motor may be driven, as far as is known; a board not yet greeted may do anything."""
        return self.state is None or self.state in _DRIVING

    @property
    def silent_us(self) -> int:
        """Time since its last valid frame."""
        return self._clock.now_us() - self._line.last_frame_us

    def lost_error(self) -> Exception:
        """Say why the board is gone."""
        return self._line.lost_error()

    def fault_error(self) -> BoardFault:
        """Say which fault is latched."""
        if self.fault is None:
            return BoardFault(self.joint, self.node, f"a fault is latched, the motor is off; to play again, {CLEARING}")
        text = fault_text(self.fault.trip, self.fault.value, self.fault.limit, self.fault.tick)
        return BoardFault(self.joint, self.node, text)

    def _note(self, frame: Frame) -> bool:
        match frame.type:
            case MessageType.STATUS:
                self.state = State(frame.body.state)
                if self.state is not State.FAULT:
                    self.fault = None
            case MessageType.FAULT:
                self.state, self.fault = State.FAULT, frame.body
            case MessageType.DATA:
                if self.on_data:
                    self.on_data(frame)
            case _:
                return False
        return True

    def _command(self, kind: MessageType, about: str = "", allowed: str = "", **fields: Any) -> int:
        """Send a request that is answered by an ACK; returns the ACK's value."""
        return int(self._ask(kind, MessageType.ACK, about=about, allowed=allowed, **fields)[1].body.value)

    def _ask(
        self,
        kind: MessageType,
        answer: MessageType,
        matches: Callable[[Any], bool] = lambda body: True,
        about: str = "",
        allowed: str = "",
        **fields: Any,
    ) -> tuple[int, Frame]:
        time_us, frame = self._line.ask(kind, answer, matches, **fields)
        if frame.type is MessageType.ACK and frame.body.refusal != Refusal.OK:
            reason = refusal_text(frame.body.refusal, frame.body.value, allowed)
            raise BoardRefused(self.joint, self.node, f"refused {kind.name}{' ' if about else ''}{about}: {reason}")
        return time_us, frame


def _register_runs() -> list[tuple[int, list[str]]]:
    """Registers whose ids follow each other, as (first id, names): what one READ can ask for."""
    runs: list[tuple[int, list[str]]] = []
    for register in sorted(REGISTERS, key=lambda register: register.id):
        if runs and register.id == runs[-1][0] + len(runs[-1][1]):
            runs[-1][1].append(register.name)
        else:
            runs.append((register.id, [register.name]))
    return runs
