"""Plans: what they promise, whatever is asked for."""

import math
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from jointbench.dynamics import base_parameters, model_columns
from jointbench.errors import ExcitationError, InfeasibleExcitation, MissingExtra, SchedulerUnreachable
from jointbench.excitation import Excitation, plan_excitation, random_excitation
from jointbench.excitation.limits.certificate import certify
from jointbench.excitation.limits.torque_limits import usable_limits
from jointbench.excitation.limits.workspace import Workspace
from jointbench.excitation.objectives.objective import Objective
from jointbench.robot import Robot, load_robot, with_passive

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

    with pytest.raises(SchedulerUnreachable, match="no Dask scheduler answers at 'nowhere://x'"):
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

    told = (
        r"no motion was found from which \d+ of 36 base parameters can be told, .* nearest to is joint .* acceleration"
    )
    with pytest.raises(InfeasibleExcitation, match=told):
        plan_excitation(crawling, drives=False, **QUICK)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"batch": 0}, "starts = 8, iterations = 150 and batch = 0 must be at least 1"),
        ({"seed": -1}, "seed = -1 must be 0 or above"),
        ({"workers": 0}, "workers = 0 must be at least 1"),
        ({"workers": 2, "scheduler": "tcp://x:1"}, "workers = 2 must be at least 1, and left out where there is a"),
        ({"family": "chirp"}, "family is 'chirp'; there is 'fourier', 'ramped_fourier', 'point_to_point'"),
        ({"objective": "relative_sigma"}, "objective 'relative_sigma' needs the noise"),
    ],
)
def test_impossible_settings_are_named(cobot: Robot, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ExcitationError, match=message):
        plan_excitation(cobot, **settings)
