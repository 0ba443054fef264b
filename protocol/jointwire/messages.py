"""Every message of the wire, as construct structs: the one definition that the rest is derived from.

A frame is ``COBS(header | body | CRC-32) 0x00``, little-endian, body at most `MAX_BODY` bytes. The CRC starts from the
schema hash, so a board with another schema is never read as data; HELLO and HELLO_ACK alone start from zero and keep
their layout for ever, so that any two versions can say who they are.
"""

from enum import IntEnum

from construct import Array, Bytes, Const, Int8ul, Int16ul, Int32sl, Int32ul, Struct, this

PROTOCOL_MAJOR = 1
PROTOCOL_MINOR = 0
MAX_BODY = 1024
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
    DATA = 0x20
    STATUS = 0x21
    FAULT = 0x22
    ACK = 0x40
    HELLO_ACK = 0x41
    VALUES = 0x42
    PONG = 0x43


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


HEADER = Struct(
    "protocol" / Const(PROTOCOL_MAJOR, Int8ul),
    "type" / Int8ul,
    "node" / Int8ul,
    "flags" / Int8ul,
    "seq" / Int16ul,
    "length" / Int16ul,
    "time_us" / Int32ul,
)

# Position in motor encoder counts from the joint's zero; velocity in counts per tick, Q8.
KNOT = Struct("position" / Int32sl, "velocity" / Int32sl)

EMPTY = Struct()

BODIES: dict[MessageType, Struct] = {
    MessageType.HELLO: Struct("major" / Int8ul, "minor" / Int8ul),
    MessageType.HELLO_ACK: Struct(
        "major" / Int8ul,
        "minor" / Int8ul,
        "state" / Int8ul,
        "reset_cause" / Int8ul,
        "schema_hash" / Int32ul,
        "firmware_version" / Int32ul,  # 0x00MMmmpp
        "uid" / Bytes(8),
        "image_sha256" / Bytes(32),
        "token" / Int32ul,  # what the next ARM must carry
        "tick" / Int32ul,
        "max_knots" / Int16ul,
        "max_block" / Int16ul,
    ),
    MessageType.READ: Struct("first" / Int16ul, "count" / Int16ul),
    MessageType.VALUES: Struct("first" / Int16ul, "count" / Int16ul, "values" / Array(this.count, Int32sl)),
    MessageType.WRITE: Struct("register" / Int16ul, "value" / Int32sl),
    MessageType.KNOTS: Struct("offset" / Int16ul, "count" / Int16ul, "knots" / Array(this.count, KNOT)),
    MessageType.LOAD: Struct("count" / Int16ul, "repeats" / Int16ul, "crc32" / Int32ul),
    MessageType.ARM: Struct("token" / Int32ul),
    MessageType.START: Struct("at_tick" / Int32ul),  # 0: at the next tick
    MessageType.STOP: EMPTY,
    MessageType.CLEAR: EMPTY,
    MessageType.PING: Struct("nonce" / Int32ul),
    MessageType.PONG: Struct("nonce" / Int32ul, "tick" / Int32ul),
    MessageType.ACK: Struct(
        "request" / Int8ul, "refusal" / Int8ul, "request_seq" / Int16ul, "value" / Int32sl
    ),
    MessageType.DATA: Struct(
        "first_tick" / Int32ul,
        "count" / Int8ul,
        "channels" / Int8ul,  # bit mask over channels.CHANNELS; the packed samples follow
        "missed" / Int16ul,  # ticks missed since the last block
        "play_tick" / Int32sl,  # trajectory tick of the first sample, -1 when nothing plays
    ),
    MessageType.STATUS: Struct(
        "state" / Int8ul,
        "trip" / Int8ul,
        "reserved" / Int16ul,
        "tick" / Int32ul,
        "samples_taken" / Int32ul,
        "samples_dropped" / Int32ul,  # taken, but the transmit buffer was full
        "frames_sent" / Int32ul,
        "frames_dropped" / Int32ul,
        "ticks_missed" / Int32ul,
        "bad_frames" / Int32ul,  # received, but COBS, CRC or length was wrong
        "heap_free" / Int32ul,
    ),
    MessageType.FAULT: Struct(
        "trip" / Int8ul, "state" / Int8ul, "reserved" / Int16ul, "tick" / Int32ul, "value" / Int32sl, "limit" / Int32sl
    ),
}

# The seed of these two is zero for ever: they are how strangers find out that they differ.
UNSEEDED = frozenset({MessageType.HELLO, MessageType.HELLO_ACK})
