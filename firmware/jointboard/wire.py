"""The wire as the board needs it. Generated from protocol/jointwire, do not edit: `python -m jointwire.generate`"""

import struct
from array import array

from micropython import const

PROTOCOL_MAJOR = const(1)
PROTOCOL_MINOR = const(6)
MAX_BODY = const(1104)
BROADCAST_NODE = const(255)
SCHEMA_HASH = const(0x638CEADF)
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
MESSAGE_DICT = const(11)
MESSAGE_ECHO = const(12)
MESSAGE_SAVE = const(13)
MESSAGE_REPL = const(14)
MESSAGE_CONFIRM = const(15)
MESSAGE_HALT = const(16)
MESSAGE_FEEDFORWARD = const(17)
MESSAGE_COMPENSATE = const(18)
MESSAGE_DATA = const(32)
MESSAGE_STATUS = const(33)
MESSAGE_FAULT = const(34)
MESSAGE_SYNC = const(35)
MESSAGE_YIELD = const(36)
MESSAGE_ACK = const(64)
MESSAGE_HELLO_ACK = const(65)
MESSAGE_VALUES = const(66)
MESSAGE_PONG = const(67)
MESSAGE_DICT_PART = const(68)
MESSAGE_ECHO_REPLY = const(69)

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
TRIP_I2T = const(7)
TRIP_ENCODER_JUMP = const(8)
TRIP_ENCODER_STUCK = const(9)
TRIP_SUPPLY = const(10)
TRIP_TEMPERATURE = const(11)
TRIP_OVERRUN = const(12)
TRIP_COMMAND = const(13)
TRIP_PARTNER = const(14)
TRIP_HARDWARE = const(19)
TRIP_STOP_PIN = const(15)
TRIP_FAULT_PIN = const(16)
TRIP_LIMIT_PIN = const(17)
TRIP_TWIST = const(18)
TRIP_UNEXPECTED = const(20)

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
REFUSAL_BAD_CONFIG = const(14)
REFUSAL_NOT_SAVED = const(15)
REFUSAL_NO_MOTOR = const(16)
REFUSAL_PINS = const(17)
REFUSAL_BRAKE = const(18)
REFUSAL_FEEDFORWARD = const(19)
REFUSAL_TABLE = const(20)
REFUSAL_NO_MEMORY = const(21)

RESET_CAUSE_UNKNOWN = const(0)
RESET_CAUSE_POWER_ON = const(1)
RESET_CAUSE_RESET_PIN = const(2)
RESET_CAUSE_WATCHDOG = const(3)
RESET_CAUSE_WAKE_UP = const(4)
RESET_CAUSE_SOFT = const(5)

ENCODER_SOURCE_NONE = const(0)
ENCODER_SOURCE_TIMER = const(1)
ENCODER_SOURCE_PIO = const(2)
ENCODER_SOURCE_SOFTWARE = const(3)
ENCODER_SOURCE_EMULATED = const(4)

FEATURE_PLAYBACK = const(1)
FEATURE_CURRENT_FILTER = const(2)
FEATURE_SHARED_LINE = const(4)
FEATURE_SYNC_INPUT = const(8)
FEATURE_SAVE = const(16)
FEATURE_REPL = const(32)
FEATURE_SIGNED_ONLY = const(64)
FEATURE_IMAGE_REFUSED = const(128)

CHANNEL_KIND_MOTOR_CURRENT = const(0)
CHANNEL_KIND_MOTOR_ENCODER = const(1)
CHANNEL_KIND_LINK_ENCODER = const(2)
CHANNEL_KIND_TORQUE_SENSOR = const(3)
CHANNEL_KIND_COMMAND = const(4)
CHANNEL_KIND_BUS_VOLTAGE = const(5)
CHANNEL_KIND_TEMPERATURE = const(6)
CHANNEL_KIND_FOOT_FORCE = const(7)

