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

from jointboard import homing, identity, image, registers, settings, states, tick, wire
from jointboard.framing import BODY

WATCHDOG_MS = const(1000)  # from ARM on; an erasure of flash may take longer (before_erasing())

MOST_WHILE_ARMED = const(400)  # errands (link.py): a request is one, its answer another
ROOM_FOR_ONE = const(256)  # bytes; an errand takes 100 to 200
ROOM_LEFT = const(8192)  # for what a trip has to tell
FEW = const(32)


class Requests:
    """What is asked of a motor's node, and what the last answer was.

    `leaving`: REPL was asked for, the main loop ends when its ACK is out. `neighbour`: cells of the board's other
    motor, of this one where there is none.
    """

    def __init__(self, motor):
        self._motor, self._board = motor, motor.board
        self._cells, self._link = motor.cells, motor.link
        self._publisher, self._playback = motor.publisher, motor.playback
        self.leaving = False
        self.neighbour = motor.cells
        self._most = 0  # errands that may be run while armed
        self._token = None  # what ARM must carry; None: no host of this protocol has said HELLO since the last ARM
        self._tokens = 0
        self._last = None  # (type, sequence, node, CRC-32 of the body) of the last request
        self._answer = None  # what it was answered; None: by its own message
        self._repeated = False

    def serve(self, length):
        """Answer the frame in the link's `received`, whose body has so many bytes."""
        received = self._link.received
        kind = received[1]
        if kind != wire.MESSAGE_STOP and not gc.isenabled() and self._link.errands > self._most:
            return
        sequence = struct.unpack_from("<H", received, 4)[0]
        body = memoryview(received)[BODY : BODY + length]
        request = kind, sequence, received[2], crc32(body)
        self._repeated = self._last == request
        answer = self._answer
        if not self._repeated or answer is None:
            answer = self._carry_out(kind, length)
            if kind != wire.MESSAGE_PING:  # which may come between a request and its repetition
                self._last, self._answer = request, answer
        if answer:
            self._publisher.answer(wire.MESSAGE_ACK, kind, answer[0], sequence, answer[1])

    def _carry_out(self, kind, given):
        cells = self._cells
        if kind not in HANDLERS:
            return wire.REFUSAL_UNKNOWN_MESSAGE, kind
        length = given
        if kind in wire.FROZEN:  # a later version may have appended fields
            length = min(length, wire.BODIES[kind][1])
        fields = wire.unpack(kind, self._link.received, BODY, length)
        if fields is None:
            return wire.REFUSAL_BAD_LENGTH, given
        if kind in states.FOR_A_MOTOR and not registers.has_motor(cells):
            return wire.REFUSAL_NO_MOTOR, cells[wire.REGISTER_BOARD_CHANNELS]
        if not states.allowed(kind, cells[tick.STATE]):
            return wire.REFUSAL_WRONG_STATE, cells[tick.STATE]
        if kind in states.OF_THE_BOARD and states.driving(self.neighbour[tick.STATE]):
            return wire.REFUSAL_WRONG_STATE, self.neighbour[tick.STATE]
        return HANDLERS[kind](self, *fields)

    def _hello(self, major, minor):
        if major != wire.PROTOCOL_MAJOR:  # it may ask and stop, but its ARM is another one
            self._token = None
        elif self._token is None or not self._repeated:  # a repeated HELLO must not outdate the answer under way
            self._tokens += 1
            now = struct.pack("<II", self._tokens, self._publisher.now_tick())
            self._token = crc32(now, crc32(self._board.uid)) or 1
        identity.introduce(self._motor, self._token or 0)

    def _ping(self, nonce):
        self._publisher.answer(wire.MESSAGE_PONG, nonce, self._publisher.now_tick())

    def _echo(self, count):
        self._publisher.answer_echo(count)

    def _dict(self, offset):
        try:
            total = self._publisher.answer_dict(offset)
        except OSError as error:
            return wire.REFUSAL_INCOMPLETE, error.errno
        if offset >= total:
            return wire.REFUSAL_OUT_OF_RANGE, total - 1

    def _read(self, first, count):
        for id in range(first, first + count):
            if not registers.exists(id):
                return wire.REFUSAL_UNKNOWN_REGISTER, id
        self._publisher.answer_values(first, count)

    def _write(self, id, value):
        cells = self._cells
        self._publisher.close_block()  # its samples were taken with the old channels
        before = cells[id] if registers.exists(id) else 0
        answer = registers.write(cells, id, value, not states.at_rest(cells[tick.STATE]))
        if id == wire.REGISTER_ENCODER_LINK_ZERO and answer[0] == wire.REFUSAL_OK:
            try:
                homing.home(cells, self._board.inputs)
            except ValueError:
                cells[id] = before
                return wire.REFUSAL_OUT_OF_RANGE, before
        return answer

    def _save(self):
        self._board.before_erasing()
        try:
            settings.save(self._cells, self._board.uid, self._motor.files)
        except OSError as error:
            return wire.REFUSAL_NOT_SAVED, error.errno
        return wire.REFUSAL_OK, 0

    def _knots(self, offset, count):
        self._playback.unload()
        self._cells[tick.STATE] = wire.STATE_DISARMED
        return self._playback.store(offset, count, self._link.received, BODY + wire.BODIES[wire.MESSAGE_KNOTS][1])

    def _load(self, count, repeats, crc):
        answer = self._playback.load(count, repeats, crc)
        self._cells[tick.STATE] = wire.STATE_LOADED if self._playback.loaded() else wire.STATE_DISARMED
        self._collect()
        return answer

    def _collect(self):
        gc.collect()
        self._link.errands = 0
        self._most = min(MOST_WHILE_ARMED, max(gc.mem_free() - ROOM_LEFT, 0) // ROOM_FOR_ONE)

    def _arm(self, token, config_crc):
        cells, playback = self._cells, self._playback
        if token != self._token:
            return wire.REFUSAL_BAD_TOKEN, 0
        known = registers.config_crc(cells, playback.identity)
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
        self._token = None
        if self._link.errands > FEW and not states.driving(self.neighbour[tick.STATE]):
            self._collect()
            self._publisher.excuse_gap()
        gc.disable()
        cells[tick.REFERENCE] = position
        cells[tick.REFERENCE_VELOCITY] = cells[tick.INTEGRAL] = cells[tick.STUCK] = 0
        self._board.watchdog(WATCHDOG_MS)
        cells[tick.STATE] = wire.STATE_ARMED
        return wire.REFUSAL_OK, position

    def _start(self, at_tick):
        cells = self._cells
        ahead = (at_tick - self._publisher.now_tick()) & 0xFFFFFFFF if at_tick else 1
        if ahead == 0 or ahead >= 1 << 31:
            return wire.REFUSAL_TOO_LATE, cells[tick.TICK]
        distance = self._playback.distance_to_start()
        if abs(distance) > cells[tick.LIMIT_FOLLOWING]:
            return wire.REFUSAL_NOT_AT_START, distance
        if ahead >= 1 << 30:
            return wire.REFUSAL_OUT_OF_RANGE, (1 << 30) - 1
        if ahead == 1:
            self._publisher.close_block()  # a block is played from its first sample to its last, or not at all
        self._playback.begin(ahead - 1)
        cells[tick.STATE] = wire.STATE_RUNNING
        return wire.REFUSAL_OK, registers.word(self._publisher.now_tick() + ahead)

    def _stop(self):
        cells = self._cells
        self._board.disable()
        state = cells[tick.STATE]
        if state != wire.STATE_FAULT:
            cells[tick.STATE] = wire.STATE_LOADED if self._playback.loaded() else wire.STATE_DISARMED
        if states.driving(state):
            self._publisher.send_status()
        return wire.REFUSAL_OK, state

    def _clear(self):
        self._playback.unload()
        self._cells[tick.TRIP] = wire.TRIP_NONE
        self._cells[tick.STATE] = wire.STATE_DISARMED
        return wire.REFUSAL_OK, 0

    def _repl(self):
        self._cells[tick.STREAM_ALWAYS] = 0  # what is still to be sent must come to an end
        self._publisher.close_block()
        self.leaving = True
        return wire.REFUSAL_OK, 0

    def _confirm(self, digest):
        if digest != self._motor.image:
            return wire.REFUSAL_BAD_CONFIG, 0
        self._board.before_erasing()
        try:
            image.confirm()
        except OSError as error:
            return wire.REFUSAL_NOT_SAVED, error.errno
        return wire.REFUSAL_OK, 0


HANDLERS = {
    wire.MESSAGE_HELLO: Requests._hello,
    wire.MESSAGE_READ: Requests._read,
    wire.MESSAGE_WRITE: Requests._write,
    wire.MESSAGE_KNOTS: Requests._knots,
    wire.MESSAGE_LOAD: Requests._load,
    wire.MESSAGE_ARM: Requests._arm,
    wire.MESSAGE_START: Requests._start,
    wire.MESSAGE_STOP: Requests._stop,
    wire.MESSAGE_CLEAR: Requests._clear,
    wire.MESSAGE_PING: Requests._ping,
    wire.MESSAGE_DICT: Requests._dict,
    wire.MESSAGE_ECHO: Requests._echo,
    wire.MESSAGE_SAVE: Requests._save,
    wire.MESSAGE_REPL: Requests._repl,
    wire.MESSAGE_CONFIRM: Requests._confirm,
}
