"""The board's main loop: wait for the tick, run it, see to what it reports, answer the host, hand bytes to the line.

Only the errands of link.py allocate. Memory is collected after every `COLLECT_EVERY` of them while the motor rests, at
LOAD, and not at all from ARM on until it rests again: what may be asked meanwhile is bounded (requests.py). Any
exception takes the power of the board's motor, or of both where it has two, latches INTERNAL, or HARDWARE where a
device has failed (OSError), and keeps the board talking.
"""

import gc
import json
import sys

import micropython
from micropython import const

from jointboard import rooms, crc_tables  # noqa: F401 - before what is compiled leaves the heap in pieces
from jointboard import framing, identity, image, link, motor, states, tick, wire
from jointboard.framing import drain, encode, hear
from jointboard.motor import Motor
from jointboard.tick import tick as step

COLLECT_EVERY = const(64)  # errands: 32 requests with their answers
CTRL_C = const(3)
MOST_RECEIVED = const(0xFFFF)  # beyond it a Hal's kernel tells what else there is
LATE = const(0x40000)
EVENT_STATUS = const(4)  # as tick.py has it
TRIAL_S = const(60)  # that a host has to confirm a new image, while the motor rests


def run(board, on_trial=False):
    """Be this joint's board until the host asks for the REPL, or the Hal says that there is no next tick (EOFError).

    An error before the first tick ends it: a board that does not know its wiring or its position is none. So does a
    trial that no host confirms: image.NotConfirmed.
    """
    board.disable()
    image.on_trial = on_trial
    board, modules = _configured(board)
    _interrupt_on(-1)  # on a line that is also the console's, a byte of data must not end the program
    try:
        _boot(board, modules)
        _first_tick(board)
        loop = _loop_of_two if len(_motors) > 1 else _loop_of_kernels if hasattr(board, "kernels") else _loop
        while not _leaving():
            try:
                loop(board)
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


def _configured(board):
    """By config.json the board, or one with a model in place of motor and sensors; and the module of each motor."""
    with open("config.json") as file:
        config = json.load(file)
    modules = [identity.module_of(motor) for motor in (config, config.get("partner")) if motor]
    if "partner" in config and not hasattr(board, "partner"):
        raise ValueError("config.json: partner is a second motor, a board of this kind has one")
    parameters = config.get("sim_joint")
    if parameters is None:
        return board, modules
    if hasattr(board, "partner"):
        raise ValueError("config.json: sim_joint stands in for one motor, this board has two")
    from jointboard.sim_joint import SimJoint

    return SimJoint(board, parameters), modules


def _interrupt_on(byte):
    if hasattr(micropython, "kbd_intr"):
        micropython.kbd_intr(byte)


def _boot(board, modules):
    global _board, _motors, _links
    _board = board
    if hasattr(board, "partner"):
        from jointboard import partner

        _motors = partner.motors(board, image.digest())
    else:
        _motors = (Motor(board, image.digest()),)
    for one, module in zip(_motors, modules):
        one.module = module
    _links = tuple([one.link for one in _motors])
    if hasattr(gc, "threshold"):
        gc.threshold(-1)  # rooms.py has lowered it
    gc.collect()
    for one in _motors:
        one.link.line[framing.HEAP_FREE] = gc.mem_free()


def _first_tick(board):
    global _clock_runs, _turns_are_timed
    received = board.wait_tick()
    before = board.stopwatch_us()
    for one in _motors:
        one.first_tick()
        one.link.line[framing.LONGEST_TICK] = 0  # a Hal that notes it itself has seen the boot
    _clock_runs = board.stopwatch_us() != before
    _turns_are_timed = _clock_runs and not hasattr(board, "kernels")
    board.apply()
    for one in _motors:
        one.link.arrived(received)
        one.receive()


def _loop(board):
    wait, apply, room, send = board.wait_tick, board.apply, board.room, board.send
    only = _motors[0]
    go, table, gap, go_on = step, only.link.cells_at, tick.EVENT_GAP, only.go_on_after_a_gap
    line, budget, arrived = only.link.line_at, getattr(board, "budget", link.BUDGET), only.link.arrived
    see_to, receive, requests, after_errands = only.see_to, only.receive, only.requests, _after_errands
    tell, plain, cells = framing.post, tick.EVENT_BLOCK, only.cells
    state, armed, running = tick.STATE, wire.STATE_ARMED, wire.STATE_RUNNING
    while True:
        received = wait()
        events = go(table)
        if events & gap:
            events = go_on()
        apply()  # before anything is told: a trip takes the power now
        if events:
            if events == plain:
                tell(line, table, events)
            else:
                see_to(events)
        if received:
            arrived(received)
            receive()
        if encode(line, budget):
            send(drain(line, room()))
        if received or events and (events != plain or not armed <= cells[state] <= running):
            after_errands(events)
            if requests.leaving:
                return


