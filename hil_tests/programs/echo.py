"""A board that is no joint board: it sends back what it receives and obeys three letters.

e: enable the drive with no current; d: disable it; x: end with an error.
For tests of the bench itself and of hosts that meet strange firmware.
"""

from board import Board

board = Board()
board.disable()
outputs = board.outputs


def echo():
    start = board.INCOMING_AT
    while True:
        count = board.wait_tick()
        outputs[:4] = board.inputs[:4]
        for place in range(count):
            letter = board.incoming[start + place]
            if letter == 101:
                outputs[4] = 1
            elif letter == 100:
                outputs[4] = 0
            elif letter == 120:
                raise RuntimeError("told to end by the letter x")
            board.outgoing[board.OUTGOING_AT + place] = letter
        board.apply()
        board.send(count)


try:
    echo()
except EOFError:  # there will be no more ticks
    pass
