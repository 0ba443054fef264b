"""What each request does. A handler gets the body's fields and returns (refusal, value) for the ACK, or None when it
has answered by a message of its own.

A request that repeats the last one's type, sequence number, node and body is answered again and not carried out again:
hosts retransmit. No request that could start the motor comes between a STOP and its repetition.

Memory is collected at LOAD, at ARM only where much was asked since, and then not again until the motor rests. So of all
requests but STOP only so many are served until then as there is memory for, some hundred; what comes after them gets
no answer. (A PING takes no memory and never comes here.)
"""

import gc
import struct
from binascii import crc32

from micropython import const

from jointboard import homing, identity, image, link, playback, publish, registers, settings, states, tick, wire
from jointboard.registers import cells

WATCHDOG_MS = const(1000)  # from ARM on; an erasure of flash may take longer (before_erasing())

MOST_WHILE_ARMED = const(400)  # errands (link.py): a request is one, its answer another
ROOM_FOR_ONE = const(256)  # bytes; an errand takes 100 to 200
ROOM_LEFT = const(8192)  # for what a trip has to tell
FEW = const(32)

leaving = False  # REPL was asked for: the main loop ends when its ACK is out

neighbour = cells  # of the board's other motor; of this one where there is none

_most = 0  # errands that may be run while armed
_board = None
_token = None  # what ARM must carry; None: no host of this protocol has said HELLO since the last ARM
_tokens = 0
_last = None  # (type, sequence, node, CRC-32 of the body) of the last request
_answer = None  # what it was answered; None: by its own message
_repeated = False


def attach(board):
    global _board
    _board = board


def serve(length):
    """Answer the frame in link.received, whose body has so many bytes."""
    global _last, _answer, _repeated
    kind = link.received[1]
    if kind != wire.MESSAGE_STOP and not gc.isenabled() and link.errands > _most:
        return
    sequence = struct.unpack_from("<H", link.received, 4)[0]
    body = memoryview(link.received)[link.BODY : link.BODY + length]
    request = kind, sequence, link.received[2], crc32(body)
    _repeated = _last == request
    answer = _answer
    if not _repeated or answer is None:
        answer = _carry_out(kind, length)
        if kind != wire.MESSAGE_PING:  # which may come between a request and its repetition
            _last, _answer = request, answer
    if answer:
        publish.answer(wire.MESSAGE_ACK, kind, answer[0], sequence, answer[1])


def _carry_out(kind, given):
    if kind not in _HANDLERS:
        return wire.REFUSAL_UNKNOWN_MESSAGE, kind
    length = given
    if kind in wire.FROZEN:  # a later version may have appended fields
        length = min(length, wire.BODIES[kind][1])
    fields = wire.unpack(kind, link.received, link.BODY, length)
    if fields is None:
        return wire.REFUSAL_BAD_LENGTH, given
    if kind in states.FOR_A_MOTOR and not registers.has_motor():
        return wire.REFUSAL_NO_MOTOR, cells[wire.REGISTER_BOARD_CHANNELS]
    if not states.allowed(kind, cells[tick.STATE]):
        return wire.REFUSAL_WRONG_STATE, cells[tick.STATE]
    if kind in states.OF_THE_BOARD and states.driving(neighbour[tick.STATE]):
        return wire.REFUSAL_WRONG_STATE, neighbour[tick.STATE]
    return _HANDLERS[kind](*fields)


def _hello(major, minor):
    global _token, _tokens
    if major != wire.PROTOCOL_MAJOR:  # it may ask and stop, but its ARM is another one
        _token = None
    elif _token is None or not _repeated:  # a retransmitted HELLO must not outdate the answer that is under way
        _tokens += 1
        _token = crc32(struct.pack("<II", _tokens, publish.now_tick()), crc32(_board.uid)) or 1
    identity.introduce(_token or 0)


