"""Limits in space: points placed as Pinocchio places them, distances, exact gradients, bounds between samples."""

from __future__ import annotations

import dataclasses
import importlib
import pickle
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jointbench.arrays import IDENTITY, Array
from jointbench.excitation.limits.kernels import distances, nearest_points
from jointbench.excitation.limits.motion_limits import Motion, SpaceLimit
from jointbench.excitation.limits.space_limits import (
    CollisionLimit,
    Face,
    FaceLimit,
    Reach,
    colliding_pairs,
    last_common_link,
)
from jointbench.excitation.limits.workspace import Workspace, WorkspacePoint
from jointbench.model import Capsule, Joint, Robot, forward_kinematics, load_robot

# It has no type stubs.
pinocchio: Any = importlib.import_module("pinocchio")


def any_tree(kinds: str, seed: int) -> str:
    """Write a tree with one joint per letter: R revolute, P prismatic, M revolute and following the first R.

    Every link, and the base, has a capsule and a ball, except that the second link has none.
    """
    rng = np.random.default_rng(seed)
    leader = kinds.find("R")
    parts = [_link("l0", rng)]
    for i, kind in enumerate(kinds):
        follows = f'<mimic joint="j{leader}" multiplier="-0.7" offset="0.2"/>' if kind == "M" else ""
        parts.append(_link(f"l{i + 1}", rng) if i != 1 else '<link name="l2"/>')
        parts.append(
            f'<joint name="j{i}" type="{"prismatic" if kind == "P" else "revolute"}">'
            f'<parent link="l{rng.integers(max(i - 2, 0), i + 1)}"/><child link="l{i + 1}"/>{_placement(rng, 0.3)}'
            f'<axis xyz="{_three(rng.normal(size=3))}"/>'
            f'<limit lower="-1" upper="1.5" velocity="2" effort="50"/>{follows}</joint>'
        )
    return f'<robot name="tree">{"".join(parts)}</robot>'


def read_tree(text: str, tmp_path: Path) -> Robot:
    """The robot that a URDF describes."""
    path = tmp_path / "tree.urdf"
    path.write_text(text, encoding="utf-8")
    return load_robot(path)


def pinocchio_places(text: str, robot: Robot, q: Array, link: int, offset: Array) -> Array:
    """Where Pinocchio puts a point of a link [m], shape (n_samples, 3); followers are moved there as they must move."""
    model = pinocchio.buildModelFromXML(text.replace("<mimic", "<was_mimic"))
    data = model.createData()
    joint = model.getJointId(robot.joints[link].name)
    order = [model.joints[model.getJointId(each.name)].idx_q for each in robot.joints]
    places: list[Array] = []
    for position in robot.all_positions(q):
        there = np.zeros(model.nq)
        there[order] = position
        pinocchio.forwardKinematics(model, data, there)
        places.append(data.oMi[joint].act(offset))
    return np.array(places)


def _link(name: str, rng: np.random.Generator) -> str:
    round_ones = (f'<cylinder radius="0.04" length="{rng.uniform(0.1, 0.4):.3f}"/>', '<sphere radius="0.05"/>')
    shapes = "".join(f"<collision>{_placement(rng, 0.1)}<geometry>{one}</geometry></collision>" for one in round_ones)
    return f'<link name="{name}">{shapes}</link>'


def _placement(rng: np.random.Generator, size: float) -> str:
    return f'<origin xyz="{_three(rng.normal(size=3) * size)}" rpy="{_three(rng.uniform(-3.0, 3.0, 3))}"/>'


def _three(values: Array) -> str:
    return " ".join(f"{value:.6f}" for value in values)


def planar(robot: Robot, joints: tuple[Joint, ...]) -> Robot:
    return dataclasses.replace(robot, joints=joints, drives=robot.drives[: len(joints)], home=(0.0,) * len(joints))


