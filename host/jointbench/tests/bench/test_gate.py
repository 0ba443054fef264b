"""The gate: a motion plays only on the robot it was planned for, within every limit that holds now."""

import ast
import inspect
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jointbench
from jointbench.bench.gate import Gate
from jointbench.bench.identity import Facts
from jointbench.bench.playback import _Playback
from jointbench.bench.settings import default_settings
from jointbench.bench.trajectory import PointToPoint, plan_move
from jointbench.errors import ExcitationError
from jointbench.excitation import Excitation, random_excitation
from jointbench.model import Robot, load_robot
from jointbench.tests.bench.wire import DEFAULTS

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
    assert "knots, the board of j2 holds 20; plan a shorter one" in why


def test_the_first_refusal_is_raised_and_the_others_counted(plan: Excitation) -> None:
    slow = replace(ROBOT, joints=tuple(replace(joint, velocity_limit=0.1) for joint in ROBOT.joints))
    with pytest.raises(ExcitationError, match=r"velocity reaches .* allowed; .* \(and 5 more\)$"):
        gate(slow).check(plan)


def test_a_board_is_armed_in_one_place_alone() -> None:
    """Whoever plays comes through the gate: `Bench.play` asks it, and nothing else of the product arms."""
    host = Path(jointbench.__file__).parent
    arming = {
        path.relative_to(host).as_posix()
        for path in host.rglob("*.py")
        if "tests" not in path.parts
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "arm"
    }
    assert arming == {"bench/playback.py", "bench/board.py"}, "play what moves by Bench.play, which asks the gate"
    assert "gate().check(trajectory)" in inspect.getsource(_Playback.load)
