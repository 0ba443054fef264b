"""The body of each message as a dataclass. Generated from messages.py, do not edit: `python -m jointwire.generate`"""

from dataclasses import dataclass
from typing import Any

from jointwire.messages import MessageType


@dataclass(frozen=True, slots=True)
class Hello:
    """Greet a board.

    Attributes:
        major: protocol of the host.
        minor: protocol of the host.
    """

    major: int
    minor: int


@dataclass(frozen=True, slots=True)
class Read:
    """Ask for raw register values.

    Attributes:
        first: register id.
        count: registers, ids without a gap.
    """

    first: int
    count: int


@dataclass(frozen=True, slots=True)
class Write:
    """Set one register.

    Attributes:
        register: register id.
        value: raw.
    """

    register: int
    value: int


@dataclass(frozen=True, slots=True)
class Knots:
    """Upload a part of a trajectory.

    Attributes:
        offset: index of the first.
        count: knots.
        knots: position [motor counts], velocity [counts/tick, Q8] of each.
    """

    offset: int
    count: int
    knots: bytes


@dataclass(frozen=True, slots=True)
class Load:
    """Have the board check the uploaded trajectory; it is LOADED afterwards.

    Attributes:
        count: knots in all.
        repeats: how often it will be played; 0: the currents are a table by which the motor floats.
        crc32: of all knots as KNOTS carries them, then of all currents as FEEDFORWARD carries them.
    """

    count: int
    repeats: int
    crc32: int


@dataclass(frozen=True, slots=True)
class Arm:
    """Let the board hold its motor where it is.

    Attributes:
        token: from the last HELLO_ACK; good once.
        config_crc: CRC-32 of all register values, going on from that of the last LOAD.
    """

    token: int
    config_crc: int


@dataclass(frozen=True, slots=True)
class Start:
    """Play the loaded trajectory.

    Attributes:
        at_tick: of the board; 0: the next one.
    """

    at_tick: int


@dataclass(frozen=True, slots=True)
class Stop:
    """Switch the motor off."""


@dataclass(frozen=True, slots=True)
class Clear:
    """Acknowledge a latched fault."""


@dataclass(frozen=True, slots=True)
class Ping:
    """Exchange times, and show that the host is alive.

    Attributes:
        nonce: any number.
    """

    nonce: int


@dataclass(frozen=True, slots=True)
class Dict:
    """Ask for the schema, text compressed by zlib, in parts.

    Attributes:
        offset: first byte asked for.
    """

    offset: int


@dataclass(frozen=True, slots=True)
class Echo:
    """Ask for the same bytes back.

    Attributes:
        count: bytes.
        data: anything.
    """

    count: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Save:
    """Keep the "persist" registers over a reset."""


@dataclass(frozen=True, slots=True)
class Repl:
    """End the program and give the port back to the interpreter."""


@dataclass(frozen=True, slots=True)
class Confirm:
    """Keep the firmware that runs: it has passed its trial.

    Attributes:
        image_sha256: as in its HELLO_ACK: only this image may stay.
    """

    image_sha256: bytes


@dataclass(frozen=True, slots=True)
class Halt:
    """Slow the reference down by limit.deceleration to rest, then switch the motor off: LOADED."""


@dataclass(frozen=True, slots=True)
class Feedforward:
    """Upload a part of the feed-forward current of the trajectory that KNOTS has uploaded.

    Attributes:
        offset: index of the first knot.
        count: knots.
        currents: feed-forward motor current at each knot [mA].
    """

    offset: int
    count: int
    currents: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Compensate:
    """Let a motor that floats go on to, and give what its table does not know of its current.

    Attributes:
        nonce: any number.
        current: besides the table's [mA], at most limit.float.
    """

    nonce: int
    current: int


@dataclass(frozen=True, slots=True)
class Data:
    """The head of a block of samples; the packed samples follow it.

    Attributes:
        first_tick: of the block.
        dividers: four bits a ChannelKind from the lowest: e, sampled at each tick that 2^e divides.
        play_tick: trajectory tick of the first tick, -1 when nothing plays.
        channels: bit mask of the channels; the packed samples follow, tick by tick.
        missed: ticks missed since the last block that was sent, 65535 at most.
        count: ticks in the block.
        state: State when the block was closed.
        late_us: after its tick, the block's only sample was taken; 0: all were in time, to 20 µs.
    """

    first_tick: int
    dividers: int
    play_tick: int
    channels: int
    missed: int
    count: int
    state: int
    late_us: int


@dataclass(frozen=True, slots=True)
class Status:
    """Where a board stands, and its counters.

    Attributes:
        state: State.
        trip: Trip.
        reserved: 0.
        tick: last tick.
        samples_taken: since boot, wraps, as all that follow up to bad_frames.
        samples_dropped: taken, but the transmit buffer was full.
        frames_sent: this one not counted.
        frames_dropped: the transmit buffer was full.
        ticks_missed: not carried out in time.
        frames_received: valid, and to this node.
        bad_frames: COBS, length, CRC or protocol was wrong; not of those between others on its line.
        heap_free: bytes, when memory was last collected with the motor at rest.
        longest_tick_us: from a tick to its work's end since the last STATUS; 0 without such a clock.
        longest_gc_us: pause to collect memory; 0 without a clock that runs then.
        mean_tick_us: as longest_tick_us, on average; 0 where nobody counts it.
    """

    state: int
    trip: int
    reserved: int
    tick: int
    samples_taken: int
    samples_dropped: int
    frames_sent: int
    frames_dropped: int
    ticks_missed: int
    frames_received: int
    bad_frames: int
    heap_free: int
    longest_tick_us: int
    longest_gc_us: int
    mean_tick_us: int


