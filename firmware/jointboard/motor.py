"""One motor of the board: how it starts, what its tick reports, its host's requests, its end."""

import struct

from jointboard import homing, identity, registers, settings, tick, wire
from jointboard.framing import post
from jointboard.link import Link, address
from jointboard.playback import Playback
from jointboard.publish import Publisher
from jointboard.registers import word
from jointboard.requests import Requests
from jointboard.tick import tick as step

FOR_PYTHON = tick.EVENT_TRIP | tick.EVENT_DONE
TOLD = tick.EVENT_BLOCK | tick.EVENT_STATUS | tick.EVENT_SYNC


class Motor:
    """A motor over `cells` of its own, with all that its node keeps: link, playback, publisher, requests.

    Args: the Hal as this motor sees it, the firmware's digest, and what its files of settings are called.
    """

    def __init__(self, board, image, files="settings"):
        self.board, self.image, self.files = board, image, files
        self.module = identity.NO_MODULE  # type and serial number, as config.json has them
        self.introduction = None  # frame of the HELLO_ACK; None: registers were written since it was made
        self.cells = cells = registers.new_cells()
        self._inputs = board.inputs
        registers.set_facts(cells, board.facts)
        settings.load(cells, board.uid, files)
        cells[wire.REGISTER_BOARD_NODE] = board.node
        cells[tick.INPUTS] = address(board.inputs)
        cells[tick.OUTPUTS] = address(board.outputs)
        cells[tick.STATUS_IN] = tick.STATUS_TICKS
        cells[tick.HEAT_IN] = tick.HEAT_TICKS
        cells[tick.STILL] = tick.LONGEST_REST
        cells[tick.STATE] = wire.STATE_BOOT
        self.link = Link(cells)
        self.link.share(cells[wire.REGISTER_BOARD_SHARED_LINE] != 0)
        self.link.attach(board)
        self.playback = Playback(cells)
        self.publisher = Publisher(self.link, board.inputs)
        self.requests = Requests(self)

    def first_tick(self):
        """Find the joint, and be DISARMED."""
        cells = self.cells
        first, _, edges, _, motor_count = struct.unpack_from("<5i", self._inputs, 0)
        homing.home(cells, self._inputs)
        cells[tick.COUNTER] = motor_count
        cells[tick.EDGES] = edges
        cells[tick.TICK] = word(first - 1)
        cells[tick.EDGE_TIME] = struct.unpack_from("<i", self._inputs, 112)[0]
        cells[tick.STATE] = wire.STATE_DISARMED
        step(cells)

    def go_on_after_a_gap(self):
        self.publisher.note_gap()
        return step(self.cells)

    def see_to(self, events):
        """Tell what the tick reports."""
        cells, publisher = self.cells, self.publisher
        if events & FOR_PYTHON:
            publisher.announce(cells[tick.TICK])
            events &= ~(tick.EVENT_STATUS | tick.EVENT_BLOCK)
        elif events & tick.EVENT_STATUS and cells[tick.STATE] == wire.STATE_FAULT:
            publisher.send_status()
            events &= ~(tick.EVENT_STATUS | tick.EVENT_BLOCK)
        post(self.link.line_at, self.link.cells_at, events & TOLD)

    def receive(self, found=0):
        """Serve the requests among the bytes that have arrived; `found`: what hear() has found already."""
        link, requests = self.link, self.requests
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
                self.publisher.give_back_the_line()

    def trip(self, reason, value):
        """Latch a trip that the tick itself has not found. The caller takes the motor's power."""
        cells = self.cells
        cells[tick.STATE] = wire.STATE_FAULT
        cells[tick.TRIP] = reason
        cells[tick.TRIP_VALUE] = value
        cells[tick.TRIP_LIMIT] = cells[tick.COMMAND] = 0

    def has_failed(self):
        """INTERNAL or HARDWARE is latched already."""
        cells = self.cells
        return cells[tick.STATE] == wire.STATE_FAULT and cells[tick.TRIP] in (wire.TRIP_INTERNAL, wire.TRIP_HARDWARE)
