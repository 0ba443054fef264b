"""The wire as the board needs it. Generated from protocol/jointwire by `python -m jointwire.generate`: do not edit."""

import struct
from array import array

from micropython import const

PROTOCOL_MAJOR = const(1)
PROTOCOL_MINOR = const(0)
MAX_BODY = const(1024)
BROADCAST_NODE = const(255)
SCHEMA_HASH = const(0xDAECDDFF)
KNOT_SIZE = const(8)

MESSAGE_HELLO = const(1)
MESSAGE_READ = const(2)
MESSAGE_WRITE = const(3)
MESSAGE_KNOTS = const(4)
MESSAGE_LOAD = const(5)
MESSAGE_ARM = const(6)
MESSAGE_START = const(7)
MESSAGE_STOP = const(8)
MESSAGE_CLEAR = const(9)
MESSAGE_PING = const(10)
MESSAGE_DATA = const(32)
MESSAGE_STATUS = const(33)
MESSAGE_FAULT = const(34)
MESSAGE_ACK = const(64)
MESSAGE_HELLO_ACK = const(65)
MESSAGE_VALUES = const(66)
MESSAGE_PONG = const(67)

STATE_BOOT = const(0)
STATE_DISARMED = const(1)
STATE_LOADED = const(2)
STATE_ARMED = const(3)
STATE_RUNNING = const(4)
STATE_DONE = const(5)
STATE_FAULT = const(6)

TRIP_NONE = const(0)
TRIP_OVER_CURRENT = const(1)
TRIP_POSITION = const(2)
TRIP_VELOCITY = const(3)
TRIP_FOLLOWING = const(4)
TRIP_LINK_LOSS = const(5)
TRIP_INTERNAL = const(6)

REFUSAL_OK = const(0)
REFUSAL_BAD_LENGTH = const(1)
REFUSAL_UNKNOWN_MESSAGE = const(2)
REFUSAL_WRONG_STATE = const(3)
REFUSAL_UNKNOWN_REGISTER = const(4)
REFUSAL_READ_ONLY = const(5)
REFUSAL_OUT_OF_RANGE = const(6)
REFUSAL_BAD_TOKEN = const(7)
REFUSAL_BAD_CRC = const(8)
REFUSAL_INCOMPLETE = const(9)
REFUSAL_TOO_LONG = const(10)
REFUSAL_OUTSIDE_LIMITS = const(11)
REFUSAL_NOT_AT_START = const(12)
REFUSAL_TOO_LATE = const(13)

UNSEEDED = (MESSAGE_HELLO, MESSAGE_HELLO_ACK)

# protocol, type, node, flags, seq, length, time_us
HEADER = "<BBBBHHL"
HEADER_SIZE = const(12)

# Message: (struct format of the head, its bytes, bytes of a repeated item whose count is the last field)
BODIES = {
    # major, minor
    MESSAGE_HELLO: ("<BB", 2, 0),
    # first, count
    MESSAGE_READ: ("<HH", 4, 0),
    # register, value
    MESSAGE_WRITE: ("<Hl", 6, 0),
    # offset, count, knots
    MESSAGE_KNOTS: ("<HH", 4, 8),
    # count, repeats, crc32
    MESSAGE_LOAD: ("<HHL", 8, 0),
    # token
    MESSAGE_ARM: ("<L", 4, 0),
    # at_tick
    MESSAGE_START: ("<L", 4, 0),
    MESSAGE_STOP: ("<", 0, 0),
    MESSAGE_CLEAR: ("<", 0, 0),
    # nonce
    MESSAGE_PING: ("<L", 4, 0),
    # first_tick, count, channels, missed, play_tick
    MESSAGE_DATA: ("<LBBHl", 12, 0),
    # state, trip, reserved, tick, samples_taken, samples_dropped, frames_sent, frames_dropped, ticks_missed,
    # bad_frames, heap_free
    MESSAGE_STATUS: ("<BBHLLLLLLLL", 36, 0),
    # trip, state, reserved, tick, value, limit
    MESSAGE_FAULT: ("<BBHLll", 16, 0),
    # request, refusal, request_seq, value
    MESSAGE_ACK: ("<BBHl", 8, 0),
    # major, minor, state, reset_cause, schema_hash, firmware_version, uid, image_sha256, token, tick, max_knots,
    # max_block
    MESSAGE_HELLO_ACK: ("<BBBBLL8s32sLLHH", 64, 0),
    # first, count, values
    MESSAGE_VALUES: ("<HH", 4, 4),
    # nonce, tick
    MESSAGE_PONG: ("<LL", 8, 0),
}

