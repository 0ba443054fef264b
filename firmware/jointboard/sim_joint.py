"""A joint in fixed point inside the board: with "sim_joint" in config.json a bare board plays, streams and trips like a
joint's, each time alike. It stands between app.py and any board (boards/__init__.py), keeps that board's line and time,
and never enables its outputs.

A motor with inertia, viscous and Coulomb friction and a current that lags its command; encoders of whole counts; a
brake that holds while it is off. One step a tick, 32-bit integers; firmware/tests/test_sim_joint.py computes the same.
Some 5 us on the unix port.
"""

import math
from array import array

import micropython
from micropython import const

# At the motor's side, SI; config.json's "sim_joint" may name others.
DEFAULTS = {
    "torque_per_current": 0.1,  # N m/A
    "inertia": 1e-4,  # kg m^2, the joint's reflected
    "viscous": 2e-4,  # N m s/rad
    "coulomb": 0.02,  # N m
    "lag": 0.002,  # s, of the current
}
CHANNELS = const(0x817)  # current, both encoders, command, velocity
EMULATED = const(4)  # encoder_source

# Cells of the model: gains, then state.
LAG = const(0)  # part of the way that the current goes in a tick, Q11
PUSH = const(1)  # counts/tick^2 Q16 of 1/16 mA, Q8
DRAG = const(2)  # part of the velocity lost in a tick, Q15
COULOMB = const(3)  # counts/tick^2 Q16
MEASURED = const(4)  # ADC counts of 1/16 mA, Q12
LINK = const(5)  # link counts of a motor count, Q16
TURN = const(6)  # link counts in a turn
CLOCKS = const(7)  # of the capture clock in a tick
CURRENT = const(8)  # 1/16 mA
VELOCITY = const(9)  # counts/tick, Q16
COUNT = const(10)  # motor encoder
PART = const(11)  # of a count beyond it, Q16
LINK_COUNT = const(12)
LINK_PART = const(13)  # Q16
EDGE = const(14)  # time of the newest edge
CELLS = const(15)

FASTEST = const(268435456)  # 4096 counts/tick, Q16


class SimJoint:
    """A board whose motor and sensors are a model; everything else is the board's own."""

    encoder_source = EMULATED

    def __init__(self, board, parameters):
        self._board = board
        self.node, self.uid, self.kind, self.reset_cause = board.node, board.uid, board.kind, board.reset_cause
        self.clock_Hz, self.adc, self.sync_input = board.clock_Hz, board.adc, board.sync_input
        self.receive_buffer = board.receive_buffer
        self.inputs, self.incoming, self.INCOMING_AT = board.inputs, board.incoming, board.INCOMING_AT
        self.outgoing, self.OUTGOING_AT = board.outgoing, board.OUTGOING_AT
        self.clock_at = board.clock_at
        self.now_us, self.room, self.send, self.flush = board.now_us, board.room, board.send, board.flush
        self.watchdog, self.before_erasing, self.stopwatch_us = board.watchdog, board.before_erasing, board.stopwatch_us
        self.outputs = bytearray(12)  # the board's own stay off
        self.facts = facts_of(board.facts)
        self._cells = gains(parameters, self.facts)

    def disable(self):
        self._board.disable()
        for k in range(4, 12):
            self.outputs[k] = 0

    def wait_tick(self):
        received = self._board.wait_tick()
        step(self._cells, self.inputs, self.outputs)
        return received

    def apply(self):
        theirs, outputs = self._board.outputs, self.outputs
        for k in range(4):  # the tick that is answered; enable and command stay 0
            theirs[k] = outputs[k]
        self._board.apply()


def facts_of(board_facts):
    """The board's facts, with those of the model in place of what its hardware would have."""
    facts = dict(board_facts)
    facts.update({"board.channels": CHANNELS, "current.zero": 0, "encoder.link_zero": 0})
    for name, value in (
        ("board.tick_period", 1000), ("current.scale", 305176), ("drive.ratio", 101000),
        ("encoder.motor_counts", 4096), ("encoder.link_counts", 524288),
    ):  # fmt: skip
        facts.setdefault(name, value)
    facts["encoder.capture_clock"] = 16000000000 // facts["board.tick_period"]
    return facts


