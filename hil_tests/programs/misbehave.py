"""The firmware, but for ECHO, which goes wrong: 1 byte raises an error, 2 bytes are a Ctrl-C, 3 never come to an end,
4 are a device that does not answer.

After the firmware has ended it answers ticks without touching ENABLE and current: they show what they were left at.
"""

from board import Board

from jointboard import app, requests, wire

board = Board()
board.disable()


def misbehave(_, count):
    if count == 1:
        raise ValueError("wrong on purpose")
    if count == 2:
        raise KeyboardInterrupt
    if count == 4:
        raise OSError(5)
    while True:
        pass


requests.HANDLERS[wire.MESSAGE_ECHO] = misbehave
try:
    app.run(board)
except KeyboardInterrupt:
    print("interrupted")
try:
    while True:
        board.wait_tick()
        board.outputs[:4] = board.inputs[:4]
        board.apply()
except EOFError:  # there will be no more ticks
    pass
