"""ENABLE by a timer's one-pulse mode, against a timer that counts as the reference manual says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from firmware.boards.tests.conftest import ROOT
from firmware.boards.tests.interpreter import run
from firmware.boards.tests.test_board_files import examples, start

PROGRAM = """
import sys
sys.path.append(tests)
from fake_port import log, one_pulse
from drivers.stm32_heartbeat import Heartbeat
from drivers.errors import WiringError
def runs(levels):
    "Levels as pairs of level and for how many microseconds."
    found = []
    for level in levels:
        if found and found[-1][0] == level:
            found[-1][1] += 1
        else:
            found.append([level, 1])
    return found
try:
    heart = Heartbeat("C8", 3, channel, 2, period)
    answer = [heart.held_us, one_pulse.registers[10], [list(event) for event in log]]
    levels = one_pulse.pass_us(50)
    for action, us in actions:
        if action is not None:
            heart.value(action)
        levels += one_pulse.pass_us(us)
    answer.append(runs(levels))
except WiringError as error:
    answer = str(error)
"""
TESTS = str(ROOT / "firmware/boards/tests")


def pulses(actions: Sequence[tuple[int | None, int]], channel: int = 3, period: int = 1000) -> Any:
    return run(PROGRAM, tests=TESTS, actions=actions, channel=channel, period=period)


@pytest.mark.parametrize("channel", [1, 2, 3, 4])
def test_a_kick_holds_enable_for_four_milliseconds_and_no_longer(channel: int) -> None:
    held, prescaler, log, levels = pulses([(1, 9000), (1, 9000)], channel)
    assert (held, prescaler) == (4000, 167)  # of 168 MHz: a count is 1 us
    assert levels == [[0, 51], [1, 4000], [0, 5000], [1, 4000], [0, 4999]]
    # The channel drives low before the pin becomes its own, which keeps its pull-down.
    assert [event[0] for event in log if event[0] in ("one pulse", "C8")] == ["one pulse", "C8"]
    assert log[-1][:4] == ["C8", "alt", 2, 1]


def test_a_kick_each_tick_keeps_enable_up_without_a_gap() -> None:
    levels = pulses([(1, 1000)] * 20 + [(1, 3999), (1, 6000)])[-1]
    assert levels == [[0, 51], [1, 20 * 1000 + 3999 - 1 + 4000], [0, 2000]]


def test_letting_go_is_at_once_and_stays() -> None:
    assert pulses([(1, 500), (0, 9000), (0, 10), (1, 100)])[-1] == [[0, 51], [1, 499], [0, 9011], [1, 99]]


def test_before_the_first_kick_and_after_the_last_nothing_rises() -> None:
    assert pulses([(None, 70_000)])[-1] == [[0, 70_050]]


def test_three_ticks_are_held_where_ticks_are_long() -> None:
    assert pulses([(1, 20_000)], period=5000)[-1] == [[0, 51], [1, 15_000], [0, 4999]]
    assert "a tick of 25000 us is too long for heartbeat" in pulses([], period=25_000)


def test_a_board_with_a_heartbeat(tmp_path: Any) -> None:
    """It lets go at the start, each tick in which the motor may be driven is a kick, and disable() is at once."""
    config = examples()["stm32"]
    assert config["heartbeat"] == {"timer": 3, "channel": 3, "function": 2}
    (built, _, armed, ended), *_, beats = start("stm32", config, tmp_path)
    assert built[0] == ["C8", 0]
    assert ["one pulse", 3, 3] in built
    assert not [event for event in armed + ended if event[0] == "C8"]  # the timer has the pin
    assert beats == [0, 0, 1, 0]


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"timer": 4, "channel": 3, "function": 2}, "heartbeat.timer is 4, which ADC, encoder or drive has already"),
        ({"timer": 1, "channel": 3, "function": 2}, "heartbeat.timer is 1; it must be a number from 2 to 5"),
        ({"timer": 3, "channel": 5, "function": 2}, "heartbeat.channel is 5"),
        ({"timer": 3, "channel": 3}, "heartbeat.function is None"),
    ],
)
def test_a_heartbeat_that_cannot_be(change: dict[str, int], what: str, tmp_path: Any) -> None:
    assert what in start("stm32", examples()["stm32"] | {"heartbeat": change}, tmp_path)
