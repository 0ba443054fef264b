"""Random motions on one foot: feet flat, at rest at both ends, within limits, in balance; impossible ones refused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from math import radians
from typing import Any

import numpy as np
import pytest

from jointbench.errors import ExcitationError, InfeasibleExcitation, RobotError
from jointbench.excitation import Excitation, Workspace, certify, plan_single_support, random_excitation, usable_limits
from jointbench.excitation.single_support.balance import Balance
from jointbench.excitation.single_support.task import SupportRanges, inverse_kinematics, trunk_and_foot_poses
from jointbench.model import (
    BaseParameters,
    Robot,
    base_parameters,
    floating_standard_parameters,
    load_robot,
    zero_moment_point,
)

ROBOT = load_robot("gorobot2")
SHORT = 320 * 0.032
MARGIN = (0.075, 0.05)

Planner = Callable[..., Excitation]


@pytest.fixture(scope="module")
def base() -> BaseParameters:
    return base_parameters(ROBOT)


@pytest.fixture(scope="module")
def planner(base: BaseParameters) -> Planner:
    return lambda duration=SHORT, seed=0, **settings: plan_single_support(ROBOT, duration, seed, base=base, **settings)


@pytest.fixture(scope="module")
def plan(planner: Planner) -> Excitation:
    return planner()


def fine(plan: Excitation) -> tuple[np.ndarray[Any, Any], ...]:
    """Time, position, velocity and acceleration between the nodes of its spline too."""
    time = np.linspace(0.0, np.nextafter(plan.duration, 0.0), 5003)
    return time, *plan.evaluate(time)


def pressure_points(q: Any, dq: Any, ddq: Any) -> np.ndarray[Any, Any]:
    """Zero-moment points in the base frame as the dynamics room has them of the links, with the foot's own weight."""
    assert ROBOT.base_link is not None
    assert ROBOT.standard_parameters is not None
    mass, center = ROBOT.base_link.mass, ROBOT.base_link.center_of_mass
    assert mass is not None
    assert center is not None
    links = zero_moment_point(ROBOT, q, dq, ddq, ROBOT.standard_parameters, -0.06)
    weight, force = mass * 9.81, links.vertical_force[:, None]
    return (links.points * force + np.array(center[:2]) * weight) / (force + weight)


def test_it_begins_and_ends_at_rest_at_home(plan: Excitation) -> None:
    time, q, dq, ddq = fine(plan)
    # The trunk leans ahead of what balance needs 0.75 s later; with √(h / g) = 0.23 s that is a hundredth of a degree.
    still = (time < 0.25) | (time > plan.duration - 0.25)
    np.testing.assert_allclose(q[still], np.broadcast_to(ROBOT.home, q[still].shape), atol=2e-4)
    np.testing.assert_allclose(q[[0, -1]], np.broadcast_to(ROBOT.home, (2, 12)), atol=1e-12)
    np.testing.assert_allclose([dq[[0, -1]], ddq[[0, -1]]], 0.0, atol=1e-9)


def test_the_swing_foot_stays_parallel_to_the_ground(plan: Excitation) -> None:
    _, q, _, _ = fine(plan)
    swing = ROBOT.foot("l_foot")
    up = trunk_and_foot_poses(ROBOT, q).rotations[:, 1] @ swing.axes[:, 2]
    assert np.abs(up - up[0]).max() < 1e-6
    assert np.abs(up[0, :2]).max() < 1e-5


def test_all_limits_are_kept_between_samples_too(plan: Excitation) -> None:
    limits = (*usable_limits(ROBOT), *Workspace(table_height=-0.05, clearance=0.01).limits(ROBOT))
    proof = certify(limits, plan.basis, plan.home, plan.weights)
    assert proof.violations == ()
    assert plan.tightest.smallest > 0.0
    assert min(plan.distances.values()) >= 0.0
    assert any("'l_foot'" in name for name in plan.distances)


