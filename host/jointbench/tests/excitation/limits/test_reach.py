"""How fast points can be: closed forms where the bound is met, and random motions that keep within it."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from jointbench.arrays import IDENTITY, Array
from jointbench.dynamics import forward_kinematics
from jointbench.excitation.limits.space_limits import Reach, nearest_common
from jointbench.robot import Joint, Robot
from jointbench.tests.excitation.any_tree import any_tree, read_tree


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
            assert nearest_common(robot, i, j) == max(ancestors[0] & ancestors[1])
