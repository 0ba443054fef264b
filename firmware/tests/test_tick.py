"""The tick against its twin, bit for bit: on the 32-bit interpreter, an emulated Cortex-M3 and an emulated RISC-V."""

import os
import random
import struct
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from firmware.tests.driver import FIRMWARE, constants, flash, micropython
from firmware.tests.twin import Bounds, Inputs, Signal, Twin, defaults, wrap
from hil_tests.virtual_bench.errors import QemuMissing
from hil_tests.virtual_bench.qemu import Board, on_a_cortex, on_a_riscv, run_program
from jointbench.bench.flash.image import Compiler
from jointwire import BY_NAME, REGISTERS, State, Trip

SEED = 44
CASES, TICKS = 100, 400
IN_QEMU, FED_IN_QEMU = 12, 3
MANY_CASES, MANY_IN_QEMU = 260, 40  # with --slow
PACKAGE = {f"jointboard/{path.name}": path.read_bytes() for path in FIRMWARE.glob("jointboard/*.py")}
# LOAD and ARM look at the first, FedCase draws the second, FloatCase the rest.
UNDRAWN = ("limit.feedforward", "limit.unexpected", *(name for name in BY_NAME if "float" in name))
CELL = constants("jointboard/tick")
MAX_SAMPLE = 36  # all channels at once
WORDS = CELL["DUE"] - CELL["INPUTS"]  # what a tick may change: all cells but the registers and the plan
STATES = (State.DISARMED, State.ARMED, State.RUNNING)

# Runs every case of cases.bin through the board's tick and writes all it left in memory to results.bin; fifty ticks are
# read and written at once, for a file of the host costs an emulated board more than a tick.
PROGRAM = """
import struct
from array import array
from uctypes import addressof, bytearray_at
from jointboard import tick
TICKS, INPUTS, SAMPLE = 50, 120, 36
size = 8 + 4 * (tick.DUE - tick.INPUTS) + 12 + SAMPLE
results = bytearray(TICKS * size)  # compiling what comes next leaves the heap in pieces
from jointboard import sampling
from jointboard.link import address
from jointboard.tick import tick as step
cells = array("i", bytes(4 * tick.CELLS))
cells_bytes = bytearray_at(addressof(cells), 4 * tick.CELLS)  # what a file reads into an array, ports count differently
knots, many, inputs, outputs = bytearray(8 * 64), bytearray(TICKS * INPUTS), bytearray(INPUTS), bytearray(12)
block, head = bytearray(1084 + SAMPLE), bytearray(8)
changing = memoryview(cells)[tick.INPUTS : tick.DUE]
state = memoryview(bytearray(4 * len(changing)))
source, target = open("cases.bin", "rb"), open("results.bin", "wb")
while source.readinto(head):
    ticks, count = struct.unpack("<2i", head)
    source.readinto(cells_bytes)
    source.readinto(memoryview(knots)[: 10 * count])
    sampling.plan(cells)
    cells[tick.INPUTS], cells[tick.OUTPUTS] = address(inputs), address(outputs)
    cells[tick.KNOT], cells[tick.SAMPLE] = address(knots), address(block)
    if cells[tick.FLOATING]:
        cells[tick.TABLE_AT] = address(memoryview(knots)[8 * count :])
    if cells[tick.FEEDFORWARD_AT]:
        cells[tick.FEEDFORWARD_AT] = address(memoryview(knots)[8 * count :])
    for _ in range(ticks // TICKS):
        source.readinto(many)
        for k in range(TICKS):
            inputs[:] = memoryview(many)[INPUTS * k : INPUTS * (k + 1)]
            at = cells[tick.SAMPLE] - address(block)
            events = step(cells)
            to = size * k
            struct.pack_into("<2i", results, to, events, cells[tick.SAMPLE] - address(block) - at)
            results[to + 8 : to + 8 + len(state)] = bytes(changing)
            results[to + 8 + len(state) : to + 20 + len(state)] = outputs
            results[to + size - SAMPLE : to + size] = memoryview(block)[at : at + SAMPLE]
            if events & tick.EVENT_BLOCK:
                cells[tick.COUNT], cells[tick.SAMPLE] = 0, address(block)
        target.write(results)
target.close()
"""


