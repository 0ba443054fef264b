"""What registers mean for the tick, as the board derives it, against the same said in plain numbers."""

import json
import random
import subprocess

import pytest

from firmware.tests.driver import constants, flash, micropython
from firmware.tests.twin import defaults
from jointwire import BY_NAME, REGISTERS

SEED, CASES = 3, 200
CELL = constants("jointboard/tick")

# Derives the bounds of each case's registers and writes all cells they go to.
PROGRAM = """
import json
from array import array
from jointboard import bounds, tick
for line in open("cases.json"):
    cells = array("i", json.loads(line) + [0] * tick.CELLS)
    bounds.derive(cells)
    print(json.dumps(list(cells[tick.INPUTS : tick.DUE])))
"""


def random_registers(rng: random.Random) -> dict[str, int]:
    """Any registers and facts a board may have."""
    register = defaults()
    for r in REGISTERS:
        if r.access != "ro" and r.type == "number":
            register[r.name] = rng.choice((r.minimum, r.maximum, r.default, rng.randint(r.minimum, r.maximum)))
    return register | {
        "board.tick_period": rng.choice((100, 1000, 5000)),
        "board.channels": rng.choice((0x87F, 0x81F, 0x87B)),
        "drive.ratio": rng.choice((101_000, 1000, -50_123)),
        "encoder.link_counts": rng.choice((524_288, 16_384, 4096)),
        "current.scale": rng.choice((305176, -50_000, 2_000_000)),
        "current.zero": rng.choice((0, 500, -500)),
        "encoder.capture_clock": rng.choice((0, 1_000_000, 125_000_000)),
        "hard.current": rng.choice((500, 32_000)),
        "hard.velocity": rng.choice((256, 2**20)),
        "temperature.zero": -27_315,
    }


@pytest.fixture(scope="module")
def derived(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[dict[str, int], dict[str, int]]]:
    """Registers, and the cells a board derives of them."""
    folder = tmp_path_factory.mktemp("bounds")
    rng = random.Random(SEED)
    cases = [random_registers(rng) for _ in range(CASES)]
    ids = {r.id: r.name for r in REGISTERS}
    lines = [json.dumps([case[ids[id]] if id in ids else 0 for id in range(CELL["INPUTS"])]) for case in cases]
    flash(folder, program=PROGRAM)
    (folder / "cases.json").write_text("\n".join(lines), encoding="utf-8")
    run = subprocess.run([micropython(), "main.py"], cwd=folder, check=True, timeout=60, capture_output=True, text=True)
    found = [json.loads(line) for line in run.stdout.splitlines()]
    named = {name: at - CELL["INPUTS"] for name, at in CELL.items() if CELL["INPUTS"] <= at < CELL["DUE"]}
    return [(case, {n: row[k] for n, k in named.items()}) for case, row in zip(cases, found, strict=True)]