def test_two_joints_that_turn_meet_the_bound_when_stretched_out(cobot: Robot) -> None:
    """Links of 1 m and 0.5 m: |p'| = 1.5 w1 + 0.5 w2, and |p''| = w1² + 0.5 (w1 + w2)² at constant speeds."""
    one = dataclasses.replace(cobot.joints[0], rotation=IDENTITY, origin=(0.0, 0.0, 0.0))
    two = dataclasses.replace(one, parent=0, origin=(1.0, 0.0, 0.0))
    robot = planar(cobot, (one, two))
    w1, w2 = 1.5, 0.7
    reach = Reach.of(robot, np.zeros(2), [1], np.array([0.5]), [-1])
    speed, acceleration = reach.bounds(np.array([[9.0, 9.0], [w1, w2], [0.0, 0.0]]))
    assert speed[0] == pytest.approx(1.5 * w1 + 0.5 * w2)
    assert acceleration[0] == pytest.approx(w1**2 + 0.5 * (w1 + w2) ** 2)
    # Angular accelerations alone move it as angular velocities do.
    assert reach.bounds(np.array([[9.0, 9.0], [0.0, 0.0], [w1, w2]]))[1][0] == pytest.approx(speed[0])
    # Seen from the first link, only the second joint moves it; the base does not move at all.
    assert Reach.of(robot, np.zeros(2), [1, -1], np.array([0.5, 2.0]), [0, -1]).bounds(
        np.array([[9.0, 9.0], [w1, w2], [0.0, 0.0]])
    )[0].tolist() == pytest.approx([0.5 * w2, 0.0])


def test_a_slide_on_an_arm_adds_its_travel_and_coriolis(cobot: Robot) -> None:
    """At rho = 1.2 + 0.3 m: rho w + s' at most, and rho w² + 2 w s' + s'', each the length of one part's vector."""
    arm = dataclasses.replace(cobot.joints[0], rotation=IDENTITY, origin=(0.0, 0.0, 0.0))
    slide = dataclasses.replace(arm, kind="prismatic", parent=0, origin=(1.0, 0.0, 0.0), axis=(1.0, 0.0, 0.0))
    robot = planar(cobot, (arm, slide))
    bounds = np.array([[9.0, 0.3], [2.0, 0.4], [0.0, 5.0]])
    speed, acceleration = Reach.of(robot, np.array([0.0, 0.2]), [1], np.zeros(1), [-1]).bounds(bounds)
    assert speed[0] == pytest.approx(1.5 * 2.0 + 0.4)
    assert acceleration[0] == pytest.approx(1.5 * 4.0 + 2.0 * 2.0 * 0.4 + 5.0)


def places(robot: Robot, q: Array, link: int, offset: Array, seen_from: int) -> Array:
    """Places of a point of a link in the frame of another one [m], shape (n_samples, 3)."""
    rotations, origins = forward_kinematics(robot, q)
    point = origins[:, link] + rotations[:, link] @ offset
    if seen_from < 0:
        return point
    return np.einsum("kab,ka->kb", rotations[:, seen_from], point - origins[:, seen_from])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kinds", ["RRR", "PRPM", "RRMPRR"])