FROZEN = ((
    MESSAGE_HELLO, MESSAGE_STOP, MESSAGE_DICT, MESSAGE_REPL, MESSAGE_YIELD, MESSAGE_ACK, MESSAGE_HELLO_ACK,
    MESSAGE_DICT_PART,
))

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
    # token, config_crc
    MESSAGE_ARM: ("<LL", 8, 0),
    # at_tick
    MESSAGE_START: ("<L", 4, 0),
    MESSAGE_STOP: ("<", 0, 0),
    MESSAGE_CLEAR: ("<", 0, 0),
    # nonce
    MESSAGE_PING: ("<L", 4, 0),
    # offset
    MESSAGE_DICT: ("<H", 2, 0),
    # count, data
    MESSAGE_ECHO: ("<H", 2, 1),
    MESSAGE_SAVE: ("<", 0, 0),
    MESSAGE_REPL: ("<", 0, 0),
    # image_sha256
    MESSAGE_CONFIRM: ("<32s", 32, 0),
    MESSAGE_HALT: ("<", 0, 0),
    # offset, count, currents
    MESSAGE_FEEDFORWARD: ("<HH", 4, 2),
    # nonce, current
    MESSAGE_COMPENSATE: ("<Ll", 8, 0),
    # first_tick, dividers, play_tick, channels, missed, count, state, late_us
    MESSAGE_DATA: ("<LLlHHBBH", 20, 0),
    # state, trip, reserved, tick, samples_taken, samples_dropped, frames_sent, frames_dropped, ticks_missed,
    # frames_received, bad_frames, heap_free, longest_tick_us, longest_gc_us, mean_tick_us
    MESSAGE_STATUS: ("<BBHLLLLLLLLLLLL", 52, 0),
    # trip, state, reserved, tick, value, limit
    MESSAGE_FAULT: ("<BBHLll", 16, 0),
    # edge, edge_us
    MESSAGE_SYNC: ("<LL", 8, 0),
    MESSAGE_YIELD: ("<", 0, 0),
    # request, refusal, request_seq, value
    MESSAGE_ACK: ("<BBHl", 8, 0),
    # major, minor, state, reset_cause, schema_hash, firmware_version, features, token, tick, clock_Hz, adc_rate_Hz,
    # motor_counts, link_counts, adc_reference_mV, adc_bits, encoder_source, receive_buffer, transmit_buffer, max_knots,
    # max_block, uid, board, image_sha256, module_type, module_serial
    MESSAGE_HELLO_ACK: ("<BBBBLLLLLLLLLHBBHHHH12s16s32s16s16s", 144, 0),
    # first, count, values
    MESSAGE_VALUES: ("<HH", 4, 4),
    # nonce, tick
    MESSAGE_PONG: ("<LL", 8, 0),
    # offset, total, count, data
    MESSAGE_DICT_PART: ("<HHH", 6, 1),
    # count, data
    MESSAGE_ECHO_REPLY: ("<H", 2, 1),
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
REGISTER_BOARD_CHANNELS = const(13)
REGISTER_BOARD_SHARED_LINE = const(14)
REGISTER_VOLTAGE_SCALE = const(15)
REGISTER_ADC_CIC_ORDER = const(16)
REGISTER_VELOCITY_SOURCE = const(17)
REGISTER_VELOCITY_ALPHA = const(18)
REGISTER_VELOCITY_BETA = const(19)
REGISTER_SERVO_KI = const(20)
REGISTER_TEMPERATURE_SCALE = const(21)
REGISTER_TEMPERATURE_ZERO = const(22)
REGISTER_FORCE_SCALE = const(23)
REGISTER_SERVO_KP = const(24)
REGISTER_SERVO_KD = const(25)
REGISTER_SERVO_VELOCITY_FEEDFORWARD = const(26)
REGISTER_FORCE_ZERO_1 = const(27)
REGISTER_FORCE_ZERO_2 = const(28)
REGISTER_FORCE_ZERO_3 = const(29)
REGISTER_FORCE_ZERO_4 = const(30)
REGISTER_ENCODER_CAPTURE_CLOCK = const(31)
REGISTER_LIMIT_CURRENT = const(32)
REGISTER_LIMIT_POSITION_MIN = const(33)
REGISTER_LIMIT_POSITION_MAX = const(34)
REGISTER_LIMIT_VELOCITY = const(35)
REGISTER_LIMIT_FOLLOWING = const(36)
REGISTER_LIMIT_LINK_TIMEOUT = const(37)
REGISTER_HARD_CURRENT = const(38)
REGISTER_HARD_VELOCITY = const(39)
REGISTER_STREAM_CHANNELS = const(40)
REGISTER_STREAM_BLOCK = const(41)
REGISTER_STREAM_ALWAYS = const(42)
REGISTER_STREAM_EVERY_MOTOR_CURRENT = const(43)
REGISTER_STREAM_EVERY_MOTOR_ENCODER = const(44)
REGISTER_STREAM_EVERY_LINK_ENCODER = const(45)
REGISTER_STREAM_EVERY_TORQUE_SENSOR = const(46)
REGISTER_STREAM_EVERY_COMMAND = const(47)
REGISTER_STREAM_EVERY_BUS_VOLTAGE = const(48)
REGISTER_STREAM_EVERY_TEMPERATURE = const(49)
REGISTER_STREAM_EVERY_FOOT_FORCE = const(50)
REGISTER_SERVO_FRICTION = const(51)
REGISTER_SERVO_FRICTION_BAND = const(52)
REGISTER_LIMIT_CONTINUOUS_CURRENT = const(53)
REGISTER_LIMIT_THERMAL_TIME = const(54)
REGISTER_LIMIT_JUMP = const(55)
REGISTER_LIMIT_STUCK_CURRENT = const(56)
REGISTER_LIMIT_STUCK_TIME = const(57)
REGISTER_LIMIT_SUPPLY_MIN = const(58)
REGISTER_LIMIT_SUPPLY_MAX = const(59)
REGISTER_LIMIT_TEMPERATURE = const(60)
REGISTER_LIMIT_MISSED_TICKS = const(61)
REGISTER_HARD_MISSED_TICKS = const(62)
REGISTER_LIMIT_TWIST = const(63)
REGISTER_FILTER_1_B0 = const(64)
REGISTER_FILTER_1_B1 = const(65)
REGISTER_FILTER_1_B2 = const(66)
REGISTER_FILTER_1_A1 = const(67)
REGISTER_FILTER_1_A2 = const(68)
REGISTER_FILTER_2_B0 = const(69)
REGISTER_FILTER_2_B1 = const(70)
REGISTER_FILTER_2_B2 = const(71)
REGISTER_FILTER_2_A1 = const(72)
REGISTER_FILTER_2_A2 = const(73)
REGISTER_LIMIT_DECELERATION = const(74)
REGISTER_BRAKE_ENGAGE_TIME = const(75)
REGISTER_BRAKE_RELEASE_TIME = const(76)
REGISTER_LIMIT_FEEDFORWARD = const(77)
REGISTER_LIMIT_UNEXPECTED = const(78)
REGISTER_LIMIT_FLOAT = const(79)
REGISTER_FLOAT_TIMEOUT = const(80)
REGISTER_FLOAT_VELOCITY = const(81)
REGISTER_FLOAT_WALL = const(82)
REGISTER_FLOAT_DEAD_BAND = const(83)
REGISTER_FLOAT_HOLD = const(84)
REGISTER_FLOAT_INERTIA = const(85)

