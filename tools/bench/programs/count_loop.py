"""Runs the board's real main loop on its real Hal, but for the tick's arrival: that comes at once, and is stamped.

With a partner in config.json the board has two motors, which both play, and stream as on lines of their own.

Every turn of the loop ends in wait_tick, which notes the counter; so the host sees what each turn took.
"""

import gc
import json
import struct

import board
import machine
from counting import align
from jointboard import app, framing, image, settings, tick, wire
from uctypes import bytearray_at

TABLE = 0x21F00000  # in the PSRAM, beyond mailbox and flash: where the next stamp goes, and the last tick
STAMPS = 0x21F01000
MILLION = 1000000
AWAY = 70000  # counts
BUDGET = 92  # bytes encoded in a turn: what 921600 baud carry in 1 ms. This board's own line takes a frame at once

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
        movw(r1, 128)  # bytes of a motor's inputs: those of the second one
        add(r1, r2, r1)
        str(r3, [r1, 0])
        ldr(r3, [r2, 4])
        movw(r4, 1000)
        add(r3, r3, r4)
        str(r3, [r2, 4])
        str(r3, [r1, 4])
        mov(r0, 0)


def stop():
    """What the loop finds when ticks are missing, here: the end."""
    raise EOFError


def run(ticks):
    """So many turns of the main loop."""
    machine.mem32[TABLE] = STAMPS
    last = app._motors[0].publisher.now_tick() + ticks + 1
    machine.mem32[TABLE + 4] = last
    loop = app._loop if len(app._motors) == 1 else app._loop_of_two
    try:
        loop(hal)
    except EOFError:
        for motor in app._motors:
            motor.cells[tick.TICK] = last + 1


def play(motor):
    """A trajectory that stands still for longer than anybody counts, near enough to where the joint is.

    Two bytes in five of such samples are zero, which are dearer to encode than others.
    """
    cells, playback = motor.cells, motor.playback
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


settings.load = lambda cells, uid, files: None  # this file system cannot be listed
image.digest = lambda: bytes(32)  # nor can it be listed for that
machine.mem32[TABLE] = STAMPS
machine.mem32[TABLE + 4] = 0
hal = Board()
hal.budget = BUDGET
sides = [hal]
if hasattr(hal, "partner"):
    sides.append(hal.partner)
for side in sides:
    struct.pack_into("<32H", side.inputs, 32, *(16 * [2030] + 16 * [2057]))  # some current, some torque
app._boot(hal, ())  # of modules that have no name
first = app._motors[0]
first.publisher.note_gap = stop
app._first_tick(hal)
for motor in app._motors:
    motor.link.share(False)
    motor.cells[tick.STATUS_IN] = 1 << 30
gc.collect()
gc.disable()
taken = allocated(asked["quiet_ticks"]), allocated(2 * asked["quiet_ticks"])
gc.enable()
for motor in app._motors:
    play(motor)
gc.collect()
align()
run(asked["ticks"])
with open("stamps.bin", "wb") as file:
    file.write(bytearray_at(STAMPS, 4 * (asked["ticks"] + 1)))
found = {
    "allocated": taken,
    "free": gc.mem_free(),
    "state": [motor.cells[tick.STATE] for motor in app._motors],
    "samples": sum([motor.link.line[framing.SAMPLES_TAKEN] for motor in app._motors]),
    "dropped": sum([motor.link.line[framing.SAMPLES_DROPPED] for motor in app._motors]),
    "block": first.cells[tick.BLOCK],
}
with open("loop_counts.json", "w") as file:
    json.dump(found, file)
