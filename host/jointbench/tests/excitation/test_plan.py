"""Plans and random motions: within limits, repeatable, whoever searches; impossible settings refused.

Motions through recorded positions: there and back, no faster than limits allow.
"""

import math
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.errors import ExcitationError, FitError, InfeasibleExcitation, MissingExtra
from jointbench.excitation import (
    Excitation,
    load_excitation,
    motion_margins,
    plan_excitation,
    random_excitation,
    taught_excitation,
)
from jointbench.excitation.limits.certificate import certify
from jointbench.excitation.limits.torque_limits import check_prior, usable_limits
from jointbench.excitation.limits.workspace import Workspace
from jointbench.excitation.objectives.objective import Objective
from jointbench.excitation.taught import NODE_PERIOD
from jointbench.model import Robot, base_parameters, inverse_dynamics, load_robot, model_columns, with_passive

QUICK: dict[str, Any] = {"samples": 40, "starts": 2, "iterations": 8}


def certified(robot: Robot, plan: Excitation, workspace: Workspace | None = None) -> bool:
    limits = (*usable_limits(robot), *(workspace.limits(robot) if workspace else ()))
    return certify(limits, plan.basis, plan.home, plan.weights).feasible


@pytest.fixture(scope="module")
def by_chance() -> list[Excitation]:
    """Motions that nobody searched for."""
    robot = load_robot("cobot6")
    return [random_excitation(robot, seed=seed) for seed in range(20)]


def test_a_plan_is_far_better_than_chance(cobot: Robot, by_chance: list[Excitation]) -> None:
    plan = plan_excitation(cobot, starts=1)

    assert plan.condition_number < 0.25 * min(each.condition_number for each in by_chance)  # seen: 70 against 400
    assert certified(cobot, plan)


def test_the_condition_number_is_that_of_its_motion(cobot: Robot) -> None:
    plan = plan_excitation(cobot, **QUICK)
    time = (np.arange(40) + 0.5) * plan.period / 40

    columns = base_parameters(cobot).project(model_columns(cobot, *plan.evaluate(time))[0])

    # The motion is evaluated by another sum: 1e-16 of it, times the condition number, is far below.
    assert plan.condition_number == pytest.approx(np.linalg.cond(columns), rel=1e-9)


def test_same_seed_same_plan(cobot: Robot) -> None:
    one, same, other = (plan_excitation(cobot, seed=seed, **QUICK) for seed in (1, 1, 2))

    assert one.to_dict() == same.to_dict()
    assert one.to_dict() != other.to_dict()


@pytest.mark.slow  # two processes start, and load the kernels
def test_same_seed_same_plan_whoever_searches(cobot: Robot) -> None:
    settings: dict[str, Any] = QUICK | {"starts": 6, "batch": 3}
    told: list[tuple[int, int, float]] = []

    alone = plan_excitation(cobot, **settings)
    together = plan_excitation(cobot, workers=2, progress=lambda *what: told.append(what), **settings)

    assert together.to_dict() == alone.to_dict()
    assert sorted(start for start, _, _ in told) == list(range(6))
    assert told[-1][2] >= alone.condition_number


@pytest.mark.slow  # a cluster starts
def test_a_cluster_makes_the_same_plan(cobot: Robot) -> None:
    distributed = pytest.importorskip("distributed", reason="Dask, an optional extra, is not installed")

    alone = plan_excitation(cobot, **QUICK)
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
    ) as cluster:
        there = plan_excitation(cobot, scheduler=cluster.scheduler_address, **QUICK)

    assert there.to_dict() == alone.to_dict()


def test_without_dask_a_scheduler_is_refused_with_what_to_install(
    cobot: Robot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)

    with pytest.raises(MissingExtra, match=r"pip install 'jointbench\[dask\]'"):
        plan_excitation(cobot, scheduler="tcp://127.0.0.1:8786")


def test_a_scheduler_that_is_no_address_is_named(cobot: Robot) -> None:
    pytest.importorskip("distributed", reason="Dask, an optional extra, is not installed")

    with pytest.raises(FitError, match="no Dask scheduler answers at 'nowhere://x'"):
        plan_excitation(cobot, scheduler="nowhere://x")


