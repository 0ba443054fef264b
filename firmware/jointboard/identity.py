"""Who this board is: the HELLO_ACK, whose layout is frozen so that any host can read it."""

import jointboard
from jointboard import framing, registers, sampling, tick, wire
from jointboard import image as slot


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


def introduce(motor, token):
    """Send HELLO_ACK."""
    board, cells = motor.board, motor.cells
    rate_Hz, bits, reference_mV = board.adc
    motor.publisher.answer(
        wire.MESSAGE_HELLO_ACK, wire.PROTOCOL_MAJOR, wire.PROTOCOL_MINOR, cells[tick.STATE], board.reset_cause,
        wire.SCHEMA_HASH, jointboard.VERSION, features(cells, board), token, motor.publisher.now_tick(), board.clock_Hz,
        rate_Hz, cells[wire.REGISTER_ENCODER_MOTOR_COUNTS], cells[wire.REGISTER_ENCODER_LINK_COUNTS], reference_mV,
        bits, board.encoder_source, board.receive_buffer, framing.RING, motor.playback.max_knots, sampling.MAX_BLOCK,
        board.uid, board.kind.encode(), motor.image,
    )  # fmt: skip
