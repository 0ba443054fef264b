"""The board's main loop: wait for the tick, run it, see to what it reports, answer the host, hand bytes to the line.

A tick in which nothing is sent or received allocates nothing. Memory is collected after every `COLLECT_EVERY` ticks
that had something to send or receive and at no other time, unless it runs out. Any exception takes the motor's power,
latches INTERNAL and keeps the board talking.
"""

import gc
import json
import struct
import sys

import micropython
from micropython import const

from jointboard import homing, identity, image, link, publish, registers, requests, settings, states, tick, wire
from jointboard.registers import cells, word

try:
    from jointboard.tick_thumb import tick as step  # the same, compiled; a board without ARMv7-M has no such file
except ImportError:
    from jointboard.tick import tick as step

COLLECT_EVERY = const(32)
CTRL_C = const(3)
TRIAL_S = const(60)  # that a host has to confirm a new image, while the motor rests


def run(board, on_trial=False):
    """Be this joint's board until the host asks for the REPL, or the Hal says that there is no next tick (EOFError).

    An error before the first tick ends it: a board that does not know its wiring or its position is none. So does a
    trial that no host confirms: image.NotConfirmed.
    """
    board.disable()
    image.on_trial = on_trial
    board = _simulated(board)
    _interrupt_on(-1)  # on a line that is also the console's, a byte of data must not end the program
    try:
        _boot(board)
        _first_tick(board)
        while not requests.leaving:
            try:
                _loop(board)
            except (EOFError, image.NotConfirmed):
                raise
            except Exception as error:
                _fail(board, error)
        _say_the_rest(board)
    except EOFError:
        pass
    finally:
        board.disable()
        _interrupt_on(CTRL_C)


def _simulated(board):
    """The board itself, or one with a model in place of motor and sensors where config.json says so."""
    with open("config.json") as file:
        parameters = json.load(file).get("sim_joint")
    if parameters is None:
        return board
    from jointboard.sim_joint import SimJoint

    return SimJoint(board, parameters)


def _interrupt_on(byte):
    if hasattr(micropython, "kbd_intr"):
        micropython.kbd_intr(byte)


def _boot(board):
    global _board
    _board = board
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
    identity.attach(board, image.digest())
    gc.collect()
    publish.heap_free = gc.mem_free()


def _first_tick(board):
    global _clock_runs
    received = board.wait_tick()
    first, _, edges, _, motor_count = struct.unpack_from("<5i", board.inputs, 0)
    edge_time = struct.unpack_from("<i", board.inputs, 112)[0]
    before = board.stopwatch_us()
    homing.home(board.inputs)
    _clock_runs = board.stopwatch_us() != before
    cells[tick.COUNTER] = motor_count
    cells[tick.EDGES] = edges
    cells[tick.TICK] = word(first - 1)
    cells[tick.EDGE_TIME] = edge_time
    cells[tick.STATE] = wire.STATE_DISARMED
    step(cells)
    board.apply()
    _receive(board.incoming, board.INCOMING_AT, received)


def _loop(board):
    wait, apply, room, send = board.wait_tick, board.apply, board.room, board.send
    go, table, gap = step, link.address(cells), tick.EVENT_GAP
    line, ready, transmit = link.line, link.READY, link.transmit
    while True:
        received = wait()
        events = go(table)
        if events & gap:
            events = _go_on_after_a_gap()
        apply()  # before anything is told: a trip takes the power now
        if events:
            _see_to(events)
        if received:
            _receive(board.incoming, board.INCOMING_AT, received)
        if line[ready]:
            send(transmit(room()))
        if events or received:
            _note_time()
            if requests.leaving:
                return


def _say_the_rest(board):
    """REPL was asked for: its answer still has to go out, on a slow line for some ticks."""
    board.disable()
    while not link.silent():
        board.wait_tick()
        events = step(cells)
        if events & tick.EVENT_GAP:
            events = _go_on_after_a_gap()
        board.apply()
        if events:
            _see_to(events)
        board.send(link.transmit(board.room()))
    board.flush()


def _go_on_after_a_gap():
    publish.note_gap()
    return step(cells)


def _note_time():
    """Longest tick, from its instant to the end of its work: those without errands do a part of what others do."""
    if _clock_runs:
        publish.longest_tick_us = max(publish.longest_tick_us, (_board.stopwatch_us() - publish.now_us()) & 0xFFFFFFFF)


def _see_to(events):
    if events & (tick.EVENT_TRIP | tick.EVENT_DONE):
        publish.announce(cells[tick.TICK])
    elif events & tick.EVENT_STATUS:
        publish.send_status()
        _judge_trial()
    elif events & tick.EVENT_BLOCK:
        publish.close_block()
    if events & tick.EVENT_SYNC:
        publish.send_sync()
    _collect()


def _judge_trial():
    """Once a second: a new image that nobody confirms gives way to the one before."""
    global _trial_s
    if image.on_trial and not states.driving(cells[tick.STATE]):
        _trial_s += 1
        if _trial_s > TRIAL_S:
            raise image.NotConfirmed("no host has confirmed this image for %d s" % TRIAL_S)


def _receive(incoming, at, count):
    end = at + count
    turn = False
    try:
        while at < end and not requests.leaving:  # what comes after REPL is the interpreter's
            at = link.receive(incoming, at, end, cells[wire.REGISTER_BOARD_NODE])
            if link.frame_length >= 0:
                cells[tick.SILENCE] = 0
                turn = turn or link.turn()
                requests.serve()
    finally:
        if turn:
            publish.give_back_the_line()
    _collect()


def _collect():
    global _errands
    _errands += 1
    if _errands == COLLECT_EVERY:
        _errands = 0
        before = _board.stopwatch_us()
        gc.collect()
        if _clock_runs:
            publish.longest_gc_us = max(publish.longest_gc_us, (_board.stopwatch_us() - before) & 0xFFFFFFFF)
        if not states.driving(cells[tick.STATE]):
            publish.heap_free = gc.mem_free()


_board = None
_clock_runs = False  # stopwatch_us() goes on within a tick; an emulated board's may not
_errands = 0
_trial_s = 0


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
