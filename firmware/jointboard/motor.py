"""One motor of the board: how it starts, what its tick reports, its host's requests, its end.

A board with two motors has this module, and those that keep a motor's state, twice (pair.py).
"""

import struct

from jointboard import homing, identity, link, publish, registers, requests, settings, tick, wire
from jointboard.framing import post
from jointboard.link import cells_at, line_at
from jointboard.registers import cells, word
from jointboard.tick import tick as step

FOR_PYTHON = tick.EVENT_TRIP | tick.EVENT_DONE
TOLD = tick.EVENT_BLOCK | tick.EVENT_STATUS | tick.EVENT_SYNC

_inputs = None


def boot(board, image):
    """Take facts, settings and buffers; `board` is the Hal as this motor sees it, `image` the firmware's digest."""
    global _inputs
    _inputs = board.inputs
    registers.set_facts(board.facts)
    settings.load(board.uid)
    cells[wire.REGISTER_BOARD_NODE] = board.node
    link.share(cells[wire.REGISTER_BOARD_SHARED_LINE] != 0)
    cells[tick.INPUTS] = link.address(board.inputs)
    cells[tick.OUTPUTS] = link.address(board.outputs)
    cells[tick.STATUS_IN] = tick.STATUS_TICKS
    cells[tick.HEAT_IN] = tick.HEAT_TICKS
    cells[tick.STILL] = tick.LONGEST_REST
    cells[tick.STATE] = wire.STATE_BOOT
    publish.attach(board)
    requests.attach(board)
    identity.attach(board, image)


def first_tick():
    """Find the joint, and be DISARMED."""
    first, _, edges, _, motor_count = struct.unpack_from("<5i", _inputs, 0)
    homing.home(_inputs)
    cells[tick.COUNTER] = motor_count
    cells[tick.EDGES] = edges
    cells[tick.TICK] = word(first - 1)
    cells[tick.EDGE_TIME] = struct.unpack_from("<i", _inputs, 112)[0]
    cells[tick.STATE] = wire.STATE_DISARMED
    step(cells)


def go_on_after_a_gap():
    publish.note_gap()
    return step(cells)


def see_to(events):
    """Tell what the tick reports."""
    if events & FOR_PYTHON:
        publish.announce(cells[tick.TICK])
        events &= ~(tick.EVENT_STATUS | tick.EVENT_BLOCK)
    elif events & tick.EVENT_STATUS and cells[tick.STATE] == wire.STATE_FAULT:
        publish.send_status()
        events &= ~(tick.EVENT_STATUS | tick.EVENT_BLOCK)
    post(line_at, cells_at, events & TOLD)


def receive(found=0):
    """Serve the requests among the bytes that have arrived; `found`: what hear() has found already."""
    turn = False
    try:
        while not requests.leaving:  # what comes after REPL is the interpreter's
            length = link.receive(found)
            if length < 0:
                break
            found = 0
            turn = turn or link.turn()
            requests.serve(length)
    finally:
        if turn:
            publish.give_back_the_line()


def trip(reason, value):
    """Latch a trip that the tick itself has not found. The caller takes the motor's power."""
    cells[tick.STATE] = wire.STATE_FAULT
    cells[tick.TRIP] = reason
    cells[tick.TRIP_VALUE] = value
    cells[tick.TRIP_LIMIT] = cells[tick.COMMAND] = 0


def has_failed():
    """INTERNAL is latched already."""
    return cells[tick.STATE] == wire.STATE_FAULT and cells[tick.TRIP] == wire.TRIP_INTERNAL
