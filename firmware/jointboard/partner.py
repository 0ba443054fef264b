"""A board with two motors: each has a node of its own on the line, and cells of its own (motor.py).

The two share processor, tick, line, watchdog and console. Neither drives alone what both should drive: when one has
tripped, was stopped or does not play in step while the other has power, the other loses it in this same tick and
latches PARTNER. Only the arming of one after the other is left to them: ARMED holds a position and no more.

A turn of the main loop with nothing sent takes 8617 instructions on ARMv7-M, with one motor 3768; the second motor
takes 30 kB of heap, nearly all of it buffers.
"""

from micropython import const

from jointboard import tick, wire
from jointboard.motor import Motor

SETTINGS = "partner"  # what the second motor's files are called

FIRST = const(1)  # bits of motors
SECOND = const(2)

# As tick.py and wire.py have them; viper folds a constant only when it stands in the same file.
STATE = const(133)
PLAY = const(225)
DRIVING = const(24)
FAULT = const(6)
assert (STATE, PLAY, FAULT) == (tick.STATE, tick.PLAY, wire.STATE_FAULT)
assert DRIVING == 1 << wire.STATE_ARMED | 1 << wire.STATE_RUNNING

stopped = False  # somebody has taken the motors' power since this was last asked


class Half:
    """The board as one of its motors sees it (boards/__init__.py): the other's power goes with its own."""

    def __init__(self, board, own):
        self._board = board
        self.node, self.facts, self.inputs, self.outputs = own.node, own.facts, own.inputs, own.outputs
        self.uid, self.kind, self.reset_cause = board.uid, board.kind, board.reset_cause
        self.clock_Hz, self.adc, self.sync_input = board.clock_Hz, board.adc, board.sync_input
        self.encoder_source, self.receive_buffer = board.encoder_source, board.receive_buffer
        self.incoming, self.INCOMING_AT = board.incoming, board.INCOMING_AT
        self.outgoing, self.OUTGOING_AT = board.outgoing, board.OUTGOING_AT
        self.clock_at, self.watchdog, self.now_us = board.clock_at, board.watchdog, board.now_us
        self.before_erasing = board.before_erasing

    def disable(self):
        global stopped
        stopped = True
        self._board.disable()


def motors(board, image):
    """The two motors, each with its half of the board. Raises ValueError for a board set up for one."""
    for own in (board, board.partner):
        if not own.facts.get("board.shared_line"):
            raise ValueError("config.json: node %d has a partner, its fact board.shared_line must be 1" % own.node)
    if board.node == board.partner.node:
        raise ValueError("config.json: both motors are node %d, each needs its own" % board.node)
    first = Motor(Half(board, board), image)
    second = Motor(Half(board, board.partner), image, SETTINGS)
    first.requests.neighbour, second.requests.neighbour = second.cells, first.cells
    return first, second


@micropython.viper
def guard(first: ptr32, second: ptr32, stopped: int) -> int:
    """Which of the motors must lose its power now, as bits: all that drive, when they do not belong together."""
    one = (DRIVING >> first[STATE]) & 1
    two = (DRIVING >> second[STATE]) & 1
    if one + two == 0:
        return 0
    apart = stopped
    if first[STATE] == FAULT or second[STATE] == FAULT:
        apart = 1
    if first[PLAY] < 0:
        if second[PLAY] >= 0:
            apart = 1
    elif second[PLAY] < 0:
        apart = 1
    if apart:
        return one | (two << 1)
    return 0


def trip(board, first, second, bits):
    """Take the power of both, and let those of `bits` tell why."""
    board.disable()
    trips = first.cells[tick.TRIP], second.cells[tick.TRIP]
    if bits & FIRST:
        first.trip(wire.TRIP_PARTNER, trips[1])
    if bits & SECOND:
        second.trip(wire.TRIP_PARTNER, trips[0])