def test_the_predicted_zero_moment_point_stays_inside_the_margin(plan: Excitation) -> None:
    time, *motion = fine(plan)
    points = pressure_points(*motion) - ROBOT.foot("r_foot").origin[:2]
    assert plan.support is not None
    room = (np.array([0.11, 0.06]) - MARGIN - np.abs(points)).min()
    assert room >= 0.0
    # Both are taken at samples, at other ones.
    assert plan.support.room == pytest.approx(room, abs=1e-4)
    assert plan.support.distance == pytest.approx(room + MARGIN[1], abs=1e-4)
    assert 0.5 < plan.support.lightest < 1.0
    assert 0.0 < plan.support.friction < 0.3
    still = time < 0.9
    np.testing.assert_allclose(points[still], 0.0, atol=3e-4)  # the lean ahead is cut off smoothly, which costs this


def test_it_moves_all_that_is_free(plan: Excitation) -> None:
    """Most of their ranges: trunk's height and turns, swing foot's place and turn, zero-moment point."""
    _, *motion = fine(plan)
    poses = trunk_and_foot_poses(ROBOT, motion[0])
    moved = np.ptp(poses.origins, axis=0)
    assert moved[0, 2] > 0.04
    assert (moved[1] > [0.12, 0.04, 0.04]).all()
    assert (np.ptp(pressure_points(*motion), axis=0) > [0.03, 0.008]).all()
    speeds = np.abs(motion[1]).max(axis=0)
    assert (speeds > 0.2).all()  # [rad/s]


def test_same_seed_same_motion_other_seed_another_one(plan: Excitation, planner: Planner) -> None:
    again, other = planner(), planner(seed=1)
    np.testing.assert_array_equal(again.weights, plan.weights)
    assert np.abs(other.weights - plan.weights).max() > 0.1


@pytest.mark.parametrize(("seed", "duration", "pace"), [(11, 5.12, 0.2), (12, 6.0, 0.5), (13, 8.0, 0.35)])
def test_any_seed_pace_and_duration_stay_in_balance(planner: Planner, seed: int, duration: float, pace: float) -> None:
    found = planner(duration, seed, pace=pace)
    assert found.period == duration
    assert found.support is not None
    assert found.support.room > -1e-3
    assert found.tightest.smallest > 0.0


def test_a_measured_offset_moves_the_plan_the_other_way(planner: Planner) -> None:
    found = planner(zmp_offset=(0.02, -0.004))
    points = pressure_points(*fine(found)[1:]) - ROBOT.foot("r_foot").origin[:2]
    inside = np.abs(points + np.array([0.02, -0.004])) <= np.array([0.11, 0.06]) - MARGIN + 1e-3
    assert inside.all()
    assert found.support is not None
    assert found.support.zmp_offset == (0.02, -0.004)


def test_it_is_the_very_same_after_storing(plan: Excitation) -> None:
    read = Excitation.from_dict(json.loads(json.dumps(plan.to_dict())))
    assert read.to_dict() == plan.to_dict()
    assert read.support == plan.support
    time = np.linspace(0.0, plan.duration, 30)
    np.testing.assert_array_equal(read.evaluate(time), plan.evaluate(time))


def test_a_damaged_support_is_refused(plan: Excitation) -> None:
    values = plan.to_dict()
    values["support"] = values["support"] | {"margin_m": [0.1]}
    with pytest.raises(ExcitationError, match="the stored excitation is damaged"):
        Excitation.from_dict(values)


@pytest.mark.slow  # six motions as long as the paper's: some 10 s
def test_a_robot_that_is_not_as_drawn_stays_on_its_foot(base: BaseParameters) -> None:
    """Masses and their places as far off as makes the drawing's zero-moment point err by the paper's 34 mm."""
    robot = with_bodies(
        ROBOT, {"trunk": (0.275, 9.5), "thigh": (0.22, 3.8), "shank": (0.09, 3.2), "foot": (0.032, 1.4)}
    )
    real = floating_standard_parameters(robot)
    for seed in range(6):
        found = plan_single_support(ROBOT, seed=seed, base=base)
        motion = found.evaluate(np.arange(0.0, found.duration, 0.01))
        random, true = (Balance.of(ROBOT, "r_foot", *motion, parameters) for parameters in (None, real))
        error = np.linalg.norm(random.points - true.points, axis=1).mean()
        assert 0.032 < error < 0.036
        assert true.foot.distance_to_edge(true.points).min() > 0.01


