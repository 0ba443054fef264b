"""Who this board is: the HELLO_ACK, whose layout is frozen so that any host can read it."""

import struct

from micropython import const

import jointboard
from jointboard import framing, registers, sampling, tick, wire
from jointboard import image as slot

BODY = const(12)  # as framing.py has it
STATE_AT = const(14)  # in the frame: what changes, the token with the tick behind it
TOKEN_AT = const(28)
LENGTH = const(144)  # of the body
MESSAGE_HELLO_ACK = const(65)
STATE = const(133)  # as tick.py has it
ROOM = const(4)  # bytes behind the body: its CRC
NAME = const(16)  # bytes of what a module is called
NO_MODULE = (b"", b"")

assert (BODY, LENGTH) == (framing.BODY, wire.BODIES[wire.MESSAGE_HELLO_ACK][1])
assert (MESSAGE_HELLO_ACK, STATE) == (wire.MESSAGE_HELLO_ACK, tick.STATE)


def module_of(config):
    """Type and serial number of the module that the board is built into, as its config.json says."""
    module = config.get("module")
    if module is None:
        return NO_MODULE
    try:
        said = tuple([module[key].encode() for key in ("type", "serial")])
    except (KeyError, TypeError, AttributeError):
        said = ()
    for name in said:
        if not 0 < len(name) <= NAME or not all([33 <= letter < 127 for letter in name]):
            said = ()
    if not said or len(module) > len(said):
        raise ValueError(
            'config.json: module is %r, must be {"type": ..., "serial": ...}, each of 1 to 16 ASCII characters '
            "without spaces" % (module,)
        )
    return said


def features(cells, board):
    bits = wire.FEATURE_CURRENT_FILTER | wire.FEATURE_SAVE | wire.FEATURE_REPL
    if registers.has_motor(cells):
        bits |= wire.FEATURE_PLAYBACK
    if cells[wire.REGISTER_BOARD_SHARED_LINE]:
        bits |= wire.FEATURE_SHARED_LINE
    if board.sync_input:
        bits |= wire.FEATURE_SYNC_INPUT
    if slot.signed_only:
        bits |= wire.FEATURE_SIGNED_ONLY
    if slot.refused:
        bits |= wire.FEATURE_IMAGE_REFUSED
    return bits


def describe(motor):
    """Make the HELLO_ACK's frame, all that does not change from one to the next; to look all that up takes 1 ms."""
    board, cells = motor.board, motor.cells
    rate_Hz, bits, reference_mV = board.adc
    motor.introduction = bytearray(BODY + LENGTH + ROOM)
    wire.pack(
        MESSAGE_HELLO_ACK, motor.introduction, BODY, wire.PROTOCOL_MAJOR, wire.PROTOCOL_MINOR, 0, board.reset_cause,
        wire.SCHEMA_HASH, jointboard.VERSION, features(cells, board), 0, 0, board.clock_Hz, rate_Hz,
        cells[wire.REGISTER_ENCODER_MOTOR_COUNTS], cells[wire.REGISTER_ENCODER_LINK_COUNTS], reference_mV, bits,
        board.encoder_source, board.receive_buffer, framing.RING, motor.playback.max_knots, sampling.MAX_BLOCK,
        board.uid, board.kind.encode(), motor.image, *motor.module,
    )  # fmt: skip


def introduce(motor, token):
    """Send HELLO_ACK."""
    if motor.introduction is None:
        describe(motor)
    frame = motor.introduction
    frame[STATE_AT] = motor.cells[STATE]
    struct.pack_into("<LL", frame, TOKEN_AT, token, motor.publisher.now_tick())
    motor.link.send(MESSAGE_HELLO_ACK, frame, LENGTH)
