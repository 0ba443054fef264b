"""Peaks of motor torque: of a motor's own joint every sample counts, of a pair's those of the same tick."""

from dataclasses import dataclass

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.bench.identity import Facts
from jointbench.bench.motion_watch import STANDING_SAMPLES, TIPPING_TIME, FallWatch, Peaks, fall_watch
from jointbench.errors import FootOffGround, JointbenchError, RobotFell, StuckFootSensor
from jointbench.model import load_robot
from jointbench.tests.bench.wire import DEFAULTS
from jointbench.tests.recording.board_stream import data
from jointwire import ChannelKind, Frame, FrameReader

ARM, COBOT = load_robot("nursing_arm"), load_robot("cobot6")
JOINT_FACTS = Facts(DEFAULTS | {"current.scale": 1_000_000, "current.zero": 5, "stream.every_motor_current": 0})  # mA


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
    peaks = Peaks(ARM, [JOINT_FACTS] * 6)
    peaks.add(0, block(1, 0, [100, 200, 300, 900]))
    peaks.add(1, block(2, 2, [-300, -900, 0, 0], first_tick=7000))  # of a clock of its own
    # Ticks 2 and 3 are known of both: rotation (300 + 300, 900 + 900) mA, pitch 0.
    assert peaks.take() == pytest.approx({"j1": 3060 * 0.024026 * 1.8, "j2": 0.0}, abs=1e-9)
    assert peaks.take() == {}


def test_a_pair_of_which_one_motor_was_not_heard_says_nothing() -> None:
    peaks = Peaks(ARM, [JOINT_FACTS] * 6)
    peaks.add(2, block(3, 0, [100]))
    assert peaks.take() == {}
    peaks.add(2, block(3, 0, [100]))
    peaks.add(3, block(4, -1, [100]))  # holds, and does not play yet
    assert peaks.take() == {}


def test_a_motor_of_its_own_counts_whether_it_plays_or_not() -> None:
    peaks = Peaks(COBOT, [JOINT_FACTS] * 6)
    peaks.add(1, block(2, -1, [10, -700]))
    peaks.add(1, block(2, 0, [30, 20]))
    assert peaks.take() == pytest.approx({"j2": 0.7 * abs(COBOT.drives[1].torque_per_current)})


def test_currents_that_come_less_often_keep_their_ticks() -> None:
    facts = Facts(JOINT_FACTS.registers | {"stream.every_motor_current": 1})
    peaks = Peaks(ARM, [facts] * 6)
    peaks.add(0, block(1, 0, [100, 200, 300, 400], every=1))
    peaks.add(1, block(2, 4, [-300, -100, 0, 0], every=1))  # at ticks 4 and 6
    expected = 3060 * 0.024026 * np.array([max(0.3 + 0.3, 0.4 + 0.1), max(0.3 - 0.3, 0.4 - 0.1)])
    assert list(peaks.take().values()) == pytest.approx(expected)


def test_a_board_without_a_motor_has_none() -> None:
    measuring = Facts(JOINT_FACTS.registers | {"board.channels": 1 << 2})
    peaks = Peaks(COBOT, [*[JOINT_FACTS] * 5, measuring])
    peaks.add(5, block(6, -1, [100]))
    assert peaks.take() == {}


ROBOT = load_robot("gorobot2")
FOOT = ROBOT.foot("r_foot")
SCALE = 0.02  # N a count
FACTS = Facts({**DEFAULTS, "force.scale": 20_000, "force.zero_2": 50, "force.zero_4": -80})
ZEROS = np.array([0, 50, 0, -80])
EVERY = 3 << 4 * ChannelKind.FOOT_FORCE  # a sample each eighth tick
WEIGHT = 270.0  # N; by the robot's file 263


@dataclass
class Board:
    joint: str
    node: int = 13