def test_a_motion_that_would_tip_over_is_refused_by_name() -> None:
    wild = random_excitation(ROBOT, period=10.0, seed=3)
    time = np.linspace(0.0, 10.0, 1001)
    balance = Balance.of(ROBOT, "r_foot", *wild.evaluate(time))
    with pytest.raises(InfeasibleExcitation) as caught:
        balance.refuse_fall(MARGIN, time)
    said = re.search(
        r"is (-?\d+) mm forward and (-?\d+) mm left of the sole's middle at ([\d.]+) s, (\d+) mm beyond what a margin "
        r"of 75 mm lengthwise and 50 mm sideways leaves; move less or slower",
        str(caught.value),
    )
    assert said is not None
    x, y, at, beyond = map(float, said.groups())
    sample = int(np.abs(time - at).argmin())
    np.testing.assert_allclose(1e3 * balance.points[sample], [x, y], atol=0.6)  # whole millimetres are said
    assert beyond == pytest.approx(max(abs(x) - 35.0, abs(y) - 10.0), abs=1.1)


def test_a_foot_that_is_pulled_off_the_ground_is_refused(plan: Excitation) -> None:
    time = np.linspace(0.0, 1.0, 3)
    balance = Balance.of(ROBOT, "r_foot", *plan.evaluate(time))
    lifted = replace(balance, vertical_force=np.array([200.0, -1.0, 200.0]))
    balance.refuse_fall(MARGIN, time)
    with pytest.raises(InfeasibleExcitation, match=r"the ground would have to pull foot 'r_foot' down at 0\.50 s"):
        lifted.refuse_fall(MARGIN, time)


def with_bodies(robot: Robot, bodies: dict[str, tuple[float, float]]) -> Robot:
    """The robot with other centres of mass along the axes of its kinds of links [m], and other masses [kg]."""
    found: dict[str, dict[str, Any]] = {}
    for kind in robot.link_kinds:
        along, mass = bodies[kind.name]
        for axis in kind.links:
            place = np.array(axis.start) + along * axis.direction
            found[axis.link] = {"mass": mass, "center_of_mass": tuple(place.tolist())}
    assert robot.base_link is not None
    return replace(
        robot,
        joints=tuple(
            replace(joint, link=replace(joint.link, **found.get(joint.link.name, {}))) for joint in robot.joints
        ),
        base_link=replace(robot.base_link, **found[robot.base_link.name]),
    )


def narrow(robot: Robot) -> Robot:
    """The same robot, its knees locked to a tenth of a degree."""
    locked = [
        replace(joint, position_limits=(home - radians(0.1), home + radians(0.1))) if "knee" in joint.name else joint
        for joint, home in zip(robot.joints, robot.home, strict=True)
    ]
    return replace(robot, joints=tuple(locked))


def tilted(robot: Robot) -> Robot:
    return replace(robot, home=(*robot.home[:-1], robot.home[-1] + 0.01))


REFUSED: list[tuple[Robot, dict[str, Any], type[Exception], str]] = [
    (ROBOT, {"seed": -1}, ExcitationError, "seed = -1 must be 0 or above"),
    (ROBOT, {"duration": 3.0}, ExcitationError, "leaves 1 s; a motion at a pace of 0.3 s needs 1.8 s at least"),
    (ROBOT, {"pace": 0.0}, ExcitationError, "pace = 0 s must be a positive number"),
    (ROBOT, {"margin": (-0.1, 0.0)}, ExcitationError, "margin"),
    (ROBOT, {"foot": "hoof"}, RobotError, "no foot 'hoof'; its feet: r_foot, l_foot"),
    (ROBOT, {"foot": "l_foot"}, InfeasibleExcitation, "foot 'l_foot' of robot 'gorobot2' is not its free base"),
    (ROBOT, {"margin": (0.12, 0.05)}, InfeasibleExcitation, "10 mm beyond what a margin of 120 mm lengthwise"),
    (ROBOT, {"zmp_offset": (0.05, 0.0)}, InfeasibleExcitation, "at 0.00 s, 15 mm beyond"),
    (narrow(ROBOT), {}, InfeasibleExcitation, "still breaks a limit: joint '._knee' position reaches"),
    (tilted(ROBOT), {}, InfeasibleExcitation, "foot 'l_foot' is tilted by 0.01 rad at home"),
    (load_robot("cobot6"), {}, InfeasibleExcitation, "robot 'cobot6' has no foot for a base"),
    (replace(ROBOT, feet=ROBOT.feet[:1]), {}, InfeasibleExcitation, "no foot at the end of its chain"),
    (replace(ROBOT, base_link=None), {}, InfeasibleExcitation, "foot 'r_foot' of robot 'gorobot2' is not its free"),
]


