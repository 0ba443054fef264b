from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from jointbench.dynamics import base_parameters, inverse_dynamics
from jointbench.errors import ExcitationError, InfeasibleExcitation
from jointbench.excitation import Excitation, motion_margins, plan_excitation, random_excitation
from jointbench.excitation.limits.torque_limits import check_prior
from jointbench.excitation.objectives.objective import Objective
from jointbench.robot import Robot, load_robot

# Limits are proved at every time; what is left is the rounding of a share of a limit.
ROUNDING = 1e-12


def fractions_used(robot: Robot, excitation: Excitation):
    """Largest share of each limit a motion uses, sampled off the planner's own grid."""
    q, dq, ddq = excitation.evaluate(np.arange(0.00037, excitation.period, 0.00071))
    low, high = robot.position_limits.T
    assert np.all(q > low)
    assert np.all(q < high)
    assert robot.standard_parameters is not None
    torque = inverse_dynamics(robot, q, dq, ddq, robot.standard_parameters)
    return (
        (np.abs(dq) / robot.velocity_limits).max(),
        (np.abs(ddq) / robot.acceleration_limits).max(),
        (np.abs(torque) / robot.torque_limits).max(),
    )


@pytest.mark.parametrize("period", [3.0, 20.0])  # limited by acceleration, and by position and velocity
@pytest.mark.parametrize("seed", range(20))
def test_random_motion_keeps_the_limits(cobot: Robot, seed: int, period: float) -> None:
    velocity, acceleration, torque = fractions_used(cobot, random_excitation(cobot, period=period, seed=seed))

    assert velocity <= 0.95 + ROUNDING
    assert acceleration <= 0.95 + ROUNDING
    assert torque <= 0.8 + ROUNDING


@pytest.mark.parametrize("iterations", [1, 5, 15])
@pytest.mark.parametrize("seed", range(3))
def test_a_plan_keeps_the_limits_however_early_it_stops(cobot: Robot, seed: int, iterations: int) -> None:
    plan = plan_excitation(cobot, period=8.0, samples=40, seed=seed, starts=1, iterations=iterations)

    velocity, acceleration, torque = fractions_used(cobot, plan)
    assert velocity <= 0.95 + ROUNDING
    assert acceleration <= 0.95 + ROUNDING
    assert torque <= 0.8 + ROUNDING
    assert all(margins.smallest >= 0.02 for margins in plan.margins)


@pytest.mark.parametrize("make", [random_excitation, lambda robot: plan_excitation(robot, samples=40, iterations=10)])
def test_torque_limits_bind_where_motors_are_weak(cobot: Robot, make: Callable[[Robot], Excitation]) -> None:
    weak = replace(cobot.joints[1], torque_limit=25.0)
    robot = replace(cobot, joints=(cobot.joints[0], weak, *cobot.joints[2:]))
    assert fractions_used(robot, random_excitation(cobot))[2] > 0.8  # the motion for strong motors would not do

    excitation = make(robot)

    assert fractions_used(robot, excitation)[2] <= 0.8 + ROUNDING
    assert excitation.margins[1].torque == pytest.approx(1.0 - fractions_used(robot, excitation)[2], abs=1e-4)


def test_a_robot_without_inertias_is_planned_without_torque(cobot: Robot) -> None:
    link = replace(cobot.joints[5].link, mass=None, center_of_mass=None, inertia_about_center_of_mass=None)
    robot = replace(cobot, joints=(*cobot.joints[:5], replace(cobot.joints[5], link=link)))

    plan = plan_excitation(robot, samples=40, starts=1, iterations=3)

    assert all(margins.torque is None for margins in plan.margins)
    assert all(margins.smallest > 0.0 for margins in plan.margins)


