"""ENABLE for an external charge pump: what the firmware gives, and what the pump of docs/wiring.md makes of it."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from firmware.boards.tests.conftest import ROOT
from firmware.boards.tests.interpreter import run
from firmware.boards.tests.test_board_files import examples, start

PROGRAM = """
from drivers.charge_pump import ChargePump
class Pin:
    def value(self, level):
        levels.append(level)
levels = []
pump = ChargePump(Pin())
for level in asked:
    pump.value(level)
answer = levels
"""
C1, C2, SERIES, FEEDBACK = 100e-9, 220e-9, 100e3, 1e6  # [F], [Ω] of the page
TOLERANCES = tuple(itertools.product((0.9, 1.1), (0.9, 1.1), (0.99, 1.01), (0.20, 0.32), (3.135, 3.465)))


def test_the_pin_turns_over_with_each_turn_and_stands_low_at_rest() -> None:
    assert run(PROGRAM, asked=[0, 0, 1, 1, 1, 1, 0, 1, 0, 0]) == [0, 0, 1, 0, 1, 0, 0, 1, 0, 0]


def enable(pin: list[int], tick_s: float, resistance: float, parts: tuple[float, ...], steps: int) -> list[bool]:
    """The comparator's output, `steps` of them in a tick, for the pin's level in each tick.

    Args:
        pin: level in each tick.
        tick_s: their length.
        resistance: of R2.
        parts: factors of C1, C2 and R2, the diodes' forward voltage, the supply, half of which is the threshold.
        steps: of a tick; a hundredth of the time constant and less.
    """
    factor_1, factor_2, factor_r, diode, supply = parts
    c1, c2, r2, dt = C1 * factor_1, C2 * factor_2, resistance * factor_r, tick_s / steps
    across, held = 0.0, 0.0
    levels = [False]
    for level in pin:
        driven = supply * level
        if driven - across - diode > held:  # D2 conducts: C1 gives C2 of its charge
            moved = (driven - across - diode - held) * c1 * c2 / (c1 + c2)
            across, held = across + moved / c1, held + moved / c2
        across = min(across, driven + diode)  # a falling edge: D1 holds C1's other side at -diode
        for _ in range(steps):
            output = supply * levels[-1]
            held += dt / c2 * (-held / r2 + (output - held) / (SERIES + FEEDBACK))
            levels.append((held * FEEDBACK + output * SERIES) / (SERIES + FEEDBACK) > supply / 2)
    return levels[1:]


@pytest.mark.parametrize(
    ("tick_ms", "resistance", "last_edge", "shortest_ms", "longest_ms"),
    [(1, 62e3, 6, 5.3, 9.9), (2, 120e3, 7, 10.9, 20.0)],
)
def test_the_pump_comes_up_after_some_edges_and_lets_go_in_the_time_of_the_page(
    tick_ms: int, resistance: float, last_edge: int, shortest_ms: float, longest_ms: float
) -> None:
    """With every part at the ends of its tolerance: capacitors 10 %, R2 1 %, diodes 0.20 to 0.32 V, supply 5 %."""
    steps, turns = 50, 41  # the last edge is a rising one
    found: list[tuple[int, float]] = []
    for parts in TOLERANCES:
        pin = [k % 2 for k in range(1, turns + 1)] + [1] * 40
        levels = enable(pin, 1e-3 * tick_ms, resistance, parts, steps)
        first = levels.index(True)
        assert all(levels[first : turns * steps])  # up once, and not between two edges
        off = levels.index(False, turns * steps)
        assert not any(levels[off:])  # a pin that stands, high or low, is none
        found.append((1 + first // (2 * steps), tick_ms * (off / steps - (turns - 1))))
    edges, held = zip(*found, strict=True)
    assert (min(edges), max(edges)) == (3, last_edge)
    assert (shortest_ms, longest_ms) == pytest.approx((min(held), max(held)), abs=0.06 * tick_ms)


@pytest.mark.parametrize("level", [0, 1])
def test_a_pin_that_stands_or_moves_once_does_not_raise_enable(level: int) -> None:
    for parts in TOLERANCES:
        assert not any(enable([0, level, level, level, 1 - level] + [level] * 30, 1e-3, 62e3, parts, 20))


@pytest.mark.parametrize("port", ["esp32", "stm32"])
def test_a_board_with_a_charge_pump(port: str, tmp_path: Any) -> None:
    config: dict[str, Any] = examples()[port] | {"charge_pump": True}
    config.pop("heartbeat", None)
    enable_pin = config["pins"]["enable"]
    (built, disarmed, armed, ended), *_ = start(port, config, tmp_path)
    assert built[0] == [enable_pin, 0]
    assert [enable_pin, 1] not in built + disarmed
    assert armed[-1] == [enable_pin, 1]
    assert [enable_pin, 0] in ended


def test_both_at_once_are_refused(tmp_path: Any) -> None:
    found = start("stm32", examples()["stm32"] | {"charge_pump": True}, tmp_path)
    assert "charge_pump and heartbeat: ENABLE can be one of them" in found


def test_the_page_has_these_values() -> None:
    text = (ROOT / "docs" / "wiring.md").read_text(encoding="utf-8")
    for words in ("100 nF", "220 nF", "62 kΩ", "120 kΩ", "5.3 to 9.9 ms", "10.9 to 20 ms"):
        assert words in text
