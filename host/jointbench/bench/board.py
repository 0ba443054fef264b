"""One board: what it can be asked, and what it last said of itself."""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from platformdirs import user_cache_path

from jointbench.bench.client import Client, RegisterName
from jointbench.bench.clock import Clock
from jointbench.bench.conversation import CLEARING, ChunkListener, Conversation, fault_text, range_text
from jointbench.bench.identity import Facts, Identity
from jointbench.bench.line import Line, Port
from jointbench.bench.sync import Exchange
from jointbench.errors import BoardError, BoardFault, BoardRefused, BoardSilent
from jointbench.files import write_file
from jointwire import (
    BY_NAME,
    MAX_BODY,
    PROTOCOL_MAJOR,
    PROTOCOL_MINOR,
    REGISTERS,
    Frame,
    MessageType,
    Schema,
    SchemaError,
    State,
    config_crc,
    own_schema,
    trajectory_crc,
)

_KNOTS_PER_FRAME = (MAX_BODY - 4) // 8
_CURRENTS_PER_FRAME = (MAX_BODY - 4) // 2
_KNOTS_OVERHEAD = 32  # bytes of a KNOTS frame beside its knots: header, body's head, CRC, COBS, delimiter
_DRIVING = (State.ARMED, State.RUNNING)
_DIFFERENCES = 3  # of two schemas, shown in an error


def cached_schema(schema_hash: int, fetch: Callable[[], bytes]) -> Schema:
    """The schema with this hash: this host's own, one kept before, or one fetched from a board now.

    Args:
        schema_hash: CRC-32 of its text.
        fetch: asks the board for its DICT, the text compressed by zlib.

    Raises:
        SchemaError: what was fetched is no schema, or has another hash.
    """
    host_schema = own_schema()
    if host_schema.hash == schema_hash:
        _keep(host_schema)
        return host_schema
    with contextlib.suppress(OSError, UnicodeDecodeError, SchemaError):  # not there, or damaged: fetched anew
        return _checked(_path(schema_hash).read_text(encoding="utf-8"), schema_hash)
    try:
        text = zlib.decompress(fetch()).decode()
    except (zlib.error, UnicodeDecodeError) as error:
        raise SchemaError(f"the board's DICT is no compressed text ({error}); copy its firmware anew") from error
    schema = _checked(text, schema_hash)
    _keep(schema)
    return schema


def _checked(text: str, schema_hash: int) -> Schema:
    text_hash = zlib.crc32(text.encode())
    if text_hash != schema_hash:
        raise SchemaError(
            f"the board's DICT has hash {text_hash:08x}, its firmware says {schema_hash:08x}; copy its firmware anew"
        )
    return Schema.from_text(text)


def _keep(schema: Schema) -> None:
    path = _path(schema.hash)
    with contextlib.suppress(OSError, UnicodeDecodeError):
        if path.read_text(encoding="utf-8") == schema.text:
            return
    with contextlib.suppress(OSError):  # without a cache it is fetched again
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, schema.text)


def _path(schema_hash: int) -> Path:
    return user_cache_path("jointbench") / "schemas" / f"{schema_hash:08x}.json"


