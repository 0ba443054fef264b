"""Moves and knots of trajectories, and the gate that motions pass.

The host's hold of motors at rest: it keeps what creeps, and lets a hand go.
"""

import ast
import inspect
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jointbench
from jointbench.arrays import Array
from jointbench.bench import floating
from jointbench.bench.floating import UPDATE_US, RestHold
from jointbench.bench.gate import (
    Gate,
    PointToPoint,
    check_driven,
    check_repeats,
    plan_move,
    pose_within_reach,
    trajectory_knots,
)
from jointbench.bench.identity import Facts
from jointbench.bench.playback import _Playback
from jointbench.bench.settings import default_settings
from jointbench.errors import ExcitationError
from jointbench.excitation import Excitation, random_excitation
from jointbench.model import Robot, load_robot
from jointbench.tests.bench.wire import DEFAULTS

ARM = load_robot("cobot6")
ARM_FACTS = [Facts(DEFAULTS)] * ARM.n_joints
COUNTS = 4096 * 101 / (2.0 * np.pi)


@dataclass(frozen=True, eq=False)
class Sine:
    amplitude: float
    period: float

    def evaluate(self, time: Array) -> tuple[Array, Array, Array]:
        w = 2.0 * np.pi / self.period
        phase = w * np.asarray(time)[:, None] + np.arange(6)
        q = self.amplitude * np.sin(phase)
        return q, self.amplitude * w * np.cos(phase), -(w**2) * q


def test_twenty_seconds_are_626_knots() -> None:
    assert trajectory_knots(Sine(0.5, 20.0), ARM, ARM_FACTS).shape == (6, 626, 2)


def test_hermite_between_knots_is_the_trajectory() -> None:
    motion = Sine(0.8, 3.2)
    knots = trajectory_knots(motion, ARM, ARM_FACTS).astype(float)
    u = np.arange(32)[:, None, None] / 32.0
    p0, v0 = knots[:, :-1, 0].T, knots[:, :-1, 1].T / 256.0 * 32.0
    p1, v1 = knots[:, 1:, 0].T, knots[:, 1:, 1].T / 256.0 * 32.0
    played = (
        (2 * u**3 - 3 * u**2 + 1) * p0 + (u**3 - 2 * u**2 + u) * v0 + (3 * u**2 - 2 * u**3) * p1 + (u**3 - u**2) * v1
    )
    time = np.arange(100 * 32, dtype=np.float64) * 1e-3
    q, _, _ = motion.evaluate(time)
    counts = played.transpose(1, 0, 2).reshape(-1, 6)
    # Interpolation: h^4/384 |d4q| = 0.002 counts; rounding: half a count in position, and 32 ticks x 1/4 x 1/512 count
    # in velocity; together below half a count and a tenth.
    assert np.abs(counts - q * COUNTS).max() < 0.6


def test_a_motor_that_turns_the_other_way() -> None:
    drive = replace(ARM.drives[2], ratio=-101.0)
    other = replace(ARM, drives=(*ARM.drives[:2], drive, *ARM.drives[3:]))
    plain, turned = (trajectory_knots(Sine(0.5, 3.2), robot, ARM_FACTS) for robot in (ARM, other))
    np.testing.assert_array_equal(turned[2], -plain[2])
    np.testing.assert_array_equal(turned[3], plain[3])


@pytest.mark.parametrize("period", [1.0, 0.01, 20.001])
def test_a_period_that_is_no_whole_number_of_steps(period: float) -> None:
    with pytest.raises(ExcitationError, match=r"not a whole number of knot steps of 0\.032 s; the nearest that is: "):
        trajectory_knots(Sine(0.5, period), ARM, ARM_FACTS)


def test_what_does_not_fit_the_wire() -> None:
    with pytest.raises(ExcitationError, match="32-bit range"):
        trajectory_knots(Sine(1e5, 3.2), ARM, ARM_FACTS)


@pytest.mark.parametrize("repeats", [0, -1, 65536, 99_999_999])
def test_repeats_beyond_what_boards_count_are_refused(repeats: int) -> None:
    with pytest.raises(ExcitationError, match=rf"repeats = {repeats} must be a whole number from 1 to 65535"):
        check_repeats(repeats)
    check_repeats(65535)