# By id. Access: 0 no such register, 1 read only, 2 writable, 3 writable while the motor cannot move,
# 4 the same and kept by SAVE.
REGISTER_COUNT = const(86)
ACCESS = bytes((
    1, 1, 1, 1, 1, 4, 1, 4, 1, 1, 4, 1, 1, 1, 1, 1, 3, 3, 3, 3, 3, 1, 4, 1, 3, 3, 3, 4, 4, 4, 4, 1, 3, 3, 3, 3, 3, 3, 1,
    1, 3, 3, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 1, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 1, 1, 3,
    3, 3, 3, 3, 3, 3, 3, 3,
))
DEFAULT = array("i", (
    1, 1000, 16, 1000, 305176, 0, 1000, 0, 4096, 524288, 0, 101000, 32, 2175, 0, 1000, 1, 0, 128, 512, 0, 10000, -27315,
    10000, 0, 0, 0, 0, 0, 0, 0, 0, 1000, -65536, 65536, 25600, 4096, 500, 32000, 1048576, 127, 64, 0, 0, 0, 0, 0, 0, 6,
    6, 0, 0, 256, 32000, 10000, 32767, 32000, 200, 0, 100000, 37315, 20, 1000, 0, 134217728, 0, 0, 0, 0, 134217728, 0,
    0, 0, 0, 64, 0, 0, 0, 0, 0, 100, 0, 0, 256, 0, 0,
))
MINIMUM = array("i", (
    0, 0, 0, 0, 0, -1073741824, 0, -1073741824, 0, 0, -1073741824, 0, 0, 0, 0, 0, 1, 0, 1, 1, 0, 0, -1073741824, 0, 0,
    0, 0, -1073741824, -1073741824, -1073741824, -1073741824, 0, 0, -1073741824, -1073741824, 0, 0, 50, 0, 0, 1, 1, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 100, 1, 1, 10, 0, 0, 20000, 0, 0, 0, -536870912, -536870912, -536870912,
    -268435455, -134217728, -536870912, -536870912, -536870912, -268435455, -134217728, 1, 0, 0, 0, 0, 0, 20, 0, 0, 0,
    0, 0,
))
MAXIMUM = array("i", (
    0, 0, 0, 0, 0, 1073741824, 0, 1073741824, 0, 0, 1073741824, 0, 0, 0, 0, 0, 2, 1, 256, 1023, 32767, 0, 1073741824, 0,
    32767, 32767, 32767, 1073741824, 1073741824, 1073741824, 1073741824, 0, 32000, 1073741824, 1073741824, 1048576,
    65535, 2000, 0, 0, 32767, 64, 1, 6, 6, 6, 6, 6, 6, 6, 6, 32000, 1048576, 32000, 60000, 32767, 32000, 2000, 100000,
    100000, 50000, 1000, 0, 16777216, 536870912, 536870912, 536870912, 268435455, 134217728, 536870912, 536870912,
    536870912, 268435455, 134217728, 1048576, 0, 0, 32000, 32000, 32000, 2000, 1048576, 65535, 1048576, 65535, 32767,
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
    "board.channels": 13,
    "board.shared_line": 14,
    "voltage.scale": 15,
    "temperature.scale": 21,
    "temperature.zero": 22,
    "force.scale": 23,
    "force.zero_1": 27,
    "force.zero_2": 28,
    "force.zero_3": 29,
    "force.zero_4": 30,
    "encoder.capture_clock": 31,
    "hard.current": 38,
    "hard.velocity": 39,
    "hard.missed_ticks": 62,
    "brake.engage_time": 75,
    "brake.release_time": 76,
}

# Of channel 0, 1, …: motor_current, motor_position, link_position, joint_torque, current_command, bus_voltage,
# temperature, foot_force_1, foot_force_2, foot_force_3, foot_force_4, motor_velocity, bridge_torque, torque_age,
# force_age.
CHANNEL_KINDS = bytes((0, 1, 2, 3, 4, 5, 6, 7, 7, 7, 7, 1, 3, 3, 7))
CHANNEL_SIZES = bytes((2, 4, 4, 2, 2, 2, 2, 2, 2, 2, 2, 4, 2, 2, 2))  # in a sample

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
