"""The tick against its twin, bit for bit, on the 32-bit interpreter; and the twin's arithmetic against what it stands
for.
"""

import random
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from firmware.tests.board_constants import constants
from firmware.tests.driver import flash, micropython
from firmware.tests.twin import Inputs, Twin, defaults, hermite
from jointwire import BY_NAME, REGISTERS, State, Trip

SEED = 20
CASES, TICKS = 260, 400
CELL = constants("jointboard/tick")
MAX_SAMPLE = 26  # all channels at once
WORDS = CELL["DUE"] - CELL["INPUTS"]  # what a tick may change: all cells but the registers and the plan
STATES = (State.DISARMED, State.ARMED, State.RUNNING)

# Runs every case of cases.bin through the board's tick and writes all it left in memory to results.bin.
PROGRAM = """
import struct
from array import array
from jointboard import sampling, tick
from jointboard.link import address
cells = array("i", bytes(4 * tick.CELLS))
knots, inputs, outputs = bytearray(8 * 64), bytearray(112), bytearray(12)
block, head, result = bytearray(1086), bytearray(8), bytearray(8)
changing = memoryview(cells)[tick.INPUTS : tick.DUE]
source, target = open("cases.bin", "rb"), open("results.bin", "wb")
while source.readinto(head):
    ticks, count = struct.unpack("<2i", head)
    source.readinto(cells)
    source.readinto(knots, 8 * count)
    sampling.plan(cells)
    cells[tick.INPUTS], cells[tick.OUTPUTS] = address(inputs), address(outputs)
    cells[tick.KNOT], cells[tick.SAMPLE] = address(knots), address(block)
    for _ in range(ticks):
        source.readinto(inputs)
        at = cells[tick.SAMPLE] - address(block)
        events = tick.tick(cells)
        struct.pack_into("<2i", result, 0, events, cells[tick.SAMPLE] - address(block) - at)
        target.write(result)
        target.write(changing)
        target.write(outputs)
        sample = bytes(memoryview(block)[at : cells[tick.SAMPLE] - address(block)])
        target.write(sample + bytes(26 - len(sample)))
        if events & tick.EVENT_BLOCK:
            cells[tick.COUNT], cells[tick.SAMPLE] = 0, address(block)
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
        self.motion = rng.choice(("follow", "follow", "still", "jump"))
        self.twin = self._random_twin()
        self.block = self.twin.block()
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
            if r.access != "ro":
                choices = [r.minimum, r.maximum, r.default, rng.randint(r.minimum, r.maximum)]
                register[r.name] = rng.choice(choices)
            if r.type == "exponent":  # each divider in a like share of the cases
                register[r.name] = rng.choice((0, 0, 1, rng.randint(r.minimum, r.maximum)))
        register["current.zero"] = rng.choice((0, 100, -32768))
        register["encoder.link_zero"] = rng.choice((0, 2**31 - 1, -77))
        if self.loose:
            register["current.zero"] = 0
            for name in ("limit.position_max", "limit.velocity", "limit.following"):
                register[name] = BY_NAME[name].maximum
            register["limit.position_min"] = BY_NAME["limit.position_min"].minimum
        bounds = sorted((register["limit.position_min"], register["limit.position_max"]))
        register["limit.position_min"], register["limit.position_max"] = bounds
        twin = Twin(register, self._random_knots(register), rng.choice(STATES))
        twin.trip_counts = 40000 if self.loose else rng.choice((0, 1000, 32736))
        twin.timeout = rng.choice((50, 500, 2000))
        twin.x = (rng.randint(-32768, 32752), rng.randint(-32768, 32752))
        twin.y = (rng.randint(-32768, 32767), rng.randint(-32768, 32767))
        twin.remainder = rng.randrange(2**14)
        twin.reference = twin.position = twin.knots[0][0]
        twin.counter = twin.position % 2**16
        twin.wait, twin.repeats = rng.choice((0, 0, 5)), rng.choice((1, 3))
        return twin

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
        for name, value in self._cells(self.first_tick - 1).items():
            cells[CELL[name]] = value
        intervals = len(twin.knots) - 1
        for name, value in {"INTERVAL": intervals, "INTERVALS": intervals, "REPEATS": twin.repeats}.items():
            cells[CELL[name]] = value
        head = struct.pack(f"<2i{len(cells)}i", TICKS, len(twin.knots), *cells)
        return head + b"".join(struct.pack("<2i", *knot) for knot in twin.knots)

    def _cells(self, tick: int) -> dict[str, int]:
        twin = self.twin
        return {
            "TICK": (tick + 2**31) % 2**32 - 2**31, "STATE": twin.state, "STATUS_IN": self.status_in,
            "TRIP_COUNTS": twin.trip_counts, "TIMEOUT": twin.timeout, "SILENCE": twin.silence,
            "TRIP": twin.trip[0], "TRIP_VALUE": twin.trip[1], "TRIP_LIMIT": twin.trip[2],
            "X1": twin.x[0], "X2": twin.x[1], "Y1": twin.y[0], "Y2": twin.y[1], "REMAINDER": twin.remainder,
            "COUNTER": twin.counter, "POSITION": twin.position, "VELOCITY": twin.velocity_q12,
            "INNOVATION": twin.innovation, "REFERENCE": twin.reference,
            "REFERENCE_VELOCITY": twin.reference_velocity, "WAIT": twin.wait, "PLAY": twin.play,
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
            "jump": twin.counter + rng.choice((-32768, 32767, 0, rng.randrange(2**16))),
        }[self.motion] % 2**16
        link = rng.choice((-(2**31), 2**31 - 1, rng.randint(-(2**20), 2**20)))
        wait, state = twin.wait, twin.state
        slow = [rng.choice((-32768, 32767, rng.randint(-32768, 32767))) for _ in range(6)]
        twin.tick(Inputs(tick, count, link, current, torque, slow[0], slow[1], (slow[2], slow[3], slow[4], slow[5])))
        events = self._events(wait, state)
        if rng.random() < 0.01:
            self.edges = (self.edges + 1 + 2**31) % 2**32 - 2**31
            events |= CELL["EVENT_SYNC"]
        expected = Expected(self.number, self._cells(tick), (tick, *twin.outputs), events, twin.sample)
        if events & CELL["EVENT_BLOCK"]:
            self.count = 0
        words = (tick, 0, self.edges, 0, count, link, *slow[:2])
        return struct.pack("<8i32H4i", *words, *current, *torque, *slow[2:]), expected

    def _events(self, wait: int, state: int) -> int:
        twin, events = self.twin, 0
        taken = twin.sample is not None
        self.count += taken
        played_out = twin.played == twin.repeats * (len(twin.knots) - 1) * 32
        full = taken and self.count == self.block
        if full or (twin.play >= 0 and played_out) or (wait == 1 and twin.wait == 0 and state == State.RUNNING):
            events |= CELL["EVENT_BLOCK"]
        events |= CELL["EVENT_TRIP"] if state != twin.state == State.FAULT else 0
        events |= CELL["EVENT_DONE"] if state != twin.state == State.DONE else 0
        self.status_in -= 1
        if self.status_in == 0:
            self.status_in = 1000
            events |= CELL["EVENT_STATUS"]
        return events


@pytest.fixture(scope="module")
def cases() -> tuple[bytes, list[Expected]]:
    rng = random.Random(SEED)
    data, expected = b"", list[Expected]()
    parts: list[bytes] = []
    for number in range(CASES):
        case = Case(number, rng)
        inputs, outcomes = case.ticks(TICKS)
        parts += [case.start, inputs]
        expected += outcomes
    return data.join(parts), expected


def test_tick_equals_its_twin_bit_for_bit(tmp_path: Path, cases: tuple[bytes, list[Expected]]) -> None:
    flash(tmp_path, program=PROGRAM)
    (tmp_path / "cases.bin").write_bytes(cases[0])
    subprocess.run([micropython(), "main.py"], cwd=tmp_path, check=True, timeout=120)
    results = (tmp_path / "results.bin").read_bytes()
    layout = struct.Struct(f"<2i{WORDS}i3i{MAX_SAMPLE}s")
    assert len(results) == layout.size * len(cases[1])
    assert len(cases[1]) >= 100_000
    for n, (fields, expected) in enumerate(zip(layout.iter_unpack(results), cases[1], strict=True)):
        where = f"tick {n} (tick {n % TICKS} of case {expected.case}, seed {SEED})"
        found = {name: fields[2 + CELL[name] - CELL["INPUTS"]] for name in expected.cells}
        assert found == expected.cells, where
        assert fields[-4:-1] == expected.outputs, where
        assert fields[0] == expected.events, where
        assert fields[-1][: fields[1]] == (expected.sample or b""), where


def test_the_cases_reach_every_trip_and_end(cases: tuple[bytes, list[Expected]]) -> None:
    trips = {expected.cells["TRIP"] for expected in cases[1]}
    assert trips == set(Trip) - {Trip.INTERNAL}  # INTERNAL is the application's
    assert {State.ARMED, State.RUNNING, State.DONE, State.FAULT} <= {e.cells["STATE"] for e in cases[1]}
    assert any(abs(e.outputs[2]) == 32000 for e in cases[1])
    assert len({e.sample for e in cases[1]}) > 10_000


def test_constants_of_the_tick_are_those_of_the_wire() -> None:
    for name, value in CELL.items():
        register = BY_NAME.get(name.lower().replace("_", ".", 1))
        if register:
            assert value == register.id, name
    named = [name for name in CELL if name.lower().replace("_", ".", 1) in BY_NAME]
    assert len(named) == 16
    for state in (State.ARMED, State.RUNNING, State.DONE, State.FAULT):
        assert CELL[f"STATE_{state.name}"] == state
    for trip in set(Trip) - {Trip.NONE, Trip.INTERNAL}:
        assert CELL[f"TRIP_{trip.name}"] == trip
    assert min(value for name, value in CELL.items() if name in ("INPUTS", "COUNT")) > max(r.id for r in REGISTERS)


def test_playback_is_the_cubic_hermite() -> None:
    """Within a count and 1/64 count/tick of the exact cubic: results are rounded, v0 and v1 cut to 1/32 count/tick."""
    rng = random.Random(SEED)
    for _ in range(300):
        fastest = rng.choice((2**20, 25600, 300))
        start = (rng.randint(-(2**29), 2**29), rng.randint(-fastest, fastest))
        end = (start[0] + rng.randint(-fastest // 8, fastest // 8), rng.randint(-fastest, fastest))
        u = np.arange(32) / 32
        span, v0, v1 = end[0] - start[0], start[1] / 256 * 32, end[1] / 256 * 32
        moved = span * (3 * u**2 - 2 * u**3) + v0 * (u - 2 * u**2 + u**3) + v1 * (u**3 - u**2)
        speed = (span * (6 * u - 6 * u**2) + v0 * (1 - 4 * u + 3 * u**2) + v1 * (3 * u**2 - 2 * u)) / 32
        board = np.array([hermite(start, end, i) for i in range(32)])
        assert np.abs(board[:, 0] - start[0] - moved).max() < 1
        clipped = np.clip(speed, -4096, 4096)
        assert np.abs(board[:, 1] / 256 - clipped).max() <= 1 / 64


def test_velocity_settles_on_a_constant_speed() -> None:
    twin = Twin(defaults())
    middle = [2048] * 16
    for k in range(400):
        twin.tick(Inputs(k, 37 * k % 2**16, 0, middle, middle))
    assert twin.velocity_q12 / 4096 == pytest.approx(37, abs=1 / 256)  # one unit of the velocity the servo uses


def test_rounding_in_the_filter_leaves_no_bias() -> None:
    """A low-pass of a small constant comes out as that constant on average: the remainder is fed back."""
    register = defaults() | {
        "filter.b0": 329,
        "filter.b1": 658,
        "filter.b2": 329,
        "filter.a1": -25576,
        "filter.a2": 10508,
    }
    twin = Twin(register)
    total = 0
    for k in range(6000):
        twin.tick(Inputs(k, 0, 0, [2048] * 13 + [2049] * 3, [2048] * 16))
        total += twin.y[0] if k >= 1000 else 0
    gain = (329 + 658 + 329) / (2**14 - 25576 + 10508)
    assert total / 5000 == pytest.approx(3 * gain, abs=0.01)  # 5000 samples of an output that is off by < 1 at each
