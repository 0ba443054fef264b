"""The firmware, but for ECHO: 1 byte resets the board, 2 raise an error, 3 never come to an end, and after 4 its line
takes next to nothing any more.

AT_BOOT is which of them it does by itself before its first tick, in its first life; 0 is none. What takes a safety rule
out of the firmware comes in place of MUTATION.
"""

import os
import sys

from board import Board

from jointboard import app, requests, wire

AT_BOOT = 0
RESET, RAISE, HANG, NARROW = 1, 2, 3, 4
NARROW_ROOM = 4  # bytes a tick: a board streams fifteen

board = Board()
board.disable()
whole_room = board.room
narrow = []


def room():
    return min(whole_room(), NARROW_ROOM) if narrow else whole_room()


def reset():
    if sys.platform == "linux":
        sys.exit(75)  # its bench starts it again
    import machine

    machine.reset()


def breaks(_, count):
    if sys.platform == "linux":
        open("broke", "w").close()  # for who wants to know that it did; a flash would take its time
    if count == RESET:
        reset()
    if count == RAISE:
        raise ValueError("wrong on purpose")
    if count == NARROW:
        narrow.append(True)
    while count == HANG:
        pass


board.room = room
requests.HANDLERS[wire.MESSAGE_ECHO] = breaks
# MUTATION
if AT_BOOT and "broke" not in os.listdir():
    with open("broke", "w"):
        pass
    breaks(None, AT_BOOT)
app.run(board)
