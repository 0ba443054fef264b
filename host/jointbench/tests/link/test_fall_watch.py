"""A robot that stands is let move, one that does not is refused, and one that falls is stopped for a reason."""

from dataclasses import dataclass

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.errors import FootOffGround, JointbenchError, RobotFalls, StuckFootSensor
from jointbench.link.identity import Facts
from jointbench.link.motion_watch import HOLD, STANDING_SAMPLES, FallWatch, fall_watch
from jointbench.robot import load_robot
from jointbench.tests.link.wire import DEFAULTS
from jointbench.tests.recording.board_stream import data
from jointwire import ChannelKind, FrameReader

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
    with pytest.raises(RobotFalls, match=rf"^r_foot \(node 13\): .*{said}"):
        stood.watch.check(2.5)
    stood.feel(pressed(0.0, 0.0))  # it has fallen, whatever comes then
    with pytest.raises(RobotFalls):
        stood.watch.check(2.6)


def test_a_knock_is_no_fall() -> None:
    stood = Stood()
    stood.begin(pressed(0.0, 0.0))
    for _ in range(4):
        stood.feel(pressed(0.109, 0.0))
        stood.feel(pressed(0.09, 0.0))
        stood.watch.check(1.0)
    assert HOLD > 0.064


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
