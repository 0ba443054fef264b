"""Every message of the wire, as construct structs: the one definition that the rest is derived from.

A frame is ``COBS(header | body | CRC-32) 0x00``, little-endian, body at most `MAX_BODY` bytes. The CRC starts from the
schema hash, so a board with another schema is never read as data. The `FROZEN` messages alone start from zero and keep
header and layout for ever (fields may be added at their end), whatever `protocol` says: through them any two versions
can say who they are and what they know, stop a motor, and hand the port over for new firmware.

On a line that several boards share, a board speaks only in its turn: a valid frame to its node gives it the line until
it has sent what it had queued, with YIELD as the last frame. Frames to every node (`BROADCAST_NODE`) are not answered
there.
"""

from dataclasses import dataclass
from enum import IntEnum, IntFlag

from construct import Array, Bytes, Const, Int8ul, Int16sl, Int16ul, Int32sl, Int32ul, Struct, this

PROTOCOL_MAJOR = 1
PROTOCOL_MINOR = 6
MAX_BODY = 1104
BROADCAST_NODE = 0xFF


class MessageType(IntEnum):
    """What a frame carries; host to board below 0x20, the board's stream from 0x20, answers from 0x40."""

    HELLO = 0x01
    READ = 0x02
    WRITE = 0x03
    KNOTS = 0x04
    LOAD = 0x05
    ARM = 0x06
    START = 0x07
    STOP = 0x08
    CLEAR = 0x09
    PING = 0x0A
    DICT = 0x0B
    ECHO = 0x0C
    SAVE = 0x0D
    REPL = 0x0E
    CONFIRM = 0x0F
    HALT = 0x10
    FEEDFORWARD = 0x11
    COMPENSATE = 0x12
    DATA = 0x20
    STATUS = 0x21
    FAULT = 0x22
    SYNC = 0x23
    YIELD = 0x24
    ACK = 0x40
    HELLO_ACK = 0x41
    VALUES = 0x42
    PONG = 0x43
    DICT_PART = 0x44
    ECHO_REPLY = 0x45


FIRST_FROM_BOARD = 0x20  # types below are requests; a board on a shared line hears others' answers and leaves them


class State(IntEnum):
    """Where a board stands; its motor can be driven in ARMED and RUNNING only."""

    BOOT = 0
    DISARMED = 1
    LOADED = 2
    ARMED = 3
    RUNNING = 4
    DONE = 5
    FAULT = 6


class Trip(IntEnum):
    """Why a board went to FAULT."""

    NONE = 0
    OVER_CURRENT = 1
    POSITION = 2
    VELOCITY = 3
    FOLLOWING = 4
    LINK_LOSS = 5
    INTERNAL = 6
    I2T = 7
    ENCODER_JUMP = 8
    ENCODER_STUCK = 9
    SUPPLY = 10
    TEMPERATURE = 11
    OVERRUN = 12
    COMMAND = 13
    PARTNER = 14
    HARDWARE = 19
    STOP_PIN = 15
    FAULT_PIN = 16
    LIMIT_PIN = 17
    TWIST = 18
    UNEXPECTED = 20


class Refusal(IntEnum):
    """What an ACK answers: OK, or why the request was not carried out."""

    OK = 0
    BAD_LENGTH = 1
    UNKNOWN_MESSAGE = 2
    WRONG_STATE = 3
    UNKNOWN_REGISTER = 4
    READ_ONLY = 5
    OUT_OF_RANGE = 6
    BAD_TOKEN = 7
    BAD_CRC = 8
    INCOMPLETE = 9
    TOO_LONG = 10
    OUTSIDE_LIMITS = 11
    NOT_AT_START = 12
    TOO_LATE = 13
    BAD_CONFIG = 14
    NOT_SAVED = 15
    NO_MOTOR = 16
    PINS = 17
    BRAKE = 18
    FEEDFORWARD = 19
    TABLE = 20
    NO_MEMORY = 21


class ResetCause(IntEnum):
    """Why the board last started."""

    UNKNOWN = 0
    POWER_ON = 1
    RESET_PIN = 2
    WATCHDOG = 3
    WAKE_UP = 4
    SOFT = 5


class EncoderSource(IntEnum):
    """What counts the motor encoder's edges."""

    NONE = 0
    TIMER = 1
    PIO = 2
    SOFTWARE = 3
    EMULATED = 4


class Feature(IntFlag):
    """What a board can do beyond sampling and streaming."""

    PLAYBACK = 1
    CURRENT_FILTER = 2
    SHARED_LINE = 4  # it is on a line with other boards and speaks only in its turn
    SYNC_INPUT = 8
    SAVE = 16
    REPL = 32
    SIGNED_ONLY = 64  # its loader has a key and starts only images that are signed by it
    IMAGE_REFUSED = 128  # the loader has refused a slot for its signature, and started the other one