def _ping(nonce):
    publish.answer(wire.MESSAGE_PONG, nonce, publish.now_tick())


def _echo(count):
    publish.answer_echo(count)


def _dict(offset):
    try:
        total = publish.answer_dict(offset)
    except OSError as error:
        return wire.REFUSAL_INCOMPLETE, error.errno
    if offset >= total:
        return wire.REFUSAL_OUT_OF_RANGE, total - 1


def _read(first, count):
    for id in range(first, first + count):
        if not registers.exists(id):
            return wire.REFUSAL_UNKNOWN_REGISTER, id
    publish.answer_values(first, count)


def _write(id, value):
    publish.close_block()  # its samples were taken with the old channels
    before = cells[id] if registers.exists(id) else 0
    answer = registers.write(id, value, not states.at_rest(cells[tick.STATE]))
    if id == wire.REGISTER_ENCODER_LINK_ZERO and answer[0] == wire.REFUSAL_OK:
        try:
            homing.home(_board.inputs)
        except ValueError:
            cells[id] = before
            return wire.REFUSAL_OUT_OF_RANGE, before
    return answer


def _save():
    _board.before_erasing()
    try:
        settings.save(_board.uid)
    except OSError as error:
        return wire.REFUSAL_NOT_SAVED, error.errno
    return wire.REFUSAL_OK, 0


def _knots(offset, count):
    playback.unload()
    cells[tick.STATE] = wire.STATE_DISARMED
    return playback.store(offset, count, link.received, link.BODY + wire.BODIES[wire.MESSAGE_KNOTS][1])


def _load(count, repeats, crc):
    answer = playback.load(count, repeats, crc)
    cells[tick.STATE] = wire.STATE_LOADED if playback.loaded() else wire.STATE_DISARMED
    _collect()
    return answer


def _collect():
    global _most
    gc.collect()
    link.errands = 0
    _most = min(MOST_WHILE_ARMED, max(gc.mem_free() - ROOM_LEFT, 0) // ROOM_FOR_ONE)


def _arm(token, config_crc):
    global _token
    if token != _token:
        return wire.REFUSAL_BAD_TOKEN, 0
    known = registers.config_crc(playback.identity)
    if config_crc != known:
        return wire.REFUSAL_BAD_CONFIG, registers.word(known)
    position = cells[tick.POSITION]
    if not cells[tick.LIMIT_POSITION_MIN] <= position <= cells[tick.LIMIT_POSITION_MAX]:
        return wire.REFUSAL_OUTSIDE_LIMITS, position
    bad = playback.recheck()
    if bad >= 0:  # limits were changed since LOAD: it has to be loaded again
        playback.unload()
        cells[tick.STATE] = wire.STATE_DISARMED
        return wire.REFUSAL_INCOMPLETE, bad
    _token = None
    if link.errands > FEW and not states.driving(neighbour[tick.STATE]):
        _collect()
        publish.excuse_gap()
    gc.disable()
    cells[tick.REFERENCE] = position
    cells[tick.REFERENCE_VELOCITY] = cells[tick.INTEGRAL] = cells[tick.STUCK] = 0
    _board.watchdog(WATCHDOG_MS)
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


def _repl():
    global leaving
    cells[tick.STREAM_ALWAYS] = 0  # what is still to be sent must come to an end
    publish.close_block()
    leaving = True
    return wire.REFUSAL_OK, 0


def _confirm(digest):
    if digest != identity.image():
        return wire.REFUSAL_BAD_CONFIG, 0
    _board.before_erasing()
    try:
        image.confirm()
    except OSError as error:
        return wire.REFUSAL_NOT_SAVED, error.errno
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
    wire.MESSAGE_DICT: _dict,
    wire.MESSAGE_ECHO: _echo,
    wire.MESSAGE_SAVE: _save,
    wire.MESSAGE_REPL: _repl,
    wire.MESSAGE_CONFIRM: _confirm,
}
