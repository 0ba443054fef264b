"""The state machine as a table: which request is allowed in which state. Bit s of a mask stands for state s.

The tick itself makes these moves alone (tick.py): to FAULT on a trip, to DONE after the last knot, to LOADED after a
HALT.
"""

from micropython import const

from jointboard import wire

DISARMED = const(2)
LOADED = const(4)
ARMED = const(8)
RUNNING = const(16)
DONE = const(32)
FAULT = const(64)
AT_REST = const(38)  # DISARMED, LOADED, DONE
ANY = const(126)  # all but BOOT, which answers nobody

ALLOWED = {
    wire.MESSAGE_HELLO: ANY,
    wire.MESSAGE_READ: ANY,
    wire.MESSAGE_WRITE: ANY,  # registers.py knows which register may change while the motor can move
    wire.MESSAGE_KNOTS: AT_REST,
    wire.MESSAGE_FEEDFORWARD: AT_REST,
    wire.MESSAGE_COMPENSATE: ANY,
    wire.MESSAGE_LOAD: AT_REST,
    wire.MESSAGE_ARM: LOADED | DONE,
    wire.MESSAGE_START: ARMED,
    wire.MESSAGE_STOP: ANY,
    wire.MESSAGE_HALT: ARMED | RUNNING,
    wire.MESSAGE_CLEAR: FAULT,
    wire.MESSAGE_PING: ANY,
    wire.MESSAGE_DICT: ANY,
    wire.MESSAGE_ECHO: ANY,
    wire.MESSAGE_SAVE: AT_REST,
    wire.MESSAGE_REPL: AT_REST | FAULT,  # a board in FAULT must take new firmware too, and its motor is off
    wire.MESSAGE_CONFIRM: AT_REST | FAULT,
}

FOR_A_MOTOR = (
    wire.MESSAGE_KNOTS, wire.MESSAGE_FEEDFORWARD, wire.MESSAGE_LOAD, wire.MESSAGE_ARM, wire.MESSAGE_START
)  # fmt: skip
# Longer than a tick, or the program's end: not while the other motor of the board drives, either.
OF_THE_BOARD = (wire.MESSAGE_LOAD, wire.MESSAGE_SAVE, wire.MESSAGE_REPL, wire.MESSAGE_CONFIRM)


def at_rest(state):
    """The motor cannot move, and no fault waits to be cleared: registers may change."""
    return (AT_REST >> state) & 1


def driving(state):
    return ((ARMED | RUNNING) >> state) & 1
