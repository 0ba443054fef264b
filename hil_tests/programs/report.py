"""A board that is no joint board: every tick it sends the ten words of its inputs that are not converters' counts.

In order: tick, time_us, sync_edges, sync_us, motor_count, link_count, bus_voltage, temperature, received, now_us.
"""

import struct

from board import Board

board = Board()
board.disable()


def report():
    at = board.OUTGOING_AT
    while True:
        received = board.wait_tick()
        board.outputs[:4] = board.inputs[:4]
        board.outgoing[at : at + 32] = board.inputs[:32]
        struct.pack_into("<iI", board.outgoing, at + 32, received, board.now_us())
        board.apply()
        board.send(40)


try:
    report()
except EOFError:  # there will be no more ticks
    pass
