"""The board's main loop: wait for the tick, run it, see to what it reports, answer the host, hand bytes to the line.

A tick in which nothing is sent or received allocates nothing. Memory is collected after every `COLLECT_EVERY` ticks
that had something to send or receive and at no other time, unless it runs out. Any exception takes the motor's power,
latches INTERNAL and keeps the board talking.
"""

import gc
import struct
import sys

from micropython import const

from jointboard import image, link, publish, registers, requests, tick, wire
from jointboard.registers import cells, word

COLLECT_EVERY = const(32)
FARTHEST = const(1 << 30)  # motor counts from zero; position limits end there


def run(board):
    """Be this joint's board until the Hal says that there is no next tick (EOFError).

    An error before the first tick ends it: a board that does not know its wiring or its position is none.
    """
    board.disable()
    try:
        _boot(board)
        _first_tick(board)
    except EOFError:
        return
    while True:
        try:
            _loop(board)
        except EOFError:
            return
        except Exception as error:
            _fail(board, error)


def _boot(board):
    registers.set_facts(board.facts)
    cells[wire.REGISTER_BOARD_NODE] = board.node
    cells[tick.INPUTS] = link.address(board.inputs)
    cells[tick.OUTPUTS] = link.address(board.outputs)
    cells[tick.STATUS_IN] = tick.STATUS_TICKS
    cells[tick.STATE] = wire.STATE_BOOT
    publish.attach(board)
    requests.attach(board, image.digest())
    gc.collect()


def _first_tick(board):
    """The motor's position from the absolute link encoder; the ticks count on from it."""
    received = board.wait_tick()
    first, _, _, _, motor_count, link_count = struct.unpack_from("<6i", board.inputs, 0)
    turns = (link_count - cells[wire.REGISTER_ENCODER_LINK_ZERO]) * cells[wire.REGISTER_DRIVE_RATIO]
    counts = 1000 * cells[wire.REGISTER_ENCODER_LINK_COUNTS]
    position = (2 * turns * cells[wire.REGISTER_ENCODER_MOTOR_COUNTS] + counts) // (2 * counts)
    if abs(position) > FARTHEST:
        raise ValueError("link encoder %d: motor position %d is beyond %d counts" % (link_count, position, FARTHEST))
    cells[tick.POSITION] = position
    cells[tick.COUNTER] = motor_count
    cells[tick.TICK] = word(first - 1)
    cells[tick.STATE] = wire.STATE_DISARMED
    tick.tick(cells)
    board.apply()
    _receive(board.incoming, board.INCOMING_AT, received)


def _loop(board):
    wait, apply, room, send = board.wait_tick, board.apply, board.room, board.send
    outgoing, at = board.outgoing, board.OUTGOING_AT
    step, transmit = tick.tick, link.transmit
    while True:
        received = wait()
        events = step(cells)
        if events:
            _see_to(events)
        apply()
        if received:
            _receive(board.incoming, board.INCOMING_AT, received)
        free = room()
        if free:
            send(transmit(outgoing, at, free))


def _see_to(events):
    if events & tick.EVENT_GAP:
        publish.note_gap()
        events = tick.tick(cells)
    if events & (tick.EVENT_TRIP | tick.EVENT_DONE):
        publish.announce(cells[tick.TICK])
    elif events & tick.EVENT_STATUS:
        publish.send_status()
    elif events & tick.EVENT_BLOCK:
        publish.close_block()
    _collect()


def _receive(incoming, at, count):
    end = at + count
    while at < end:
        at = link.receive(incoming, at, end, cells[wire.REGISTER_BOARD_NODE])
        if link.frame_length >= 0:
            cells[tick.SILENCE] = 0
            requests.serve()
    _collect()


def _collect():
    global _errands
    _errands += 1
    if _errands == COLLECT_EVERY:
        _errands = 0
        gc.collect()


_errands = 0


def _fail(board, error):
    """Motor off, whatever went wrong; tell it once on the console and keep telling it on the link."""
    board.disable()
    if cells[tick.STATE] == wire.STATE_FAULT and cells[tick.TRIP] == wire.TRIP_INTERNAL:
        return
    sys.print_exception(error, sys.stderr)
    cells[tick.STATE] = wire.STATE_FAULT
    cells[tick.TRIP] = wire.TRIP_INTERNAL
    cells[tick.TRIP_VALUE] = cells[tick.TRIP_LIMIT] = 0
    try:
        publish.announce(cells[tick.TICK])
    except Exception as second:  # it can be told again with the next STATUS
        sys.print_exception(second, sys.stderr)
