"""Columns of compensations, beside those of links and drives, and how they group with them."""

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.dynamics import (
    base_parameters,
    compensation_columns,
    compensation_parameter_names,
    known_beside_links,
    model_columns,
)
from jointbench.dynamics.base_parameters import doubled_compensations
from jointbench.dynamics.chosen_columns import ChosenColumns
from jointbench.dynamics.model_columns import CompensationTerms
from jointbench.errors import BadCompensation
from jointbench.robot import Compensation, Robot, load_robot, sine_spring, spring, with_compensations, with_passive

RandomMotion = Callable[[Robot, int, int], tuple[Array, Array, Array]]

ARM = load_robot("cobot6")


def tendon(q: Array, dq: Array, ddq: Array) -> Array:
    """Over two joints: its stretch to the third power, and a damper that stiffens with it."""
    both = q.sum(axis=1, keepdims=True)
    return np.stack([both**3, both**2 * dq.sum(axis=1, keepdims=True)], axis=2).repeat(2, axis=1)


SPRUNG = with_compensations(
    ARM, spring("elbow", "j3"), sine_spring("wrist", "j5"), Compensation("tendon", ("j2", "j3"), ("k", "c"), tendon)
)
NAMES = ("elbow.stiffness", "elbow.preload", "wrist.sine", "wrist.cosine", "tendon.k", "tendon.c")


def test_columns_stand_beside_the_others(random_motion: RandomMotion) -> None:
    q, dq, ddq = random_motion(SPRUNG, 20, 0)
    columns, names = compensation_columns(SPRUNG, q, dq, ddq)
    assert names == compensation_parameter_names(SPRUNG) == NAMES
    whole, all_names = model_columns(SPRUNG, q, dq, ddq)
    plain, plain_names = model_columns(ARM, q, dq, ddq)
    np.testing.assert_array_equal(whole, np.hstack([plain, columns]))
    assert all_names == plain_names + NAMES
    by_joint = columns.reshape(20, 6, -1)
    np.testing.assert_array_equal(by_joint[:, 2, 0], q[:, 2])
    np.testing.assert_array_equal(by_joint[:, 4, 3], np.cos(q[:, 4]))
    np.testing.assert_array_equal(by_joint[:, 1, 4], (q[:, 1] + q[:, 2]) ** 3)
    np.testing.assert_array_equal(by_joint[:, 1, 4:], by_joint[:, 2, 4:])
    assert np.count_nonzero(by_joint.any(axis=0)) == 2 + 2 + 2 * 2
    assert np.isnan(known_beside_links(SPRUNG)[-6:]).all()


def test_a_passive_joint_has_no_row(random_motion: RandomMotion) -> None:
    robot = with_passive(SPRUNG, "j3")
    columns, _ = compensation_columns(robot, *random_motion(robot, 5, 0))
    assert not columns.reshape(5, 6, -1)[:, 2].any()
    assert columns.reshape(5, 6, -1)[:, 1, 4:].all()
    assert (
        "elbow.stiffness acts on no joint whose torque is modelled" in doubled_compensations(base_parameters(robot))[0]
    )


def test_slopes_are_those_of_differences(random_motion: RandomMotion) -> None:
    motion = random_motion(SPRUNG, 9, 0)
    terms = CompensationTerms.of(SPRUNG)
    weights = np.random.default_rng(0).standard_normal((9, len(terms.row)))
    slopes = terms.pull_back(*motion, weights)
    far = 1e-4  # another step than theirs, so that agreement is no identity
    for which in range(3):
        for joint in range(6):
            step = np.zeros((3, 1, 6))
            step[which, 0, joint] = far
            ahead, behind = (terms.values(*(np.stack(motion) + sign * step)) for sign in (1.0, -1.0))
            expected = np.sum(weights * (ahead - behind), axis=1) / (2.0 * far)
            # Third derivatives of cubes times the square of the step.
            np.testing.assert_allclose(slopes[which][:, joint], expected, rtol=0.0, atol=1e-6)