HEADER = Struct(
    "protocol" / Const(PROTOCOL_MAJOR, Int8ul) * "major version; not looked at in a frozen message",
    "type" / Int8ul * "MessageType",
    "node" / Int8ul * "the board that is spoken to, or that speaks; 255: every board",
    "flags" / Int8ul * "0",
    "seq" / Int16ul * "counts the sender's frames, wraps",
    "length" / Int16ul * "bytes of the body",
    "time_us" / Int32ul * "sender's clock [µs], wraps; a board's at its last tick, but of a PONG when it is built",
)

KNOT = Struct(
    "position" / Int32sl * "motor encoder counts from the joint's zero", "velocity" / Int32sl * "counts per tick, Q8"
)

EMPTY = Struct()

BODIES: dict[MessageType, Struct] = {
    MessageType.HELLO: Struct("major" / Int8ul * "protocol of the host", "minor" / Int8ul * "protocol of the host"),
    MessageType.HELLO_ACK: Struct(
        "major" / Int8ul * "protocol of the board",
        "minor" / Int8ul * "protocol of the board",
        "state" / Int8ul * "State",
        "reset_cause" / Int8ul * "ResetCause",
        "schema_hash" / Int32ul * "CRC-32 of its schema text",
        "firmware_version" / Int32ul * "0x00MMmmpp",
        "features" / Int32ul * "Feature bits",
        "token" / Int32ul * "what the next ARM must carry",
        "tick" / Int32ul * "its tick counter",
        "clock_Hz" / Int32ul * "of the processor, 0 where there is none to speak of",
        "adc_rate_Hz" / Int32ul * "ADC samples in a second, each channel",
        "motor_counts" / Int32ul * "motor encoder counts in a turn",
        "link_counts" / Int32ul * "link encoder counts in a turn",
        "adc_reference_mV" / Int16ul * "at full scale",
        "adc_bits" / Int8ul * "resolution",
        "encoder_source" / Int8ul * "EncoderSource",
        "receive_buffer" / Int16ul * "bytes",
        "transmit_buffer" / Int16ul * "bytes",
        "max_knots" / Int16ul * "longest trajectory",
        "max_block" / Int16ul * "most ticks in a DATA frame",
        "uid" / Bytes(12) * "of the chip; shorter ones end in zeros",
        "board" / Bytes(16) * "kind of board, ASCII, zeros after it",
        "image_sha256" / Bytes(32) * "over its firmware's files in name order: path, a zero byte, SHA-256",
        "module_type" / Bytes(16) * "of the module it is built into, ASCII, zeros after it; since 1.2",
        "module_serial" / Bytes(16) * "of that module, likewise; since 1.2",
    ),
    MessageType.READ: Struct("first" / Int16ul * "register id", "count" / Int16ul * "registers, ids without a gap"),
    MessageType.VALUES: Struct(
        "first" / Int16ul * "register id", "count" / Int16ul * "values", "values" / Array(this.count, Int32sl) * "raw"
    ),
    MessageType.WRITE: Struct("register" / Int16ul * "register id", "value" / Int32sl * "raw"),
    MessageType.KNOTS: Struct(
        "offset" / Int16ul * "index of the first",
        "count" / Int16ul * "knots",
        "knots" / Array(this.count, KNOT) * "position [motor counts], velocity [counts/tick, Q8] of each",
    ),
    MessageType.FEEDFORWARD: Struct(
        "offset" / Int16ul * "index of the first knot",
        "count" / Int16ul * "knots",
        "currents" / Array(this.count, Int16sl) * "feed-forward motor current at each knot [mA]",
    ),
    MessageType.LOAD: Struct(
        "count" / Int16ul * "knots in all",
        "repeats" / Int16ul * "how often it will be played; 0: the currents are a table by which the motor floats",
        "crc32" / Int32ul * "of all knots as KNOTS carries them, then of all currents as FEEDFORWARD carries them",
    ),
    MessageType.COMPENSATE: Struct(
        "nonce" / Int32ul * "any number", "current" / Int32sl * "besides the table's [mA], at most limit.float"
    ),
    MessageType.ARM: Struct(
        "token" / Int32ul * "from the last HELLO_ACK; good once",
        "config_crc" / Int32ul * "CRC-32 of all register values, going on from that of the last LOAD",
    ),
    MessageType.START: Struct("at_tick" / Int32ul * "of the board; 0: the next one"),
    MessageType.STOP: EMPTY,
    MessageType.CLEAR: EMPTY,
    MessageType.HALT: EMPTY,
    MessageType.PING: Struct("nonce" / Int32ul * "any number"),
    MessageType.PONG: Struct("nonce" / Int32ul * "of the PING", "tick" / Int32ul * "last tick"),
    MessageType.DICT: Struct("offset" / Int16ul * "first byte asked for"),
    MessageType.DICT_PART: Struct(
        "offset" / Int16ul * "of the first byte",
        "total" / Int16ul * "bytes of the whole",
        "count" / Int16ul * "bytes in this part",
        "data" / Bytes(this.count) * "of the compressed schema text",
    ),
    MessageType.ECHO: Struct("count" / Int16ul * "bytes", "data" / Bytes(this.count) * "anything"),
    MessageType.ECHO_REPLY: Struct("count" / Int16ul * "bytes", "data" / Bytes(this.count) * "those of the ECHO"),
    MessageType.SAVE: EMPTY,
    MessageType.REPL: EMPTY,
    MessageType.CONFIRM: Struct("image_sha256" / Bytes(32) * "as in its HELLO_ACK: only this image may stay"),
    MessageType.ACK: Struct(
        "request" / Int8ul * "MessageType it answers",
        "refusal" / Int8ul * "Refusal",
        "request_seq" / Int16ul * "seq of the request",
        "value" / Int32sl * "what a refusal is about (see Refusal); else what the request led to",
    ),
    MessageType.DATA: Struct(
        "first_tick" / Int32ul * "of the block",
        "dividers" / Int32ul * "four bits a ChannelKind from the lowest: e, sampled at each tick that 2^e divides",
        "play_tick" / Int32sl * "trajectory tick of the first tick, -1 when nothing plays",
        "channels" / Int16ul * "bit mask of the channels; the packed samples follow, tick by tick",
        "missed" / Int16ul * "ticks missed since the last block that was sent, 65535 at most",
        "count" / Int8ul * "ticks in the block",
        "state" / Int8ul * "State when the block was closed",
        "late_us" / Int16ul * "after its tick, the block's only sample was taken; 0: all were in time, to 20 µs",
    ),
    MessageType.STATUS: Struct(
        "state" / Int8ul * "State",
        "trip" / Int8ul * "Trip",
        "reserved" / Int16ul * "0",
        "tick" / Int32ul * "last tick",
        "samples_taken" / Int32ul * "since boot, wraps, as all that follow up to bad_frames",
        "samples_dropped" / Int32ul * "taken, but the transmit buffer was full",
        "frames_sent" / Int32ul * "this one not counted",
        "frames_dropped" / Int32ul * "the transmit buffer was full",
        "ticks_missed" / Int32ul * "not carried out in time",
        "frames_received" / Int32ul * "valid, and to this node",
        "bad_frames" / Int32ul * "COBS, length, CRC or protocol was wrong; not of those between others on its line",
        "heap_free" / Int32ul * "bytes, when memory was last collected with the motor at rest",
        "longest_tick_us" / Int32ul * "from a tick to its work's end since the last STATUS; 0 without such a clock",
        "longest_gc_us" / Int32ul * "pause to collect memory; 0 without a clock that runs then",
        "mean_tick_us" / Int32ul * "as longest_tick_us, on average; 0 where nobody counts it",
    ),
    MessageType.FAULT: Struct(
        "trip" / Int8ul * "Trip",
        "state" / Int8ul * "State, FAULT",
        "reserved" / Int16ul * "0",
        "tick" / Int32ul * "when",
        "value" / Int32sl * "what was measured, in the unit of the limit's register",
        "limit" / Int32sl * "what was allowed",
    ),
    MessageType.SYNC: Struct(
        "edge" / Int32ul * "edges on the SYNC line since boot", "edge_us" / Int32ul * "board clock at this one"
    ),
    MessageType.YIELD: EMPTY,
}

