"""Rows without the zeros, and without ever being whole, are the regressor's."""

import numpy as np
import pytest

from jointbench.dynamics import base_parameters, model_columns
from jointbench.errors import ShapeError
from jointbench.identification.rows import Block, RowsInMemory
from jointbench.identification.rows.motion_rows import MotionRows
from jointbench.robot import load_robot

ROBOTS = ("cobot6", "nursing_arm", "rehab_arm", "tx40")  # plain, coupled, with a passive joint, with a coupled wrist


def rows_of(name: str, n: int) -> MotionRows:
    robot = load_robot(name)
    rng = np.random.default_rng(0)
    q, dq, ddq, torque = rng.standard_normal((4, n, robot.n_joints))
    return MotionRows(base_parameters(robot), q, dq, ddq, torque, rng.random(q.shape) < 0.8)


@pytest.mark.parametrize("name", ROBOTS)
def test_they_are_the_regressor(name: str):
    rows = rows_of(name, 5000)
    blocks = list(rows.blocks())
    full, _ = model_columns(rows.base.robot, rows.q, rows.dq, rows.ddq)
    wanted = rows.base.project(full).reshape(5000, rows.n_joints, -1)
    found = np.concatenate([block.regressor for block in blocks])
    # Eight samples a time or the last ones again: the same sums in the same order but for what a compiler contracts.
    np.testing.assert_allclose(found, wanted, atol=1e-13 * np.abs(wanted).max())
    parameters = np.random.default_rng(1).standard_normal(rows.n_parameters)
    predicted = np.concatenate([block.predict(parameters) for block in blocks])
    np.testing.assert_allclose(predicted, wanted @ parameters, atol=1e-12 * np.abs(wanted).max())


def test_blocks_follow_each_other_and_come_again():
    rows = rows_of("cobot6", 5000)
    first, again = list(rows.blocks()), list(rows.blocks())
    assert [block.start for block in first] == [0, *(block.stop for block in first[:-1])]
    assert first[-1].stop == 5000
    assert max(len(block.torque) for block in first) < 5000
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one.regressor, other.regressor)


def test_passive_joints_have_no_rows():
    rows = rows_of("rehab_arm", 300)
    passive = ~np.asarray(rows.base.robot.modelled)
    assert passive.any()
    for block in rows.blocks():
        assert not block.used[:, passive].any()
        assert all(len(block.of_joint(joint).parameters) == 0 for joint in np.flatnonzero(passive).tolist())


def test_a_whole_regressor_is_not_copied():
    rng = np.random.default_rng(2)
    x, torque = rng.standard_normal((50, 2, 4)), rng.standard_normal((50, 2))
    (block,) = RowsInMemory(x, torque, np.ones((50, 2), dtype=np.bool_)).blocks()
    assert block.regressor is x
    assert np.shares_memory(block.of_joint(1).columns, x)
    by_joint = Block(0, block.joints, 4, torque, block.used, block.complete)
    np.testing.assert_array_equal(by_joint.regressor, x)


def test_arrays_that_do_not_belong_together():
    rows = rows_of("cobot6", 20)
    with pytest.raises(ShapeError, match=r"torque has shape \(19, 6\); it must be \(samples, joints\) like q"):
        MotionRows(rows.base, rows.q, rows.dq, rows.ddq, rows.torque[1:])
