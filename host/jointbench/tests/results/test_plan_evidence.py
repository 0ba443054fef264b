"""What a plan is judged by is what its motion does."""

import dataclasses
import itertools
from collections.abc import Sequence

import numpy as np
import pytest

from jointbench.cli.plan_tables import plan_text
from jointbench.dynamics import drive_parameter_names, inverse_dynamics
from jointbench.excitation import Excitation, Workspace, motion_at, random_excitation, torque_limit, usable_limits
from jointbench.results.plan_evidence import PlanEvidence
from jointbench.results.plan_traces import Trace, plain, plan_traces
from jointbench.robot import Robot, load_robot


@pytest.fixture(scope="module")
def evidence() -> PlanEvidence:
    robot, workspace = load_robot("cobot6"), Workspace(table_height=-0.05)
    plan = random_excitation(robot, seed=4, workspace=workspace)
    return PlanEvidence.of(robot, plan, workspace=workspace)


def named(traces: Sequence[Trace], name: str) -> Trace:
    return next(trace for trace in traces if trace.name == name)


def test_a_feasible_plan_says_so_and_what_is_tightest(evidence: PlanEvidence) -> None:
    assert evidence.certificate.feasible
    assert evidence.answer.startswith("feasible at every time, between samples too")
    assert evidence.certificate.worst in evidence.answer
    assert 0.0 <= evidence.smallest_margin == pytest.approx(min(evidence.certificate.margins.values()))
    assert any(name.startswith("table under") for name in evidence.certificate.margins)


def test_of_a_passive_joint_no_torque_is_said() -> None:
    robot = load_robot("rehab_arm")

    evidence = PlanEvidence.of(robot, random_excitation(robot))

    torque = named(evidence.traces, "torque")
    assert [torque.says(joint) for joint in range(5)] == [True, True, True, True, False]
    assert np.isnan(torque.peak[4])
    assert all(named(evidence.traces, "position").says(joint) for joint in range(5))
    assert np.ptp(named(evidence.traces, "position").values[:, 4]) == 0.0
    assert [line.split()[-1] for line in plan_text(evidence).splitlines() if line.startswith("  j5")] == ["0", "–"]


def test_a_plan_that_is_too_large_is_named_with_its_limit(evidence: PlanEvidence) -> None:
    plan = evidence.excitation
    large = dataclasses.replace(plan, weights=plan.weights * (1.01 / evidence.certificate.usage.max()))
    judged = PlanEvidence.of(evidence.robot, large, workspace=evidence.workspace)
    assert not judged.certificate.feasible
    assert judged.smallest_margin < 0.0
    assert judged.answer == f"not feasible: {'; '.join(judged.certificate.violations)}"
    assert "is allowed" in judged.answer


def test_spectra_have_the_condition_numbers(evidence: PlanEvidence) -> None:
    raw, scaled = evidence.singular_values
    # As accurate as the smallest singular value of a matrix of this condition.
    assert raw[0] / raw[-1] == pytest.approx(evidence.excitation.condition_number, rel=1e-9)
    assert scaled[0] / scaled[-1] == pytest.approx(evidence.scaled_condition_number, rel=1e-9)


def test_traces_are_the_motion_in_a_person_s_units(evidence: PlanEvidence) -> None:
    plan, robot = evidence.excitation, evidence.robot
    q, dq, ddq = plan.evaluate(evidence.time)
    for name, values in (("position", q), ("velocity", dq), ("acceleration", ddq)):
        trace = named(evidence.traces, name)
        np.testing.assert_allclose(trace.values, np.rad2deg(values), rtol=0.0, atol=1e-9)
        assert not trace.either_way.any()
    assert named(evidence.traces, "position").limits == pytest.approx(np.rad2deg(robot.position_limits))
    visited = [margins.position_coverage for margins in plan.margins]
    assert named(evidence.traces, "position").share == pytest.approx(visited)
    left = [1.0 - margins.velocity for margins in plan.margins]
    assert named(evidence.traces, "velocity").share == pytest.approx(left)


