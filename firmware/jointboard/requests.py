"""What each request does. A handler gets the body's fields and returns (refusal, value) for the ACK, or None when it
has answered by a message of its own.

A request that repeats the last one's type, sequence number, node and body is answered again and not carried out again:
hosts retransmit. No request that could start the motor comes between a STOP and its repetition.

Memory is collected at LOAD, at ARM only where half of what there is memory for was asked since, and then not again
until the motor rests. So of all requests but STOP only so many are served until then as there is memory for, some
hundred; what comes after them is refused by an ACK, which takes no memory. (PING and COMPENSATE take none, either, and
never come here.)
"""

import gc
import struct
from array import array
from binascii import crc32

from micropython import const

from jointboard import rooms, framing, homing, identity, image, registers, settings, states, tick, wire
from jointboard.framing import recall
from jointboard.link import address

WATCHDOG_MS = const(1000)  # from ARM on; an erasure of flash may take longer (before_erasing())

MOST_WHILE_ARMED = const(400)  # errands (link.py): a request is one, its answer another
ROOM_FOR_ONE = const(256)  # bytes; an errand takes 100 to 200
ROOM_LEFT = const(8192)  # for what a trip has to tell
FEW = const(32)

# As framing.py, tick.py and wire.py have them: what another file says is looked up whenever it is used, which takes an
# RP2040 2 to 16 us. By them ARM and START are served within a tick.
BODY = const(12)
STATE = const(133)
TICK = const(132)
POSITION = const(206)
REFERENCE = const(218)
REFERENCE_VELOCITY = const(219)
INTEGRAL = const(216)
STUCK = const(156)
EXCUSED = const(228)
HALTING = const(231)
REST = const(240)
POWER = const(223)
RELEASE_TICKS = const(242)
ENGAGE_TICKS = const(243)
ENGAGING = const(244)
FLOATING = const(249)
TORQUE_TICKS = const(8)  # from power to when the brake may open: a current loop has come to rest
LIMIT_POSITION_MIN = const(33)
LIMIT_POSITION_MAX = const(34)
LIMIT_FOLLOWING = const(36)
CHANNELS = const(13)  # registers.py's bit of them: every board with a motor has it
MOTOR_CURRENT = const(1)
MESSAGE_STOP = const(8)
MESSAGE_PING = const(10)
STATE_DISARMED = const(1)
STATE_ARMED = const(3)
STATE_RUNNING = const(4)
REFUSAL_OK = const(0)
REFUSAL_BAD_LENGTH = const(1)
REFUSAL_WRONG_STATE = const(3)
REFUSAL_NO_MEMORY = const(21)
PINS_AT = const(116)  # of the Hal's inputs
KEEP_OFF = const(3)  # of their bits: stop and fault, and those of the limit switches
SWITCHES = const(12)
MOTOR = const(1)  # what a request is: for a motor, longer than a tick, of bodies that may grow
BOARD = const(2)
FROZEN = const(4)

assert (BODY, CHANNELS, MOTOR_CURRENT) == (framing.BODY, wire.REGISTER_BOARD_CHANNELS, registers.MOTOR_CURRENT)
for _name in (
    "STATE", "TICK", "POSITION", "REFERENCE", "REFERENCE_VELOCITY", "INTEGRAL", "STUCK", "LIMIT_POSITION_MIN",
    "LIMIT_POSITION_MAX", "LIMIT_FOLLOWING", "EXCUSED",
    "HALTING", "REST", "POWER", "RELEASE_TICKS", "ENGAGE_TICKS", "ENGAGING", "FLOATING",
):  # fmt: skip
    assert globals()[_name] == getattr(tick, _name)