class Board:
    """A joint's board behind its port; every error it raises names joint and node.

    Attributes:
        node, joint, port, line: which one, and where.
        client: asks it anything the wire knows.
        identity: who it said it was when it was last greeted.
        facts: its registers as last read or written, None before they were read.
        trajectory: CRC of what was last loaded here, 0 before.
        state: the last it reported, None before it was greeted and where this host does not know its number.
        fault: the body of its FAULT frame while a fault is latched, where one was received.
        on_data: called for each DATA frame.
        newest_data, newest_pong: the last DATA frame, and the last PONG with the time it came [µs]; None before one.
    """

    def __init__(
        self, port: Port, clock: Clock, node: int | None = None, line: Line | None = None, update: str = ""
    ) -> None:
        """Listen at the port; nothing is sent.

        Args:
            port: of the board.
            clock: the target's time.
            node: which of the port's boards; the first by default.
            line: of the port, where other boards share it.
            update: what to do when its firmware is another release's, a sentence.
        """
        self.node: int = port.nodes[0] if node is None else node
        self.joint: str = dict(zip(port.nodes, port.joints, strict=True))[self.node]
        self.port = port
        self.line: Line = line or Line(port, clock)
        self.identity: Identity | None = None
        self.facts: Facts | None = None
        self.trajectory: int = 0
        self.state: State | None = None
        self.fault: Any = None
        self.on_data: Callable[[Frame], None] | None = None
        self.newest_data: Frame | None = None
        self.newest_pong: tuple[Frame, int] | None = None
        self._clock = clock
        self._update = update
        self._talk = Conversation(self.line, self.node, self.joint, clock, self._note)
        self.client: Client = Client(self._talk.request)
        self._token = 0

    def greet(self) -> Identity:
        """Ask who the board is; one of any version answers, with a fresh arming token.

        Raises:
            BoardSilent, BoardLost: it does not answer.
        """
        body = self.client.hello(PROTOCOL_MAJOR, PROTOCOL_MINOR).body
        self.identity = Identity.from_hello(body)
        self.state = _state(body.state)
        self._token = body.token
        self._talk.understood = self.identity.has_our_schema
        if self._talk.understood:
            self.line.attend(self.node, self.identity.transmit_buffer)
        return self.identity

    def hello(self) -> Identity:
        """Greet the board, which must have been built from this host's definition of the wire.

        Raises:
            BoardRefused: it was built from another; says what differs and how to update it.
            BoardSilent, BoardLost: it does not answer.
        """
        identity = self.greet()
        self.need_our_schema()
        return identity

    def need_our_schema(self) -> None:
        """Go no further with a board, once greeted, whose frames this host would misread.

        Raises:
            BoardRefused: as in `hello`.
        """
        identity = self.identity or self.greet()
        if not identity.has_our_schema:
            text = (
                f"speaks wire {identity.wire} with schema {identity.schema_hash:08x}, this host "
                f"{PROTOCOL_MAJOR}.{PROTOCOL_MINOR} with {own_schema().hash:08x}: {self.differences()}"
            )
            raise BoardRefused(self.joint, self.node, f"{text}. {self._update}" if self._update else text)

    def schema(self) -> Schema:
        """The schema it was built with; asked of the board unless this host knows it already.

        Raises:
            SchemaError: what it sends is no schema, or not that of its hash.
            BoardSilent, BoardLost, BoardRefused: it does not send one.
        """
        identity = self.identity or self.greet()
        return cached_schema(identity.schema_hash, self._fetch_dict)

    def differences(self) -> str:
        """The first differences of its schema from this host's, in one line; empty where they are the same."""
        try:
            lines = own_schema().differences(self.schema())
        except (SchemaError, BoardError) as error:
            return f"what differs is not known ({error})"
        more = f"; {len(lines) - _DIFFERENCES} more" if len(lines) > _DIFFERENCES else ""
        return "; ".join(lines[:_DIFFERENCES]) + more

    def read_registers(self) -> Facts:
        """Read the whole register table, raw values by name.

        Raises:
            BoardSilent, BoardLost: it does not answer.
        """
        values: dict[str, int] = {}
        for first, names in _register_runs():
            values |= zip(names, self.client.read(first, len(names)).body.values, strict=True)
        self.facts = Facts(values)
        return self.facts

    def write_register(self, name: RegisterName, raw: int) -> None:
        """Set a register to a raw value.

        Raises:
            BoardRefused: unknown, read-only, out of range, or not in this state.
        """
        register = BY_NAME.get(name)
        if register is None:
            raise BoardRefused(self.joint, self.node, f"has no register {name!r}; it has {', '.join(BY_NAME)}")
        if not -(2**31) <= raw < 2**31:
            text = f"cannot be sent {name} = {raw}; allowed is {range_text(register)}"
            raise BoardRefused(self.joint, self.node, text)
        self.client.write(name, raw)
        if self.facts:
            self.facts = replace(self.facts, registers={**self.facts.registers, name: raw})

    def set_registers(self, values: Mapping[RegisterName, int]) -> None:
        """Set registers to raw values, and read back that they are set.

        Raises:
            BoardFault: a fault is latched; clear() first.
            BoardRefused: as in `write_register`; or one reads back as another value.
        """
        if self.state is State.FAULT:
            raise self.fault_error()
        for name, raw in values.items():
            self.write_register(name, raw)
        registers = self.read_registers().registers
        for name, raw in values.items():
            if registers[name] != raw:
                text = f"{name} was set to {raw} and reads back {registers[name]}"
                raise BoardRefused(self.joint, self.node, text)

    def ping(self) -> Exchange:
        """Exchange times with the board.

        Raises:
            BoardSilent, BoardLost: it does not answer.
        """
        answer = self.client.ping(self._clock.now_us() & 0xFFFFFFFF)
        return Exchange.from_pong(answer.frame, answer.received_us)

    def upload(self, knots: NDArray[np.int32], repeats: int, feedforward_mA: NDArray[np.int16] | None = None) -> None:
        """Upload a trajectory and have the board check it; it is LOADED afterwards.

        Args:
            knots: position [motor counts] and velocity [counts/tick, Q8] of each knot, shape (n, 2).
            repeats: how often it will be played.
            feedforward_mA: current that is added to the servo's command at each knot [mA], shape (n,); None: none is.

        Raises:
            BoardRefused: too long, outside the limits, beyond limit.feedforward, or not in this state.
            BoardRefused, BoardSilent, BoardLost: as in `hello`.
        """
        data = np.ascontiguousarray(knots, dtype="<i4").tobytes()
        identity = self.identity or self.hello()
        size = min(_KNOTS_PER_FRAME, max(identity.receive_buffer - _KNOTS_OVERHEAD, 8) // 8)
        for offset in range(0, len(knots), size):
            part = [{"position": int(p), "velocity": int(v)} for p, v in knots[offset : offset + size]]
            self.client.knots(offset, part)
        if feedforward_mA is not None:
            data += np.ascontiguousarray(feedforward_mA, dtype="<i2").tobytes()
            size = min(_CURRENTS_PER_FRAME, max(identity.receive_buffer - _KNOTS_OVERHEAD, 2) // 2)
            for offset in range(0, len(knots), size):
                self.client.feedforward(offset, feedforward_mA[offset : offset + size].tolist())
        load = (len(knots), repeats, zlib.crc32(data))
        self.client.load(*load)
        self.trajectory = trajectory_crc(*load)
        self.state = State.LOADED

    def arm(self) -> None:
        """Let the board hold its motor where it is; it needs a loaded trajectory.

        Raises:
            BoardFault: a fault is latched; clear() first.
            BoardRefused: nothing is loaded, the joint is outside its window, or the board's registers or
                trajectory are not those that were last read from it, written to it or loaded here.
            BoardRefused, BoardSilent, BoardLost: as in `hello`.
        """
        self.hello()  # a token is good once
        if self.state is State.FAULT:
            raise self.fault_error()
        facts = self.facts or self.read_registers()
        self.client.arm(self._token, config_crc(facts.registers, self.trajectory))
        self.state = State.ARMED

    def start(self, at_tick: int = 0) -> None:
        """Play the loaded trajectory from a tick of the board on; 0 is its next one.

        Raises:
            BoardRefused: not armed, too far from the first knot, or too late.
        """
        self.client.start(at_tick & 0xFFFFFFFF)
        self.state = State.RUNNING

    def stop(self) -> None:
        """Switch the motor off and wait for the board's word that it did.

        Raises:
            BoardSilent, BoardLost: it does not answer; its own link time-out stops the motor.
        """
        self.client.stop()
        self.state = State.DISARMED if self.is_driving else self.state

    def halt(self) -> None:
        """Slow the motor down by limit.deceleration, then switch it off: it is LOADED as soon as its STATUS says so.

        Beside stop(), which takes the power at once. Every trip goes on to count meanwhile.

        Raises:
            BoardRefused: it is not driven.
        """
        self.client.halt()

    def clear(self) -> None:
        """Acknowledge a latched fault; the board is DISARMED and without a trajectory afterwards.

        Raises:
            BoardRefused: there is no fault.
        """
        self.client.clear()
        self.state, self.fault = State.DISARMED, None

    def save(self) -> None:
        """Have the board keep its calibration (the "persist" registers) over a reset.

        Raises:
            BoardRefused: not at rest, or its flash cannot be written.
        """
        self.client.save()

    def leave_for_repl(self) -> None:
        """End the firmware's program: the port is the MicroPython interpreter's until the board is reset.

        Raises:
            BoardRefused: not at rest, or this kind of board has no interpreter to go back to.
        """
        self.client.repl()

    def tell(self, kind: MessageType, **fields: Any) -> None:
        """Send a request without waiting for its answer."""
        self.line.send(self.node, self._talk.frame(kind, **fields))

    def keep_alive(self) -> None:
        """Let the board hear a PING without waiting; its PONG is recorded like any other frame."""
        self.line.keep_alive(self.node)

    def listen(self, listener: ChunkListener | None) -> None:
        """Hand everything received to a listener, unaltered, from now on."""
        self._talk.listener = listener

    @property
    def why_lost(self) -> str:
        """Reason why the board is gone; empty while it is there."""
        return self.port.why_lost(self.node)

    @property
    def has_motor(self) -> bool:
        """True if it drives a motor, as far as is known; a board whose registers were not read yet may."""
        return self.facts is None or self.facts.has_motor

    def is_same_chip(self, other: Board) -> bool:
        """Return whether another node is this very board's: itself, or its second motor on the same line."""
        if self is other:
            return True
        uids = {board.identity.uid for board in (self, other) if board.identity}
        return self.port is other.port and len(uids) == 1 and bool(self.identity and other.identity)

    @property
    def is_driving(self) -> bool:
        """True if its motor may be driven, as far as is known; a board not yet greeted may do anything."""
        return self.state is None or self.state in _DRIVING

    @property
    def last_frame_us(self) -> int:
        """Time of its last valid frame [µs]."""
        return self._talk.last_frame_us

    def lost_error(self) -> Exception:
        """Return the error of a board that is gone, with the reason."""
        return self._talk.lost_error()

    def fault_error(self) -> BoardFault:
        """Return the error of the latched fault."""
        if self.fault is None:
            return BoardFault(self.joint, self.node, f"a fault is latched, the motor is off; to play again, {CLEARING}")
        text = fault_text(self.fault.trip, self.fault.value, self.fault.limit, self.fault.tick)
        return BoardFault(self.joint, self.node, text)

    def _note(self, frame: Frame) -> bool:
        match frame.type:
            case MessageType.STATUS:
                self.state = _state(frame.body.state)
                if self.state is not State.FAULT:
                    self.fault = None
            case MessageType.FAULT:
                self.state, self.fault = State.FAULT, frame.body
            case MessageType.DATA:
                self.newest_data = frame
                if self.on_data:
                    self.on_data(frame)
            case MessageType.PONG:
                self.newest_pong = frame, self._talk.last_frame_us
                return False
            case _:
                return False
        return True

    def _fetch_dict(self) -> bytes:
        data, total = b"", 1
        while len(data) < total:
            part = self.client.dict(len(data)).body
            if not part.count:
                raise BoardSilent(self.joint, self.node, f"sends {len(data)} of {total} bytes of its DICT and no more")
            data, total = data + part.data, part.total
        return data


def _state(number: int) -> State | None:
    return State(number) if number in list(State) else None


def _register_runs() -> list[tuple[int, list[str]]]:
    """Registers whose ids follow each other, as (first id, names): what one READ can ask for."""
    runs: list[tuple[int, list[str]]] = []
    for register in sorted(REGISTERS, key=lambda register: register.id):
        if runs and register.id == runs[-1][0] + len(runs[-1][1]):
            runs[-1][1].append(register.name)
        else:
            runs.append((register.id, [register.name]))
    return runs