def test_random_motions_keep_within_the_bounds(kinds: str, seed: int, tmp_path: Path) -> None:
    """From differences over time, at 3000 positions; their error is 1e-6 at most: 1e-4 s², and rounding by 1e-8 s²."""
    robot = read_tree(any_tree(kinds, seed), tmp_path)
    rng = np.random.default_rng(seed)
    n, step = robot.n_joints, 1e-4
    bounds = rng.uniform(0.2, 1.0, (3, n))
    start, velocity, acceleration = bounds[:, None] * rng.choice([-1.0, 1.0], (3, 3000, n))
    start *= rng.uniform(0.0, 1.0, start.shape)
    q = [np.array(robot.home) + start + t * velocity + t * t / 2.0 * acceleration for t in (-step, 0.0, step)]
    tip, offset = robot.n_links - 1, np.array([0.1, 0.2, -0.3])
    for seen_from in {-1, robot.joints[tip].parent}:
        before, here, after = (places(robot, each, tip, offset, seen_from) for each in q)
        speed = np.linalg.norm(after - before, axis=1).max() / (2.0 * step)
        change = np.linalg.norm(after - 2.0 * here + before, axis=1).max() / step**2
        reach = Reach.of(robot, np.array(robot.home), [tip], np.array([float(np.linalg.norm(offset))]), [seen_from])
        most_speed, most_change = reach.bounds(bounds)
        # Directions are forgotten, so that six joints bound several times more than they reach.
        assert most_speed[0] / 10.0 < speed <= most_speed[0] + 1e-6
        assert most_change[0] / 20.0 < change <= most_change[0] + 1e-6


def test_the_link_that_carries_both(tmp_path: Path) -> None:
    robot = read_tree(any_tree("RRRRRRR", 1), tmp_path)
    for i in range(-1, robot.n_links):
        for j in range(-1, robot.n_links):
            ancestors = [{-1}, {-1}]
            for chain, link in zip(ancestors, (i, j), strict=True):
                while link >= 0:
                    chain.add(link)
                    link = robot.joints[link].parent
            assert last_common_link(robot, i, j) == max(ancestors[0] & ancestors[1])


KINDS = ["RRR", "RRPM", "PRRMR", "RPRRRPR"]

# Sums of a hundred products of lengths of order one in double precision; URDFs are read in the same precision.
ROUNDING = 1e-12


def at_rest(q: Array) -> Motion:
    still = np.zeros_like(q)
    return q, still, still, still


def tree_and_limits(kinds: str, seed: int, tmp_path: Path) -> tuple[str, Robot, tuple[SpaceLimit, ...]]:
    text = any_tree(kinds, seed)
    robot = read_tree(text, tmp_path)
    tip = WorkspacePoint(f"l{len(kinds)}", (0.1, -0.2, 0.3), (-3.0, -3.0, -3.0), (3.0, 3.0, 3.0))
    names = {capsule.link for capsule in robot.capsules}
    faces = Workspace(-2.0, (tip,), excepted=tuple(product(names, names))).limits(robot)
    # Made by itself, as some of its capsules overlap at home.
    return text, robot, (*faces, CollisionLimit(robot, np.array(robot.home), colliding_pairs(robot), 0.01))


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kinds", KINDS)
def test_points_are_where_pinocchio_places_them(kinds: str, seed: int, tmp_path: Path) -> None:
    """Usage is 0 at home and 1 where the ball touches the face, in between the share of the way."""
    text, robot, limits = tree_and_limits(kinds, seed, tmp_path)
    q = np.vstack([robot.home, np.random.default_rng(seed).uniform(-1.0, 1.0, (5, robot.n_joints))])
    faces = [limit for limit in limits if isinstance(limit, FaceLimit)]
    assert len(faces) == 2
    for limit in faces:
        usage = limit.usage(at_rest(q))
        np.testing.assert_allclose(usage[0], 0.0, atol=ROUNDING)
        for scalar, face in enumerate(limit.faces):
            along = pinocchio_places(text, robot, q, face.joint, np.array(face.local))[:, face.axis]
            outermost = along + face.side * face.radius
            expected = (outermost - outermost[0]) / (face.at - outermost[0])
            np.testing.assert_allclose(usage[:, scalar], expected, rtol=ROUNDING, atol=ROUNDING)
            assert limit.distance(scalar, usage[1, scalar]) == pytest.approx(face.side * (face.at - outermost[1]))


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kinds", KINDS)
def test_capsules_are_as_near_as_sampled_axes(kinds: str, seed: int, tmp_path: Path) -> None:
    """The nearest of 200 x 200 points of two axes are no nearer, and not farther by more than their spacing."""
    text, robot, limits = tree_and_limits(kinds, seed, tmp_path)
    (limit,) = (limit for limit in limits if isinstance(limit, CollisionLimit))
    q = np.random.default_rng(seed).uniform(-1.0, 1.0, (3, robot.n_joints))
    usage = limit.usage(at_rest(q))
    shares = np.linspace(0.0, 1.0, 201)[:, None]
    for scalar, pair in enumerate(limit.pairs):
        ends: list[Array] = []
        for capsule in (robot.capsules[i] for i in pair):
            points = (np.array(capsule.start), np.array(capsule.end))
            if capsule.joint >= 0:
                ends += [pinocchio_places(text, robot, q, capsule.joint, point) for point in points]
            else:
                ends += [np.tile(point, (len(q), 1)) for point in points]
        needed = sum(robot.capsules[i].radius for i in pair) + limit.clearance
        for k in range(len(q)):
            a, b, c, d = (end[k] for end in ends)
            one, other = a + shares * (b - a), c + shares * (d - c)
            sampled = np.linalg.norm(one[:, None] - other, axis=2).min()
            apart = limit.distance(scalar, usage[k, scalar]) + needed
            spacing = (np.linalg.norm(b - a) + np.linalg.norm(d - c)) / 400.0
            # Where the axes nearly cross, usage has lost half of the digits of their distance.
            lost = ROUNDING if sampled > needed else 1e-8
            assert sampled - spacing - lost <= apart <= sampled + lost
            assert apart >= needed or usage[k, scalar] == pytest.approx(1.5 - 0.5 * (apart / needed) ** 2)
            assert apart < needed or usage[k, scalar] == pytest.approx(needed / apart)