def test_margins_are_what_is_left(cobot: Robot) -> None:
    q = np.array([cobot.home, cobot.home])
    q[1, 0] = np.deg2rad(120)
    dq, ddq = np.zeros_like(q), np.zeros_like(q)
    dq[0, 0], ddq[1, 0] = np.deg2rad(-45), np.deg2rad(-75)

    first = motion_margins(cobot, q, dq, ddq)[0]

    assert first.joint == "j1"
    assert first.position == pytest.approx(30 / 300)
    assert first.velocity == pytest.approx(0.5)
    assert first.acceleration == pytest.approx(0.75)
    assert first.smallest == first.position


def test_margins_show_a_broken_limit(cobot: Robot) -> None:
    q = np.array([cobot.home])
    q[0, 2] = np.deg2rad(140)

    assert motion_margins(cobot, q, 0 * q, 0 * q)[2].position == pytest.approx(-10 / 260)


@pytest.mark.parametrize("make", [random_excitation, plan_excitation])
def test_a_home_that_cannot_be_held_is_named(cobot: Robot, make: Callable[[Robot], Excitation]) -> None:
    weak = replace(cobot.joints[1], torque_limit=5.0)
    home = (0.0, np.deg2rad(-30), *cobot.home[2:])
    robot = replace(cobot, joints=(cobot.joints[0], weak, *cobot.joints[2:]), home=home)

    with pytest.raises(
        InfeasibleExcitation,
        match=r"joint 'j2'.* N·m, .*limit 5 N·m",
    ):
        make(robot)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"seed": -1}, "seed = -1 must be 0 or above"),
        ({"prior": {"j9.Izz": 1.0}}, "prior value of 'j9.Izz': robot 'cobot6' has no such parameter; there is j1.m …"),
    ],
)
def test_impossible_random_motions_are_named(cobot: Robot, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ExcitationError, match=message):
        random_excitation(cobot, **settings)


@pytest.mark.parametrize("name", ["cobot6", "nursing_arm", "rehab_arm", "gorobot2"])
def test_prior_values_have_the_names_of_the_full_parameters(name: str) -> None:
    robot = load_robot(name)

    check_prior(robot, dict.fromkeys(base_parameters(robot).full_names, 1.0))


def test_prior_values_of_drives_do_not_disturb_an_objective_of_the_links_alone(cobot: Robot) -> None:
    base = base_parameters(cobot, drives=False)
    settings: dict[str, Any] = {"name": "relative_sigma", "noise": np.ones(6)}
    alone = Objective.of(cobot, base, **settings)

    also = Objective.of(cobot, base, **settings, prior={"j1.coulomb": 4.0})

    np.testing.assert_array_equal(also.column_scale, alone.column_scale)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"harmonics": 1}, "harmonics = 1: at least 2 are needed"),
        ({"period": 0.0}, "period = 0 s must be a positive number of seconds"),
        ({"period": float("nan")}, "period = nan s must be a positive"),
        ({"samples": 9}, "samples = 9 gives 54 equations for 58 base parameters; at least 10 samples are needed"),
        ({"objective": "log_det"}, "objective 'log_det' is not known; there is 'condition_number'"),
        ({"starts": 0}, "starts = 0, iterations = 150 and batch = 4 must be at least 1"),
        ({"time_limit": -1.0}, "time_limit = -1 s must be above 0"),
        ({"seed": -1}, "seed = -1 must be 0 or above"),
        ({"motion_share": 0.0}, "motion_share = 0 must be above 0 and at most 1"),
        ({"motion_share": 1.1}, "motion_share = 1.1 must be above 0 and at most 1"),
        ({"torque_share": float("nan")}, "torque_share = nan must be above 0 and at most 1"),
        ({"prior": {"j1.colomb": 4.0}}, "prior value of 'j1.colomb': robot 'cobot6' has no such parameter"),
        ({"prior": {"j1.coulomb": float("nan")}}, "prior value of 'j1.coulomb' is nan; leave it out"),
        ({"harmonics": 100}, r"samples = 150 jump over swings .*; at least 201 are needed"),
        ({"family": "point_to_point", "points": 90}, r"samples = 150 jump over swings .*; at least 183 are needed"),
    ],
)
def test_impossible_settings_are_named(cobot: Robot, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ExcitationError, match=message):
        plan_excitation(cobot, **settings)