REGISTER_BOARD_NODE = const(0)
REGISTER_BOARD_TICK_PERIOD = const(1)
REGISTER_ADC_OVERSAMPLES = const(2)
REGISTER_ADC_WINDOW = const(3)
REGISTER_CURRENT_SCALE = const(4)
REGISTER_CURRENT_ZERO = const(5)
REGISTER_TORQUE_SCALE = const(6)
REGISTER_TORQUE_ZERO = const(7)
REGISTER_ENCODER_MOTOR_COUNTS = const(8)
REGISTER_ENCODER_LINK_COUNTS = const(9)
REGISTER_ENCODER_LINK_ZERO = const(10)
REGISTER_DRIVE_RATIO = const(11)
REGISTER_KNOTS_TICKS = const(12)
REGISTER_FILTER_B0 = const(16)
REGISTER_FILTER_B1 = const(17)
REGISTER_FILTER_B2 = const(18)
REGISTER_FILTER_A1 = const(19)
REGISTER_FILTER_A2 = const(20)
REGISTER_SERVO_KP = const(24)
REGISTER_SERVO_KD = const(25)
REGISTER_SERVO_VELOCITY_FEEDFORWARD = const(26)
REGISTER_LIMIT_CURRENT = const(32)
REGISTER_LIMIT_POSITION_MIN = const(33)
REGISTER_LIMIT_POSITION_MAX = const(34)
REGISTER_LIMIT_VELOCITY = const(35)
REGISTER_LIMIT_FOLLOWING = const(36)
REGISTER_LIMIT_LINK_TIMEOUT = const(37)
REGISTER_STREAM_CHANNELS = const(40)
REGISTER_STREAM_BLOCK = const(41)
REGISTER_STREAM_ALWAYS = const(42)

# By id. Access: 0 no such register, 1 read only, 2 writable, 3 writable while the motor cannot move.
REGISTER_COUNT = const(43)
ACCESS = bytes((
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 3, 3, 3, 3, 3, 0, 0, 0, 3, 3, 3, 0, 0, 0, 0, 0, 3, 3, 3, 3, 3, 3, 0,
    0, 3, 3, 2,
))
DEFAULT = array("i", (
    1, 1000, 16, 1000, 305176, 0, 1000, 0, 4096, 524288, 0, 101000, 32, 0, 0, 0, 16384, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 1000, -65536, 65536, 25600, 4096, 500, 0, 0, 31, 64, 0,
))
MINIMUM = array("i", (
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -65535, -65535, -65535, -32767, -16384, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, -1073741824, -1073741824, 0, 0, 50, 0, 0, 1, 1, 0,
))
MAXIMUM = array("i", (
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 65535, 65535, 65535, 32767, 16384, 0, 0, 0, 32767, 32767, 32767, 0,
    0, 0, 0, 0, 32000, 1073741824, 1073741824, 1048576, 65535, 2000, 0, 0, 31, 64, 1,
))
# The facts of a board by name, for its configuration file.
FACTS = {
    "board.node": 0,
    "board.tick_period": 1,
    "adc.oversamples": 2,
    "adc.window": 3,
    "current.scale": 4,
    "current.zero": 5,
    "torque.scale": 6,
    "torque.zero": 7,
    "encoder.motor_counts": 8,
    "encoder.link_counts": 9,
    "encoder.link_zero": 10,
    "drive.ratio": 11,
    "knots.ticks": 12,
}

# Bytes in a sample of channel 0, 1, …: motor_current, motor_position, link_position, joint_torque, current_command
CHANNEL_SIZES = bytes((2, 4, 4, 2, 2))

def pack(kind, buffer, at, *fields):
    """Body (or its head, before repeated items) of message `kind` into `buffer` from byte `at`."""
    struct.pack_into(BODIES[kind][0], buffer, at, *fields)


def unpack(kind, buffer, at, length):
    """Fields of a body of `length` bytes; None when the message has another length. Repeated items stay in place."""
    head, size, item = BODIES[kind]
    if length < size:
        return None
    fields = struct.unpack_from(head, buffer, at)
    return fields if length == size + (fields[-1] * item if item else 0) else None