# Their CRC starts from zero for ever: they are how strangers find out that they differ.
FROZEN = frozenset(
    {
        MessageType.HELLO,
        MessageType.HELLO_ACK,
        MessageType.DICT,
        MessageType.DICT_PART,
        MessageType.STOP,
        MessageType.REPL,
        MessageType.ACK,
        MessageType.YIELD,
    }
)

APPENDED: dict[MessageType, int] = {MessageType.HELLO_ACK: 32}
"""Bytes at the end of a frozen body that boards of protocol 1.1 do not send; a receiver reads them as zeros."""


@dataclass(frozen=True)
class Answer:
    """What a request is answered with when nothing is wrong; else it is an ACK that says why.

    Attributes:
        type: of the answer.
        echoed: fields that it repeats from the request, so that it is known which one it answers. An ACK carries the
            request's type and sequence instead.
    """

    type: MessageType
    echoed: tuple[str, ...] = ()


_ACK = Answer(MessageType.ACK)

ANSWERS: dict[MessageType, Answer] = {
    MessageType.HELLO: Answer(MessageType.HELLO_ACK),
    MessageType.READ: Answer(MessageType.VALUES, ("first", "count")),
    MessageType.WRITE: _ACK,
    MessageType.KNOTS: _ACK,
    MessageType.FEEDFORWARD: _ACK,
    MessageType.COMPENSATE: Answer(MessageType.PONG, ("nonce",)),
    MessageType.LOAD: _ACK,
    MessageType.ARM: _ACK,
    MessageType.START: _ACK,
    MessageType.STOP: _ACK,
    MessageType.CLEAR: _ACK,
    MessageType.HALT: _ACK,
    MessageType.PING: Answer(MessageType.PONG, ("nonce",)),
    MessageType.DICT: Answer(MessageType.DICT_PART, ("offset",)),
    MessageType.ECHO: Answer(MessageType.ECHO_REPLY, ("count", "data")),
    MessageType.SAVE: _ACK,
    MessageType.REPL: _ACK,
    MessageType.CONFIRM: _ACK,
}