class Stood:
    """A foot's forces as its board would send them, and the watch that hears of them."""

    def __init__(self) -> None:
        watch = fall_watch(ROBOT, (Board("l_foot"), Board("r_foot")), (FACTS, FACTS))  # type: ignore[arg-type]  # as far as it is looked at
        assert watch is not None
        self.watch: FallWatch = watch
        self._tick = 0
        self._rng = np.random.default_rng(5)

    def feel(self, forces: Array, blocks: int = 1, noise: float = 0.5) -> None:
        def raw(tick: int, node: int) -> dict[str, int]:
            felt = np.round((forces + noise * self._rng.standard_normal(4)) / SCALE) + ZEROS
            return {f"foot_force_{k + 1}": int(np.clip(felt[k], -32768, 32767)) for k in range(4)}

        for _ in range(blocks):
            sent = data(13, 0, self._tick, 64, raw=raw, dividers=EVERY)
            (chunk,) = FrameReader().feed(sent.data)
            self.watch.add(chunk.content)  # type: ignore[arg-type]  # as far as it is looked at
            self._tick += 64

    def begin(self, forces: Array) -> None:
        self.feel(forces, blocks=STANDING_SAMPLES // 8)
        assert self.watch.heard == STANDING_SAMPLES
        self.watch.begin()


def pressed(x: float, y: float, total: float = WEIGHT) -> Array:
    """Corner forces with the pressure at a place of the sole, forward and left of its middle [m]."""
    length, width = FOOT.points[0]
    along, across = np.array([1, 1, -1, -1]) * x / length, np.array([1, -1, -1, 1]) * y / width
    return total / 4.0 * (1.0 + along) * (1.0 + across)


def test_the_pressure_is_where_it_is_put() -> None:
    np.testing.assert_allclose(FOOT.pressure_point(pressed(0.05, -0.02)), [0.05, -0.02], atol=1e-12)


@pytest.mark.parametrize("place", [(0.0, 0.0), (0.1, 0.0), (0.0, 0.05), (-0.1, -0.05)])
def test_a_robot_that_stands_stays_unharmed(place: tuple[float, float]) -> None:
    """Up to 10 mm inside the edge, three times the noise of the sensors' pressure point from where it would fall."""
    stood = Stood()
    stood.begin(pressed(0.0, 0.0))
    stood.feel(pressed(*place), blocks=4)
    stood.watch.check(1.0)
    nearest = stood.watch.take_nearest()
    assert nearest is not None
    assert nearest == pytest.approx(float(FOOT.distance_to_edge(np.array(place))), abs=2e-3)
    assert stood.watch.take_nearest() is None


@pytest.mark.parametrize(
    ("forces", "said"),
    [
        (pressed(0.0, 0.06), r"the robot falls, 2\.5 s into its motion: for 104 ms it has carried 27\d N with the "
         r"pressure at \([+-]\d+, \+(59|60|61)\) mm of the sole's middle, and not 13\d N at least, 6 mm inside"),
        (pressed(-0.108, 0.0), r"pressure at \(-10[789], [+-]\d\) mm"),
        (pressed(0.0, 0.0, 100.0), r"it has carried (99|100|101) N"),
        (np.zeros(4), r"it has carried -?[0-2] N"),
        (np.full(4, -5.0), r"it has carried -(19|20|21) N, and not 13\d N at least"),  # nowhere
    ],
)  # fmt: skip
def test_one_that_falls_is_named(forces: Array, said: str) -> None:
    stood = Stood()
    stood.begin(pressed(0.0, 0.0))
    stood.feel(forces)  # 64 ms
    stood.watch.check(2.4)
    stood.feel(forces)
    with pytest.raises(RobotFell, match=rf"^r_foot \(node 13\): .*{said}"):
        stood.watch.check(2.5)
    stood.feel(pressed(0.0, 0.0))  # it has fallen, whatever comes then
    with pytest.raises(RobotFell):
        stood.watch.check(2.6)


def test_a_knock_is_no_fall() -> None:
    stood = Stood()
    stood.begin(pressed(0.0, 0.0))
    for _ in range(4):
        stood.feel(pressed(0.109, 0.0))
        stood.feel(pressed(0.09, 0.0))
        stood.watch.check(1.0)
    assert TIPPING_TIME > 0.064


def swapped(forces: Array, corner: int, value: float) -> Array:
    changed = forces.copy()
    changed[corner] = value
    return changed


@pytest.mark.parametrize(
    ("forces", "error", "said"),
    [
        (np.zeros(4), FootOffGround, r"does not carry the robot: its corners carry -?0\.\d N in all; by the robot's "
         r"file it must be from 13\d to 39\d N\. Set the robot down"),
        (pressed(0.0, 0.0, 120.0), FootOffGround, r"its corners carry (119|120)\.\d N"),
        (pressed(0.0, 0.0, 600.0), FootOffGround, r"its corners carry (599|600)\.\d N"),
        (swapped(pressed(0.0, 0.0), 2, 1000.0), StuckFootSensor, r"its rear right sensor is at the end of its range"),
        (swapped(pressed(0.0, 0.0), 0, -30.0), StuckFootSensor, r"its front left sensor is pulled, which no ground"),
    ],
)  # fmt: skip
def test_one_that_does_not_stand_is_refused(forces: Array, error: type[JointbenchError], said: str) -> None:
    with pytest.raises(error, match=rf"^r_foot \(node 13\).*{said}"):
        Stood().begin(forces)


def test_a_sensor_that_says_always_the_same_is_refused() -> None:
    stood = Stood()
    forces = pressed(0.0, 0.0)
    rng = np.random.default_rng(2)
    for _ in range(STANDING_SAMPLES // 8):
        stood.feel(swapped(forces + 0.5 * rng.standard_normal(4), 3, 67.0), noise=0.0)
    with pytest.raises(StuckFootSensor, match=r"its rear left sensor says the same \d+ times while others vary: 67\.0"):
        stood.watch.begin()


def test_quiet_sensors_are_not_stuck() -> None:
    """With counts as coarse as that, none of them need vary."""
    stood = Stood()
    stood.feel(pressed(0.0, 0.0), blocks=3, noise=0.0)
    stood.watch.begin()


def test_who_is_not_watched() -> None:
    boards, facts = (Board("l_foot"),), (FACTS,)
    assert fall_watch(ROBOT, boards, facts) is None  # type: ignore[arg-type]  # as far as it is looked at
    assert fall_watch(load_robot("cobot6"), (), ()) is None
