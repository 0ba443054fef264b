"""Rows with friction laws among their columns are the derivative of the torque that the laws predict."""

from collections.abc import Iterator

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.dynamics import base_parameters
from jointbench.identification import FitSettings
from jointbench.identification.friction import friction_law
from jointbench.identification.friction_in_model.joint_laws import JointLaws, LawRows, Point, PredictedRows
from jointbench.identification.observations import Observations, observe
from jointbench.identification.rows import Rows
from jointbench.tests.identification.friction_in_model.law_runs import law_run, stribeck, truth_without_friction
from jointbench.tests.identification.synthetic import arm

LAWS = {
    "j1": ("makkar+load", [4.0, 6.0, 9.0, 0.05, 30.0, 5.0, 12.0]),
    "j2": ("stribeck+load", [5.0, 3.0, 8.0, 0.06, 0.2]),
    "j3": ("asymmetric", [5.0, 8.0, 6.0, 7.0]),
}


@pytest.fixture(scope="module")
def observed() -> tuple[Observations, JointLaws, Point]:
    robot = arm(3)
    joints = {name: stribeck(6.0, 4.0, 9.0, 0.2) for name in robot.joint_names}
    base = base_parameters(robot)
    laws = JointLaws(base, {name: friction_law(law) for name, (law, _) in LAWS.items()})
    values = np.concatenate([values for _, values in LAWS.values()])
    at = Point(base.group(truth_without_friction(robot, joints))[laws.kept], values)
    run = law_run(robot, joints, motion_seed=1, noise_seed=1, repeats=1)
    return observe(run, robot, base, FitSettings()), laws, at


def whole(rows: Rows) -> Iterator[tuple[Array, Array]]:
    return ((block.regressor, block.torque) for block in rows.blocks())


def predicted(observed: tuple[Observations, JointLaws, Point], at: Point) -> Array:
    rows, laws, _ = observed
    return np.concatenate([regressor[:, :, 0] for regressor, _ in whole(PredictedRows(rows, rows, laws, at))])


def test_at_the_point_itself_nothing_is_approximate(observed: tuple[Observations, JointLaws, Point]) -> None:
    rows, laws, at = observed
    for held in (np.zeros(laws.n_parameters, dtype=np.bool_), np.arange(laws.n_parameters) % 3 == 1):
        values = np.concatenate([at.base, at.laws[~held]])
        parts = list(whole(LawRows(rows, rows, laws, at, held)))
        left = np.concatenate([torque - regressor @ values for regressor, torque in parts])
        # Sums of some dozen terms of up to 200 N·m in double precision, filtered.
        np.testing.assert_allclose(left, rows.torque[rows.complete] - predicted(observed, at), rtol=0, atol=1e-9)


def test_columns_are_the_derivative(observed: tuple[Observations, JointLaws, Point]) -> None:
    rows, laws, at = observed
    held = np.zeros(laws.n_parameters, dtype=np.bool_)
    columns = np.concatenate([each for each, _ in whole(LawRows(rows, rows, laws, at, held))])
    for k in range(len(at.all)):
        step = 1e-5 * max(abs(at.all[k]), 0.1)
        ends = [at.all + sign * step * (np.arange(len(at.all)) == k) for sign in (1.0, -1.0)]
        points = [Point(end[: len(at.base)], end[len(at.base) :]) for end in ends]
        slope = (predicted(observed, points[0]) - predicted(observed, points[1])) / (2.0 * step)
        # Differences err by step² of the third derivative, 1e-10, and by rounding over the step, 1e-8; only at samples
        # where the load crosses zero between the two does its size have no derivative.
        scale = np.abs(columns[:, :, k]).max()
        np.testing.assert_allclose(slope, columns[:, :, k], rtol=0, atol=2e-6 * scale, err_msg=str(k))


def test_what_a_law_stands_for_has_no_column(observed: tuple[Observations, JointLaws, Point]) -> None:
    rows, laws, at = observed
    held = np.zeros(laws.n_parameters, dtype=np.bool_)
    names = np.array(laws.base.leading_names)
    left_out = {f"{joint}.{each}" for joint in LAWS for each in ("viscous", "coulomb")} | {"j3.offset"}
    assert set(names[~laws.kept]) == left_out
    assert LawRows(rows, rows, laws, at, held).n_parameters == len(names) - len(left_out) + laws.n_parameters
