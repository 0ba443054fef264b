"""Peaks of motor torque: of a motor's own joint every sample counts, of a pair's those of the same tick."""

import numpy as np
import pytest

from jointbench.link.identity import Facts
from jointbench.link.motion_watch import Peaks
from jointbench.robot import load_robot
from jointbench.tests.link.wire import DEFAULTS
from jointbench.tests.recording.board_stream import data
from jointwire import Frame, FrameReader

ARM, COBOT = load_robot("nursing_arm"), load_robot("cobot6")
FACTS = Facts(DEFAULTS | {"current.scale": 1_000_000, "current.zero": 5, "stream.every_motor_current": 0})  # mA


def block(node: int, play_tick: int, currents: list[int], first_tick: int = 640, every: int = 0) -> Frame:
    """A DATA frame with these motor currents [mA], one each tick or each 2^`every`."""
    sent = data(
        node, 1, first_tick, len(currents) << every, play_tick, dividers=every,
        raw=lambda tick, _: {"motor_current": currents[tick - first_tick >> every] + 5},
    )  # fmt: skip
    (chunk,) = FrameReader().feed(sent.data)
    assert isinstance(chunk.content, Frame)
    return chunk.content


def test_of_a_pair_the_same_ticks_belong_together() -> None:
    peaks = Peaks(ARM, [FACTS] * 6)
    peaks.add(0, block(1, 0, [100, 200, 300, 900]))
    peaks.add(1, block(2, 2, [-300, -900, 0, 0], first_tick=7000))  # of a clock of its own
    # Ticks 2 and 3 are known of both: rotation (300 + 300, 900 + 900) mA, pitch 0.
    assert peaks.take() == pytest.approx({"j1": 3060 * 0.024026 * 1.8, "j2": 0.0}, abs=1e-9)
    assert peaks.take() == {}


def test_a_pair_of_which_one_motor_was_not_heard_says_nothing() -> None:
    peaks = Peaks(ARM, [FACTS] * 6)
    peaks.add(2, block(3, 0, [100]))
    assert peaks.take() == {}
    peaks.add(2, block(3, 0, [100]))
    peaks.add(3, block(4, -1, [100]))  # holds, and does not play yet
    assert peaks.take() == {}


def test_a_motor_of_its_own_counts_whether_it_plays_or_not() -> None:
    peaks = Peaks(COBOT, [FACTS] * 6)
    peaks.add(1, block(2, -1, [10, -700]))
    peaks.add(1, block(2, 0, [30, 20]))
    assert peaks.take() == pytest.approx({"j2": 0.7 * abs(COBOT.drives[1].torque_per_current)})


def test_currents_that_come_less_often_keep_their_ticks() -> None:
    facts = Facts(FACTS.registers | {"stream.every_motor_current": 1})
    peaks = Peaks(ARM, [facts] * 6)
    peaks.add(0, block(1, 0, [100, 200, 300, 400], every=1))
    peaks.add(1, block(2, 4, [-300, -100, 0, 0], every=1))  # at ticks 4 and 6
    expected = 3060 * 0.024026 * np.array([max(0.3 + 0.3, 0.4 + 0.1), max(0.3 - 0.3, 0.4 - 0.1)])
    assert list(peaks.take().values()) == pytest.approx(expected)


def test_a_board_without_a_motor_has_none() -> None:
    measuring = Facts(FACTS.registers | {"board.channels": 1 << 2})
    peaks = Peaks(COBOT, [*[FACTS] * 5, measuring])
    peaks.add(5, block(6, -1, [100]))
    assert peaks.take() == {}
