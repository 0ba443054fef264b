"""Usable limits of joints, torques and currents, and bounds of torques between samples."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.errors import FileError, InfeasibleExcitation, ShapeError
from jointbench.excitation import RestToRestFourier
from jointbench.excitation.limits.certificate import jet_product, motion_at, rotated_jet, torque_bounds
from jointbench.excitation.limits.motion_limits import Limit, Motion, joint_limits
from jointbench.excitation.limits.torque_limits import DriveLoad, torque_limit, usable_limits
from jointbench.model import (
    Drive,
    Joint,
    Link,
    Robot,
    drive_columns,
    drive_parameter_names,
    inverse_dynamics,
    load_robot,
    model_columns,
    model_parameter_names,
)
from jointbench.tests.excitation.random_robots import random_family, random_tree, random_weights


def moved(robot: Robot, joint: int, order: int, value: float) -> Motion:
    """One sample at home, at rest, but for one derivative of one joint."""
    motion = np.zeros((4, 1, robot.n_joints))
    motion[0] = robot.home
    motion[order, 0, joint] += value
    return as_motion(motion)


def as_motion(derivatives: Array) -> Motion:
    """Position, velocity, acceleration and jerk of an array (4, n_samples, n_joints)."""
    return derivatives[0], derivatives[1], derivatives[2], derivatives[3]


def test_each_side_of_each_limit_is_a_scalar_with_a_name(cobot: Robot) -> None:
    names = [name for limit in usable_limits(cobot) for name in limit.names]

    assert len(names) == len(set(names)) == 2 * 6 * 4
    assert names[0] == "joint 'j1' position (+)"
    assert names[-1] == "joint 'j6' torque (-)"


@pytest.mark.parametrize(("order", "limit"), [(1, "velocity_limits"), (2, "acceleration_limits")])
def test_the_share_of_a_limit_is_what_95_percent_leave(cobot: Robot, order: int, limit: str) -> None:
    whole = getattr(cobot, limit)[2]

    usage = joint_limits(cobot)[order].usage(moved(cobot, 2, order, -whole))[0]

    assert usage[2] == pytest.approx(-1.0 / 0.95)
    assert usage[6 + 2] == pytest.approx(1.0 / 0.95)
    assert np.count_nonzero(usage) == 2


def test_position_is_counted_from_home_to_either_end(cobot: Robot) -> None:
    low, high = cobot.position_limits[1]
    home = cobot.home[1]
    limit = joint_limits(cobot, share=0.9)[0]

    assert limit.usage(moved(cobot, 1, 0, 0.9 * (high - home)))[0, 1] == pytest.approx(1.0)
    assert limit.usage(moved(cobot, 1, 0, 0.9 * (low - home)))[0, 6 + 1] == pytest.approx(1.0)


def test_jerk_is_limited_where_a_joint_has_a_limit(cobot: Robot) -> None:
    robot = replace(cobot, joints=(replace(cobot.joints[0], jerk_limit=50.0), *cobot.joints[1:]))

    assert len(joint_limits(cobot)) == 3
    jerk = joint_limits(robot)[3]

    assert jerk.usage(moved(robot, 0, 3, 47.5))[0, 0] == pytest.approx(1.0)
    assert jerk.usage(moved(robot, 1, 3, 1e9))[0].max() == 0.0
    assert jerk.describe(0, 1.02) == "joint 'j1' jerk reaches 48.45 rad/s³, at most 47.5 rad/s³ is allowed"


@pytest.mark.parametrize(
    ("kind", "line", "jerk"), [("revolute", "jerk_deg_s3", np.pi), ("prismatic", "jerk_mm_s3", 0.18)]
)
def test_a_robot_file_says_what_jerk_is_allowed(tmp_path: Path, kind: str, line: str, jerk: float) -> None:
    unit, force = ("deg", "torque_Nm") if kind == "revolute" else ("mm", "force_N")
    text = f"""