@dataclass(frozen=True)
class Expected:
    """What the twin computed for a tick."""

    case: int
    cells: dict[str, int]
    outputs: tuple[int, int, int]
    events: int
    sample: bytes | None


class Case:
    """A random board, driven by its own twin: the joint follows the reference, stands, or jumps about."""

    def __init__(self, number: int, rng: random.Random) -> None:
        self.number, self.rng = number, rng
        self.loose = number % 2 == 0  # limits that let a case live for many ticks
        self.held = number % 10 == 9  # though its motor is driven
        self.motion = "still" if self.held else rng.choice(("follow", "follow", "still", "jump"))
        self.twin = self._random_twin()
        self.block = self.twin.block()
        self.pins, self.switches = 0, number % 4 == 2  # it has switches and an emergency stop
        self.count, self.edges = 0, rng.choice((0, 2**31 - 1))
        self.status_in = rng.choice((1, 7, 1000))
        self.first_tick = rng.choice((0, 2**31 - 200, 2**30 - 9))
        self.start = self._start_bytes()

    def ticks(self, count: int) -> tuple[bytes, list[Expected]]:
        steps = [self._step(k) for k in range(count)]
        return b"".join(data for data, _ in steps), [expected for _, expected in steps]

    def _random_twin(self) -> Twin:
        rng, register = self.rng, defaults()
        for r in REGISTERS:
            if r.access != "ro" and r.name not in UNDRAWN:
                choices = [r.minimum, r.maximum, r.default, rng.randint(r.minimum, r.maximum)]
                register[r.name] = rng.choice(choices)
            if r.type == "exponent":  # each divider in a like share of the cases
                register[r.name] = rng.choice((0, 0, 1, rng.randint(r.minimum, r.maximum)))
        register["current.zero"] = rng.choice((0, 100, -32768))
        register["encoder.link_counts"] = rng.choice((2**31 - 1, 524288, 16384, 4095, 1))
        register["velocity.source"] = rng.choice((0, 0, 1))
        if self.motion == "follow":  # an observer that is none would trip at once, and gains as they may be do so
            register |= {"velocity.alpha": 128, "velocity.beta": 512}
        if self.loose:
            register["current.zero"] = 0
            for name in ("limit.position_max", "limit.velocity", "limit.following", "limit.missed_ticks"):
                register[name] = BY_NAME[name].maximum
            register["limit.position_min"] = BY_NAME["limit.position_min"].minimum
        bounds = sorted((register["limit.position_min"], register["limit.position_max"]))
        register["limit.position_min"], register["limit.position_max"] = bounds
        twin = Twin(register, self._random_knots(register), State.RUNNING if self.held else rng.choice(STATES))
        twin.bounds = self._random_bounds(register)
        twin.current, twin.torque = self._random_channel(), self._random_channel()
        twin.reference = twin.position = twin.knots[0][0]
        twin.counter = twin.position % 2**16
        twin.link_count = rng.choice((0, 2**31 - 1, -(2**31)))
        twin.link_position = rng.choice((0, 2**31 - 1, -(2**31)))
        twin.edge_clocks = rng.choice((1000, 16_000, 125_000))
        twin.edge_time = rng.randrange(2**32)
        twin.excused = rng.choice((0, 12))
        if self.number % 8 in (1, 3):  # a brake, that is opening as it comes to be when the motor is armed, or open
            twin.engage_ticks = twin.engaging = 1 + self.number % 9
            twin.release_ticks = 1 + self.number % 3
            twin.power = 3 if self.number % 8 == 1 else 1 + 4 * (twin.release_ticks + 8)
        twin.halting = int(self.number % 8 == 4 or self.number % 16 == 1)
        if twin.halting:  # as it comes to be asked in the middle of a motion
            twin.reference_velocity, twin.rest = rng.randint(-(2**15), 2**15), rng.randrange(256)
        if self.number % 3 == 0 or twin.halting:  # feed-forward as ARM leaves it, or given in part
            own = random.Random(self.number)
            twin.feedforward = [own.choice((-32000, 32000, own.randint(-3000, 3000))) for _ in twin.knots]
            twin.feedforward_mA, twin.feedforward_share = twin.feedforward[0], own.choice((0, 100, 256))
        twin.missed = rng.choice((0, 0, 0, 3, 65535))
        twin.heat = rng.choice((0, 2**30, rng.randrange(2**30)))
        twin.squares = [2**24] * rng.choice((0, 1, 63))
        twin.wait, twin.repeats = rng.choice((0, 0, 5)), rng.choice((1, 3))
        return twin

    def _random_bounds(self, register: dict[str, int]) -> Bounds:
        """Bounds that let a case live, but for some of them where it is not loose."""
        rng = self.rng
        clamp = rng.choice((0, 1000, 32000))
        wide = Bounds(trip_counts=65536, stuck_ticks=2000, heat_limit=2**31 - 1, timeout=500, clamp=clamp)
        choices: dict[str, tuple[Any, ...]] = {
            "trip_counts": (0, 1000, 32736),
            "jump": (1, 100, 4096),
            "fastest": (256, 65536),
            "stuck_current": (1, max(1, clamp)),
            "stuck_ticks": (1, 10, 50),
            "timeout": (1, 50, 2000),
            "supply": ((-32000, 32000), (0, 0)),
            "hottest": (32000, 0),
            "heat_limit": (2**30, 2**25, 0),
            "twist": (2**24, 1000, 1),
        }
        tight = {name: rng.choice(values) for name, values in choices.items() if rng.random() < 0.3}
        ratio = rng.choice(((0, 2**18 - 1), (25, 0), (-26, 777), (2**18, 1)))
        scale = {"ratio": ratio, "hard_counts": rng.choice((1, 777, 32736)), "heat_rate": rng.choice((1, 210, 2**15))}
        if self.held:
            tight = {"clamp": 32000, "stuck_current": 1, "stuck_ticks": 3}
        b = replace(wide, **scale, **({} if self.loose else tight))
        register["limit.velocity"] = b.fastest
        return b

    def _random_channel(self) -> Signal:
        rng = self.rng
        nodes = [(rng.randint(-32768, 32767), rng.choice((-32768, 32767))) for _ in range(3)]
        errors = [(rng.randint(-8192, 8191), rng.choice((-8192, 8191))) for _ in range(2)]
        return Signal(rng.choice((0, 136 * 4095)), rng.randrange(16), nodes, errors)

    def _random_knots(self, register: dict[str, int]) -> list[tuple[int, int]]:
        low, high = register["limit.position_min"], register["limit.position_max"]
        fastest = register["limit.velocity"] if self.rng.random() < 0.5 else register["limit.velocity"] // 1000
        knots: list[tuple[int, int]] = []
        for _ in range(self.rng.randint(2, 9)):
            longest = fastest // 8
            span = self.rng.choice((-longest, longest, self.rng.randint(-longest, longest)))
            near = knots[-1][0] + span if knots else self.rng.choice((low, high, (low + high) // 2))
            velocity = self.rng.choice((-fastest, fastest, self.rng.randint(-fastest, fastest)))
            knots.append((max(low, min(high, near)), velocity))
        return knots

    def _start_bytes(self) -> bytes:
        twin, cells = self.twin, [0] * CELL["CELLS"]
        for r in REGISTERS:
            cells[r.id] = twin.register[r.name]
        cells[CELL["HEAT_GAIN"]] = 2**24 // twin.bounds.hard_counts
        cells[CELL["EDGE_CLOCKS"]], cells[CELL["EDGE_MOST"]] = twin.edge_clocks, twin.edge_most
        cells[CELL["LINK_HALF"]] = twin.register["encoder.link_counts"] // 2
        slope = twin.register["servo.friction"] * 2**12 // twin.register["servo.friction_band"]
        cells[CELL["FRICTION_SLOPE"]] = slope
        for number, section in enumerate(twin.sections(), 1):
            for name, value in zip(("B0", "B1", "B2", "A1", "A2"), section, strict=True):
                cells[CELL[f"{name}_{number}"]], cells[CELL[f"{name}_{number}_LOW"]] = divmod(value, 2**13)
        for name, value in self._bounds().items():
            cells[CELL[name]] = value
        for name, value in self._cells(self.first_tick - 1).items():
            cells[CELL[name]] = value
        intervals = len(twin.knots) - 1
        left = twin.repeats - twin.played // (intervals * 32)
        for name, value in {"INTERVAL": intervals, "INTERVALS": intervals, "REPEATS": left}.items():
            cells[CELL[name]] = value
        cells[CELL["FEEDFORWARD_AT"]] = (
            bool(twin.feedforward) and not twin.floating
        )  # the program puts its address there
        cells[CELL["TABLE_FIRST"]] = twin.knots[0][0]
        cells[CELL["TABLE_SHIFT"]] = max(0, twin.knots[1][0] - twin.knots[0][0]).bit_length() - 1
        cells[CELL["FLOAT_TICKS"]], wall = twin.float_ticks, twin.register["float.wall"]
        cells[CELL["WALL_LOW"]] = twin.register["limit.position_min"] + wall
        cells[CELL["WALL_HIGH"]] = twin.register["limit.position_max"] - wall
        currents = twin.feedforward or [0] * len(twin.knots)
        head = struct.pack(f"<2i{len(cells)}i", TICKS, len(twin.knots), *cells)
        knots = b"".join(struct.pack("<2i", *knot) for knot in twin.knots)
        return head + knots + struct.pack(f"<{len(currents)}h", *currents)

    def _bounds(self) -> dict[str, int]:
        b = self.twin.bounds
        return {
            "TRIP_COUNTS": b.trip_counts, "JUMP": b.jump, "FASTEST": b.fastest, "CLAMP": b.clamp,
            "STUCK_CURRENT": b.stuck_current, "STUCK_TICKS": b.stuck_ticks, "TIMEOUT": b.timeout,
            "TWIST_MOST": b.twist, "TWIST_WHOLE": b.ratio[0], "TWIST_PART": b.ratio[1],
            "RELEASE_TICKS": self.twin.release_ticks, "ENGAGE_TICKS": self.twin.engage_ticks,
            "RAMP": b.timeout // 2, "SUPPLY_LEAST": b.supply[0], "SUPPLY_MOST": b.supply[1], "HOTTEST": b.hottest,
            "HARD_COUNTS": b.hard_counts, "HEAT_RATE": b.heat_rate, "HEAT_LIMIT": b.heat_limit,
        }  # fmt: skip

    def _cells(self, tick: int) -> dict[str, int]:
        twin = self.twin
        return {
            **_channel("CURRENT", twin.current), **_channel("TORQUE", twin.torque),
            "TICK": (tick + 2**31) % 2**32 - 2**31, "STATE": twin.state, "STATUS_IN": self.status_in,
            "SILENCE": twin.silence, "MISSED": twin.missed, "STUCK": twin.stuck, "STUCK_AT": twin.stuck_at,
            "COMMAND": twin.outputs[1], "HEAT": twin.heat, "HEAT_SUM": sum(twin.squares),
            "HEAT_IN": 64 - len(twin.squares),
            "LINK_COUNT": twin.link_count, "LINK_POSITION": twin.link_position, "INTEGRAL": twin.integral,
            "EDGE_TIME": wrap(twin.edge_time), "STILL": twin.still,
            "TRIP": twin.trip[0], "TRIP_VALUE": twin.trip[1], "TRIP_LIMIT": twin.trip[2],
            "HALTING": twin.halting, "REST": twin.rest, "POWER": twin.power, "ENGAGING": twin.engaging,
            "TWIST": twin.twist, "TWIST_REST": twin.twist_rest, "EXCUSED": twin.excused,
            "COUNTER": twin.counter, "POSITION": twin.position, "VELOCITY": twin.velocity_q12,
            "INNOVATION": twin.innovation, "REFERENCE": twin.reference,
            "REFERENCE_VELOCITY": twin.reference_velocity, "WAIT": twin.wait, "PLAY": twin.play,
            "FEEDFORWARD": twin.feedforward_mA, "FEEDFORWARD_SHARE": twin.feedforward_share,
            "FEEDBACK": twin.feedback,
            "FLOATING": twin.floating, "FLOAT_SILENCE": twin.float_silence, "REST_CURRENT": twin.rest_current,
            "REST_SMOOTH": twin.rest_smooth, "VELOCITY_MEAN": twin.velocity_mean,
            "PLAYED": twin.played, "COUNT": self.count, "EDGES": self.edges, "BLOCK": self.block,
        }  # fmt: skip

    def _step(self, k: int) -> tuple[bytes, Expected]:
        twin, rng = self.twin, self.rng
        tick = (self.first_tick + k + 2**31) % 2**32 - 2**31
        extreme = rng.random() < 0.1
        current = [rng.choice((0, 4095))] * 16 if extreme else [rng.randrange(4096) for _ in range(16)]
        torque = [rng.choice((0, 4095))] * 16 if extreme else [rng.randrange(4096) for _ in range(16)]
        count = {
            "follow": twin.reference + rng.randint(-3, 3),
            "still": twin.position,
            "hand": self.hand() if isinstance(self, FloatCase) else 0,
            "jump": twin.counter + rng.choice((-32768, 32767, 0, rng.randrange(2**16))),
        }[self.motion] % 2**16
        link = rng.choice((-(2**31), 2**31 - 1, rng.randint(-(2**20), 2**20)))
        edge = (twin.edge_time + rng.choice((0, 1, 2**22, 2**22 + 1, 2**31, *[rng.randrange(2**17)] * 20))) % 2**32
        wait, state = twin.wait, twin.state
        slow = [rng.choice((-32768, 32767, rng.randint(-32768, 32767))) for _ in range(6)]
        if self.switches and rng.random() < 0.03:
            self.pins = rng.choice((0, 0, 0, 4, 8, 12, *(3 * [(1, 2, 15)[self.number // 4 % 3]])))
        pins = self.pins
        feet = (slow[2], slow[3], slow[4], slow[5])
        twin.tick(Inputs(tick, count, link, current, torque, slow[0], slow[1], feet, edge, pins))
        events = self._events(wait, state)
        if rng.random() < 0.01:
            self.edges = (self.edges + 1 + 2**31) % 2**32 - 2**31
            events |= CELL["EVENT_SYNC"]
        expected = Expected(self.number, self._cells(tick), (tick, *twin.outputs), events, twin.sample)
        if events & CELL["EVENT_BLOCK"]:
            self.count = 0
        words = (tick, 0, self.edges, 0, count, link, *slow[:2])
        return struct.pack("<8i32H4iIi", *words, *current, *torque, *slow[2:], edge, pins), expected

    def _events(self, wait: int, state: int) -> int:
        twin, events = self.twin, 0
        taken = twin.sample is not None
        self.count += taken
        played_out = not twin.floating and twin.played == twin.repeats * (len(twin.knots) - 1) * 32
        full = taken and self.count == self.block
        turns = (twin.play >= 0 and played_out) or (wait == 1 and twin.wait == 0 and state == State.RUNNING)
        if full or turns or twin.link_halt or twin.has_let_go:
            events |= CELL["EVENT_BLOCK"]
        events |= CELL["EVENT_TRIP"] if state != twin.state == State.FAULT else 0
        events |= CELL["EVENT_DONE"] if state != twin.state and twin.state in (State.DONE, State.LOADED) else 0
        self.status_in -= 1
        if self.status_in == 0:
            self.status_in = 1000
            events |= CELL["EVENT_STATUS"]
        return events


class FedCase(Case):
    """A board whose motor follows a motion with feed-forward to its end, is halted, or holds until its brake does.

    Random registers let few of the other cases play for longer than a tick or two.
    """

    def _random_twin(self) -> Twin:
        rng, twin = self.rng, super()._random_twin()
        self.motion = "follow"
        wide = {name: BY_NAME[name].maximum for name in ("limit.position_max", "limit.following", "limit.velocity")}
        watch = {"limit.unexpected": (8, 1, 0, 32000)[self.number % 4]}
        if self.number % 4 == 0:
            watch["servo.kp"] = 4000  # mA of some counts, which pass that
        gains = {"servo.kp": rng.randint(0, 100), "servo.kd": rng.randint(0, 100), "servo.ki": rng.randint(0, 100)}
        low = {"limit.position_min": BY_NAME["limit.position_min"].minimum, "limit.deceleration": 1}
        register = defaults() | wide | low | gains | watch
        bounds = Bounds(trip_counts=65536, stuck_ticks=2000, heat_limit=2**31 - 1, clamp=rng.choice((32000, 1500)))
        knots = [(1000 + rng.randint(-300, 300), rng.randint(-2000, 2000)) for _ in range(5)]
        fed = Twin(register, knots, State.RUNNING, bounds=bounds, edge_clocks=1000, repeats=rng.choice((1, 2)))
        fed.reference = fed.position = fed.counter = knots[0][0]
        fed.link_count, fed.link_position = twin.link_count, twin.link_position
        fed.feedforward = [rng.choice((-32000, 32000, rng.randint(-3000, 3000))) for _ in knots]
        fed.feedforward_mA, fed.feedforward_share = fed.feedforward[0], rng.choice((0, 100, 256))
        fed.wait = rng.choice((0, 9))
        if self.number % 4 in (0, 3):  # in its eighth repeat, so that it is watched from its ninth on
            fed.repeats, fed.played = rng.choice((9, 10)), 7 * (len(knots) - 1) * 32
        if self.number % 3 == 1:
            fed.halting, fed.reference_velocity = 1, 300
        if self.number % 3 == 2:
            fed.engage_ticks = fed.engaging = 200
            fed.power = 3
        return fed


class FloatCase(Case):
    """A motor that floats by a random table, is moved by hand, led into its walls, held at rest, and let go of."""

    def _random_twin(self) -> Twin:
        rng, n = self.rng, self.number
        super()._random_twin()
        self.motion = "hand"
        shift = rng.choice((8, 9, 14, 20))
        knots = [(-(2 ** (shift + 2)) + (k << shift), 0) for k in range(9)]
        register = defaults() | {
            "limit.position_min": knots[0][0] + rng.choice((0, 30)),
            "limit.position_max": knots[-1][0] - rng.choice((1, 30)),
            "limit.following": 65535,
            "limit.velocity": BY_NAME["limit.velocity"].maximum,
            "limit.deceleration": rng.choice((1, 64)),
            "limit.float": (32000, 500, 0, 9000)[n % 4],
            "float.velocity": rng.choice((0, 300, 2**20)),
            "float.wall": rng.choice((0, 100, 300, 65535)),
            "float.dead_band": rng.choice((0, 256, 1000, 2**20)),
            "float.hold": rng.choice((0, 3, 65535)),
            "float.inertia": rng.choice((0, 100, 32767)),
            "servo.velocity_feedforward": rng.choice((0, 50)),
            **{f"servo.{name}": rng.randint(0, 100) for name in ("kp", "kd", "ki", "friction")},
        }
        bounds = Bounds(trip_counts=65536, stuck_ticks=2000, heat_limit=2**31 - 1, clamp=rng.choice((32000, 1500)))
        twin = Twin(register, knots, State.RUNNING, bounds=bounds, edge_clocks=1000, repeats=0)
        twin.position = twin.reference = rng.choice((0, knots[-1][0] // 2, knots[0][0] // 2))
        twin.counter = twin.position % 2**16
        twin.feedforward = [rng.choice((-32000, 32000, rng.randint(-3000, 3000))) for _ in knots]
        twin.floating, twin.wait = rng.choice((1, 2)), rng.choice((0, 9))
        twin.float_ticks = (1000, 1000, 150)[n % 3]
        twin.rest_current = rng.choice((0, 32000, -32000, rng.randint(-500, 500)))
        twin.rest_smooth = rng.randint(-(2**20), 2**20)
        twin.velocity_mean = rng.randint(-(2**24), 2**24)
        self.speed, self.reach = 0.0, 2 ** (shift + 2)
        if n % 3 == 2:
            twin.engage_ticks = twin.engaging = rng.choice((0, 60))
            twin.power = 3 if twin.engage_ticks else 1
        return twin

    def hand(self) -> int:
        """Motor count next: a speed that wanders, stands at times, and turns before the window ends."""
        rng, twin = self.rng, self.twin
        if rng.random() < 0.05:
            self.speed = rng.choice((0.0, 0.3, -0.3, rng.uniform(-0.02, 0.02) * self.reach))
        if abs(twin.position + 3 * self.speed) > self.reach - 40:
            self.speed = -0.004 * twin.position
        return twin.position + round(self.speed + rng.random() - 0.5)


def _channel(name: str, channel: Signal) -> dict[str, int]:
    ((x1, x2), (m1, m2), (y1, y2)), ((e1, e2), (f1, f2)) = channel.nodes, channel.errors
    values = (channel.weighted, channel.rest, x1, x2, m1, m2, y1, y2, e1, e2, f1, f2)
    names = ("WEIGHTED", "REST", "X1", "X2", "M1", "M2", "Y1", "Y2", "E1", "E2", "F1", "F2")
    return {f"{name}_{each}": value for each, value in zip(names, values, strict=True)}


Cases = tuple[bytes, list[Expected]]


@pytest.fixture(scope="module")
def cases() -> Cases:
    return make_cases(CASES, random.Random(SEED))


@pytest.fixture(scope="module")
def fed_cases() -> Cases:
    return make_cases(IN_QEMU, random.Random(SEED + 2), FedCase)


@pytest.fixture(scope="module")
def float_cases() -> Cases:
    return make_cases(2 * IN_QEMU, random.Random(SEED + 3), FloatCase)


@pytest.fixture(scope="module")
def few_cases() -> Cases:
    return make_cases(IN_QEMU, random.Random(SEED + 1))


def make_cases(count: int, rng: random.Random, kind: type[Case] = Case) -> Cases:
    """Random boards and their sensors as the program reads them, and what has to come of each tick."""
    parts, expected = list[bytes](), list[Expected]()
    for number in range(count):
        case = kind(number, rng)
        inputs, outcomes = case.ticks(TICKS)
        parts += [case.start, inputs]
        expected += outcomes
    return b"".join(parts), expected


def test_tick_equals_its_twin_bit_for_bit(tmp_path: Path, cases: Cases) -> None:
    run_on_unix(tmp_path, cases)


def test_feedforward_equals_its_twin_bit_for_bit(tmp_path: Path, fed_cases: Cases) -> None:
    run_on_unix(tmp_path, fed_cases)
    played = [e for e in fed_cases[1] if e.cells["PLAY"] >= 0]
    assert len({e.cells["FEEDFORWARD"] for e in played}) > 300
    assert {0, 256} <= {e.cells["FEEDFORWARD_SHARE"] for e in fed_cases[1]}
    assert len({e.cells["FEEDFORWARD_SHARE"] for e in fed_cases[1] if e.cells["HALTING"] == 1}) > 100
    assert len({e.cells["FEEDFORWARD_SHARE"] for e in fed_cases[1] if e.cells["HALTING"] == 2}) > 100
    assert {State.DONE, State.LOADED} <= {e.cells["STATE"] for e in fed_cases[1]}
    tripped = [e for e in fed_cases[1] if e.cells["TRIP"] == Trip.UNEXPECTED]
    assert tripped
    assert {e.outputs[1:] for e in tripped} == {(0, 0)}
    assert min(e.cells["PLAYED"] for e in tripped) > 1024
    assert max(e.cells["PLAYED"] for e in fed_cases[1] if not e.cells["FEEDBACK"]) >= 1024
    assert len({e.cells["FEEDBACK"] for e in fed_cases[1] if e.cells["STATE"] == State.RUNNING}) > 100


def test_floating_equals_its_twin_bit_for_bit(tmp_path: Path, float_cases: Cases) -> None:
    run_on_unix(tmp_path, float_cases)
    floats = [e for e in float_cases[1] if e.cells["PLAY"] >= 0]
    assert len({e.outputs[2] for e in floats}) > 500
    assert len({e.cells["REST_SMOOTH"] for e in floats}) > 500
    references = [(e.cells["REFERENCE"] - e.cells["POSITION"], e.cells["REFERENCE_VELOCITY"]) for e in floats]
    assert any(error and velocity for error, velocity in references)  # held at rest
    assert any(abs(error) > 3 and not velocity for error, velocity in references)  # in a wall
    assert sum(not error and bool(velocity) for error, velocity in references) > 500  # free
    assert any(e.cells["HALTING"] == 1 and e.outputs[2] for e in float_cases[1])
    assert State.LOADED in {e.cells["STATE"] for e in float_cases[1]}  # let go of


@pytest.mark.slow
def test_tick_equals_its_twin_in_a_hundred_thousand_ticks(tmp_path: Path) -> None:
    cases = make_cases(MANY_CASES, random.Random(SEED))
    assert len(cases[1]) >= 100_000
    run_on_unix(tmp_path, cases)


def run_on_unix(folder: Path, cases: Cases) -> None:
    """Run every case on the 32-bit interpreter, and compare."""
    flash(folder, program=PROGRAM)
    (folder / "cases.bin").write_bytes(cases[0])
    subprocess.run([micropython(), "main.py"], cwd=folder, check=True, timeout=120)
    assert TICKS % 50 == 0
    must_equal((folder / "results.bin").read_bytes(), cases[1])


def test_tick_equals_its_twin_on_a_cortex(few_cases: Cases) -> None:
    run_in_qemu(few_cases, on_a_cortex)


def test_feedforward_equals_its_twin_on_a_cortex() -> None:
    run_in_qemu(make_cases(FED_IN_QEMU, random.Random(SEED + 2), FedCase), on_a_cortex)


def test_floating_equals_its_twin_on_a_cortex() -> None:
    run_in_qemu(make_cases(FED_IN_QEMU, random.Random(SEED + 3), FloatCase), on_a_cortex)


@pytest.mark.slow
def test_tick_equals_its_twin_on_a_cortex_in_many_ticks() -> None:
    run_in_qemu(make_cases(MANY_IN_QEMU, random.Random(SEED + 1)), on_a_cortex)


@pytest.mark.slow
def test_tick_equals_its_twin_on_a_risc_v(few_cases: Cases) -> None:
    run_in_qemu(few_cases, on_a_riscv)


@pytest.mark.slow
def test_tick_compiled_for_a_risc_v_equals_its_twin(few_cases: Cases) -> None:
    """As an ESP32-C3 gets it, by mpy-cross."""
    run_in_qemu(few_cases, on_a_riscv, Compiler("rv32imc").compile(PACKAGE))


def run_in_qemu(cases: Cases, board: Board, firmware: dict[str, bytes] = PACKAGE) -> None:
    """Run every case on a board in QEMU, and compare."""
    data, expected = cases
    try:
        found = run_program(PROGRAM, {"cases.bin": data, **firmware}, board=board)
    except QemuMissing as missing:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(missing))
    must_equal(found["results.bin"], expected)


def must_equal(results: bytes, cases: list[Expected]) -> None:
    """What a board left in memory after each tick is what the twin computed."""
    layout = struct.Struct(f"<2i{WORDS}i3i{MAX_SAMPLE}s")
    assert len(results) == layout.size * len(cases)
    for n, (fields, expected) in enumerate(zip(layout.iter_unpack(results), cases, strict=True)):
        where = f"tick {n} (tick {n % TICKS} of case {expected.case}, seed {SEED})"
        found = {name: fields[2 + CELL[name] - CELL["INPUTS"]] for name in expected.cells}
        assert found == expected.cells, where
        assert fields[-4:-1] == expected.outputs, where
        assert fields[0] == expected.events, where
        assert fields[-1][: fields[1]] == (expected.sample or b""), where


def test_the_cases_reach_every_trip_and_end(cases: Cases) -> None:
    trips = {expected.cells["TRIP"] for expected in cases[1]}
    # The first three are app.py's and partner.py's; the last is FedCase's.
    assert trips == set(Trip) - {Trip.INTERNAL, Trip.HARDWARE, Trip.PARTNER, Trip.UNEXPECTED}
    assert {State.ARMED, State.RUNNING, State.DONE, State.FAULT, State.LOADED} <= {e.cells["STATE"] for e in cases[1]}
    assert any(abs(e.outputs[2]) == 32000 for e in cases[1])
    assert {e.outputs[1] for e in cases[1]} == {0, 1, 3}
    ends = {(e.cells["HALTING"], e.cells["STATE"]) for e in cases[1]}
    assert {(1, State.LOADED), (2, State.DONE), (4, State.FAULT)} <= ends
    assert len({e.sample for e in cases[1]}) > 10_000


def test_constants_of_the_tick_are_those_of_the_wire() -> None:
    registers = [name for name in CELL if name.lower().replace("_", ".", 1) in BY_NAME]
    assert {CELL[name] for name in registers} == {BY_NAME[n.lower().replace("_", ".", 1)].id for n in registers}
    first = list(CELL).index("INPUTS")
    assert set(registers) == set(list(CELL)[:first])  # every constant before the cells is a register
    for state in (State.LOADED, State.ARMED, State.RUNNING, State.DONE, State.FAULT):
        assert CELL[f"STATE_{state.name}"] == state
    for trip in set(Trip) - {Trip.NONE, Trip.INTERNAL, Trip.HARDWARE, Trip.PARTNER}:
        assert CELL[f"TRIP_{trip.name}"] == trip
    assert CELL["INPUTS"] > max(r.id for r in REGISTERS)