def special_segments() -> Array:
    """Pairs of segments, shape (n, 4, 3): at random, parallel, nearly so, on one line, crossing, and points."""
    rng = np.random.default_rng(5)
    pairs = rng.normal(size=(400, 4, 3))
    pairs[50:100, 3] = pairs[50:100, 2] + rng.normal(size=(50, 1)) * (pairs[50:100, 1] - pairs[50:100, 0])
    pairs[100:200, 3] = pairs[100:200, 2] + pairs[100:200, 1] - pairs[100:200, 0]
    pairs[100:200, 3] += rng.normal(size=(100, 3)) * 10.0 ** rng.uniform(-12.0, -3.0, (100, 1))
    line = pairs[200:250, :1] + rng.normal(size=(50, 4, 1)) * (pairs[200:250, 1:2] - pairs[200:250, :1])
    pairs[200:250] = line
    middle = pairs[250:300, :2].mean(axis=1)
    pairs[250:300, 2:] = middle[:, None] + rng.normal(size=(50, 1, 3)) * np.array([[-1.0], [2.0]])
    pairs[300:330, 1] = pairs[300:330, 0]
    pairs[330:360, 3] = pairs[330:360, 2]
    pairs[360:400, 1] = pairs[360:400, 0]
    pairs[360:400, 3] = pairs[360:400, 2]
    return pairs


def test_nearest_points_of_any_two_segments() -> None:
    """No move along either segment brings the points nearer: the condition of a convex problem's minimum."""
    pairs = special_segments()
    n = len(pairs)
    zero, one = np.zeros(n, dtype=np.int64), np.ones(n, dtype=np.int64)
    shares, apart, found = np.empty((n, 2)), np.empty((n, 3)), np.empty((n, 1))
    nearest_points(pairs, zero, one, shares, apart)
    distances(pairs, zero[:1], one[:1], found)
    u, v = pairs[:, 1] - pairs[:, 0], pairs[:, 3] - pairs[:, 2]
    intersample_bound = pairs[:, 2] + shares[:, 1:] * v - pairs[:, 0] - shares[:, :1] * u
    np.testing.assert_allclose(apart, intersample_bound, atol=ROUNDING)
    np.testing.assert_allclose(found[:, 0], np.linalg.norm(intersample_bound, axis=1), atol=ROUNDING)
    assert np.all((shares >= 0.0) & (shares <= 1.0))
    for share, slope in ((shares[:, 0], -np.sum(apart * u, axis=1)), (shares[:, 1], np.sum(apart * v, axis=1))):
        # Axes within 1e-6 of parallel count as such: the slope is off by that, times lengths of order one to ten.
        slack = 1e-4
        assert np.all(slope[share < 1.0] >= -slack)
        assert np.all(slope[share > 0.0] <= slack)
    # Crossing in the first one's middle.
    np.testing.assert_allclose(found[250:300], 0.0, atol=ROUNDING)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kinds", KINDS)