ARM_HOME = np.array(ARM.home)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("speed", [0.1, 0.5, 1.0])
def test_limits_are_kept_and_reached(seed: int, speed: float) -> None:
    low, high = ARM.position_limits.T
    goal = np.random.default_rng(seed).uniform(low, high)
    move = plan_move(ARM, ARM_HOME, goal, 0.032, speed)
    q, dq, ddq = move.evaluate(np.linspace(0.0, move.period, 4001))
    for ends, value in ((q, ARM_HOME), (q[::-1], goal)):
        np.testing.assert_allclose(ends[0], value, atol=1e-12)
    for rate in (dq[0], dq[-1], ddq[0], ddq[-1]):
        np.testing.assert_allclose(rate, 0.0, atol=1e-9)
    by_velocity = np.max(np.abs(dq) / (speed * ARM.velocity_limits))
    by_acceleration = np.max(np.abs(ddq) / (speed * ARM.acceleration_limits))
    # The period is rounded up to whole knots: at most one of 0.032 s longer than needed.
    assert max(by_velocity, by_acceleration) <= 1.0 + 1e-9
    assert max(by_velocity, by_acceleration) >= (1.0 - 0.032 / move.period) ** 2 - 1e-6
    assert move.period / 0.032 == pytest.approx(round(move.period / 0.032))


def test_derivatives_are_those_of_the_position() -> None:
    move = plan_move(ARM, ARM_HOME, ARM_HOME + 0.5, 0.032)
    time = np.linspace(0.0, move.period, 20001)
    q, dq, ddq = move.evaluate(time)
    step = time[1]
    # Central differences leave h²/6 of the next but one derivative; that is below 1e-6 for these steps.
    np.testing.assert_allclose((q[2:] - q[:-2]) / (2 * step), dq[1:-1], atol=1e-6)
    np.testing.assert_allclose((dq[2:] - dq[:-2]) / (2 * step), ddq[1:-1], atol=1e-5)


def test_no_way_at_all_is_one_step() -> None:
    assert plan_move(ARM, ARM_HOME, ARM_HOME, 0.032).period == 0.032


MEASURING = Facts({**DEFAULTS, "board.channels": 1 << 2})
COBOT = load_robot("cobot6")


def test_a_joint_without_a_motor_may_stand_anywhere_and_not_move() -> None:
    facts = [*[Facts(DEFAULTS)] * 5, MEASURING]
    q = np.full((3, 6), 0.7)
    check_driven(q, COBOT, facts)
    q[2, 5] = 0.70001
    with pytest.raises(ExcitationError, match=r"^joint 'j6' is asked to move from 0\.7 to 0\.70001 rad, but nothing"):
        check_driven(q, COBOT, facts)


def test_a_pose_leaves_a_joint_without_a_motor_where_it_is() -> None:
    facts = [*[Facts(DEFAULTS)] * 5, MEASURING]
    start = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.3])
    for named in (COBOT.home[5], 0.3):
        goal = pose_within_reach(COBOT, facts, start, np.array([0.1, 0.2, 0.3, 0.4, 0.5, named]))
        assert goal.tolist() == [0.1, 0.2, 0.3, 0.4, 0.5, 0.3]
    with pytest.raises(ExcitationError, match=r"^joint 'j6' is asked to go to 0\.2 rad.*It is at 0\.3 rad"):
        pose_within_reach(COBOT, facts, start, np.full(6, 0.2))


ROBOT = load_robot("cobot6:3")
HOME = np.array(ROBOT.home)
FACTS = [Facts({**DEFAULTS, "drive.ratio": 100_000, "hard.velocity": 2**30})] * 3
STEP = FACTS[0].tick_period * FACTS[0].knot_ticks


@pytest.fixture(scope="module")
def plan() -> Excitation:
    """A motion that keeps all limits of the robot."""
    return random_excitation(ROBOT, period=5.024, seed=1)


def gate(robot: Robot = ROBOT, **more: Any) -> Gate:
    """The gate of a bench whose boards are set as they are by default."""
    settings = default_settings(robot, None, more.get("limits"))
    n = robot.n_joints
    given: dict[str, Any] = {
        "settings": settings,
        "max_knots": [10_000] * n,
        "limits": {},
        "stands": np.array(robot.home),
    }
    return Gate(robot, FACTS[:1] * n, **(given | more))


def changed(joint: int = 1, **more: Any) -> Robot:
    """The robot with one joint's file edited."""
    joints = list(ROBOT.joints)
    joints[joint] = replace(joints[joint], **more)
    return replace(ROBOT, joints=tuple(joints))


def test_a_motion_passes_on_the_robot_it_was_planned_for(plan: Excitation) -> None:
    assert gate().refusals(plan) == ()
    gate().check(plan_move(ROBOT, HOME, HOME + 0.3, STEP))


