"""The benchmark of a biped that is balanced by its file and by an estimate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hil_tests.virtual_bench.plant_file import read_plant_file
from jointbench.identification.zero_moment_point import ReducedParameters
from jointbench.signals import Motion
from jointbench.tests.identification.zero_moment_point.simulated_stance import (
    EVERY,
    TRUTH,
    biped,
    ground_forces,
    sway,
)
from tools.bench import balance
from tools.bench.balance import Masses, Played, Tracking, track

ROBOT = biped()
TRUE = Masses(ReducedParameters(ROBOT).standard(TRUTH))


def test_of_a_perfect_robot_only_wrong_masses_make_an_error() -> None:
    """A robot on rigid ground that is exactly where it was planned to be."""
    slow = sway(ROBOT, 3, 6.0)
    assert TRUE.parameters is not None
    support = ground_forces(ROBOT, ROBOT.foot("r_foot"), slow, TRUE.parameters)
    # A tick is an eighth of what boards send; what happens between two samples is not looked at.
    force = np.repeat(np.stack([support, np.zeros_like(support)], axis=1), EVERY, axis=0)
    motion = Motion(*(np.repeat(values, EVERY, axis=0) for values in (slow.q, slow.dq, slow.ddq)))
    by_file, by_truth = (track(ROBOT, motion, Played(force, motion.q), way) for way in (None, TRUE))
    # The masses were chosen for a zero-moment point that is some 35 mm off.
    assert 0.02 < by_file.error < 0.05
    # What the low-pass takes off a movement of at most 0.6 Hz, and its square.
    assert by_truth.error < 1e-3
    assert by_truth.planned_distance == pytest.approx(by_truth.distance, abs=3e-3)


def test_figures_are_of_the_distance_between_points() -> None:
    planned = np.array([[0.0, 0.0], [0.03, 0.0]])
    played = planned + np.array([[0.003, 0.004], [0.0, 0.0]])
    figures = balance.tracking(ROBOT.foot("r_foot"), planned, played)
    # The sole is 220 by 120 mm.
    assert figures.error == pytest.approx(0.0025)
    assert figures.worst == pytest.approx(0.005)
    assert figures.planned_distance == pytest.approx(0.06)
    assert figures.distance == pytest.approx(0.056)


def test_checks_can_be_red() -> None:
    before = Tracking(error=0.03, worst=0.05, planned_distance=0.05, distance=0.03)
    good = replace(before, error=0.014, distance=0.04)
    assert [check.ok for check in balance.checks([before], [good])] == [True, True]
    assert [check.ok for check in balance.checks([before], [replace(good, error=0.016)])] == [False, True]
    assert [check.ok for check in balance.checks([before], [replace(good, distance=0.02)])] == [True, False]


@pytest.mark.slow
def test_a_plant_follows_the_plan_of_its_own_masses() -> None:
    truth = read_plant_file(balance.PLANT, ROBOT)
    assert truth.base_link is not None
    links = [link.standard_parameters for link in (truth.base_link, *(joint.link for joint in truth.joints))]
    masses = Masses(np.concatenate([link for link in links if link is not None]))
    tracked = []
    for way in (None, masses):
        planned = balance.plan(ROBOT, 9.6, 5, way)
        tracked.append(track(ROBOT, planned, balance.play(ROBOT, truth, planned), way))
    assert all(check.ok for check in balance.checks(tracked[:1], tracked[1:]))
    # Servos lag and gears bend by about a millimetre of the point; cables pull it by half of one.
    assert tracked[1].error < 3e-3