def test_gradients_are_those_of_central_differences(kinds: str, seed: int, tmp_path: Path) -> None:
    _, robot, limits = tree_and_limits(kinds, seed, tmp_path)
    n, step = robot.n_joints, 1e-6
    q = np.random.default_rng(seed).uniform(-1.0, 1.0, (4, n))
    for limit in limits:
        scalars = np.arange(len(limit.names))
        for position in q:
            motion = at_rest(np.tile(position, (len(scalars), 1)))
            slopes = limit.gradient(motion, scalars)
            moved = np.concatenate([position + step * np.eye(n), position - step * np.eye(n)])
            usage = limit.usage(at_rest(moved))
            expected = ((usage[:n] - usage[n:]) / (2.0 * step)).T
            # Rounding, 1e-16 / step, and step² times third derivatives below 1e3.
            np.testing.assert_allclose(slopes[0], expected, atol=1e-8, rtol=1e-7)
            assert not any(slope.any() for slope in slopes[1:])


def circling(robot: Robot, seed: int, size: float) -> tuple[Array, Array, Array]:
    """Amplitudes and phases (3 harmonics, n_joints), and bounds (6, n_joints) of what `moved` makes of them."""
    rng = np.random.default_rng(seed)
    amplitudes, phases = size * rng.uniform(0.0, 1.0, (3, robot.n_joints)), rng.uniform(0.0, 6.3, (3, robot.n_joints))
    harmonics = np.arange(1.0, 4.0)
    bounds = np.array([harmonics**order @ amplitudes for order in range(6)])
    return amplitudes, phases, bounds


def moved(robot: Robot, amplitudes: Array, phases: Array, time: Array) -> Array:
    angle = time[:, None, None] * np.arange(1.0, 4.0)[:, None] + phases
    return np.array(robot.home) + np.sum(amplitudes * np.sin(angle), axis=1)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kinds", KINDS)
def test_usage_between_samples_is_bounded(kinds: str, seed: int, tmp_path: Path) -> None:
    _, robot, limits = tree_and_limits(kinds, seed, tmp_path)
    amplitudes, phases, bounds = circling(robot, seed, 0.5)
    for limit in limits:
        for samples in (40, 400):
            time = np.linspace(0.0, 2.0 * np.pi, 50 * samples + 1)
            usage = limit.usage(at_rest(moved(robot, amplitudes, phases, time)))
            coarse = usage[::50]
            larger = np.maximum(coarse[:-1], coarse[1:])
            above = (usage[:-1].reshape(samples, 50, -1) - larger[:, None]).max(axis=(0, 1))
            allowed = limit.intersample_bound(bounds, 2.0 * np.pi / samples)
            assert np.all(above <= allowed + ROUNDING)