def test_what_was_stored_passes_as_well(plan: Excitation) -> None:
    stored = plan.to_dict()
    assert gate().refusals(Excitation.from_dict(stored)) == ()
    del stored["robot_digests"]  # of a plan made before there were any
    assert gate().refusals(Excitation.from_dict(stored)) == ()


def test_another_robots_plan_is_refused_by_its_name(plan: Excitation) -> None:
    arm = replace(ROBOT, name="arm3")
    (why,) = gate(arm).refusals(plan)
    assert why == "it is a plan for robot 'cobot6:3', the bench's is 'arm3'; plan for that one"


def test_more_joints_than_the_robot_has_are_refused() -> None:
    (why,) = gate().refusals(PointToPoint(np.zeros(6), np.ones(6), 1.024))
    assert why == "it moves 6 joints, robot 'cobot6:3' has 3; plan for this robot"


@pytest.mark.parametrize(
    ("edited", "what"),
    [
        (changed(origin=(0.0, 0.0, 0.3)), "its joints sit elsewhere"),
        (changed(axis=(0.0, 1.0, 0.0)), "its joints sit elsewhere"),
        (replace(ROBOT, gravity=(0.0, 0.0, 9.8)), "its joints sit elsewhere"),
        (replace(ROBOT, drives=(replace(ROBOT.drives[0], ratio=-101.0), *ROBOT.drives[1:])), "its ratios"),
        (replace(ROBOT, drives=(replace(ROBOT.drives[0], torque_constant=0.1), *ROBOT.drives[1:])), "its ratios"),
    ],
)
def test_an_edited_robot_is_not_the_one_planned_for(plan: Excitation, edited: Robot, what: str) -> None:
    (why,) = gate(edited).refusals(plan)
    assert why.startswith(f"robot 'cobot6:3' is not what it was when this was planned: {what}")


@pytest.mark.parametrize(
    ("lowered", "said"),
    [
        ({"velocity_limit": np.radians(10.0)}, "joint 'j2' velocity reaches"),
        ({"acceleration_limit": 0.1}, "joint 'j2' acceleration reaches"),
        ({"jerk_limit": 0.1}, "joint 'j2' jerk reaches"),
        ({"torque_limit": 2.0}, "joint 'j2' torque reaches"),
        ({"position_limits": (HOME[1] - 0.01, HOME[1] + 0.01)}, "joint 'j2' position reaches"),
    ],
)
def test_limits_lowered_after_planning_hold(plan: Excitation, lowered: dict[str, Any], said: str) -> None:
    why = gate(changed(**lowered)).refusals(plan)
    assert why[0].startswith(said)
    assert why[0].endswith("the robot's limits have changed since this was planned: plan it anew")


def test_a_weaker_motor_is_one_that_cannot_play(plan: Excitation) -> None:
    weak = replace(ROBOT, drives=(ROBOT.drives[0], replace(ROBOT.drives[1], current_limit=0.5), ROBOT.drives[2]))
    assert gate(weak).refusals(plan)[0].startswith("motor 'j2' current reaches")


def test_limits_raised_after_planning_change_nothing(plan: Excitation) -> None:
    assert gate(changed(velocity_limit=5.0, torque_limit=1000.0)).refusals(plan) == ()


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"velocity_rad_s": 0.2}, "velocity reaches"),
        ({"current_A": 0.3}, "current reaches"),
        ({"position_rad": 0.05}, "position reaches"),
    ],
)
def test_the_bench_files_own_limits_hold(plan: Excitation, limits: dict[str, float], said: str) -> None:
    assert said in gate(limits=limits).refusals(plan)[0]


def test_how_far_a_joint_may_go_counts_from_where_it_stood_first() -> None:
    back = PointToPoint(HOME + 0.04, HOME + 0.08, 1.024)
    assert gate(limits={"position_rad": 0.05}, stands=HOME + 0.04).refusals(back) == ()
    bound = gate(limits={"position_rad": 0.05}, stands=HOME + 0.04, stood=HOME)
    assert "position reaches" in bound.refusals(back)[0]


def test_what_the_boards_are_set_to_holds(plan: Excitation) -> None:
    settings = list(default_settings(ROBOT))
    settings[0] = replace(settings[0], velocity_limit=0.1)
    assert gate(settings=settings).refusals(plan)[0].startswith("joint 'j1' velocity reaches")


