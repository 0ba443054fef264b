"""The thermistor's table against its equation, in double precision here and in single precision on MicroPython."""

import math
from typing import Any

import pytest

from firmware.boards.tests.interpreter import run

NTC = {"ohm_25": 10000, "beta_K": 3950, "resistor_ohm": 10000, "side": "low"}
PROGRAM = """
from drivers.ntc import Ntc
from drivers.errors import WiringError
try:
    ntc = Ntc({"ntc": config})
    answer = [ntc.to_centidegrees(count) for count in range(4096)]
except WiringError as error:
    answer = str(error)
"""


def celsius(count: float, side: str, resistor: float = 10000) -> float:
    """1 / T = 1 / T25 + ln(R / R25) / beta, of the divider's part of the reference."""
    part = count / 4096 if side == "low" else 1 - count / 4096
    ohm = resistor * part / (1 - part)
    return 1 / (1 / 298.15 + math.log(ohm / 10000) / 3950) - 273.15


@pytest.mark.parametrize("side", ["low", "high"])
@pytest.mark.parametrize("resistor", [10000, 2200])
def test_a_count_is_the_temperature_of_the_equation(side: str, resistor: int) -> None:
    told = run(PROGRAM, config=NTC | {"side": side, "resistor_ohm": resistor})
    off = [
        abs(told[count] / 100 - expected)
        for count in range(32, 4064)
        if -20 <= (expected := celsius(count, side, resistor)) <= 120
    ]
    assert len(off) > 3000
    # Rounding of the table and of the step, and a chord of 16 counts under the curve where it is steepest, at 120 degC.
    assert max(off) < 0.15
    assert sum(off) / len(off) < 0.02


def test_an_open_or_short_circuit_is_hotter_than_any_limit() -> None:
    told = run(PROGRAM, config=NTC)
    assert set(told[:32] + told[4064:]) == {32767}
    assert all(-10000 <= value < 32767 for value in told[32:4064])


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"beta_K": 0}, "ntc.beta_K is 0; it must be a number from 1000 to 10000"),
        ({"side": "left"}, "ntc.side is 'left'; known are low, high"),
        ({"resistor_ohm": "10k"}, "ntc.resistor_ohm is '10k'"),
    ],
)
def test_a_wrong_thermistor_is_refused_by_name(change: dict[str, Any], what: str) -> None:
    assert what in run(PROGRAM, config=NTC | change)