def test_progress_is_told_and_never_worsens(cobot: Robot) -> None:
    told: list[tuple[int, int, float]] = []

    plan = plan_excitation(cobot, progress=lambda *what: told.append(what), **QUICK)

    assert {start for start, _, _ in told} == {0, 1}
    best = [value for _, _, value in told]
    assert best == sorted(best, reverse=True)
    # In the midst of a search it is of the smooth stand-in, of a motion that keeps the limits but for 0.1 %.
    assert best[-1] == pytest.approx(plan.condition_number, rel=0.01)


def test_a_time_limit_still_gives_a_feasible_plan(cobot: Robot) -> None:
    plan = plan_excitation(cobot, samples=40, time_limit=1e-9, starts=50, iterations=1000)

    assert certified(cobot, plan)
    assert math.isfinite(plan.condition_number)


@pytest.mark.parametrize(
    "objective",
    ["condition_number", "scaled_condition_number", "d_optimal", "e_optimal", "relative_sigma"],
)
def test_each_objective_ends_below_that_of_motions_by_chance(
    cobot: Robot, objective: str, by_chance: list[Excitation]
) -> None:
    noise = np.array([0.5, 1.0, 0.5, 0.2, 0.1, 0.1])
    criterion = Objective.of(cobot, base_parameters(cobot), objective, noise=noise)
    time = (np.arange(60) + 0.5) * 20.0 / 60
    least = min(criterion.value(each.evaluate(time)) for each in by_chance[:10])

    plan = plan_excitation(cobot, samples=60, objective=objective, noise=noise, starts=1, iterations=40)

    assert plan.objective == objective
    value = criterion.value(plan.evaluate(time))
    if objective in ("d_optimal", "e_optimal"):  # logs of a mean variance, and of the largest
        assert value < least - math.log(2.0)
    else:
        assert value < least / math.sqrt(2.0)


def test_without_drives_other_parameters_count(cobot: Robot) -> None:
    links = base_parameters(cobot, drives=False)
    plan = plan_excitation(cobot, drives=False, **QUICK)
    given = plan_excitation(cobot, base=links, **QUICK)

    assert given.to_dict() == plan.to_dict()
    assert plan.to_dict() != plan_excitation(cobot, **QUICK).to_dict()


@pytest.mark.parametrize("family", ["fourier", "ramped_fourier", "point_to_point"])
def test_each_family_is_planned_within_limits_and_a_workspace(cobot: Robot, family: str) -> None:
    workspace = Workspace(table_height=0.0, clearance=0.02)

    plan = plan_excitation(cobot, family=family, period=10.0, workspace=workspace, **QUICK)

    assert plan.family == family
    assert certified(cobot, plan, workspace)
    assert plan.distances  # it says how near it comes


def test_a_joint_that_nothing_drives_is_held_at_home(cobot: Robot) -> None:
    plan = plan_excitation(with_passive(cobot, "j6", neglected=True), **QUICK)

    moved = np.ptp(plan.evaluate(np.linspace(0.0, plan.duration, 100))[0], axis=0) > 0.0
    assert moved.tolist() == [True, True, True, True, True, False]
    # Which of the seven are named first is a matter of rounding.
    with pytest.raises(InfeasibleExcitation, match=r"j4\.Izz.* among them.*Passive joints are held at home: 'j4'"):
        plan_excitation(with_passive(cobot, "j4"), **QUICK)  # all that it carries is one body then


def test_shares_of_the_limits_may_be_chosen(cobot: Robot) -> None:
    robot = replace(cobot, joints=tuple(replace(joint, torque_limit=1e4) for joint in cobot.joints))

    careful, bold = (plan_excitation(robot, motion_share=share, **QUICK) for share in (0.5, 1.0))

    assert min(margins.velocity for margins in careful.margins) >= 0.5
    assert min(margins.smallest for margins in bold.margins) < 0.05