for _name in (
    "MESSAGE_STOP", "MESSAGE_PING", "STATE_DISARMED", "STATE_ARMED", "STATE_RUNNING", "REFUSAL_OK",
    "REFUSAL_BAD_LENGTH", "REFUSAL_WRONG_STATE", "REFUSAL_NO_MEMORY",
):  # fmt: skip
    assert globals()[_name] == getattr(wire, _name)


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
        self._last = array("i", bytes(12))  # of the last request, as framing.recall() keeps it
        self._last_at = address(self._last)
        self._answer = None  # what it was answered; None: by its own message, or not to its end
        self._repeated = False
        self._pins = memoryview(motor.board.inputs)[PINS_AT:]
        self._registers = memoryview(motor.cells)[: wire.REGISTER_COUNT]
        self._checked = None  # CRC of registers and trajectory, of which every knot is known to be within the limits

    def serve(self, length):
        """Answer the frame in the link's `received`, whose body has so many bytes."""
        link = self._link
        kind = link.received[1]
        if kind != MESSAGE_STOP and not gc.isenabled() and link.errands > self._most:
            link.acknowledge(kind, REFUSAL_NO_MEMORY, self._most)
            return
        self._repeated = repeated = recall(link.line_at, self._last_at)
        answer = self._answer
        if not repeated or answer is None:
            if kind == MESSAGE_PING:  # one that is too long; it may come between a request and its repetition
                answer = self._carry_out(kind, length)
            else:
                self._answer = None  # should it raise
                self._answer = answer = self._carry_out(kind, length)
        if answer:
            link.acknowledge(kind, answer[0], answer[1])

    def _carry_out(self, kind, given):
        what = KINDS.get(kind)
        if what is None:
            return wire.REFUSAL_UNKNOWN_MESSAGE, kind
        head, size, item, allowed, traits = what
        length = given
        if traits & FROZEN:  # a later version may have appended fields
            length = min(length, size)
        if length < size:
            return REFUSAL_BAD_LENGTH, given
        fields = struct.unpack_from(head, self._link.received, BODY)
        if length != (size + fields[-1] * item if item else size):
            return REFUSAL_BAD_LENGTH, given
        cells = self._cells
        if traits & MOTOR and not cells[CHANNELS] & MOTOR_CURRENT:
            return wire.REFUSAL_NO_MOTOR, cells[CHANNELS]
        if not (allowed >> cells[STATE]) & 1:
            return REFUSAL_WRONG_STATE, cells[STATE]
        if traits & BOARD and states.driving(self.neighbour[STATE]):
            return REFUSAL_WRONG_STATE, self.neighbour[STATE]
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

    def _compensate(self, nonce, current):
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
        self._motor.introduction = None
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

    def _feedforward(self, offset, count):
        self._playback.unload()
        self._cells[tick.STATE] = wire.STATE_DISARMED
        at = BODY + wire.BODIES[wire.MESSAGE_FEEDFORWARD][1]
        return self._playback.store_feedforward(offset, count, self._link.received, at)

    def _load(self, count, repeats, crc):
        answer = self._playback.load(count, repeats, crc)
        self._checked = crc32(self._registers, self._playback.identity)
        self._cells[tick.STATE] = wire.STATE_LOADED if self._playback.loaded() else wire.STATE_DISARMED
        identity.describe(self._motor)  # the HELLO before ARM has to be answered within a tick
        self._collect()
        return answer

    def _collect(self):
        self._most = min(MOST_WHILE_ARMED, max(rooms.collect() - ROOM_LEFT, 0) // ROOM_FOR_ONE)
        self._link.errands = 0

    def _arm(self, token, config_crc):
        cells, playback = self._cells, self._playback
        if token != self._token:
            return wire.REFUSAL_BAD_TOKEN, 0
        pins = self._pins[0] & KEEP_OFF
        if pins:
            return wire.REFUSAL_PINS, pins
        known = crc32(self._registers, playback.identity)  # a host that knows it knows what it arms
        if config_crc != known:
            return wire.REFUSAL_BAD_CONFIG, known
        position = cells[POSITION]
        if not cells[LIMIT_POSITION_MIN] <= position <= cells[LIMIT_POSITION_MAX]:
            return wire.REFUSAL_OUTSIDE_LIMITS, position
        if known != self._checked:  # registers, which limits are among, were changed since LOAD
            bad = playback.recheck()
            if bad >= 0:  # it has to be loaded again
                playback.unload()
                cells[STATE] = STATE_DISARMED
                return wire.REFUSAL_INCOMPLETE, bad
        self._token = None
        if self._link.errands > max(FEW, self._most >> 1) and not states.driving(self.neighbour[STATE]):
            self._collect()
            self._publisher.excuse_gap()
        gc.disable()
        cells[EXCUSED] = SWITCHES
        cells[REFERENCE] = position
        cells[REFERENCE_VELOCITY] = cells[INTEGRAL] = cells[STUCK] = cells[HALTING] = cells[REST] = 0
        playback.feed_forward()
        cells[ENGAGING] = engage = cells[ENGAGE_TICKS]
        cells[POWER] = 1 + 4 * (TORQUE_TICKS + cells[RELEASE_TICKS]) if engage else 1
        self._board.watchdog(WATCHDOG_MS)
        cells[STATE] = STATE_ARMED
        return REFUSAL_OK, position

    def _start(self, at_tick):
        cells, playback = self._cells, self._playback
        now = self._publisher.now_tick()
        opening = cells[POWER] >> 2  # ticks until its brake is open
        ahead = (at_tick - now) & 0xFFFFFFFF if at_tick else max(1, opening)
        if ahead == 0 or ahead >= 0x80000000:
            return wire.REFUSAL_TOO_LATE, cells[TICK]
        if ahead < opening:
            return wire.REFUSAL_BRAKE, now + opening
        distance = playback.distance_to_start()
        if abs(distance) > cells[LIMIT_FOLLOWING] and not cells[FLOATING]:
            return wire.REFUSAL_NOT_AT_START, distance
        if ahead >= 0x40000000:
            return wire.REFUSAL_OUT_OF_RANGE, 0x3FFFFFFF
        if ahead == 1:
            self._publisher.close_block()  # a block is played from its first sample to its last, or not at all
        playback.begin(ahead - 1)
        cells[STATE] = STATE_RUNNING
        return REFUSAL_OK, now + ahead

    def _stop(self):
        cells = self._cells
        self._board.disable()
        state = cells[tick.STATE]
        if state != wire.STATE_FAULT:
            cells[tick.STATE] = wire.STATE_LOADED if self._playback.loaded() else wire.STATE_DISARMED
        if states.driving(state):
            self._publisher.send_status()
        return wire.REFUSAL_OK, state

    def _halt(self):
        cells = self._cells
        state = cells[STATE]
        if state == STATE_ARMED:  # it stands already
            if not cells[ENGAGE_TICKS]:
                return self._stop()
            cells[STATE] = STATE_RUNNING
        self._publisher.close_block()  # a block is played from its first sample to its last, or not at all
        cells[HALTING] = cells[HALTING] & tick.HALT_LINK_LOSS | 1
        return REFUSAL_OK, state

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
    wire.MESSAGE_FEEDFORWARD: Requests._feedforward,
    wire.MESSAGE_COMPENSATE: Requests._compensate,
    wire.MESSAGE_LOAD: Requests._load,
    wire.MESSAGE_ARM: Requests._arm,
    wire.MESSAGE_START: Requests._start,
    wire.MESSAGE_STOP: Requests._stop,
    wire.MESSAGE_HALT: Requests._halt,
    wire.MESSAGE_CLEAR: Requests._clear,
    wire.MESSAGE_PING: Requests._ping,
    wire.MESSAGE_DICT: Requests._dict,
    wire.MESSAGE_ECHO: Requests._echo,
    wire.MESSAGE_SAVE: Requests._save,
    wire.MESSAGE_REPL: Requests._repl,
    wire.MESSAGE_CONFIRM: Requests._confirm,
}


def _traits(kind):
    return (
        (MOTOR if kind in states.FOR_A_MOTOR else 0)
        | (BOARD if kind in states.OF_THE_BOARD else 0)
        | (FROZEN if kind in wire.FROZEN else 0)
    )


# Of each request: its body as wire.BODIES has it, the states it is allowed in, and what it is.
KINDS = {kind: wire.BODIES[kind] + (states.ALLOWED[kind], _traits(kind)) for kind in HANDLERS}
