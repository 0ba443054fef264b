"""A board with two motors: each has a node of its own on the line, and cells of its own (motor.py).

The two share processor, tick, line, watchdog and console. Neither drives alone what both should drive: when one has
tripped, was stopped or does not play in step while the other has power, the other loses it in this same tick and
latches PARTNER. Only the arming of one after the other is left to them: ARMED holds a position and no more.

A turn of the main loop with nothing sent takes 8860 instructions on ARMv7-M, with one motor 3785; the second motor
takes 30 kB of heap, nearly all of it buffers.
"""

from micropython import const

from jointboard import framing, tick, wire
from jointboard.framing import encode, hear
from jointboard.link import BUDGET
from jointboard.motor import FOR_PYTHON, Motor
from jointboard.tick import tick as step

MOST_RECEIVED = const(0xFFFF)  # as app.py has it
SETTINGS = "partner"  # what the second motor's files are called

FIRST = const(1)  # bits of motors
SECOND = const(2)

# As tick.py and wire.py have them; viper folds a constant only when it stands in the same file.
STATE = const(133)
PLAY = const(225)
HALTING = const(231)
RUNNING = const(4)
DRIVING = const(24)
FAULT = const(6)
assert (STATE, PLAY, HALTING) == (tick.STATE, tick.PLAY, tick.HALTING)
assert (RUNNING, FAULT) == (wire.STATE_RUNNING, wire.STATE_FAULT)
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
        if hasattr(own, "join"):
            self.join = own.join

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
    second.link.line[framing.COPIED_AT] = first.link.line[framing.COPIED_AT]
    first.requests.neighbour, second.requests.neighbour = second.cells, first.cells
    return first, second


@micropython.viper
def guard(first: ptr32, second: ptr32, stopped: int) -> int:
    """Which of the motors must lose its power now, as bits: all that drive, when they do not belong together.

    When one is halted so is the other: both slow down.
    """
    one = (DRIVING >> first[STATE]) & 1
    two = (DRIVING >> second[STATE]) & 1
    if one + two == 0:
        return 0
    if one & two:
        if first[HALTING]:
            if not second[HALTING]:
                second[HALTING] = first[HALTING]
                second[STATE] = RUNNING
        elif second[HALTING]:
            first[HALTING] = second[HALTING]
            first[STATE] = RUNNING
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


def loop(board, first, second, after_errands):
    """The main loop of app.py for two: both ticks are done, and both motors guarded, before anything is told."""
    global stopped
    wait, apply, room, send = board.wait_tick, board.apply, board.room, board.send
    go, both_guarded, gap, tripped = step, guard, tick.EVENT_GAP, tick.EVENT_TRIP
    table, line = first.link.cells_at, first.link.line_at
    other_table, other_line = second.link.cells_at, second.link.line_at
    speaker, listener, budget = first.link, second.link, getattr(board, "budget", BUDGET)
    tell, plain, cells = framing.post, tick.EVENT_BLOCK, first.cells
    state, armed, running = tick.STATE, wire.STATE_ARMED, wire.STATE_RUNNING
    while True:
        received = wait()
        events = go(table)
        others = go(other_table)
        if (events | others) & gap:  # of both, or of the one whose tick before came to an error
            if events & gap:
                events = first.go_on_after_a_gap()
            if others & gap:
                others = second.go_on_after_a_gap()
        parted = both_guarded(table, other_table, False)
        if parted:
            trip(board, first, second, parted)
            if parted & FIRST:
                events |= tripped
            if parted & SECOND:
                others |= tripped
        apply()
        if events:
            if events == plain:
                tell(line, table, events)
            else:
                first.see_to(events)
        if others:
            if others == plain:
                tell(other_line, other_table, others)
            else:
                second.see_to(others)
        if received:
            first.link.arrived(received)
            first.receive()
            if not first.requests.leaving:  # what comes after REPL is the interpreter's and arms no motor
                second.link.arrived(received)
                second.receive()
            parted = both_guarded(table, other_table, stopped)
            stopped = False
            if parted:
                trip(board, first, second, parted)
                if parted & FIRST:
                    first.see_to(tripped)
                if parted & SECOND:
                    second.see_to(tripped)
        if speaker.silent():  # it has said all it may: frames of the two do not mix
            speaker, listener = listener, speaker
        if encode(speaker.line_at, budget):
            send(speaker.transmit(room()))
        either = events | others
        if received or either and (either != plain or not armed <= cells[state] <= running):
            after_errands(events)  # the first one's STATUS comes once a second, and the other's with it
            if first.requests.leaving or second.requests.leaving:
                return