def gains(parameters, facts):
    """The model's cells for these parameters, at rest at the joint's zero.

    Raises ValueError, which names it, for a parameter that is not known, or beyond what 32 bits can compute.
    """
    for name in parameters:
        if name not in DEFAULTS:
            raise ValueError("config.json: sim_joint has %r; it may have %s" % (name, ", ".join(sorted(DEFAULTS))))
    given = dict(DEFAULTS)
    given.update(parameters)
    period = facts["board.tick_period"] * 1e-6
    counts = facts["encoder.motor_counts"] / (2 * math.pi)
    push = given["torque_per_current"] / given["inertia"] * counts * period * period  # counts/tick^2 of an ampere
    found = (
        ("lag", LAG, 2048 * (1 - math.exp(-period / given["lag"])), 2047),
        ("torque_per_current / inertia", PUSH, push * 1e-3 / 16 * 65536 * 256, 4000),
        ("viscous / inertia", DRAG, given["viscous"] / given["inertia"] * period * 32768, 2047),
        ("coulomb / inertia", COULOMB, given["coulomb"] / given["inertia"] * counts * period * period * 65536, 1 << 28),
        ("current.scale", MEASURED, 1e6 / abs(facts["current.scale"]) / 16 * 4096, 4000),
        ("encoder.link_counts", TURN, facts["encoder.link_counts"], 1 << 30),
        ("drive.ratio", LINK, facts["encoder.link_counts"] * 65536e3 / facts["encoder.motor_counts"]
         / facts["drive.ratio"], 1 << 18),
    )  # fmt: skip
    cells = array("i", bytes(4 * CELLS))
    for name, at, value, most in found:
        if not 0 <= value <= most:
            raise ValueError("config.json: sim_joint with this %s needs a gain of %g, at most %d" % (name, value, most))
        cells[at] = int(value + 0.5)
    cells[CLOCKS] = facts["encoder.capture_clock"] * facts["board.tick_period"] // 1000000
    return cells


@micropython.viper
def step(cells: ptr32, _inputs, _outputs):
    """Go a tick on under the outputs of the last, and fill in the sensors."""
    inputs = ptr32(_inputs)
    samples = ptr16(_inputs)
    outputs = ptr32(_outputs)
    current = 0
    velocity = 0
    if outputs[1]:
        current = cells[CURRENT]
        current = current + ((((outputs[2] << 4) - current) * cells[LAG]) >> 11)
        velocity = cells[VELOCITY]
        velocity = velocity + ((current * cells[PUSH]) >> 8) - (((velocity >> 8) * cells[DRAG]) >> 7)
        loss = cells[COULOMB]
        if velocity > loss:
            velocity = velocity - loss
        elif velocity < 0 - loss:
            velocity = velocity + loss
        else:
            velocity = 0
        if velocity > FASTEST:
            velocity = FASTEST
        if velocity < 0 - FASTEST:
            velocity = 0 - FASTEST
    cells[CURRENT] = current
    cells[VELOCITY] = velocity

    part = cells[PART] + velocity
    moved = part >> 16
    part = part & 0xFFFF
    cells[PART] = part
    cells[COUNT] = cells[COUNT] + moved
    if moved:  # the newest edge lies where the last whole count was passed
        since = part
        speed = velocity
        if velocity < 0:
            since = 65536 - part
            speed = 0 - velocity
        cells[EDGE] = inputs[0] * cells[CLOCKS] - since * cells[CLOCKS] // speed
    inputs[4] = cells[COUNT] & 0xFFFF
    inputs[28] = cells[EDGE]

    part = cells[LINK_PART] + moved * cells[LINK]
    cells[LINK_PART] = part & 0xFFFF
    part = cells[LINK_COUNT] + (part >> 16)
    while part >= cells[TURN]:
        part = part - cells[TURN]
    while part < 0:
        part = part + cells[TURN]
    cells[LINK_COUNT] = part
    inputs[5] = part

    total = 32768 + ((current * cells[MEASURED]) >> 12)
    if total < 0:
        total = 0
    if total > 65520:
        total = 65520
    k = 16
    while k < 32:  # sixteen 12-bit samples with this sum
        samples[k] = total >> 4
        if k - 16 < total & 15:
            samples[k] = (total >> 4) + 1
        samples[k + 16] = 2048
        k += 1
