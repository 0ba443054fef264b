"""Rows of two motions come together wherever both have them, however they are cut."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.identification.estimators.paired_rows import Chosen, OtherRegressor, PairedRows
from jointbench.identification.rows import Block

N, JOINTS, P = 40, 2, 3


@dataclass(frozen=True, eq=False)
class Cut:
    """Rows in stretches (from, to)."""

    regressor: Array
    torque: Array
    stretches: tuple[tuple[int, int], ...]
    n_joints: int = JOINTS
    n_parameters: int = P

    def blocks(self) -> Iterator[Block]:
        for start, stop in self.stretches:
            part = slice(start, stop)
            used = np.ones((stop - start, JOINTS), dtype=np.bool_)
            yield Block.of(start, self.regressor[part], self.torque[part], used, np.asarray(used.all(axis=1)))


def rows(seed: int, *stretches: tuple[int, int]) -> Cut:
    rng = np.random.default_rng(seed)
    return Cut(rng.standard_normal((N, JOINTS, P)), rng.standard_normal((N, JOINTS)), stretches)


@pytest.mark.parametrize(
    ("one", "two", "both"),
    [
        (((0, 40),), ((0, 40),), [(0, 40)]),
        (((0, 40),), ((0, 10), (10, 25), (30, 40)), [(0, 10), (10, 25), (30, 40)]),
        (((0, 10), (10, 25), (30, 40)), ((5, 35),), [(5, 10), (10, 25), (30, 35)]),
        (((0, 10), (20, 30)), ((10, 20), (30, 40)), []),
        (((0, 10), (20, 40)), ((0, 15), (18, 22), (22, 38)), [(0, 10), (20, 22), (22, 38)]),
    ],
)
def test_they_meet(
    one: tuple[tuple[int, int], ...], two: tuple[tuple[int, int], ...], both: list[tuple[int, int]]
) -> None:
    measured, other = rows(0, *one), rows(1, *two)
    pairs = list(PairedRows(measured, other).pairs())
    assert [(pair.start, pair.start + len(pair.torque)) for pair in pairs] == both
    for pair in pairs:
        part = slice(pair.start, pair.start + len(pair.torque))
        assert np.array_equal(pair.measured, measured.regressor[part])
        assert np.array_equal(pair.other, other.regressor[part])
        assert np.array_equal(pair.torque, measured.torque[part])
        assert np.array_equal(pair.other_torque, other.torque[part])


def test_a_column_that_the_fit_leaves_out_is_left_out_of_both() -> None:
    measured, other = rows(0, (0, N)), rows(1, (0, N))
    measured.regressor[:, 1, 2] = 0.0
    (pair,) = PairedRows(measured, other).pairs()
    assert not pair.other[:, 1, 2].any()
    assert pair.other[:, 0].all()


def test_rows_once_chosen_stay_however_they_are_cut() -> None:
    chosen = Chosen()
    first = np.zeros((10, JOINTS), dtype=np.bool_)
    first[4] = True
    assert np.array_equal(chosen.of(5, first), first)
    everything = np.ones((N, JOINTS), dtype=np.bool_)
    (pair,) = PairedRows(rows(0, (0, N)), rows(1, (0, N)), chosen).pairs()
    expected = everything.copy()
    expected[5:15] = first
    assert np.array_equal(pair.used, expected)
    cut = PairedRows(rows(0, (0, 12), (12, N)), rows(1, (3, N)), chosen).pairs()
    assert np.array_equal(np.vstack([pair.used for pair in cut]), expected[3:])
    (again,) = PairedRows(rows(0, (0, N)), rows(1, (0, N))).pairs()
    assert again.used.all()


def test_the_other_regressor_goes_with_either_torque() -> None:
    pair = PairedRows(rows(0, (0, N)), rows(1, (0, N)))
    (measured,) = OtherRegressor(pair).blocks()
    (own,) = OtherRegressor(pair, own_torque=True).blocks()
    assert np.array_equal(measured.regressor, own.regressor)
    assert np.array_equal(measured.torque, rows(0).torque)
    assert np.array_equal(own.torque, rows(1).torque)