@pytest.mark.parametrize("samples", [3, 20])
def test_chosen_columns_have_them(samples: int, random_motion: RandomMotion) -> None:
    motion = random_motion(SPRUNG, samples, 0)
    whole, names = model_columns(SPRUNG, *motion)
    roots = np.linspace(0.5, 2.0, 6)
    kept = np.flatnonzero(np.random.default_rng(0).uniform(size=len(names)) < 0.7)
    assert 0 < np.sum(kept >= len(names) - 6) < 6
    columns = whole[:, kept] * np.tile(roots, samples)[:, None]
    chosen = ChosenColumns.of(SPRUNG, kept, roots)
    values = chosen.values(motion, np.sign)
    expected = columns.T @ columns
    np.testing.assert_allclose(chosen.gram(values), expected, rtol=0.0, atol=1e-12 * np.abs(expected).max())

    # A function of the products, and its derivative along a direction of the motion.
    slope = np.random.default_rng(1).standard_normal((len(kept),) * 2)
    slope += slope.T
    by = np.stack(chosen.pull_back(motion, values, slope, np.zeros_like))
    direction = np.random.default_rng(2).standard_normal((3, samples, 6))

    def along(step: float) -> float:
        there = tuple(np.stack(motion) + step * direction)
        return float(np.sum(slope * chosen.gram(chosen.values((there[0], there[1], there[2]), np.sign))))

    difference = (along(1e-6) - along(-1e-6)) / 2e-6
    assert np.sum(by * direction) == pytest.approx(difference, rel=1e-5)


def test_a_spring_that_does_what_gravity_does_is_told_in_sum_with_it() -> None:
    """The second axis is level and meets the upright first one: a first moment there is a sine spring."""
    bare = dataclasses.replace(load_robot("rehab_arm"), compensations=())
    robot = with_compensations(bare, sine_spring("balancer", "j2"), spring("shut", "j4"))
    plain = base_parameters(bare)
    base = base_parameters(robot)
    assert base_parameters(robot, drives=False).rank == 22
    assert base.rank == plain.rank + 1
    assert base.leading_names[-1] == "shut.stiffness"
    assert doubled_compensations(base) == (
        "balancer.sine acts as j2.mcy in every motion, and is told only in sum with that",
        "balancer.cosine acts as j2.mcx in every motion, and is told only in sum with that",
        "shut.preload acts as j4.offset in every motion, and is told only in sum with that",
    )
    words = {group.name: group for group in base.groups}
    assert words["j4.offset"].words == "torque offset of j4, plus the preload of shut"
    assert words["j2.mcy"].formula.endswith("+ 0.101937 balancer.sine")  # 1 / 9.81


def test_a_sine_spring_at_a_joint_that_is_carried_about_is_told_from_gravity() -> None:
    bare = dataclasses.replace(load_robot("rehab_arm"), compensations=())
    base = base_parameters(with_compensations(bare, sine_spring("balancer", "j4")))
    assert base.leading_names[-2:] == ("balancer.sine", "balancer.cosine")
    assert not doubled_compensations(base)


def test_columns_of_another_shape_or_without_values_are_refused(random_motion: RandomMotion) -> None:
    motion = random_motion(ARM, 4, 0)

    def flat(q: Array, dq: Array, ddq: Array) -> Array:
        return q

    def missing(q: Array, dq: Array, ddq: Array) -> Array:
        return np.full((*q.shape, 1), np.nan)

    for columns, said in ((flat, r"shape \(4, 1\) .* needed is .* \(4, 1, 1\)"), (missing, "not finite everywhere")):
        robot = with_compensations(ARM, Compensation("rope", ("j1",), ("k",), columns))
        with pytest.raises(BadCompensation, match=said):
            compensation_columns(robot, *motion)
