"""What each request does. A handler gets the body's fields and returns (refusal, value) for the ACK, or None when it
has answered by a message of its own.

A request that repeats the last one's type and sequence number is answered again and not carried out again: hosts
retransmit. No request that could start the motor comes between a STOP and its repetition.
"""

import struct
from binascii import crc32

import jointboard
from jointboard import link, playback, publish, registers, states, tick, wire
from jointboard.registers import cells

_board = None
_image = b""
_token = None  # what ARM must carry; None once used
_tokens = 0
_last = None  # (type, sequence) of the last request, and what it was answered; None: by a message of its own
_answer = None
_repeated = False


def attach(board, image):
    global _board, _image
    _board = board
    _image = image


def serve():
    """Answer the frame in link.received."""
    global _last, _answer, _repeated
    kind = link.received[1]
    sequence = struct.unpack_from("<H", link.received, 4)[0]
    _repeated = _last == (kind, sequence)
    if not _repeated or _answer is None:
        _answer = _carry_out(kind)
        _last = (kind, sequence)
    if _answer:
        publish.send(wire.MESSAGE_ACK, kind, _answer[0], sequence, _answer[1])


def _carry_out(kind):
    if kind not in _HANDLERS:
        return wire.REFUSAL_UNKNOWN_MESSAGE, kind
    fields = wire.unpack(kind, link.received, link.BODY, link.frame_length)
    if fields is None:
        return wire.REFUSAL_BAD_LENGTH, link.frame_length
    if not states.allowed(kind, cells[tick.STATE]):
        return wire.REFUSAL_WRONG_STATE, cells[tick.STATE]
    return _HANDLERS[kind](*fields)


def _hello(major, minor):
    global _token, _tokens
    if _token is None or not _repeated:  # a retransmitted HELLO must not outdate the answer that is under way
        _tokens += 1
        _token = crc32(struct.pack("<II", _tokens, publish.now_tick()), crc32(_board.uid))
    publish.send(
        wire.MESSAGE_HELLO_ACK, wire.PROTOCOL_MAJOR, wire.PROTOCOL_MINOR, cells[tick.STATE], _board.reset_cause,
        wire.SCHEMA_HASH, jointboard.VERSION, _board.uid, _image, _token, publish.now_tick(), playback.MAX_KNOTS,
        publish.MAX_BLOCK,
    )  # fmt: skip


def _ping(nonce):
    publish.send(wire.MESSAGE_PONG, nonce, publish.now_tick())


def _read(first, count):
    for id in range(first, first + count):
        if not registers.exists(id):
            return wire.REFUSAL_UNKNOWN_REGISTER, id
    publish.send_values(first, count)


def _write(id, value):
    publish.close_block()  # its samples were taken with the old channels
    return registers.write(id, value, not states.at_rest(cells[tick.STATE]))


def _knots(offset, count):
    playback.unload()
    cells[tick.STATE] = wire.STATE_DISARMED
    return playback.store(offset, count, link.received, link.BODY + wire.BODIES[wire.MESSAGE_KNOTS][1])


def _load(count, repeats, crc):
    answer = playback.load(count, repeats, crc)
    cells[tick.STATE] = wire.STATE_LOADED if playback.loaded() else wire.STATE_DISARMED
    return answer


def _arm(token):
    global _token
    if token != _token:
        return wire.REFUSAL_BAD_TOKEN, 0
    position = cells[tick.POSITION]
    if not cells[tick.LIMIT_POSITION_MIN] <= position <= cells[tick.LIMIT_POSITION_MAX]:
        return wire.REFUSAL_OUTSIDE_LIMITS, position
    bad = playback.recheck()
    if bad >= 0:  # limits were changed since LOAD: it has to be loaded again
        playback.unload()
        cells[tick.STATE] = wire.STATE_DISARMED
        return wire.REFUSAL_INCOMPLETE, bad
    _token = None
    cells[tick.REFERENCE] = position
    cells[tick.REFERENCE_VELOCITY] = 0
    cells[tick.STATE] = wire.STATE_ARMED
    return wire.REFUSAL_OK, position


def _start(at_tick):
    ahead = (at_tick - publish.now_tick()) & 0xFFFFFFFF if at_tick else 1
    if ahead == 0 or ahead >= 1 << 31:
        return wire.REFUSAL_TOO_LATE, cells[tick.TICK]
    distance = playback.distance_to_start()
    if abs(distance) > cells[tick.LIMIT_FOLLOWING]:
        return wire.REFUSAL_NOT_AT_START, distance
    if ahead >= 1 << 30:
        return wire.REFUSAL_OUT_OF_RANGE, (1 << 30) - 1
    if ahead == 1:
        publish.close_block()  # a block is played from its first sample to its last, or not at all
    playback.begin(ahead - 1)
    cells[tick.STATE] = wire.STATE_RUNNING
    return wire.REFUSAL_OK, registers.word(publish.now_tick() + ahead)


def _stop():
    _board.disable()
    state = cells[tick.STATE]
    if state != wire.STATE_FAULT:
        cells[tick.STATE] = wire.STATE_LOADED if playback.loaded() else wire.STATE_DISARMED
    if states.driving(state):
        publish.send_status()
    return wire.REFUSAL_OK, state


def _clear():
    playback.unload()
    cells[tick.TRIP] = wire.TRIP_NONE
    cells[tick.STATE] = wire.STATE_DISARMED
    return wire.REFUSAL_OK, 0


_HANDLERS = {
    wire.MESSAGE_HELLO: _hello,
    wire.MESSAGE_READ: _read,
    wire.MESSAGE_WRITE: _write,
    wire.MESSAGE_KNOTS: _knots,
    wire.MESSAGE_LOAD: _load,
    wire.MESSAGE_ARM: _arm,
    wire.MESSAGE_START: _start,
    wire.MESSAGE_STOP: _stop,
    wire.MESSAGE_CLEAR: _clear,
    wire.MESSAGE_PING: _ping,
}
