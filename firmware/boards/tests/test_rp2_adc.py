"""The ADC driver on a simulated RP2040: which samples of which input land in a tick's block."""

import struct
from typing import Any

import pytest

from firmware.boards.tests.simulated_rp2040 import CLOCK_HZ, Chip

TICK = CLOCK_HZ // 1000
PINS = {"current": 27, "torque": 26, "supply": 29, "temperature": 28}
ROLES = list(PINS)


def block(chip: Chip, pin: int) -> list[int]:
    """The newest 16 values of an input among whole rounds, as the chip converted them."""
    done = chip.converted[:-1] if chip.mcu.adc.busy else chip.converted
    whole = len(done) - len(done) % len({channel for channel, _ in done})
    return [value for channel, value in done[:whole] if channel == pin - 26][-16:]


@pytest.mark.parametrize("roles", [ROLES[:1], ROLES[:2], ROLES[:3], ROLES, ["current", "supply"]])
def test_each_block_holds_the_newest_samples_of_its_input(rp2040: tuple[Chip, Any], roles: list[str]) -> None:
    chip, load = rp2040
    load("rp2_ring").TRANSFERS = 256  # a multiple of every ring; changes over several times in this test
    adc = load("rp2_adc").RoundRobinAdc([{role: PINS[role] for role in roles}], 1000)
    assert adc.rate_Hz == 16000
    for cycles in (2 * TICK, TICK, TICK, 3 * TICK + 4000, TICK - 1111, TICK, 5 * TICK):
        chip.run(cycles)
        inputs = bytearray(116)
        adc.measure(inputs)
        words = struct.unpack_from("<8i32H", inputs)
        assert list(words[8:24]) == block(chip, PINS["current"])
        assert list(words[24:40]) == (block(chip, PINS["torque"]) if "torque" in roles else [0] * 16)
        assert words[6] == (block(chip, PINS["supply"])[-1] if "supply" in roles else 0)
        assert words[7] == (block(chip, PINS["temperature"])[-1] if "temperature" in roles else 0)


def test_a_tick_holds_sixteen_rounds(rp2040: tuple[Chip, Any]) -> None:
    """Three inputs take a fourth along."""
    chip, load = rp2040
    load("rp2_adc").RoundRobinAdc([{role: PINS[role] for role in ROLES[:3]}], 500)
    chip.run(TICK)
    before = len(chip.converted)
    chip.run(10 * TICK)
    assert len(chip.converted) - before == pytest.approx(10 * 2 * 64, abs=1)


def test_a_lost_sample_is_a_fault(rp2040: tuple[Chip, Any]) -> None:
    chip, load = rp2040
    adc = load("rp2_adc").RoundRobinAdc([PINS], 1000)
    chip.run(TICK)
    adc.measure(bytearray(116))
    chip.mcu.dma.channels[0].abort()
    chip.run(TICK)
    for _ in range(3):  # it stays one until a reset, but a board that fails in every tick could not be talked to
        with pytest.raises(load("errors").SensorFault, match="a sample was lost"):
            adc.measure(bytearray(116))
        adc.measure(bytearray(116))


@pytest.mark.parametrize(
    ("pins", "what"),
    [
        ({"torque": 26}, "current it must have"),
        ({"current": 26, "force": 27}, "force"),
        ({"current": 25}, "26 to 29"),
        ({"current": 26, "torque": 26}, "must differ"),
    ],
)
def test_pins_that_cannot_be(rp2040: tuple[Chip, Any], pins: dict[str, int], what: str) -> None:
    chip, load = rp2040
    with pytest.raises(load("errors").WiringError, match=what):
        load("rp2_adc").RoundRobinAdc([pins], 1000)