def test_torque_is_what_the_inertias_ask_for(evidence: PlanEvidence) -> None:
    robot, torque = evidence.robot, named(evidence.traces, "torque")
    q, dq, ddq = evidence.excitation.evaluate(evidence.time)
    assert all(drive.rotor_inertia is None for drive in robot.drives)
    assert robot.standard_parameters is not None
    # Rounding of 1 / allowed and back.
    expected = inverse_dynamics(robot, q, dq, ddq, robot.standard_parameters)
    np.testing.assert_allclose(torque.values, expected, rtol=0.0, atol=1e-10)
    assert torque.unit == "N·m"


def test_coulomb_s_friction_comes_on_top_to_both_sides(evidence: PlanEvidence) -> None:
    plan, robot = evidence.excitation, evidence.robot
    motion = motion_at(plan.basis, plan.home, plan.weights, evidence.time)
    friction = np.array([2.5 if name.endswith("coulomb") else 0.0 for name in drive_parameter_names(robot)])
    limit = torque_limit(robot, drive_parameters=friction)
    assert limit is not None
    torque, plain = named(plan_traces(robot, motion, [limit]), "torque"), named(evidence.traces, "torque")
    assert torque.either_way == pytest.approx(np.full(6, 2.5))
    assert torque.highest == pytest.approx(plain.highest + 2.5)
    assert torque.peak == pytest.approx(plain.peak + 2.5)


def test_jerk_is_there_where_a_joint_has_a_limit_of_it(evidence: PlanEvidence) -> None:
    assert [trace.name for trace in evidence.traces] == ["position", "velocity", "acceleration", "torque"]
    robot = evidence.robot
    first = dataclasses.replace(robot.joints[0], jerk_limit=20.0)
    limited = dataclasses.replace(robot, joints=(first, *robot.joints[1:]))
    judged = PlanEvidence.of(limited, evidence.excitation)
    jerk = named(judged.traces, "jerk")
    plan = evidence.excitation
    dddq = motion_at(plan.basis, plan.home, plan.weights, judged.time)[3]
    np.testing.assert_allclose(jerk.values, np.rad2deg(dddq), rtol=0.0, atol=1e-9)
    assert jerk.limits[:, 1] == pytest.approx([np.rad2deg(20.0), *itertools.repeat(np.inf, 5)])


def test_a_joint_that_slides_is_in_millimetres_and_newtons() -> None:
    robot, plan = sliding()
    traces = PlanEvidence.of(robot, plan).traces
    position, torque = named(traces, "position"), named(traces, "torque")
    q, _, _ = plan.evaluate(np.array([3.0]))
    k = int(np.searchsorted(PlanEvidence.of(robot, plan).time, 3.0))
    assert position.values[k, 0] == pytest.approx(1e3 * q[0, 0], rel=1e-3)
    assert position.values[k, 1] == pytest.approx(np.rad2deg(q[0, 1]), rel=1e-3)
    assert position.unit == "mm or °"
    assert torque.units[:2] == ("N", "N·m")


def test_without_inertias_there_is_no_torque() -> None:
    robot = load_robot("cobot6")
    bare = [dataclasses.replace(joint, link=dataclasses.replace(joint.link, mass=None)) for joint in robot.joints]
    unknown = dataclasses.replace(robot, joints=tuple(bare))
    assert len(usable_limits(unknown)) == 3
    traces = PlanEvidence.of(unknown, random_excitation(unknown, seed=1)).traces
    assert [trace.name for trace in traces] == ["position", "velocity", "acceleration"]


@pytest.mark.parametrize(
    ("value", "shown"), [(515.66, "515.7"), (10343.2, "10343"), (-150.0, "−150"), (0.00312, "0.00312"), (0.0, "0")]
)
def test_numbers_have_no_power_of_ten_where_they_are_large(value: float, shown: str) -> None:
    assert plain(value) == shown


def sliding() -> tuple[Robot, Excitation]:
    """cobot6 on a slide that carries its weight, and a motion of it."""
    robot = load_robot("cobot6")
    slide = dataclasses.replace(
        robot.joints[0],
        kind="prismatic",
        position_limits=(-0.5, 0.5),
        velocity_limit=0.5,
        acceleration_limit=1.0,
        torque_limit=1000.0,
    )
    strong = dataclasses.replace(robot.drives[0], current_limit=100.0)
    slid = dataclasses.replace(robot, joints=(slide, *robot.joints[1:]), drives=(strong, *robot.drives[1:]))
    return slid, random_excitation(slid, seed=2)
