"""A board that is no joint board: it answers when it is called, and sends all that it has heard since.

Node 1 is called by the letter a, node 2 by b, and so on. The answer is the number of bytes heard, up to and with the
last tick, and their CRC-32, each as eight capital letters from K to Z (one for four bits), between < and >.
"""

import binascii

from board import Board

board = Board()
board.disable()
NAME = 96 + board.node


def letters(number):
    """Eight letters for a 32-bit number, lowest bits first."""
    return bytes(75 + (number >> 4 * place & 15) for place in range(8))


def call_roll():
    count = crc = 0
    while True:
        size = board.wait_tick()
        board.outputs[:4] = board.inputs[:4]
        heard = bytes(board.incoming[board.INCOMING_AT : board.INCOMING_AT + size])
        count += size
        crc = binascii.crc32(heard, crc)
        answer = b"<" + letters(count) + letters(crc) + b">" if NAME in heard else b""
        board.outgoing[board.OUTGOING_AT : board.OUTGOING_AT + len(answer)] = answer
        board.apply()
        board.send(len(answer))


try:
    call_roll()
except EOFError:  # there will be no more ticks
    pass
