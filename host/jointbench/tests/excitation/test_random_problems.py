"""Four hundred random problems, tight and impossible ones: every answer is feasible, or names what is in the way."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.errors import ExcitationError, InfeasibleExcitation, NumericalError
from jointbench.excitation import Excitation, Workspace, WorkspacePoint, plan_excitation
from jointbench.excitation.limits.space_limits import colliding_pairs
from jointbench.model import Capsule, Robot, forward_kinematics, gravity_torques, inverse_dynamics
from jointbench.tests.excitation.random_robots import random_tree, with_torque_limits

_PROBLEMS, _AT_A_TIME = 400, 25
_DENSE = 4000
_FAMILIES = ("fourier", "ramped_fourier", "point_to_point")
_OBJECTIVES = ("condition_number", "scaled_condition_number", "d_optimal", "e_optimal", "relative_sigma")


@dataclass(frozen=True)
class ExcitationProblem:
    """What is asked for, and what the answer must name where it cannot be had.

    Attributes:
        robot, workspace, settings: of `plan_excitation`.
        fault: pattern of the error's message; None where nothing was made impossible.
    """

    robot: Robot
    workspace: Workspace
    settings: dict[str, Any]
    fault: str | None


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, _PROBLEMS, _AT_A_TIME))
def test_every_answer_is_feasible_or_names_the_limit(first: int) -> None:
    outcomes = Counter(_outcome(seed) for seed in range(first, first + _AT_A_TIME))

    # Few that were not made impossible are so by chance: their torque is used up at home, or next to nothing moves.
    assert outcomes["refused"] <= 0.2 * _AT_A_TIME
    assert outcomes["degenerate"] <= 0.1 * _AT_A_TIME
    assert outcomes["planned"] >= 0.3 * _AT_A_TIME
    assert outcomes["named"] >= 0.1 * _AT_A_TIME


def _outcome(seed: int) -> str:
    problem = random_problem(seed)
    answer = _answer(problem)
    if isinstance(answer, NumericalError):  # a tree that happens to be nearly degenerate: there is nothing to plan for
        return "degenerate"
    if isinstance(answer, Excitation):
        assert problem.fault is None, f"problem {seed}: planned although {problem.fault}"
        _check(answer, problem, seed)
        return "planned"
    assert isinstance(answer, InfeasibleExcitation) or problem.fault, f"problem {seed}: {answer}"
    wanted = problem.fault or r"joint 'j\d+'|capsules|table|point"
    assert re.search(wanted, str(answer)), f"problem {seed}: {answer}"
    assert re.search(r"\d", str(answer)), f"problem {seed}: {answer}"
    assert not re.search(r"\bnan\b|\binf\b", str(answer)), f"problem {seed}: {answer}"
    return "named" if problem.fault else "refused"


def _answer(problem: ExcitationProblem) -> Excitation | ExcitationError | NumericalError:
    try:
        return plan_excitation(problem.robot, workspace=problem.workspace, **problem.settings)
    except (ExcitationError, NumericalError) as error:
        return error


def _check(plan: Excitation, problem: ExcitationProblem, seed: int) -> None:
    """Every limit, on a grid that is far finer than any the planner looks at, by other means than its own."""
    robot = problem.robot
    time = np.linspace(0.0, plan.duration, _DENSE)
    q, dq, ddq = plan.evaluate(time)
    assert np.isfinite([plan.condition_number, *(margin.smallest for margin in plan.margins)]).all(), f"problem {seed}"
    at_ends = np.abs([q[0] - robot.home, q[-1] - robot.home, dq[0], dq[-1], ddq[0], ddq[-1]])
    np.testing.assert_allclose(at_ends, 0.0, atol=1e-9, err_msg=f"problem {seed}")  # rounding of some ten harmonics
    low, high = robot.position_limits.T
    parameters = robot.standard_parameters
    assert parameters is not None
    inertia = np.array([drive.rotor_inertia or 0.0 for drive in robot.drives]) * np.diag(robot.transmission_matrix) ** 2
    torque = np.abs(inverse_dynamics(robot, q, dq, ddq, parameters) + inertia * ddq)
    jerk = np.abs(np.diff(ddq, axis=0)) / (time[1] - time[0])  # the mean over each step, which is at most the peak
    jerk_limits = np.array([joint.jerk_limit or np.inf for joint in robot.independent_joints])
    for name, value, limit in (
        ("position", np.maximum(q - high, low - q), 0.0),
        ("velocity", np.abs(dq), robot.velocity_limits),
        ("acceleration", np.abs(ddq), robot.acceleration_limits),
        ("torque", torque, robot.torque_limits),
        ("jerk", jerk, jerk_limits),
    ):
        assert np.all(value <= limit), f"problem {seed}: {name}"
    _check_places(problem, q[:: _DENSE // 200], seed)


def _check_places(problem: ExcitationProblem, q: Array, seed: int) -> None:
    robot, workspace = problem.robot, problem.workspace
    rotation, origin = forward_kinematics(robot, q)
    for point in workspace.points:
        link = _link_index(robot, point.link)
        place = rotation[:, link] @ np.array(point.offset) + origin[:, link]
        assert np.all((place >= point.lowest) & (place <= point.highest)), f"problem {seed}: box of {point.link}"
    axes = [_axis(capsule, rotation, origin) for capsule in robot.capsules]
    if workspace.table_height is not None:
        for capsule, axis in zip(robot.capsules, axes, strict=True):
            assert np.all(axis[..., 2] - capsule.radius >= workspace.table_height), f"problem {seed}: table"
    for first, second in _watched(problem):
        apart = _distance(axes[first], axes[second])
        radii = robot.capsules[first].radius + robot.capsules[second].radius
        assert workspace.clearance is not None
        assert np.all(apart >= radii + workspace.clearance), f"problem {seed}: capsules {first} and {second}"


def random_problem(seed: int) -> ExcitationProblem:
    """One to twelve joints on any tree, limits from loose to a thirtieth of that, and at times one that is broken."""
    rng = np.random.default_rng([seed, 2026])
    robot = _tightened(random_tree(rng, int(rng.integers(1, 13)), mimics=bool(rng.random() < 0.3)), rng)
    robot = replace(robot, capsules=_capsules(robot, rng))
    problem = ExcitationProblem(robot, _workspace(robot, rng), _settings(robot, rng), None)
    if rng.random() < 0.4:
        break_limit = _FAULTS[int(rng.integers(len(_FAULTS)))]
        return break_limit(problem, rng) or problem
    return problem


def _tightened(robot: Robot, rng: np.random.Generator) -> Robot:
    """Slower joints, and torque limits from just above what home asks for to a multiple of it."""
    slower = 10.0 ** rng.uniform(-1.5, 0.0, len(robot.joints))
    joints = tuple(
        replace(joint, velocity_limit=joint.velocity_limit * share, acceleration_limit=joint.acceleration_limit * share)
        for joint, share in zip(robot.joints, slower, strict=True)
    )
    robot = replace(robot, joints=joints)
    return with_torque_limits(robot, 1.0 + _held_at_home(robot) * rng.uniform(1.4, 6.0, robot.n_joints))


def _held_at_home(robot: Robot) -> Array:
    parameters = robot.standard_parameters
    assert parameters is not None
    return np.abs(gravity_torques(robot, np.array([robot.home]), parameters)[0])


def _capsules(robot: Robot, rng: np.random.Generator) -> tuple[Capsule, ...]:
    if rng.random() < 0.5:
        return ()
    return tuple(
        Capsule(joint.link.name, i, (0.0, 0.0, 0.0), tuple(rng.uniform(-0.2, 0.2, 3)), float(rng.uniform(0.01, 0.06)))
        for i, joint in enumerate(robot.joints)
    )


def _workspace(robot: Robot, rng: np.random.Generator) -> Workspace:
    """A table below, boxes around, and a clearance below what home has; what touches at home is excepted."""
    rotation, origin = forward_kinematics(robot, np.array([robot.home]))
    last = len(robot.joints) - 1
    points: tuple[WorkspacePoint, ...] = ()
    if rng.random() < 0.4:
        offset = rng.uniform(-0.1, 0.1, 3)
        place = rotation[0, last] @ offset + origin[0, last]
        room = rng.uniform(0.02, 0.6, (2, 3))
        corners = tuple(place - room[0]), tuple(place + room[1])
        points = (WorkspacePoint(robot.joints[last].link.name, tuple(offset), *corners),)
    if not robot.capsules:
        return Workspace(points=points)
    lowest = min(float(_axis(capsule, rotation, origin)[..., 2].min()) - capsule.radius for capsule in robot.capsules)
    lowest = min([lowest, *(float((rotation[0, last] @ np.array(p.offset) + origin[0, last])[2]) for p in points)])
    table = lowest - float(rng.uniform(0.02, 0.5)) if rng.random() < 0.5 else None
    clearance = 0.005
    axes = [_axis(capsule, rotation, origin) for capsule in robot.capsules]
    touching = [
        (robot.capsules[a].link, robot.capsules[b].link)
        for a, b in colliding_pairs(robot)
        if _distance(axes[a], axes[b])[0] < robot.capsules[a].radius + robot.capsules[b].radius + 2.0 * clearance
    ]
    return Workspace(table, points, clearance if rng.random() < 0.7 else 0.0, tuple(touching))


def _settings(robot: Robot, rng: np.random.Generator) -> dict[str, Any]:
    return {
        "family": _FAMILIES[int(rng.integers(len(_FAMILIES)))],
        "objective": _OBJECTIVES[int(rng.integers(len(_OBJECTIVES)))],
        "harmonics": int(rng.integers(3, 6)),
        "period": float(rng.uniform(4.0, 20.0)),
        "points": int(rng.integers(8, 12)),
        "samples": 60,
        "noise": rng.uniform(0.01, 1.0, robot.n_joints),
        "seed": int(rng.integers(1000)),
        "drives": bool(rng.random() < 0.5),
        "starts": 1,
        "iterations": 4,
    }


def _home_beyond_range(problem: ExcitationProblem, rng: np.random.Generator) -> ExcitationProblem:
    robot = problem.robot
    j = int(rng.integers(robot.n_joints))
    name, home = robot.joint_names[j], robot.home[j]
    out_of_reach = (home - 1.0, home - float(rng.uniform(0.0, 0.5)))
    joints = tuple(
        replace(joint, position_limits=out_of_reach) if joint.name == name else joint for joint in robot.joints
    )
    return replace(problem, robot=replace(robot, joints=joints), fault=rf"joint '{name}'.*position")


def _too_heavy(problem: ExcitationProblem, rng: np.random.Generator) -> ExcitationProblem | None:
    held = _held_at_home(problem.robot)
    j = int(np.argmax(held))
    if held[j] < 1e-6:
        return None
    limits = problem.robot.torque_limits
    limits[j] = held[j] * rng.uniform(0.1, 1.2)  # of which 0.8 may be used
    return replace(
        problem,
        robot=with_torque_limits(problem.robot, limits),
        fault=rf"joint '{problem.robot.joint_names[j]}' torque",
    )


def _table_too_high(problem: ExcitationProblem, rng: np.random.Generator) -> ExcitationProblem | None:
    robot = problem.robot
    if not robot.capsules:
        return None
    rotation, origin = forward_kinematics(robot, np.array([robot.home]))
    heights = [_axis(capsule, rotation, origin)[..., 2].min() - capsule.radius for capsule in robot.capsules]
    height = float(min(heights) + rng.uniform(0.001, 0.2))
    return replace(problem, workspace=replace(problem.workspace, table_height=height), fault="table")


def _point_outside(problem: ExcitationProblem, rng: np.random.Generator) -> ExcitationProblem:
    robot = problem.robot
    _, origin = forward_kinematics(robot, np.array([robot.home]))
    j = int(rng.integers(len(robot.joints)))
    lowest = np.full(3, -np.inf)
    axis = int(rng.integers(3))
    lowest[axis] = origin[0, j, axis] + rng.uniform(0.001, 0.3)
    point = WorkspacePoint(robot.joints[j].link.name, lowest=tuple(lowest))
    return replace(problem, workspace=replace(problem.workspace, points=(point,)), fault=rf"'{point.link}'.*\bm\b")


def _touching(problem: ExcitationProblem, rng: np.random.Generator) -> ExcitationProblem | None:
    """Two balls around the same place."""
    robot = problem.robot
    pairs = [(a, b) for a in range(len(robot.joints)) for b in range(a) if robot.joints[a].parent != b]
    if not pairs:
        return None
    a, b = pairs[int(rng.integers(len(pairs)))]
    rotation, origin = forward_kinematics(robot, np.array([robot.home]))
    there = tuple(rotation[0, a].T @ (origin[0, b] - origin[0, a]))
    balls = (
        Capsule(robot.joints[a].link.name, a, there, there, 0.05),
        Capsule(robot.joints[b].link.name, b, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), 0.05),
    )
    workspace = replace(problem.workspace, table_height=None, excepted=())
    named = rf"'{balls[0].link}'.*'{balls[1].link}'|'{balls[1].link}'.*'{balls[0].link}'"
    return replace(problem, robot=replace(robot, capsules=balls), workspace=workspace, fault=named)


def _too_few_samples(problem: ExcitationProblem, rng: np.random.Generator) -> ExcitationProblem:
    return replace(problem, settings=problem.settings | {"samples": 1, "drives": True}, fault="samples = 1 ")


_FAULTS: tuple[Callable[[ExcitationProblem, np.random.Generator], ExcitationProblem | None], ...] = (
    _home_beyond_range,
    _too_heavy,
    _table_too_high,
    _point_outside,
    _touching,
    _too_few_samples,
)


def _link_index(robot: Robot, name: str) -> int:
    return [joint.link.name for joint in robot.joints].index(name)


def _axis(capsule: Capsule, rotation: Array, origin: Array) -> Array:
    """Both ends, shape (n_samples, 2, 3)."""
    ends = np.array([capsule.start, capsule.end])
    if capsule.joint < 0:
        return np.broadcast_to(ends, (len(origin), 2, 3))
    return ends @ rotation[:, capsule.joint].transpose(0, 2, 1) + origin[:, capsule.joint, None]


def _distance(first: Array, second: Array) -> Array:
    """Of two axes, from points on them: at least the true distance, shape (n_samples,)."""
    along = np.linspace(0.0, 1.0, 21)[:, None]
    a, b = (ends[:, None, 0] * (1.0 - along) + ends[:, None, 1] * along for ends in (first, second))
    return np.linalg.norm(a[:, :, None] - b[:, None], axis=-1).min(axis=(1, 2))


def _watched(problem: ExcitationProblem) -> list[tuple[int, int]]:
    excepted = {frozenset(pair) for pair in problem.workspace.excepted}
    links = [capsule.link for capsule in problem.robot.capsules]
    return [(a, b) for a, b in colliding_pairs(problem.robot) if frozenset((links[a], links[b])) not in excepted]