def test_limits_in_the_units_the_tick_compares(derived: list[tuple[dict[str, int], dict[str, int]]]) -> None:
    for r, cell in derived:
        ampere, second = 1e9 / abs(r["current.scale"]), 1e6 / r["board.tick_period"]  # counts, ticks
        rail = 32736 - abs(r["current.zero"])
        limit = min(r["limit.current"], r["hard.current"])
        expected = {
            "CLAMP": limit,
            "TRIP_COUNTS": min(1.25e-3 * limit * ampere, rail),
            "HARD_COUNTS": min(1.25e-3 * r["hard.current"] * ampere, rail),
            "STUCK_CURRENT": max(1, min(r["limit.stuck_current"], limit)),
            "STUCK_TICKS": max(1.0, 1e-3 * r["limit.stuck_time"] * second),
            "FASTEST": min(r["limit.velocity"], r["hard.velocity"]),
            "JUMP": max(1, min(r["limit.jump"], r["hard.velocity"] // 256)),
            "TIMEOUT": 1e-3 * r["limit.link_timeout"] * second,
            "RAMP": 1e-3 * r["limit.link_timeout"] * second / 2,
            "LINK_HALF": r["encoder.link_counts"] / 2,
            "TWIST_MOST": (r["board.channels"] & 4 and r["limit.twist"]) or 2**31 - 1,
            "EDGE_CLOCKS": r["encoder.capture_clock"] / second,
            "FRICTION_SLOPE": 4096 * r["servo.friction"] / r["servo.friction_band"],
        }
        for name, value in expected.items():
            assert 0 <= value - cell[name] < 1, name  # whole numbers are cut off


def test_the_gear_is_whole_counts_and_parts(derived: list[tuple[dict[str, int], dict[str, int]]]) -> None:
    for r, cell in derived:
        exact = r["drive.ratio"] * r["encoder.motor_counts"] / (1000 * r["encoder.link_counts"])
        assert 0 <= exact - (cell["TWIST_WHOLE"] + cell["TWIST_PART"] / 2**18) < 2**-18
        assert 4096 * cell["TWIST_PART"] + 2**18 < 2**31
        assert 4096 * abs(cell["TWIST_WHOLE"]) <= 2**30


def test_supply_and_temperature_in_counts(derived: list[tuple[dict[str, int], dict[str, int]]]) -> None:
    for r, cell in derived:
        measured = r["board.channels"] & 0x60
        counts = r["limit.temperature"] * 10_000 // r["temperature.scale"] + r["temperature.zero"]
        assert cell["HOTTEST"] == (counts if measured else 2**31 - 1)
        for name, register, none in (
            ("SUPPLY_LEAST", "limit.supply_min", 1 - 2**31),
            ("SUPPLY_MOST", "limit.supply_max", 2**31 - 1),
        ):
            assert cell[name] == (r[register] * 1000 // r["voltage.scale"] if measured else none)


def test_heat_is_in_squares_of_the_hard_current(derived: list[tuple[dict[str, int], dict[str, int]]]) -> None:
    for r, cell in derived:
        assert cell["HEAT_GAIN"] == 2**24 // cell["HARD_COUNTS"]
        ticks = 1e3 * r["limit.thermal_time"] / r["board.tick_period"]
        assert cell["HEAT_RATE"] == pytest.approx(max(1, min(2**15, 64 * 2**15 / ticks)), abs=0.5001)  # rounded
        part = min(1.0, 1e6 * r["limit.continuous_current"] / abs(r["current.scale"]) / cell["HARD_COUNTS"])
        # Cut off before squaring: the result, a count of the current, and what the gain has behind its point.
        cut = 1 + 4096 / cell["HARD_COUNTS"] + 4096 * part * cell["HARD_COUNTS"] / 2**24
        assert 0 <= 4096 * part - (cell["HEAT_LIMIT"] / 64) ** 0.5 <= cut


def test_products_of_the_tick_fit_32_bits(derived: list[tuple[dict[str, int], dict[str, int]]]) -> None:
    for r, cell in derived:
        assert cell["HARD_COUNTS"] * cell["HEAT_GAIN"] <= 2**24
        assert cell["EDGE_MOST"] * cell["EDGE_CLOCKS"] < 2**31
        assert cell["EDGE_MOST"] <= 2**15
        assert cell["FRICTION_SLOPE"] * r["servo.friction_band"] < 2**31
        assert 32_000 * (cell["TIMEOUT"] - cell["RAMP"]) < 2**31
        assert cell["JUMP"] * 2**16 < 2**31


def test_coefficients_are_split_as_they_are_multiplied(derived: list[tuple[dict[str, int], dict[str, int]]]) -> None:
    for r, cell in derived:
        for section in (1, 2):
            for name in ("b0", "b1", "b2", "a1", "a2"):
                high, low = cell[f"{name.upper()}_{section}"], cell[f"{name.upper()}_{section}_LOW"]
                assert high * 2**13 + low == r[f"filter.{section}.{name}"]
                assert 0 <= low < 2**13


def test_every_limit_register_is_in_the_cases(derived: list[tuple[dict[str, int], dict[str, int]]]) -> None:
    for name, register in BY_NAME.items():
        if name.startswith("limit."):
            assert {register.minimum, register.maximum} <= {case[name] for case, _ in derived}