@dataclass(frozen=True, slots=True)
class Fault:
    """The motor was switched off: which limit, and by how much.

    Attributes:
        trip: Trip.
        state: State, FAULT.
        reserved: 0.
        tick: when.
        value: what was measured, in the unit of the limit's register.
        limit: what was allowed.
    """

    trip: int
    state: int
    reserved: int
    tick: int
    value: int
    limit: int


@dataclass(frozen=True, slots=True)
class Sync:
    """An edge on the SYNC line.

    Attributes:
        edge: edges on the SYNC line since boot.
        edge_us: board clock at this one.
    """

    edge: int
    edge_us: int


@dataclass(frozen=True, slots=True)
class Yield:
    """The last frame of a board's turn on a shared line."""


@dataclass(frozen=True, slots=True)
class Ack:
    """A request was carried out, or why not.

    Attributes:
        request: MessageType it answers.
        refusal: Refusal.
        request_seq: seq of the request.
        value: what a refusal is about (see Refusal); else what the request led to.
    """

    request: int
    refusal: int
    request_seq: int
    value: int


@dataclass(frozen=True, slots=True)
class HelloAck:
    """Who a board is and what it can do.

    Attributes:
        major: protocol of the board.
        minor: protocol of the board.
        state: State.
        reset_cause: ResetCause.
        schema_hash: CRC-32 of its schema text.
        firmware_version: 0x00MMmmpp.
        features: Feature bits.
        token: what the next ARM must carry.
        tick: its tick counter.
        clock_Hz: of the processor, 0 where there is none to speak of.
        adc_rate_Hz: ADC samples in a second, each channel.
        motor_counts: motor encoder counts in a turn.
        link_counts: link encoder counts in a turn.
        adc_reference_mV: at full scale.
        adc_bits: resolution.
        encoder_source: EncoderSource.
        receive_buffer: bytes.
        transmit_buffer: bytes.
        max_knots: longest trajectory.
        max_block: most ticks in a DATA frame.
        uid: of the chip; shorter ones end in zeros.
        board: kind of board, ASCII, zeros after it.
        image_sha256: over its firmware's files in name order: path, a zero byte, SHA-256.
        module_type: of the module it is built into, ASCII, zeros after it; since 1.2.
        module_serial: of that module, likewise; since 1.2.
    """

    major: int
    minor: int
    state: int
    reset_cause: int
    schema_hash: int
    firmware_version: int
    features: int
    token: int
    tick: int
    clock_Hz: int
    adc_rate_Hz: int
    motor_counts: int
    link_counts: int
    adc_reference_mV: int
    adc_bits: int
    encoder_source: int
    receive_buffer: int
    transmit_buffer: int
    max_knots: int
    max_block: int
    uid: bytes
    board: bytes
    image_sha256: bytes
    module_type: bytes
    module_serial: bytes


@dataclass(frozen=True, slots=True)
class Values:
    """Raw register values.

    Attributes:
        first: register id.
        count: values.
        values: raw.
    """

    first: int
    count: int
    values: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Pong:
    """Answer to PING; its header's time_us is the board's clock at this moment, not at its last tick.

    Attributes:
        nonce: of the PING.
        tick: last tick.
    """

    nonce: int
    tick: int


@dataclass(frozen=True, slots=True)
class DictPart:
    """A part of the compressed schema text.

    Attributes:
        offset: of the first byte.
        total: bytes of the whole.
        count: bytes in this part.
        data: of the compressed schema text.
    """

    offset: int
    total: int
    count: int
    data: bytes


@dataclass(frozen=True, slots=True)
class EchoReply:
    """The bytes of an ECHO.

    Attributes:
        count: bytes.
        data: those of the ECHO.
    """

    count: int
    data: bytes


CLASSES: dict[MessageType, type[Any]] = {
    MessageType.HELLO: Hello,
    MessageType.READ: Read,
    MessageType.WRITE: Write,
    MessageType.KNOTS: Knots,
    MessageType.LOAD: Load,
    MessageType.ARM: Arm,
    MessageType.START: Start,
    MessageType.STOP: Stop,
    MessageType.CLEAR: Clear,
    MessageType.PING: Ping,
    MessageType.DICT: Dict,
    MessageType.ECHO: Echo,
    MessageType.SAVE: Save,
    MessageType.REPL: Repl,
    MessageType.CONFIRM: Confirm,
    MessageType.HALT: Halt,
    MessageType.FEEDFORWARD: Feedforward,
    MessageType.COMPENSATE: Compensate,
    MessageType.DATA: Data,
    MessageType.STATUS: Status,
    MessageType.FAULT: Fault,
    MessageType.SYNC: Sync,
    MessageType.YIELD: Yield,
    MessageType.ACK: Ack,
    MessageType.HELLO_ACK: HelloAck,
    MessageType.VALUES: Values,
    MessageType.PONG: Pong,
    MessageType.DICT_PART: DictPart,
    MessageType.ECHO_REPLY: EchoReply,
}