def pointer(capsules: tuple[Capsule, ...], robot: Robot) -> Robot:
    """One joint that turns about z."""
    turning = dataclasses.replace(
        robot.joints[0],
        rotation=((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
        origin=(0.0, 0.0, 0.0),
        axis=(0.0, 0.0, 1.0),
    )
    return dataclasses.replace(
        robot, joints=(turning,), drives=robot.drives[:1], home=(0.3,), capsules=capsules, frames=()
    )


def test_the_bound_between_samples_is_no_larger_than_one_joint_makes_it(cobot: Robot) -> None:
    """A point that circles evenly passes its highest y between two samples: r (1 - cos(ωh/2)) above both."""
    robot = pointer((), cobot)
    limit = FaceLimit(robot, np.array(robot.home), [Face("y", 0, (0.8, 0.0, 0.0), 0.0, 1, 1, 1.0)])
    speed, step = 2.0, 0.05
    q = np.pi / 2.0 + np.array([[-0.5], [0.0], [0.5]]) * speed * step
    usage = limit.usage(at_rest(q))[:, 0]
    (allowed,) = limit.intersample_bound(np.array([[7.0], [speed], [0.0], [0.0], [0.0], [0.0]]), step)
    assert usage[0] == pytest.approx(usage[2])
    # The next term of the cosine is (ωh/2)²/12 of the first: 2e-4.
    assert allowed == pytest.approx(usage[1] - usage[0], rel=3e-4)
    assert allowed > usage[1] - usage[0]


def test_the_bound_between_samples_when_passing_a_ball(cobot: Robot) -> None:
    """The tip of a pointer passes a ball on the base: the excess is within the bound, and more than a third of it."""
    radius, clearance = 0.1, 0.02
    hand = Capsule("hand", 0, (0.8, 0.0, 0.0), (0.8, 0.0, 0.0), radius)
    robot = pointer((Capsule("base", -1, (0.0, 1.025, 0.0), (0.0, 1.025, 0.0), radius), hand), cobot)
    limit = CollisionLimit(robot, np.array(robot.home), ((0, 1),), clearance)
    speed, step = 2.0, 0.02
    q = np.pi / 2.0 + np.array([[-0.5], [0.0], [0.5]]) * speed * step
    usage = limit.usage(at_rest(q))[:, 0]
    (allowed,) = limit.intersample_bound(np.array([[7.0], [speed], [0.0], [0.0], [0.0], [0.0]]), step)
    assert usage[1] == pytest.approx(0.22 / 0.225)
    assert allowed / 3.0 < usage[1] - usage[0] < allowed


@pytest.mark.parametrize("depth", [0.0, 1e-9, 0.01, 0.1])
def test_crossing_axes_give_finite_numbers(depth: float, cobot: Robot) -> None:
    """A beam across the base's, at most 1.5 and without a slope where the axes meet; ever less the farther apart."""
    beam = Capsule("beam", 0, (-1.0, 0.0, depth), (1.0, 0.0, depth), 0.1)
    robot = pointer((Capsule("base", -1, (0.0, -1.0, 0.0), (0.0, 1.0, 0.0), 0.1), beam), cobot)
    limit = CollisionLimit(robot, np.array(robot.home), ((0, 1),), 0.0)
    q = np.array([[0.0], [0.3], [np.pi / 2.0]])  # the last is parallel to the base's, to rounding
    assert limit.usage(at_rest(q)) == pytest.approx(1.5 - 0.5 * (depth / 0.2) ** 2)
    assert limit.distance(0, limit.usage(at_rest(q))[0, 0]) == pytest.approx(depth - 0.2)
    (by_position, *_) = limit.gradient(at_rest(q), np.zeros(3, dtype=np.int64))
    np.testing.assert_allclose(by_position, 0.0, atol=ROUNDING)  # the depth does not change


def test_limits_reach_other_processes(tmp_path: Path) -> None:
    _, robot, limits = tree_and_limits("RRPM", 0, tmp_path)
    motion = at_rest(np.array([robot.home]) + 0.1)
    for limit, copy in zip(limits, pickle.loads(pickle.dumps(limits)), strict=True):
        np.testing.assert_array_equal(limit.usage(motion), copy.usage(motion))
        assert limit.names == copy.names