@pytest.mark.parametrize(("robot", "settings", "error", "message"), REFUSED)
def test_what_cannot_be_planned_is_refused_with_its_reason(
    robot: Robot, settings: dict[str, Any], error: type[Exception], message: str, base: BaseParameters
) -> None:
    given: dict[str, Any] = {"duration": SHORT, "base": base} | settings
    with pytest.raises(error, match=message):
        plan_single_support(robot, **given)


def test_unknown_inertias_are_refused() -> None:
    joint = ROBOT.joints[3]
    unknown = replace(joint, link=replace(joint.link, mass=None, center_of_mass=None))
    robot = replace(ROBOT, joints=(*ROBOT.joints[:3], unknown, *ROBOT.joints[4:]))
    with pytest.raises(RobotError, match="does not tell all inertias; give parameters"):
        plan_single_support(robot, SHORT)


def test_a_range_must_have_home_in_it() -> None:
    with pytest.raises(ExcitationError, match=r"foot_up from 0\.01 to 0\.05: the range must have home, 0, in it"):
        SupportRanges(foot_up=(0.01, 0.05))


def test_hips_that_do_not_turn_stand_still_and_all_else_is_met(planner: Planner) -> None:
    """As in the paper: the swing foot stays level, and the zero-moment point inside the sole's margin."""
    motion = planner(hips_turn=False)
    q, dq, _ = motion.evaluate(np.linspace(0.0, motion.period, 400))
    hips = [ROBOT.joint_index(f"{side}_hip_yaw") for side in "rl"]
    assert np.ptp(q[:, hips], axis=0).max() == 0.0
    assert np.abs(dq[:, hips]).max() == 0.0
    assert np.abs(np.delete(dq, hips, axis=1)).max(axis=0).min() > 0.01  # all others move
    up = trunk_and_foot_poses(ROBOT, q).rotations[:, 1] @ ROBOT.feet[1].axes[:, 2]
    assert np.linalg.norm(np.cross(up, [0.0, 0.0, 1.0]), axis=1).max() < 1e-4
    assert motion.support is not None
    assert motion.support.room > 0.0


HOME = np.array(ROBOT.home)


def test_positions_are_found_again_from_their_poses() -> None:
    q = HOME + np.random.default_rng(3).uniform(-0.25, 0.25, (50, 12))
    found = inverse_kinematics(ROBOT, trunk_and_foot_poses(ROBOT, q), np.broadcast_to(HOME, q.shape))
    np.testing.assert_allclose(found, q, atol=1e-8)  # Newton ends at 1e-10 m and rad; legs are far from stretched


def test_a_pose_out_of_reach_is_refused() -> None:
    poses = trunk_and_foot_poses(ROBOT, HOME[None])
    far = replace(poses, origins=poses.origins + np.array([0.0, 0.0, 0.3]))
    with pytest.raises(InfeasibleExcitation, match="its legs do not reach where trunk and swing foot are to be"):
        inverse_kinematics(ROBOT, far, HOME[None])


def test_stretched_legs_bend() -> None:
    """There the Jacobian is singular but for rounding, and the first step as long as it may be."""
    straight = np.zeros((1, 12))
    lower = trunk_and_foot_poses(ROBOT, straight)
    lower = replace(lower, origins=lower.origins - np.array([0.0, 0.0, 0.05]))
    np.testing.assert_allclose(
        trunk_and_foot_poses(ROBOT, inverse_kinematics(ROBOT, lower, straight)).origins, lower.origins, atol=1e-9
    )