def test_joints_that_share_motors_have_windows_of_their_own() -> None:
    """Rotation beyond its window, where each motor is well within its own."""
    arm = load_robot("nursing_arm")
    high = arm.position_limits[0, 1]
    home, way = np.array(arm.home), np.zeros(6)
    way[0] = high + 0.01
    (why,) = gate(arm).refusals(plan_move(arm, home, home + way, STEP, speed=0.3))
    assert why.startswith(f"joint 'j1' position reaches {high + 0.01:.6g} rad, at most {high:.6g} rad is allowed")


def test_a_joint_outside_its_window_is_moved_by_hand_first(plan: Excitation) -> None:
    outside = HOME.copy()
    outside[2] = ROBOT.position_limits[2, 1] + 0.1
    (why,) = gate(stands=outside).refusals(plan)
    assert why.startswith("joint 'j3': the joint stands at ")
    assert why.endswith("move it there by hand, with its motor off")


def test_what_boards_cannot_hold_is_refused(plan: Excitation) -> None:
    (why,) = gate(max_knots=[10_000, 20, 10_000]).refusals(plan)
    assert "knots, and the board of j2 holds 20; plan a shorter motion" in why


def test_the_first_refusal_is_raised_and_the_others_counted(plan: Excitation) -> None:
    slow = replace(ROBOT, joints=tuple(replace(joint, velocity_limit=0.1) for joint in ROBOT.joints))
    with pytest.raises(ExcitationError, match=r"velocity reaches .* allowed; .* \(and 5 more\)$"):
        gate(slow).check(plan)


def test_a_board_is_armed_in_one_place_alone() -> None:
    """Whoever moves comes through the gate: `Bench.play` asks it, and so does floating; nothing else arms."""
    host = Path(jointbench.__file__).parent
    arming = {
        path.relative_to(host).as_posix()
        for path in host.rglob("*.py")
        if "tests" not in path.parts
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "arm"
    }
    asking = {"bench/playback.py", "bench/floating.py"}
    assert arming == {"bench/board.py", *asking}, "play what moves by Bench.play, which asks the gate"
    assert "gate().check(trajectory)" in inspect.getsource(_Playback.load)
    assert "gate(stands).check(" in inspect.getsource(floating)


RANGE = 0.5  # [rad of the motor]
HOLD = 0.06  # [A]
UPDATE_S = 1e-6 * UPDATE_US


def creep(hold: RestHold, bias: float, seconds: float, mobility: float = 0.5) -> Array:
    """Positions of a motor whose friction is viscous at low speed [rad]: velocity = mobility · current."""
    position, places = np.zeros(1), list[float]()
    for k in range(round(seconds / UPDATE_S)):
        position = position + UPDATE_S * mobility / HOLD * (bias + hold(UPDATE_S * k, position))
        places.append(float(position[0]))
    return np.array(places)


def weak(hold: float = HOLD) -> RestHold:
    return RestHold(np.array([hold]), np.array([RANGE]))


def test_a_motor_that_creeps_under_what_the_model_lacks_stays_where_it_began() -> None:
    places = creep(weak(), bias=0.05, seconds=60.0)
    assert abs(places[-1]) <= RANGE
    # At rest the hold gives what is lacking: 0.05 of 0.06 A at 5/6 of its range.
    np.testing.assert_allclose(places[-500:], 0.05 / HOLD * RANGE, rtol=1e-3)
    assert creep(weak(0.0), bias=0.05, seconds=60.0)[-1] > 10.0 * RANGE


def test_more_than_the_hold_moves_it_and_it_is_then_held_elsewhere() -> None:
    hold = weak()
    pushed = creep(hold, bias=2.0 * HOLD, seconds=3.0)[-1]
    assert pushed > hold.RELEASE * RANGE
    assert hold.anchor is not None
    assert np.isnan(hold.anchor).all()
    currents = [hold(10.0 + UPDATE_S * k, np.array([pushed])) for k in range(30)]  # at rest there
    assert currents[-1] == 0.0
    assert hold.anchor == pushed
    assert hold(11.0, np.array([pushed + 0.1 * RANGE])) < 0.0


def test_a_hand_that_turns_round_does_not_feel_it() -> None:
    hold = weak()
    period, way = 8.0, 30.0  # 0.3 rad of a joint behind a gear of 100
    currents = np.array([
        hold(t, np.array([way * (1.0 - np.cos(2.0 * np.pi * t / period))]))[0] for t in np.arange(0.0, 20.0, UPDATE_S)
    ])  # fmt: skip
    begun = round(0.5 / UPDATE_S)
    assert np.abs(currents[:begun]).max() > 0.5 * HOLD  # the hand first pulls it out of the hold
    assert np.abs(currents[begun:]).max() == 0.0
