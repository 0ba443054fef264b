"""Every request of the wire as a typed method. Generated, do not edit: `python -m jointwire.generate`"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeVar

from jointwire.bodies import Ack, DictPart, EchoReply, HelloAck, Pong, Values
from jointwire.framing import Frame
from jointwire.messages import ANSWERS, MessageType
from jointwire.registers import BY_NAME

Body = TypeVar("Body")

RegisterName = Literal[
    "board.node",
    "board.tick_period",
    "adc.oversamples",
    "adc.window",
    "current.scale",
    "current.zero",
    "torque.scale",
    "torque.zero",
    "encoder.motor_counts",
    "encoder.link_counts",
    "encoder.link_zero",
    "drive.ratio",
    "knots.ticks",
    "board.channels",
    "board.shared_line",
    "voltage.scale",
    "adc.cic_order",
    "velocity.source",
    "velocity.alpha",
    "velocity.beta",
    "servo.ki",
    "temperature.scale",
    "temperature.zero",
    "force.scale",
    "servo.kp",
    "servo.kd",
    "servo.velocity_feedforward",
    "force.zero_1",
    "force.zero_2",
    "force.zero_3",
    "force.zero_4",
    "encoder.capture_clock",
    "limit.current",
    "limit.position_min",
    "limit.position_max",
    "limit.velocity",
    "limit.following",
    "limit.link_timeout",
    "hard.current",
    "hard.velocity",
    "stream.channels",
    "stream.block",
    "stream.always",
    "stream.every_motor_current",
    "stream.every_motor_encoder",
    "stream.every_link_encoder",
    "stream.every_torque_sensor",
    "stream.every_command",
    "stream.every_bus_voltage",
    "stream.every_temperature",
    "stream.every_foot_force",
    "servo.friction",
    "servo.friction_band",
    "limit.continuous_current",
    "limit.thermal_time",
    "limit.jump",
    "limit.stuck_current",
    "limit.stuck_time",
    "limit.supply_min",
    "limit.supply_max",
    "limit.temperature",
    "limit.missed_ticks",
    "hard.missed_ticks",
    "limit.twist",
    "filter.1.b0",
    "filter.1.b1",
    "filter.1.b2",
    "filter.1.a1",
    "filter.1.a2",
    "filter.2.b0",
    "filter.2.b1",
    "filter.2.b2",
    "filter.2.a1",
    "filter.2.a2",
    "limit.deceleration",
    "brake.engage_time",
    "brake.release_time",
    "limit.feedforward",
    "limit.unexpected",
    "limit.float",
    "float.timeout",
    "float.velocity",
    "float.wall",
    "float.dead_band",
    "float.hold",
    "float.inertia",
]


class Answer(NamedTuple, Generic[Body]):
    """A board's answer to a request.

    Attributes:
        received_us: when, by the host's clock.
        body: of the answer.
        frame: the whole of it.
    """

    received_us: int
    body: Body
    frame: Frame


class Asker(Protocol):
    """Sends a request until it is answered, and raises when it is refused or nothing answers."""

    def __call__(
        self,
        kind: MessageType,
        answer: MessageType,
        matches: Callable[[Any], bool],
        **fields: Any,
    ) -> tuple[int, Frame]:
        """Ask a board.

        Args:
            kind: of the request.
            answer: the type its answer has.
            matches: whether an answer of that type, by its body, is to this request.
            fields: of the request's body.

        Returns:
            When the answer came [µs], and the answer.
        """
        ...


class Client:
    """Asks one board; errors are the asker's."""

    def __init__(self, ask: Asker) -> None:
        """Ask through this."""
        self._ask = ask

    def _request(self, kind: MessageType, **fields: Any) -> Answer[Any]:
        answer = ANSWERS[kind]

        def matches(body: Any) -> bool:
            return all(getattr(body, name) == fields[name] for name in answer.echoed)

        received_us, frame = self._ask(kind, answer.type, matches, **fields)
        return Answer(received_us, frame.body, frame)

    def hello(self, major: int, minor: int) -> Answer[HelloAck]:
        """Greet a board.

        Args:
            major: protocol of the host.
            minor: protocol of the host.
        """
        return self._request(MessageType.HELLO, major=major, minor=minor)

    def read(self, first: int, count: int) -> Answer[Values]:
        """Ask for raw register values.

        Args:
            first: register id.
            count: registers, ids without a gap.
        """
        return self._request(MessageType.READ, first=first, count=count)

    def write(self, register: RegisterName, value: int) -> Answer[Ack]:
        """Set one register.

        Args:
            register: its name.
            value: raw.
        """
        return self._request(MessageType.WRITE, register=BY_NAME[register].id, value=value)

    def knots(self, offset: int, knots: Sequence[Mapping[str, int]]) -> Answer[Ack]:
        """Upload a part of a trajectory.

        Args:
            offset: index of the first.
            knots: position [motor counts], velocity [counts/tick, Q8] of each.
        """
        return self._request(MessageType.KNOTS, offset=offset, count=len(knots), knots=knots)

    def load(self, count: int, repeats: int, crc32: int) -> Answer[Ack]:
        """Have the board check the uploaded trajectory; it is LOADED afterwards.

        Args:
            count: knots in all.
            repeats: how often it will be played; 0: the currents are a table by which the motor floats.
            crc32: of all knots as KNOTS carries them, then of all currents as FEEDFORWARD carries them.
        """
        return self._request(MessageType.LOAD, count=count, repeats=repeats, crc32=crc32)

    def arm(self, token: int, config_crc: int) -> Answer[Ack]:
        """Let the board hold its motor where it is.

        Args:
            token: from the last HELLO_ACK; good once.
            config_crc: CRC-32 of all register values, going on from that of the last LOAD.
        """
        return self._request(MessageType.ARM, token=token, config_crc=config_crc)

    def start(self, at_tick: int) -> Answer[Ack]:
        """Play the loaded trajectory.

        Args:
            at_tick: of the board; 0: the next one.
        """
        return self._request(MessageType.START, at_tick=at_tick)

    def stop(self) -> Answer[Ack]:
        """Switch the motor off."""
        return self._request(MessageType.STOP)

    def clear(self) -> Answer[Ack]:
        """Acknowledge a latched fault."""
        return self._request(MessageType.CLEAR)

    def ping(self, nonce: int) -> Answer[Pong]:
        """Exchange times, and show that the host is alive.

        Args:
            nonce: any number.
        """
        return self._request(MessageType.PING, nonce=nonce)

    def dict(self, offset: int) -> Answer[DictPart]:
        """Ask for the schema, text compressed by zlib, in parts.

        Args:
            offset: first byte asked for.
        """
        return self._request(MessageType.DICT, offset=offset)

    def echo(self, data: bytes) -> Answer[EchoReply]:
        """Ask for the same bytes back.

        Args:
            data: anything.
        """
        return self._request(MessageType.ECHO, count=len(data), data=data)

    def save(self) -> Answer[Ack]:
        """Keep the "persist" registers over a reset."""
        return self._request(MessageType.SAVE)

    def repl(self) -> Answer[Ack]:
        """End the program and give the port back to the interpreter."""
        return self._request(MessageType.REPL)

    def confirm(self, image_sha256: bytes) -> Answer[Ack]:
        """Keep the firmware that runs: it has passed its trial.

        Args:
            image_sha256: as in its HELLO_ACK: only this image may stay.
        """
        return self._request(MessageType.CONFIRM, image_sha256=image_sha256)

    def halt(self) -> Answer[Ack]:
        """Slow the reference down by limit.deceleration to rest, then switch the motor off: LOADED."""
        return self._request(MessageType.HALT)

    def feedforward(self, offset: int, currents: Sequence[int]) -> Answer[Ack]:
        """Upload a part of the feed-forward current of the trajectory that KNOTS has uploaded.

        Args:
            offset: index of the first knot.
            currents: feed-forward motor current at each knot [mA].
        """
        return self._request(MessageType.FEEDFORWARD, offset=offset, count=len(currents), currents=currents)

    def compensate(self, nonce: int, current: int) -> Answer[Pong]:
        """Let a motor that floats go on to, and give what its table does not know of its current.

        Args:
            nonce: any number.
            current: besides the table's [mA], at most limit.float.
        """
        return self._request(MessageType.COMPENSATE, nonce=nonce, current=current)