def _of_its_own(motor):
    """A late sample is a block of its own, which tells how late; of a tick that took none there is nothing to tell."""
    if not motor.cells[tick.COUNT]:
        return 0
    motor.link.line[framing.LATE] = motor.link.line[framing.LATE_BY]
    return tick.EVENT_BLOCK


def loop_of_kernels(board, first, second, after_errands, not_as_usual):
    """The same where the Hal's part of a turn is kernels, which see to both motors."""
    global stopped
    before, after, hal = board.kernels
    go, both_guarded, gap, tripped = step, guard, tick.EVENT_GAP, tick.EVENT_TRIP
    table, line = first.link.cells_at, first.link.line_at
    other_table, other_line = second.link.cells_at, second.link.line_at
    tell, listen, code, budget, plain = framing.post, hear, encode, board.budget, tick.EVENT_BLOCK
    pinged, described, at_rest = framing.PINGED, framing.DESCRIBED | framing.YIELD, FOR_PYTHON | tick.EVENT_STATUS
    cells, other_cells, unusual, speaking = first.cells, second.cells, FOR_PYTHON, board.speaking
    state, armed, running, most_received = tick.STATE, wire.STATE_ARMED, wire.STATE_RUNNING, MOST_RECEIVED
    while True:
        received = before(hal)
        late = received > most_received and not_as_usual(board, received)
        events = go(table)
        others = go(other_table)
        if (events | others) & gap:  # of both, or of the one whose tick before came to an error
            if events & gap:
                events = first.go_on_after_a_gap()
            if others & gap:
                others = second.go_on_after_a_gap()
        parted = both_guarded(table, other_table, False)
        if parted:
            trip(board, first, second, parted)
            if parted & FIRST:
                events |= tripped
            if parted & SECOND:
                others |= tripped
        after(hal)
        if late:
            events |= _of_its_own(first)
            others |= _of_its_own(second)
        if events:
            if events == plain or (armed <= cells[state] <= running and not events & unusual):
                tell(line, table, events)
            else:
                first.see_to(events)
                after_errands(events)
        if others:
            if others == plain or (armed <= other_cells[state] <= running and not others & unusual):
                tell(other_line, other_table, others)
            else:
                second.see_to(others)
                after_errands(others)
        if received and (events | others) & at_rest:
            if not (armed <= cells[state] <= running or armed <= other_cells[state] <= running):
                received = 0  # as in app.py: requests wait for the next tick
        if received:
            served = False
            found = listen(line, table)
            if found == pinged:
                tell(line, table, described)
            elif found:
                first.receive(found)
                served = True
            if not first.requests.leaving:  # what comes after REPL is the interpreter's and arms no motor
                found = listen(other_line, other_table)
                if found == pinged:
                    tell(other_line, other_table, described)
                elif found:
                    second.receive(found)
                    served = True
            if served:
                parted = both_guarded(table, other_table, stopped)
                stopped = False
                if parted:
                    trip(board, first, second, parted)
                    if parted & FIRST:
                        first.see_to(tripped)
                    if parted & SECOND:
                        second.see_to(tripped)
                if not (armed <= cells[state] <= running or armed <= other_cells[state] <= running):
                    after_errands(0)
                    if first.requests.leaving or second.requests.leaving:
                        return
        code(speaking[0], budget)