def _loop_of_kernels(board):
    """The same where the Hal's part of a turn is kernels, too.

    No driver's method and no name of a module is looked up in a turn of which nothing is to be told: on a
    microcontroller a look-up takes 2 to 16 us.
    """
    before, after, hal = board.kernels
    only = _motors[0]
    go, table, line, budget, tell = step, only.link.cells_at, only.link.line_at, board.budget, framing.post
    gap, pinged, described = tick.EVENT_GAP, framing.PINGED, framing.DESCRIBED
    if only.link.shared:
        described |= framing.YIELD
    state, armed, running, unusual = tick.STATE, wire.STATE_ARMED, wire.STATE_RUNNING, motor.FOR_PYTHON
    at_rest = unusual | EVENT_STATUS
    cells, go_on, requests = only.cells, only.go_on_after_a_gap, only.requests
    see_to, receive, after_errands = only.see_to, only.receive, _after_errands
    while True:
        received = before(hal)
        late = received > MOST_RECEIVED and _not_as_usual(board, received)
        events = go(table)
        if events & gap:
            events = go_on()
        after(hal)
        if late:
            events |= _of_its_own()
        if events:
            if not events & at_rest or (armed <= cells[state] <= running and not events & unusual):
                tell(line, table, events)
            else:
                see_to(events)
                after_errands(events)
                received = 0  # no motor has power: a request waits for the next tick, both would take more than one
        if received:
            found = hear(line, table)
            if found == pinged:
                tell(line, table, described)
            elif found:
                receive(found)
                if not armed <= cells[state] <= running:
                    after_errands(0)
                    if requests.leaving:
                        return
        encode(line, budget)


def _not_as_usual(board, found):
    """Raise what is wrong with a sensor; True when the tick's sample is late. The block before it is closed."""
    board.complain(found)
    if found & LATE:
        for one in _motors:
            one.publisher.close_block()
    return found & LATE


def _of_its_own():
    """A late sample is a block of its own, which tells how late; of a tick that took none there is nothing to tell."""
    if not _motors[0].cells[tick.COUNT]:
        return 0
    line = _links[0].line
    line[framing.LATE] = line[framing.LATE_BY]
    return tick.EVENT_BLOCK


def _loop_of_two(board):
    from jointboard import partner

    if hasattr(board, "kernels"):
        partner.loop_of_kernels(board, _motors[0], _motors[1], _after_errands, _not_as_usual)
    else:
        partner.loop(board, _motors[0], _motors[1], _after_errands)


def _leaving():
    for one in _motors:
        if one.requests.leaving:
            return True
    return False


def _say_the_rest(board):
    """REPL was asked for: its answer still has to go out, on a slow line for some ticks."""
    board.disable()
    while not all([one.link.silent() for one in _motors]):
        board.wait_tick()
        events = []
        for one in _motors:
            told = step(one.cells)
            events.append(one.go_on_after_a_gap() if told & tick.EVENT_GAP else told)
        board.apply()
        for one, told in zip(_motors, events):
            one.see_to(told)
        for one in _motors:
            if not one.link.silent():
                encode(one.link.line_at, getattr(board, "budget", link.BUDGET))
                board.send(one.link.transmit(board.room()))
                break
    board.flush()


def _after_errands(events):
    """What takes time and memory, so while the motor rests: a tick that told or heard something is over but for this.

    A Hal with kernels counts by itself how long its turns take, in motion too; of others it is looked up here.
    """
    if _driving():
        return
    gc.enable()  # ARM has ended it
    for side in _links:
        if side.errands >= COLLECT_EVERY:
            _collect()
            break
    if events & EVENT_STATUS:
        _judge_trial()
    if _turns_are_timed:
        # From the tick's instant to the end of its work: ticks in which nothing is told or heard do a part of it.
        spent = (_board.stopwatch_us() - _motors[0].publisher.now_us()) & 0xFFFFFFFF
        for side in _links:
            side.line[framing.LONGEST_TICK] = max(side.line[framing.LONGEST_TICK], spent)


def _collect():
    before = _board.stopwatch_us()
    free = rooms.collect()
    pause = (_board.stopwatch_us() - before) & 0xFFFFFFFF
    for side in _links:
        side.errands = 0
        if _clock_runs:
            side.line[framing.LONGEST_COLLECTION] = max(side.line[framing.LONGEST_COLLECTION], pause)
        side.line[framing.HEAP_FREE] = free


def _driving():
    for one in _motors:
        if states.driving(one.cells[tick.STATE]):
            return True
    return False


def _judge_trial():
    """Once a second: a new image that nobody confirms gives way to the one before."""
    global _trial_s
    if image.on_trial:
        _trial_s += 1
        if _trial_s > TRIAL_S:
            raise image.NotConfirmed("no host has confirmed this image for %d s" % TRIAL_S)


assert EVENT_STATUS == tick.EVENT_STATUS
_board = None
_motors = ()
_links = ()
_clock_runs = False  # stopwatch_us() goes on within a tick; an emulated board's may not
_turns_are_timed = False  # here, because the Hal does not
_trial_s = 0


def _have_failed():
    """All motors; without a list, for which there may be no memory."""
    for one in _motors:
        if not one.has_failed():
            return False
    return True


def _fail(board, error):
    """Motors off, whatever went wrong; tell it once on the console and keep telling it on the link."""
    board.disable()
    gc.enable()  # ARM has ended it
    if _have_failed():
        return
    sys.print_exception(error, sys.stderr)
    for one in _motors:
        one.trip(wire.TRIP_HARDWARE if isinstance(error, OSError) else wire.TRIP_INTERNAL, 0)
    for one in _motors:
        try:
            one.see_to(tick.EVENT_TRIP)
        except Exception as second:  # it can be told again with the next STATUS
            sys.print_exception(second, sys.stderr)