def test_limits_that_leave_too_little_motion_are_refused(cobot: Robot) -> None:
    crawling = replace(cobot, joints=tuple(replace(joint, acceleration_limit=1e-7) for joint in cobot.joints))

    message = r"no motion was found from which \d+ of 36 base parameters can be identified, .* joint .* acceleration"
    with pytest.raises(InfeasibleExcitation, match=message):
        plan_excitation(crawling, drives=False, **QUICK)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"batch": 0}, "starts = 8, iterations = 150 and batch = 0 must be at least 1"),
        ({"seed": -1}, "seed = -1 must be 0 or above"),
        ({"workers": 0}, "workers = 0 must be at least 1"),
        ({"workers": 2, "scheduler": "tcp://x:1"}, "workers = 2 must be at least 1, and 1 beside a scheduler"),
        ({"family": "chirp"}, "family is 'chirp'; there is 'fourier', 'ramped_fourier', 'point_to_point'"),
        ({"objective": "relative_sigma"}, "objective 'relative_sigma' needs the noise"),
    ],
)
def test_impossible_settings_are_named(cobot: Robot, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ExcitationError, match=message):
        plan_excitation(cobot, **settings)


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
def test_impossible_settings_of_a_plan_are_named(cobot: Robot, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ExcitationError, match=message):
        plan_excitation(cobot, **settings)


ROBOT = load_robot("cobot6:2")
PERIOD = 0.01


def path(way: float, seconds: float = 4.0) -> Array:
    """Both joints from home by a way [rad] and on to there, as a hand would lead them."""
    share = np.arange(0.0, 1.0, PERIOD / seconds)[:, None]
    return np.array(ROBOT.home) + np.array([way, -0.5 * way]) * (1.0 - np.cos(np.pi * share)) / 2.0


def test_it_goes_through_what_was_recorded_and_back_from_rest_to_rest(tmp_path) -> None:
    recorded = path(0.4)
    recorded[37] = np.nan  # a sample that was lost
    motion = load_excitation(taught_excitation(ROBOT, recorded, PERIOD).save(tmp_path / "taught.json"))
    time = np.linspace(0.0, motion.duration, 2001)
    q, dq, _ = motion.evaluate(time)
    np.testing.assert_allclose(q[[0, -1]], motion.home[None].repeat(2, axis=0), atol=1e-9)
    np.testing.assert_allclose(dq[[0, -1]], 0.0, atol=1e-9)
    np.testing.assert_allclose(q, q[::-1], atol=1e-9)
    first = round(NODE_PERIOD / PERIOD)
    for mean in recorded[2 * first : 5 * first].reshape(3, first, 2).mean(axis=1):
        # Between two of 2001 times a joint goes some 1e-4 rad.
        assert np.abs(q - mean).max(axis=1).min() <= 5e-4
    np.testing.assert_allclose(np.ptp(q, axis=0), np.ptp(path(0.4), axis=0), rtol=0.02)


def test_what_was_led_too_fast_is_played_slower_and_keeps_the_limits() -> None:
    slow, fast = (taught_excitation(ROBOT, path(1.6, seconds), PERIOD) for seconds in (8.0, 1.0))
    assert slow.duration == pytest.approx((2 * 8.0 / NODE_PERIOD + 6 + 5) * NODE_PERIOD, rel=0.01)
    assert fast.duration > 1.2 * (2 * 1.0 / NODE_PERIOD + 6 + 5) * NODE_PERIOD
    for motion in (slow, fast):
        assert certify(usable_limits(ROBOT, motion.home), motion.basis, motion.home, motion.weights).feasible


def test_nothing_is_made_of_an_arm_that_stood_still_or_left_its_limits() -> None:
    with pytest.raises(ExcitationError, match=r"no joint moved by more than 0\.01 rad"):
        taught_excitation(ROBOT, path(0.001), PERIOD)
    with pytest.raises(ExcitationError, match=r"2 quarters of a second were recorded whole"):
        taught_excitation(ROBOT, path(0.4)[:50], PERIOD)
    with pytest.raises(
        InfeasibleExcitation, match=r"even 16 times slower than it was taught; .*j1 0\.06\d* to 19\.9 \(limits"
    ):
        taught_excitation(ROBOT, path(20.0), PERIOD)