version = 1
name = "one"
source = "made up"
description = "one joint"
[[joints]]
name = "j"
kind = "{kind}"
alpha_deg = 0
a_mm = 0
d_mm = 0
position_{unit} = [-90, 90]
velocity_{unit}_s = 90
acceleration_{unit}_s2 = 300
JERK{force} = 5
[joints.drive]
kind = "direct"
ratio = 100
torque_constant_Nm_A = 0.1
current_limit_A = 1
"""
    robots: list[Robot] = []
    for entry in ("", f"{line} = 180\n", f"{line} = 0\n"):
        path = tmp_path / "one.toml"
        path.write_text(text.replace("JERK", entry), encoding="utf-8")
        if entry.endswith("= 0\n"):
            with pytest.raises(FileError, match=f"{line} = 0 must be above 0"):
                load_robot(path)
        else:
            robots.append(load_robot(path))

    assert [robot.joints[0].jerk_limit for robot in robots] == [None, pytest.approx(jerk)]


def test_a_limit_says_what_a_usage_means(cobot: Robot) -> None:
    position, velocity, _, torque = usable_limits(cobot)

    # j2: home -90°, from -160° to -20°; 45 % of the way.
    assert position.describe(1, 1.1) == "joint 'j2' position reaches -0.294088 rad, at most -0.410152 rad is allowed"
    assert position.describe(7, 0.0) == "joint 'j2' position reaches -1.5708 rad, at least -2.73144 rad is allowed"
    assert velocity.describe(6, 2.0).startswith("joint 'j1' velocity reaches -2.98451 rad/s, at least -1.49226 rad/s")
    assert torque.describe(1, 1.25) == (
        "joint 'j2' torque reaches 125 N·m, at most 100 N·m of the limit 125 N·m is allowed"
    )


def test_torque_is_that_of_the_links_and_of_what_the_drives_are_known_to_need(cobot: Robot) -> None:
    rng = np.random.default_rng(0)
    rotors = [float(inertia) for inertia in rng.uniform(1e-5, 1e-4, 6)]
    drives = tuple(replace(drive, rotor_inertia=inertia) for drive, inertia in zip(cobot.drives, rotors, strict=True))
    robot = replace(cobot, drives=drives)
    assert robot.standard_parameters is not None
    q, dq, ddq, dddq = rng.normal(size=(4, 20, 6))
    limit = torque_limit(robot, share=1.0)
    assert limit is not None

    usage = limit.usage((q, dq, ddq, dddq))

    reflected = np.array(rotors) * np.array([drive.ratio for drive in drives]) ** 2
    torque = inverse_dynamics(robot, q, dq, ddq, robot.standard_parameters) + ddq * reflected
    np.testing.assert_allclose(usage, np.hstack([torque, -torque]) / np.tile(robot.torque_limits, 2), atol=1e-12)


def test_fitted_friction_counts_and_coulomb_on_both_sides() -> None:
    robot = load_robot("tx40")  # its wrist is coupled
    rng = np.random.default_rng(1)
    names = drive_parameter_names(robot)
    parameters = rng.normal(size=len(names))
    q, dq, ddq, dddq = rng.normal(size=(4, 30, 6))
    limit = torque_limit(robot, share=1.0, drive_parameters=parameters, standard_parameters=np.zeros(60))
    assert limit is not None

    usage = limit.usage((q, dq, ddq, dddq)) * np.tile(robot.torque_limits, 2)

    rubbing = np.array([name.endswith(".coulomb") for name in names])
    smooth = (drive_columns(robot, dq, ddq)[0] @ np.where(rubbing, 0.0, parameters)).reshape(-1, 6)
    actual = (drive_columns(robot, dq, ddq)[0] @ parameters).reshape(-1, 6)
    np.testing.assert_allclose(usage[:, :6] - usage[:, 6:], 2.0 * smooth, atol=1e-12)
    assert np.all(usage[:, :6] >= actual - 1e-12)
    assert np.all(-usage[:, 6:] <= actual + 1e-12)
    own = np.abs(parameters[[names.index(f"j{joint}.coulomb") for joint in range(1, 5)]])
    np.testing.assert_allclose(0.5 * (usage + np.roll(usage, 6, axis=1))[:, :4], np.tile(own, (30, 1)), atol=1e-12)


def test_drive_parameters_of_another_robot_are_refused(cobot: Robot) -> None:
    with pytest.raises(ShapeError, match=r"drive_parameters has shape \(3,\); robot 'cobot6' has 24 of them: j1.rotor"):
        torque_limit(cobot, drive_parameters=np.zeros(3))


def test_without_inertias_torque_is_not_limited(cobot: Robot) -> None:
    link = replace(cobot.joints[5].link, mass=None, center_of_mass=None, inertia_about_center_of_mass=None)
    robot = replace(cobot, joints=(*cobot.joints[:5], replace(cobot.joints[5], link=link)))

    assert torque_limit(robot) is None
    assert len(usable_limits(robot)) == 3


@pytest.mark.parametrize("seed", range(10))
def test_gradients_are_those_of_the_usage(seed: int) -> None:
    rng = np.random.default_rng(seed)
    robot = random_tree(rng, 6, mimics=True)
    names = drive_parameter_names(robot)
    for limit in usable_limits(robot, prior=dict(zip(names, rng.normal(size=len(names)), strict=True))):
        scalars = np.arange(len(limit.names))
        shape = (len(scalars), robot.n_joints)
        motion, direction = rng.normal(size=(2, 4, *shape))
        slope = sum(
            np.sum(by * part, axis=1) for by, part in zip(limit.gradient(motion, scalars), direction, strict=True)
        )

        h = 1e-5
        ahead, behind = (limit.usage(as_motion(motion + step * direction))[scalars, scalars] for step in (h, -h))
        # Central differences: h² of a third derivative of about a hundred times the slope, and rounding over h.
        np.testing.assert_allclose(slope, (ahead - behind) / (2 * h), rtol=1e-6, atol=1e-7 * np.abs(slope).max())


@pytest.mark.parametrize("seed", [*range(12), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(12, 30))])
def test_between_samples_usage_rises_by_no_more_than_it_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    robot = random_tree(rng, int(rng.integers(1, 8)), mimics=seed % 2 == 1)
    basis, home = random_family(rng), np.array(robot.home)
    weights = random_weights(rng, robot, basis)
    bounds = basis.bounds(weights)
    for limit in usable_limits(robot):
        for step in (0.2, 0.02):
            coarse = basis.grid(step)
            inside = coarse[:-1, None] + np.diff(coarse)[:, None] * np.linspace(0.0, 1.0, 101)
            usage = limit.usage(motion_at(basis, home, weights, inside.ravel()))
            usage = usage.reshape(len(inside), 101, -1)
            rise = usage.max(axis=1) - np.maximum(usage[:, 0], usage[:, -1])

            rounding = 1e-9 * np.abs(usage).max(initial=1.0)  # of sums of waves, 1e-11 of their bounds
            assert np.all(rise.max(axis=0) <= limit.intersample_bound(bounds, step) + rounding)


def test_what_between_allows_is_reached_by_a_single_wave() -> None:
    # A joint limit's bound is exact where the motion is at its fastest: samples on both sides of a peak of a cosine.
    robot = load_robot("cobot6")
    velocity: Limit = joint_limits(robot)[1]
    amplitude, rate, step = 1.0, 3.0, 0.01
    bounds = amplitude * rate ** np.arange(6.0)[:, None] * np.ones((6, 6)) / rate  # velocity = cos(3 t)

    missed = (1.0 - np.cos(rate * step / 2.0)) / (0.95 * robot.velocity_limits)

    assert velocity.intersample_bound(bounds, step)[:6] == pytest.approx(missed, rel=1e-4)


def test_torque_is_predicted_from_what_an_earlier_fit_found(cobot: Robot) -> None:
    names = model_parameter_names(cobot)
    found = np.random.default_rng(0).normal(size=len(names))
    robot = replace(cobot, joints=(replace(cobot.joints[0], link=Link("shoulder")), *cobot.joints[1:]))
    motion = as_motion(np.random.default_rng(1).uniform(0.1, 1.0, (4, 5, 6)))  # no joint turns round

    limit = usable_limits(robot, prior=dict(zip(names, found, strict=True)))[-1]
    usage = limit.usage(motion)

    of_drives = DriveLoad.fitted(robot, found[60:])
    torque = (model_columns(robot, *motion[:3], sign=np.zeros_like)[0] @ found).reshape(5, 6)
    np.testing.assert_allclose(usage[:, :6] - usage[:, 6:], 2.0 * torque / (0.8 * robot.torque_limits), atol=1e-12)
    np.testing.assert_allclose(
        usage[:, :6] + usage[:, 6:], np.tile(2.0 * of_drives.coulomb / (0.8 * robot.torque_limits), (5, 1)), atol=1e-12
    )


def test_torque_is_not_predicted_where_an_inertia_is_not_known(cobot: Robot) -> None:
    unknown = replace(cobot.joints[0], link=Link("shoulder"))
    robot = replace(cobot, joints=(unknown, *cobot.joints[1:]))

    assert len(usable_limits(robot, prior={"j1.coulomb": 3.0})) == len(usable_limits(robot)) == 3
    assert len(usable_limits(cobot, prior={"j1.coulomb": 3.0})) == 4


@pytest.mark.parametrize("home", [-3.0, -160.0 * np.pi / 180.0])
def test_a_home_outside_or_on_the_edge_is_refused(cobot: Robot, home: float) -> None:
    robot = replace(cobot, home=(0.0, home, *cobot.home[2:]))

    with pytest.raises(
        InfeasibleExcitation,
        match=r"robot 'cobot6', joint 'j2': home .* rad is not inside its position limits -2.79253 to -0.349066 rad, "
        r"by .* rad; choose a home between them",
    ):
        usable_limits(robot)


def test_a_limit_that_allows_no_motion_is_refused(cobot: Robot) -> None:
    robot = replace(cobot, joints=(replace(cobot.joints[0], jerk_limit=0.0), *cobot.joints[1:]))

    with pytest.raises(InfeasibleExcitation, match="joint 'j1': a jerk limit of 0 rad/s³ allows no motion"):
        usable_limits(robot)


STEP = 1e-3
"""Step [s] of difference quotients. They are mean values of the derivative, so that a bound holds for them as well."""


def test_jets_follow_leibniz() -> None:
    # |t² · t³| and its derivatives at t = 1, all terms of one sign: the bound is the value itself.
    assert jet_product((1.0, 2.0, 2.0), (1.0, 3.0, 6.0)) == (1.0, 5.0, 20.0)


def test_a_vector_that_turns_evenly_has_the_derivatives_of_a_circle() -> None:
    # |v^(k)| = r ω^k, with no angular acceleration.
    assert rotated_jet(2.0, (3.0, 0.0, 0.0)) == pytest.approx([2.0, 6.0, 18.0, 54.0])


def pendulum(mass: float, length: float, inertia: float) -> Robot:
    """A ball of some inertia on a massless rod that swings about z, gravity along -y."""
    even = ((inertia, 0.0, 0.0), (0.0, inertia, 0.0), (0.0, 0.0, inertia))
    link = Link("ball", mass, (length, 0.0, 0.0), even)
    same = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    joint = Joint("j", "revolute", -1, same, (0.0, 0.0, 0.0), (-3.0, 3.0), 2.0, 5.0, 9.0, link)
    drive = Drive("j", "j", "direct", 1.0, 1.0, 9.0)
    return Robot("pendulum", (joint,), (drive,), (), (0.0, -9.81, 0.0), (0.0,), "", "")


def test_torque_of_a_pendulum_is_bounded_as_by_hand() -> None:
    mass, length, inertia = 2.0, 0.5, 0.1
    robot = pendulum(mass, length, inertia)
    bounds = np.array([[1.0], [2.0], [3.0], [4.0], [5.0], [6.0]])

    assert robot.standard_parameters is not None
    torque, rate, curvature = torque_bounds(robot, robot.standard_parameters, bounds)[:, 0]

    # tau = I q'' + m g l cos q, and so |tau'| <= I q''' + m g l q', |tau''| <= I q'''' + m g l (q'' + q'²). The bound
    # does not see that ω × J ω, at most half of what J's principal values differ by, times ω², is across the axis.
    weight, about_pivot, across = mass * 9.81 * length, inertia + mass * length**2, 0.5 * mass * length**2
    assert torque == pytest.approx(about_pivot * 3.0 + weight + across * 4.0)
    assert rate == pytest.approx(about_pivot * 4.0 + weight * 2.0 + across * 2.0 * 2.0 * 3.0)
    assert curvature == pytest.approx(about_pivot * 5.0 + weight * 7.0 + across * 2.0 * (2.0 * 4.0 + 3.0 * 3.0))


@pytest.mark.parametrize("seed", range(60))
def test_torques_never_change_faster_than_their_bounds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    robot = random_tree(rng, int(rng.integers(1, 9)), mimics=seed % 2 == 1)
    basis = random_family(rng)
    weights = random_weights(rng, robot, basis)
    assert robot.standard_parameters is not None

    time = basis.grid(STEP)
    q, dq, ddq, _ = motion_at(basis, np.array(robot.home), weights, time)
    torque = inverse_dynamics(robot, q, dq, ddq, robot.standard_parameters)
    most = torque_bounds(robot, robot.standard_parameters, basis.bounds(weights))

    assert np.all(np.abs(torque) <= most[0])
    step = np.diff(time)[:, None]
    rate = np.diff(torque, axis=0) / step
    assert np.all(np.abs(rate) <= most[1] * (1.0 + 1e-9))
    even = np.isclose(step[1:], step[:-1], rtol=1e-9)  # a break between pieces may lie where steps differ
    curvature = np.where(even, np.diff(rate, axis=0) / step[1:], 0.0)
    assert np.all(np.abs(curvature) <= most[2] * (1.0 + 1e-6) + 1e-4)  # torques of 1e3 rounded to 1e-13, over 1e-6 s²


@pytest.mark.parametrize(("name", "excess"), [("cobot6", 1000.0), ("tx40", 5000.0)])
def test_bounds_of_an_arm_are_not_absurd(name: str, excess: float) -> None:
    """They count every joint at its fastest, all in one direction.

    Angular velocity enters the second derivative to the fourth power: twice the speed at each of four places is 16
    times, and three joints' speeds added up where one counts are 81 times as much. A certificate needs the square
    root of that more samples, and only where a limit is near.
    """
    robot = load_robot(name)
    basis = RestToRestFourier(5, 10.0)
    assert robot.standard_parameters is not None
    ratios: list[float] = []
    for seed in range(5):
        weights = np.random.default_rng(seed).standard_normal((6, basis.size))
        weights /= (basis.bounds(weights)[1] / robot.velocity_limits)[:, None]
        q, dq, ddq, _ = motion_at(basis, np.array(robot.home), weights, basis.grid(STEP))
        torque = inverse_dynamics(robot, q, dq, ddq, robot.standard_parameters)
        curvature = np.abs(np.diff(torque, 2, axis=0)).max(axis=0) / STEP**2
        most = torque_bounds(robot, robot.standard_parameters, basis.bounds(weights))[2]
        ratios += (most / curvature).tolist()

    assert np.median(ratios) < excess  # seen: 340 for cobot6, 1900 for the fast tx40
