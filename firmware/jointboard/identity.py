"""Who this board is: the HELLO_ACK, whose layout is frozen so that any host can read it."""

import jointboard
from jointboard import framing, playback, publish, registers, sampling, tick, wire
from jointboard.registers import cells

_board = None
_image = b""


def attach(board, image):
    global _board, _image
    _board = board
    _image = image


def image():
    return _image


def features():
    bits = wire.FEATURE_CURRENT_FILTER | wire.FEATURE_SAVE | wire.FEATURE_REPL
    if registers.has_motor():
        bits |= wire.FEATURE_PLAYBACK
    if cells[wire.REGISTER_BOARD_SHARED_LINE]:
        bits |= wire.FEATURE_SHARED_LINE
    if _board.sync_input:
        bits |= wire.FEATURE_SYNC_INPUT
    return bits


def introduce(token):
    """Send HELLO_ACK."""
    rate_Hz, bits, reference_mV = _board.adc
    publish.answer(
        wire.MESSAGE_HELLO_ACK, wire.PROTOCOL_MAJOR, wire.PROTOCOL_MINOR, cells[tick.STATE], _board.reset_cause,
        wire.SCHEMA_HASH, jointboard.VERSION, features(), token, publish.now_tick(), _board.clock_Hz, rate_Hz,
        cells[wire.REGISTER_ENCODER_MOTOR_COUNTS], cells[wire.REGISTER_ENCODER_LINK_COUNTS], reference_mV, bits,
        _board.encoder_source, _board.receive_buffer, framing.RING, playback.MAX_KNOTS, sampling.MAX_BLOCK,
        _board.uid, _board.kind.encode(), _image,
    )  # fmt: skip
