"""Runs the board's real main loop on its real Hal, but for the tick's arrival: that comes at once, and is stamped.

Every turn of the loop ends in wait_tick, which notes the counter; so the host sees what each turn took.
"""

import gc
import json
import struct

import board
import machine
from counting import align
from jointboard import app, image, playback, publish, settings, tick, wire
from jointboard.registers import cells
from uctypes import bytearray_at

TABLE = 0x21F00000  # in the PSRAM, beyond mailbox and flash: where the next stamp goes, and the last tick
STAMPS = 0x21F01000
MILLION = 1000000
AWAY = 70000  # counts

with open("loop.json") as file:
    asked = json.load(file)


class Board(board.Board):
    """The emulated board, whose next tick is always there."""

    @staticmethod
    @micropython.asm_thumb
    def wait_tick():
        """Stamp, and count on: tick and time; the last tick leaves a gap, which ends the run."""
        movwt(r1, 0x21F00000)
        movwt(r2, 0x40028018)
        ldr(r3, [r2, 0])
        ldr(r2, [r1, 0])
        str(r3, [r2, 0])
        add(r2, 4)
        str(r2, [r1, 0])
        movwt(r2, 0x21000400)
        ldr(r3, [r2, 0])
        add(r3, 1)
        ldr(r4, [r1, 4])
        cmp(r3, r4)
        bne(GO_ON)
        add(r3, 1)
        label(GO_ON)
        str(r3, [r2, 0])
        ldr(r3, [r2, 4])
        movw(r4, 1000)
        add(r3, r3, r4)
        str(r3, [r2, 4])
        mov(r0, 0)


def stop():
    """What the loop finds when ticks are missing, here: the end."""
    raise EOFError


def run(ticks):
    """So many turns of the main loop."""
    machine.mem32[TABLE] = STAMPS
    machine.mem32[TABLE + 4] = publish.now_tick() + ticks + 1
    try:
        app._loop(hal)
    except EOFError:
        cells[tick.TICK] = publish.now_tick()


def play():
    """A trajectory that stands still for longer than anybody counts, near enough to where the joint is.

    Two bytes in five of such samples are zero, which are dearer to encode than others.
    """
    cells[tick.TIMEOUT] = cells[tick.RAMP] = 1 << 30
    cells[tick.STATUS_IN] = 1 << 30
    cells[wire.REGISTER_LIMIT_POSITION_MIN], cells[wire.REGISTER_LIMIT_POSITION_MAX] = -MILLION, MILLION
    cells[tick.POSITION], cells[tick.LINK_POSITION] = AWAY, AWAY // 2
    for k in range(64):
        struct.pack_into("<2i", playback._knots, 8 * k, AWAY + 2, 0)
    playback._count, playback._repeats = 64, 1 << 20
    playback.begin(0)
    cells[tick.STATE] = tick.STATE_RUNNING


def allocated(ticks):
    """Bytes of heap that so many turns take."""
    before = gc.mem_alloc()
    run(ticks)
    return gc.mem_alloc() - before


# This file system cannot be listed.
image.digest = lambda: bytes(32)
settings.load = lambda uid: None
machine.mem32[TABLE] = STAMPS
machine.mem32[TABLE + 4] = 0
hal = Board()
struct.pack_into("<32H", hal.inputs, 32, *(16 * [2030] + 16 * [2057]))  # some current, some torque
publish.note_gap = stop
app._boot(hal)
app._first_tick(hal)
cells[tick.STATUS_IN] = 1 << 30
gc.collect()
gc.disable()
taken = allocated(asked["quiet_ticks"]), allocated(2 * asked["quiet_ticks"])
gc.enable()
play()
gc.collect()
align()
run(asked["ticks"])
with open("stamps.bin", "wb") as file:
    file.write(bytearray_at(STAMPS, 4 * (asked["ticks"] + 1)))
found = {
    "allocated": taken,
    "state": cells[tick.STATE],
    "samples": publish.samples_taken,
    "dropped": publish.samples_dropped,
    "block": cells[tick.BLOCK],
}
with open("loop_counts.json", "w") as file:
    json.dump(found, file)
