"""A board with broken firmware: every tick it sends 16 bytes that are never a frame, and it listens to nobody."""

from board import Board

board = Board()
board.disable()


def babble():
    value = 1
    while True:
        board.wait_tick()
        board.outputs[:4] = board.inputs[:4]
        for place in range(16):
            value = (value * 75 + 74) % 65537
            board.outgoing[board.OUTGOING_AT + place] = value & 0xFF
        board.apply()
        board.send(16)


try:
    babble()
except EOFError:  # there will be no more ticks
    pass
