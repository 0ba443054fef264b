"""Rows of a known motion, and rows of motors beside rows of torque sensors."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.errors import ShapeError
from jointbench.identification.rows import (
    AtSensor,
    Block,
    MotionRows,
    Rows,
    RowsInMemory,
    WithoutMotorSide,
    felt_by_sensor,
)
from jointbench.model import BaseParameters, base_parameters, load_robot, model_columns

ROBOTS = ("cobot6", "nursing_arm", "rehab_arm", "tx40")  # plain, coupled, with a passive joint, with a coupled wrist


def rows_of_motion(name: str, n: int) -> MotionRows:
    robot = load_robot(name)
    rng = np.random.default_rng(0)
    q, dq, ddq, torque = rng.standard_normal((4, n, robot.n_joints))
    return MotionRows(base_parameters(robot), q, dq, ddq, torque, rng.random(q.shape) < 0.8)


@pytest.mark.parametrize("name", ROBOTS)
def test_they_are_the_regressor(name: str):
    rows = rows_of_motion(name, 5000)
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
    rows = rows_of_motion("cobot6", 5000)
    first, again = list(rows.blocks()), list(rows.blocks())
    assert [block.start for block in first] == [0, *(block.stop for block in first[:-1])]
    assert first[-1].stop == 5000
    assert max(len(block.torque) for block in first) < 5000
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one.regressor, other.regressor)


def test_passive_joints_have_no_rows():
    rows = rows_of_motion("rehab_arm", 300)
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
    rows = rows_of_motion("cobot6", 20)
    with pytest.raises(ShapeError, match=r"torque has shape \(19, 6\); it must be \(samples, joints\) like q"):
        MotionRows(rows.base, rows.q, rows.dq, rows.ddq, rows.torque[1:])


Mask = NDArray[np.bool_]
N_ROWS = 400
ROUNDING = 1e-9
"""Of parameters and torques of about 1, from rows whose condition number is some thousands."""


@dataclass(frozen=True)
class InPieces:
    """The same rows in blocks of seventy."""

    rows: RowsInMemory

    @property
    def n_joints(self) -> int:
        return self.rows.n_joints

    @property
    def n_parameters(self) -> int:
        return self.rows.n_parameters

    def blocks(self) -> Iterator[Block]:
        for start in range(0, N_ROWS, 70):
            part = slice(start, start + 70)
            used = self.rows.used[part]
            complete: Mask = np.asarray(used.any(axis=1))
            yield Block.of(start, self.rows.regressor[part], self.rows.torque[part], used, complete)


@pytest.fixture(scope="module")
def base() -> BaseParameters:
    return base_parameters(load_robot("cobot6"))


def motion(base: BaseParameters) -> Array:
    return np.random.default_rng(0).standard_normal((3, N_ROWS, base.robot.n_joints))


def rows_of(base: BaseParameters, full: Array, motion: Array, noise: float = 0.0) -> RowsInMemory:
    """Rows of a robot with these full parameters; a tenth of them is not used, and there wrong."""
    rng = np.random.default_rng(2)
    regressor = base.project(model_columns(base.robot, *motion)[0]).reshape(N_ROWS, -1, base.rank)
    torque = regressor @ base.group(full)
    used = rng.random(torque.shape) < 0.9
    return RowsInMemory(regressor, np.where(used, torque + noise * rng.standard_normal(torque.shape), 1e3), used)


def any_parameters(base: BaseParameters) -> Array:
    return np.random.default_rng(1).standard_normal(base.n_full)


def without_rotors(base: BaseParameters, full: Array) -> Array:
    return np.where([name.endswith(".rotor_inertia") for name in base.full_names], 0.0, full)


def least_squares(rows: Rows) -> tuple[Array, Mask]:
    """The parameters, 0 where no row has a column of them, and which have one."""
    blocks = list(rows.blocks())
    regressor = np.concatenate([block.regressor[block.used] for block in blocks])
    torque = np.concatenate([block.torque[block.used] for block in blocks])
    seen: Mask = np.asarray(regressor.any(axis=0))
    parameters = np.zeros(rows.n_parameters)
    parameters[seen] = np.linalg.lstsq(regressor[:, seen], torque)[0]
    return parameters, seen


def names_of(base: BaseParameters, which: Mask) -> set[str]:
    return {name for name, each in zip(base.leading_names, which, strict=True) if each}


def of_drives(base: BaseParameters) -> Mask:
    """Which base parameters a drive parameter is part of."""
    return np.asarray(base.grouping[:, 10 * base.robot.n_links :].any(axis=1))


def test_links_are_told_as_by_a_fit_of_links_and_drives_together(base: BaseParameters):
    rows = rows_of(base, any_parameters(base), motion(base), noise=1.0)
    together, _ = least_squares(rows)
    alone, seen = least_squares(WithoutMotorSide(rows, base))

    assert names_of(base, seen) == names_of(base, ~of_drives(base))
    assert np.allclose(alone[seen], together[seen], rtol=0.0, atol=ROUNDING)


def test_what_the_drives_are_does_not_matter(base: BaseParameters):
    full, other = any_parameters(base), any_parameters(base)
    other[10 * base.robot.n_links :] *= -3.0
    (here,), (there,) = (
        WithoutMotorSide(rows_of(base, parameters, motion(base)), base).blocks() for parameters in (full, other)
    )

    assert np.allclose(here.torque[here.used], there.torque[there.used], rtol=0.0, atol=ROUNDING)


def test_drives_of_coupled_joints_too():
    base = base_parameters(load_robot("tx40"))
    full = any_parameters(base)
    alone, seen = least_squares(WithoutMotorSide(rows_of(base, full, motion(base)), base))

    assert names_of(base, seen) == names_of(base, ~of_drives(base))
    assert np.allclose(alone[seen], base.group(full)[seen], rtol=0.0, atol=ROUNDING)


def test_motion_in_one_direction_tells_as_much(base: BaseParameters):
    """Then Coulomb friction and offset act alike, and it does not matter which of them it is."""
    full = any_parameters(base)
    q, dq, ddq = motion(base)
    alone, seen = least_squares(WithoutMotorSide(rows_of(base, full, np.array([q, np.abs(dq), ddq])), base))

    assert names_of(base, seen) == names_of(base, ~of_drives(base))
    assert np.allclose(alone[seen], base.group(full)[seen], rtol=0.0, atol=ROUNDING)


def test_blocks_give_what_one_does(base: BaseParameters):
    rows = rows_of(base, any_parameters(base), motion(base), noise=1.0)
    (whole,) = WithoutMotorSide(rows, base).blocks()
    pieces = list(WithoutMotorSide(InPieces(rows), base).blocks())

    assert [piece.start for piece in pieces] == list(range(0, N_ROWS, 70))
    assert np.allclose(np.concatenate([each.regressor for each in pieces]), whole.regressor, rtol=0.0, atol=ROUNDING)
    torque = np.concatenate([each.torque for each in pieces])
    assert np.allclose(torque[whole.used], whole.torque[whole.used], rtol=0.0, atol=ROUNDING)


def test_a_joint_without_rows_stays_out(base: BaseParameters):
    rows = rows_of(base, any_parameters(base), motion(base))
    rows.used[:, 3] = False
    (block,) = WithoutMotorSide(rows, base).blocks()

    assert not block.regressor[:, 3].any()
    assert np.isfinite(block.regressor).all()
    assert np.isfinite(block.torque).all()


def test_a_sensor_does_not_feel_the_rotors(base: BaseParameters):
    full = any_parameters(base)
    felt = without_rotors(base, full)
    sensor = AtSensor(rows_of(base, felt, motion(base)), base)
    parameters, seen = least_squares(sensor)

    assert names_of(base, ~seen) == {f"{name}.rotor_inertia" for name in ("j3", "j4", "j5", "j6")}
    assert np.allclose(parameters[seen], base.group(felt)[seen], rtol=0.0, atol=ROUNDING)


def test_what_a_sensor_feels_of_a_group_is_its_links_share(base: BaseParameters):
    full = any_parameters(base)
    parameters, seen = least_squares(AtSensor(rows_of(base, without_rotors(base, full), motion(base)), base))

    felt = felt_by_sensor(base).group(full)
    assert np.allclose(parameters[seen], felt[seen], rtol=0.0, atol=ROUNDING)
    assert names_of(base, np.abs(felt - base.group(full)) > ROUNDING) == {"j1.Izz", "j2.Izz"}


def test_currents_and_sensors_together_tell_what_neither_does(base: BaseParameters):
    """Two recordings of half the joints' torques each, one by current, one by sensor, with other friction in each."""
    full, drives = any_parameters(base), slice(10 * base.robot.n_links, None)
    at_sensor, before = without_rotors(base, full), full.copy()
    before[drives] += 5.0
    sensor, current = (rows_of(base, each, motion(base)) for each in (at_sensor, before))
    sensor.used[:, :3], current.used[:, 3:] = False, False
    parts = (AtSensor(sensor, base), WithoutMotorSide(current, base))
    blocks = [block for part in parts for block in part.blocks()]
    regressor = np.concatenate([block.regressor[block.used] for block in blocks])
    torque = np.concatenate([block.torque[block.used] for block in blocks])
    seen: Mask = np.asarray(regressor.any(axis=0))
    told = np.linalg.lstsq(regressor[:, seen], torque)[0]

    assert np.allclose(told, base.group(at_sensor)[seen], rtol=0.0, atol=ROUNDING)
    assert names_of(base, seen & of_drives(base)) == {
        f"{name}.{kind}" for name in ("j4", "j5", "j6") for kind in ("viscous", "coulomb", "offset")
    }
