"""An index pulse each turn: the counts at which pulses rise, as the pins would have latched them."""

import random

import pytest

from firmware.boards.tests.interpreter import run

PROGRAM = """
from drivers.index_pulse import IndexPulse
from drivers.errors import SensorFault, WiringError
try:
    pulse = IndexPulse({"motor_encoder": {"index_width": width}}, turn)
    answer = [pulse.judge(count) for count in latched]
    try:
        pulse.is_off() and pulse.complain()
        answer.append("")
    except SensorFault as error:
        answer.append(str(error))
    answer += [pulse.is_off(), pulse.judge(4711 if answer[-1] else latched[-1])]
except WiringError as error:
    answer = str(error)
"""


def pulses(turn: int, width: int, seed: int, lost: int = 0, after: int = 10**9) -> list[int]:
    """Counts of 16 bits at the rising edges of 200 pulses met on a random walk; from one of them on counts are lost."""
    generator, position, found = random.Random(seed), generator_start(seed), list[int]()
    while len(found) < 200:
        forward = generator.random() < 0.5
        turns = position // turn
        # Forwards Z rises at the begin of its width, backwards at the end of it.
        edge = (turns + 1) * turn if forward else turns * turn + width
        position = edge + (turn // 2 if forward else -turn // 2 - width)
        found.append((edge + (lost if len(found) >= after else 0)) % 65536)
    return found


def generator_start(seed: int) -> int:
    """Where the motor stands at boot: never within the pulse."""
    return 1000 * seed + 700


@pytest.mark.parametrize("turn", [4096, 2000, 16384, 32000])
@pytest.mark.parametrize("width", [1, 4])
def test_pulses_where_they_belong_are_no_fault(turn: int, width: int) -> None:
    """In both directions, over the 16 bits of the counter, for turns that do not divide them."""
    *judged, said, off, after = run(PROGRAM, turn=turn, width=width, latched=pulses(turn, width, seed=3))
    assert (set(judged), said, off, after) == ({0}, "", False, 0)


@pytest.mark.parametrize("lost", [-30, -8, 8, 500])
def test_lost_counts_are_told_with_how_many(lost: int) -> None:
    latched = pulses(4096, 2, seed=5, lost=lost, after=100)[:101]
    *judged, said, off, after = run(PROGRAM, turn=4096, width=2, latched=latched)
    assert set(judged[:100]) == {0}
    assert abs(judged[100] - lost) <= 2
    assert said.startswith(f"motor encoder: index pulse 101 came {judged[100]:+d} counts from where it belongs")
    assert (off, after) == (False, 0)  # the next pulse is the first again


def test_slow_losses_add_up() -> None:
    latched = [(4096 * k - k) % 65536 for k in range(20)]
    *judged, said, _, _ = run(PROGRAM, turn=4096, width=4, latched=latched)
    assert judged[:6] == [0] * 6  # a count a turn is within the pulse's width at first
    assert judged[6:8] == [-6, -7]
    assert "counts were lost" in said


@pytest.mark.parametrize(
    ("turn", "width", "what"),
    [
        (4096, 0, "motor_encoder.index_width is 0; it must be a number from 1 to 64"),
        (40000, 4, "fact encoder.motor_counts is 40000; with an index pulse 4 wide it must be from 32 to 32000"),
    ],
)
def test_what_no_index_can_check_is_refused(turn: int, width: int, what: str) -> None:
    assert what in run(PROGRAM, turn=turn, width=width, latched=[])
